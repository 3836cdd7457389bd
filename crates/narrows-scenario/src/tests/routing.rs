//! Routing policies: what becomes of them in plans, and what is said of them.

use narrows_core::routing::{RoutingConfig, flowlet, rehash, spray};
use narrows_core::units::Span;

use super::*;

/// An experiment whose file begins so, with one scheme of which this is said.
fn text(first: &str, of_scheme: &str, topology: &str, sweep: &str) -> String {
    format!(
        "{first}\n[topology.{topology}]\n[[traffic]]\nlong = {{}}\nfrom = \"*1-1\"\nto = \"*2-1\"
        [[arm]]\nname = \"it\"\ncc = \"cubic\"\n{of_scheme}\n{sweep}\n[run]\nend = \"1s\"\n"
    )
}

fn leaf_spine(first: &str) -> String {
    text(first, "", "leaf-spine", "")
}

fn routing(text: &str) -> Option<RoutingConfig> {
    plans(text)[0].network.routing
}

#[test]
fn a_policy_is_the_networks() {
    let spray = Some(RoutingConfig::Spray(spray::Config {}));
    let flowlet = |us, entries| RoutingConfig::Flowlet(flowlet::Config { gap: Span::from_us(us), entries });
    assert_eq!(routing(&leaf_spine("")), None);
    assert_eq!(routing(&leaf_spine("routing = \"ecmp\"")), None);
    assert_eq!(routing(&leaf_spine("routing = \"spray\"")), spray);
    assert_eq!(routing(&leaf_spine("routing = { flowlet = { gap = \"50us\" } }")), Some(flowlet(50, 4_096)));
    assert_eq!(routing(&leaf_spine("routing.flowlet = { gap = \"1ms\", entries = 8 }")), Some(flowlet(1_000, 8)));
    let rehash = |rounds| {
        let config = rehash::Config { threshold: 128, rounds, idle_rounds: 3, suspend: Span::from_secs(60) };
        Some(RoutingConfig::Rehash(config))
    };
    assert_eq!(routing(&leaf_spine("routing = \"rehash\"")), rehash(12));
    assert_eq!(routing(&leaf_spine("routing.rehash.rounds = 5")), rehash(5));
    assert_eq!(routing(&text("", "set = { routing = \"spray\" }", "leaf-spine", "")), spray);
    // Plans without one are as they were: their results stay.
    let plain = serde_json::to_string(&plans(&leaf_spine(""))[0]).unwrap();
    assert!(!plain.contains("routing"), "{plain}");
}

#[test]
fn a_sweep_into_a_policy_is_of_the_schemes_that_have_it() {
    let both = "set = { routing = { flowlet = { gap = \"1us\" } } }\n[[arm]]\nname = \"hashes\"\ncc = \"cubic\"";
    let sweep = "[sweep]\n\"routing.flowlet.gap\" = [\"10us\", \"20us\"]";
    // Whether ECMP is written or not.
    let plans = |first: &str| plans(&text(first, both, "leaf-spine", sweep));
    assert_eq!(plans(""), plans("routing = \"ecmp\""));
    let plans = plans("");
    let gaps: Vec<Option<RoutingConfig>> = plans.iter().map(|plan| plan.network.routing).collect();
    let flowlet = |us| Some(RoutingConfig::Flowlet(flowlet::Config { gap: Span::from_us(us), entries: 4_096 }));
    assert_eq!(gaps, [flowlet(10), flowlet(20), None]);
}

#[test]
fn a_policy_with_one_path_is_warned_of() {
    let warned = |text: &str| {
        let experiment = crate::load_str(text, &Default::default(), &Default::default()).unwrap();
        experiment.warnings.iter().any(|warning| warning.text.starts_with("`routing = \"spray\"` changes nothing"))
    };
    let one_path =
        text("routing = \"spray\"", "", "two-datacenters", "").replace("*1-1", "a1-1").replace("*2-1", "b1-1");
    assert!(warned(&one_path));
    assert!(!warned(&leaf_spine("routing = \"spray\"")));
}

#[test]
fn unlike_links_among_which_a_policy_chooses_are_warned_of() {
    let warned = |routing: &str, rates: [&str; 2], detour: &str| {
        let links = rates.map(|rate| format!("{{ ends = [\"s\", \"t\"], both.rate = \"{rate}\" }}")).join(", ");
        let topology = format!(
            "graph]\nswitches = [{{ name = \"s\" }}, {{ name = \"t\" }}, {{ name = \"u\" }}]\n\
             hosts = [{{ name = \"a1-1\", switch = \"s\" }}, {{ name = \"b2-1\", switch = \"t\" }}]\n\
             links = [{links}{detour}]\n[topology.graph.fabric"
        );
        let experiment = crate::load_str(&text(routing, "", &topology, ""), &Default::default(), &Default::default());
        let experiment = experiment.unwrap_or_else(|error| panic!("{}", error.render()));
        experiment.warnings.into_iter().map(|warning| warning.text).find(|text| text.starts_with("equally short paths"))
    };
    let told = warned("", ["1Gbps", "10Gbps"], "").expect("warned of");
    assert!(told.contains("links of 1Gbps (`") && told.contains(") and 10Gbps (`"), "{told}");
    assert!(told.contains("`ecmp` sends as much over each"), "{told}");
    assert!(warned("routing = \"spray\"", ["1Gbps", "10Gbps"], "").expect("as well").contains("`spray`"));
    assert_eq!(warned("", ["10Gbps", "10Gbps"], ""), None);
    // A slow way that is longer is not taken.
    let detour = ", { ends = [\"s\", \"u\"], both.rate = \"1Gbps\" }, { ends = [\"u\", \"t\"], both.rate = \"1Gbps\" }";
    assert_eq!(warned("", ["10Gbps", "10Gbps"], detour), None);
}

#[test]
fn bad_policies_are_refused_where_they_stand() {
    let refused = |first: &str| {
        let error = crate::load_str(&leaf_spine(first), &Default::default(), &Default::default()).unwrap_err();
        error.render()
    };
    let unknown = refused("routing = \"sprey\"");
    assert!(unknown.contains("experiment.toml:1:11") && unknown.contains("`spray`"), "{unknown}");
    let none = refused("routing = \"flowlet\"");
    assert!(none.contains("`gap`"), "{none}");
    let of_ecmp = refused("routing = { ecmp = { salt = 1 } }");
    assert!(of_ecmp.contains("`ecmp` has no parameter `salt`"), "{of_ecmp}");
    let zero = refused("routing = { flowlet = { gap = \"0s\" } }");
    assert!(zero.contains("`gap` of `flowlet` is 0"), "{zero}");
}

#[test]
fn flows_that_rehash_and_an_edge_pair_are_refused_together() {
    let text = text("routing = \"rehash\"", "", "two-datacenters", "[topology.two-datacenters.wan]\nbridge = \"dcib\"");
    let text = text.replace("*1-1", "a1-1").replace("*2-1", "b1-1");
    let error = crate::load_str(&text, &Default::default(), &Default::default()).unwrap_err().render();
    assert!(error.contains("the edge pair (`bridge`) of `border-a->border-b` needs them to stay"), "{error}");
    assert!(error.contains(":1:11") && error.contains("take `routing` away, or set `bridge = \"none\"`"), "{error}");
    // Without either it is fine.
    plans(&text.replace("\"rehash\"", "\"spray\""));
    plans(&text.replace("bridge = \"dcib\"", ""));
}

#[test]
fn rehashing_without_marks_is_warned_of() {
    let missing = |text: &str| {
        let experiment = crate::load_str(text, &Default::default(), &Default::default()).unwrap();
        let said = "`routing = \"rehash\"` changes paths after timeouts alone: ";
        let found = experiment.warnings.iter().find_map(|warning| warning.text.strip_prefix(said));
        found.map(str::to_owned)
    };
    let marks = "[topology.leaf-spine.fabric.aqm.threshold]\nmark-at = \"20pkt\"";
    let of = |routing: &str, controller: &str, marks: &str| {
        text(&format!("routing = \"{routing}\""), "", "leaf-spine", marks).replace("cubic", controller)
    };
    assert_eq!(missing(&of("rehash", "cubic", marks)).as_deref(), Some("no traffic over TCP uses ECN"));
    assert_eq!(missing(&of("rehash", "dctcp", "")).as_deref(), Some("no port marks packets"));
    assert_eq!(missing(&of("rehash", "dctcp", marks)), None);
    assert_eq!(missing(&of("spray", "cubic", "")), None);
    // Where it changes nothing at all, that is what is said.
    let said = |text: &str| {
        let experiment = crate::load_str(text, &Default::default(), &Default::default()).unwrap();
        let texts = experiment.warnings.into_iter().map(|warning| warning.text);
        texts.filter(|text| text.starts_with("`routing")).collect::<Vec<_>>()
    };
    let datagrams =
        of("rehash", "dctcp", marks).replace("long = {}", "long = {}\ntransport = { datagram = { rate = \"1Mbps\" } }");
    assert_eq!(said(&datagrams), ["`routing = \"rehash\"` changes nothing: there is no traffic over TCP"]);
    let one_path =
        text("routing = \"rehash\"", "", "two-datacenters", "").replace("*1-1", "a1-1").replace("*2-1", "b1-1");
    assert_eq!(said(&one_path), ["`routing = \"rehash\"` changes nothing: no switch has several equally short paths"]);
}
