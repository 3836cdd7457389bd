//! What stands at ports and links: AQMs, congestion points, schedulers, edge pairs, delays of hosts' stacks.

use narrows_core::edge::dcib::{Chooser, Hiding};
use narrows_core::queue::aqm::Size;
use narrows_core::queue::scheduler::drr;
use narrows_core::queue::{AqmConfig, SchedulerConfig};
use narrows_core::units::Rate;
use narrows_plan::{NodeKind, Plan, Role};

use super::experiments::THREE_SITES;
use super::*;

#[test]
fn a_port_may_be_controlled_by_pi() {
    let with = |pi: &str| {
        let text = format!(
            r#"
            cc = "newreno"
            ecn = true
            [topology.star]
            fabric = {{ aqm = {{ pi = {{ {pi} }} }} }}
            [[traffic]]
            long = {{}}
            from = "h2"
            to = "h1"
            [[arm]]
            name = "tcp"
            [run]
            end = "1s"
            "#
        );
        expand(&text, &Overrides::default()).map_err(|error| error.render())
    };
    let gains = "reference = \"20pkt\", a = 0.5, b = 0.25, period = \"200us\"";
    let experiment = with(gains).unwrap();
    let link = experiment.plans[0].network.links.iter().find(|link| link.name == "switch->h1").unwrap();
    let expected = AqmConfig::Pi(narrows_core::queue::aqm::pi::Config {
        reference: Size::Packets(Packets::new(20)),
        a: 1 << 31,
        b: 1 << 30,
        period: Span::from_us(200),
        ecn: true,
    });
    assert_eq!(link.aqm, Some(expected));
    for (from, to, expected) in [
        ("a = 0.5", "a = 1.5", "`a` of `pi`"),
        ("a = 0.5", "a = 0", "`a` of `pi`"),
        ("a = 0.5, ", "", "`a` of `pi` is missing"),
        ("b = 0.25", "b = 0.6", "PI needs `b` of at most `a`"),
        ("200us", "10ns", "`period` of `pi`"),
        ("\"200us\"", "200", "200"),
        ("20pkt", "unlimited", "`unlimited` is not a number of packets"),
    ] {
        let said = with(&gains.replace(from, to)).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_congestion_point_acts_before_its_ports_marking_and_sits_in_switches_only() {
    let qcn = |marking: &str, keys: &str| {
        let text = format!(
            r#"
            cc = "dctcp"
            [topology.two-datacenters]
            fabric = {{ rate = "10Gbps"{marking}, congestion-point = {{ qcn = {{ {keys} }} }} }}
            [[traffic]]
            long = {{ flows = 1 }}
            between = "datacenters"
            [[arm]]
            name = "dctcp"
            [run]
            end = "1s"
            "#
        );
        let plan = plans(&text).remove(0);
        let of_host = |link: &narrows_plan::Link| plan.network.nodes[link.from as usize].kind == NodeKind::Host;
        assert!(plan.network.links.iter().filter(|link| of_host(link)).all(|link| link.congestion_point.is_none()));
        let found = plan.network.links.iter().find(|link| !of_host(link) && link.role == Role::Fabric);
        let point = found.and_then(|link| link.congestion_point).unwrap();
        (point.sampling.set_point.get(), point.sampling.sample_base.get(), point.sampling.weight, point.scope)
    };
    let threshold = r#", aqm = { threshold = { mark-at = "20pkt" } }"#;
    assert_eq!(qcn("", ""), (33_000, 150_000, 2, narrows_plan::Scope::Tor));
    assert_eq!(qcn(threshold, ""), (15_000, 150_000, 2, narrows_plan::Scope::Tor));
    let keys = r#"set-point = "60KB", weight = 4, sample-base = "30KB", notify = "source-datacenter""#;
    assert_eq!(qcn(threshold, keys), (60_000, 30_000, 4, narrows_plan::Scope::SourceDatacenter));
}

#[test]
fn a_scheduler_sits_in_switches_only_and_an_edge_may_go_without() {
    let text = r#"
        cc = "dctcp"
        [topology.two-datacenters]
        fabric = { scheduler = { drr = { weights = [5, 1] } } }
        edge = { scheduler = "fifo" }
        [[traffic]]
        name = "inside"
        long = { flows = 1 }
        between = "racks"
        [[traffic]]
        name = "across"
        service-class = 1
        long = { flows = 1 }
        between = "datacenters"
        [[arm]]
        name = "dctcp"
        [run]
        end = "1s"
        "#;
    let plan = plans(text).remove(0);
    let drr = SchedulerConfig::Drr(drr::Config { weights: vec![5, 1] });
    for link in &plan.network.links {
        assert_eq!(link.scheduler.as_ref(), (link.role == Role::Fabric).then_some(&drr), "{}", link.name);
    }
    assert_eq!(plan.traffic.iter().map(|traffic| traffic.service_class).collect::<Vec<_>>(), [0, 1]);
    // What is not said is not written, so that plans without classes keep their names.
    let said = |plan: &narrows_plan::Plan| serde_json::to_string(plan).unwrap();
    let plain = text.replace("service-class = 1", "").replace("scheduler = { drr = { weights = [5, 1] } }", "");
    assert!(said(&plan).contains("service-class") && said(&plan).contains("scheduler"));
    let plain = said(&plans(&plain)[0]);
    assert!(!plain.contains("service-class") && !plain.contains("scheduler"));
}

/// Switches write telemetry where one of a plan's controllers reads it, hosts never; and not beside an edge pair.
#[test]
fn switches_write_telemetry_for_whom_reads_it() {
    let text = r#"
        [topology.two-datacenters]
        servers = 2
        fabric = { rate = "10Gbps", delay = "5us", limit = "100pkt" }
        wan = { rate = "10Gbps", delay = "5ms", limit = "100pkt" }
        [[traffic]]
        name = "of-the-scheme"
        between = "datacenters"
        long = { flows = 1 }
        [[traffic]]
        name = "other"
        between = "datacenters"
        cc = "cubic"
        long = { flows = 1 }
        [[arm]]
        name = "a"
        cc = "cubic"
        [[arm]]
        name = "b"
        cc = "hpcc"
        [run]
        end = "1s"
    "#;
    let plans = plans(text);
    let [without, with] = &plans[..] else { panic!("two schemes") };
    assert!(without.network.links.iter().all(|link| !link.telemetry));
    assert!(!serde_json::to_string(without).unwrap().contains("telemetry"), "plans without it keep their names");
    let of_switch = |link: &&narrows_plan::Link| with.network.nodes[link.from as usize].kind == NodeKind::Switch;
    assert!(with.network.links.iter().all(|link| link.telemetry == of_switch(&link)));
    let refused = refused(&text.replace(
        "limit = \"100pkt\" }\n        [[traffic",
        "bridge = \"dcib\", limit = \"100pkt\" }\n        [[traffic",
    ));
    let said = "`hpcc` reads what switches write into packets, and the edge pair of `border-a->border-b` carries no such packets";
    assert!(refused.contains(said), "{refused}");
}

#[test]
fn a_bridge_takes_from_its_link_what_is_not_said() {
    let text = r#"
        cc = "cubic"
        [topology.two-datacenters]
        wan = { rate = "10Gbps", delay = "5ms", bridge = { dcib = {} } }
        [[traffic]]
        long = { flows = 1 }
        between = "datacenters"
        [[arm]]
        name = "cubic"
        [run]
        end = "1s"
        "#;
    let bridge = |text: &str| {
        let plan = plans(text).remove(0);
        let of_wan = |link: &&narrows_plan::Link| link.role == Role::Wan;
        assert!(plan.network.links.iter().all(|link| link.bridge.is_some() == of_wan(&link)));
        plan.network.links.iter().find(of_wan).and_then(|link| link.bridge).unwrap()
    };
    let usual = bridge(text);
    assert_eq!((usual.rate, usual.round_trip, usual.repairs), (Rate::from_gbps(10), Span::from_ms(10), 3));
    // A tenth of 10 Gbit/s in 40 ms, and all of it in 15 ms.
    assert!((4_999_000..=5_000_000).contains(&usual.store.get()), "{}", usual.store);
    assert_eq!((usual.held.get(), usual.hold), (18_750_000, Span::from_ms(17)));
    assert_eq!(usual.hiding, Hiding::ResequenceRepairable);
    assert_eq!(bridge(&text.replace("dcib = {}", "dcib = { hiding = \"resequence\" }")).hiding, Hiding::Resequence);
    let keys = r#"share = 0.5, choose = "band", rate = "1Gbps", hiding = "snoop", hold = "1ms", held = "9KB""#;
    let told = bridge(&text.replace("dcib = {}", &format!("dcib = {{ {keys} }}")));
    assert_eq!((told.chooser, told.hiding), (Chooser::Band, Hiding::Snoop));
    assert_eq!((told.store.get(), told.hold, told.held.get()), (2_500_000, Span::from_ms(1), 9_000));
    // What is not said is not written, so that plans without bridges keep their names.
    let plain = serde_json::to_string(&plans(&text.replace("{ dcib = {} }", "\"none\""))[0]).unwrap();
    assert!(!plain.contains("bridge") && !plain.contains("loss-of"));
}

#[test]
fn a_plan_says_how_much_of_a_delay_is_a_hosts_stack() {
    let with = |delay: &str, tx: &str, rx: &str| {
        let host = format!("host = {{ stack-delay = {{ tx = \"{tx}\", rx = \"{rx}\" }} }}");
        let fabric = format!("fabric = {{ delay = \"{delay}\" }}");
        plans(&THREE_SITES.replacen("[[traffic]]", &format!("{host}\n{fabric}\n[[traffic]]"), 1)).remove(0)
    };
    let plan = with("5us", "30us", "20us");
    for link in &plan.network.links {
        let stack = match link.role {
            Role::Host => Span::from_us(30),
            Role::Edge => Span::from_us(20),
            Role::Fabric | Role::Wan => Span::ZERO,
        };
        assert_eq!(link.stack, stack, "{}", link.name);
        assert!(stack == Span::ZERO || link.delay == stack + Span::from_us(5), "{}", link.name);
    }
    assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
    // The same delays, made of other parts: a simulator cannot tell these two, a live driver can.
    let other = with("10us", "25us", "15us");
    assert_eq!(plan.network.links[0].delay, other.network.links[0].delay);
    assert_ne!(plan.hash(), other.hash());
    assert!(!serde_json::to_string(&with("5us", "0us", "0us")).unwrap().contains("stack"));
}

#[test]
fn what_jitters_is_the_hosts_own_ports() {
    let delayed = |stack: &str| {
        let text =
            THREE_SITES.replacen("[[traffic]]", &format!("host = {{ stack-delay = {{ {stack} }} }}\n[[traffic]]"), 1);
        expand(&text, &Overrides::default())
    };
    let still = &plans(THREE_SITES)[0];
    assert!(!serde_json::to_string(still).unwrap().contains("jitter"));
    assert_eq!(delayed("jitter = \"0s\"").unwrap().plans[0].hash(), still.hash());
    let shaken = &delayed("jitter = \"12us\"").unwrap().plans[0];
    for (link, without) in shaken.network.links.iter().zip(&still.network.links) {
        assert_eq!(link.jitter, if link.role == Role::Host { Span::from_us(12) } else { Span::ZERO }, "{}", link.name);
        assert_eq!(link.delay, without.delay);
    }
    assert_eq!(serde_json::to_string(shaken).unwrap().matches("jitter").count(), 5);
    assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(shaken).unwrap()).unwrap(), *shaken);
    assert!(delayed("jitter = \"1s\"").is_ok());
    let said = delayed("jitter = \"1001ms\"").unwrap_err().render();
    assert!(said.contains("a stack delay") && said.contains("^^^"), "{said}");
}

#[test]
fn adapters_of_a_network_have_one_limiter_and_begin_at_the_line_rate() {
    let text = |host: &str, other: &str| {
        format!(
            "cc = \"cubic\"\n[topology.star]\nhosts = 3\nhost = {{ {host} }}\n[[traffic]]\nname = \"a\"\n\
             long = {{ flows = 1 }}\nbetween = \"all\"\n[[traffic]]\nname = \"b\"\nlong = {{ flows = 1 }}\n\
             between = \"all\"\n{other}\n[[arm]]\nname = \"A\"\n[run]\nend = \"1s\"\n"
        )
    };
    assert_eq!(plans(&text("nic-limiter = \"standard\"", "")).len(), 1);
    let refused = |host: &str, other: &str| expand(&text(host, other), &Overrides::default()).unwrap_err().render();
    let differs = refused("nic-limiter = \"standard\"", "host = { nic-limiter = \"off\" }");
    assert!(differs.contains("different values of nic-limiter") && differs.contains("topology's `host`"), "{differs}");
    for recent in ["nic-limiter = \"software\"", "nic-limiter = { custom = { start = { recent = \"30us\" } } }"] {
        let error = refused(recent, "");
        assert!(error.contains("knows no recent rate") && error.contains("start = \"line-rate\""), "{error}");
    }
}

/// A key of an AQM or a scheduler is for the schemes that have it there, as one of a controller; one that is nobody's is refused.
#[test]
fn paths_into_components_are_for_schemes_that_have_them() {
    let text = |sweep: &str| {
        format!(
            "cc = \"dctcp\"\n[topology.dumbbell]\npairs = 1\nfabric = {{ aqm = {{ threshold = {{ mark-at = \"20pkt\" }} }} }}\n\
            [[traffic]]\nname = \"aqm\"\nlong = {{}}\nfrom = \"left-1\"\nto = \"right-1\"\n\
            [[arm]]\nname = \"step\"\n\
            [[arm]]\nname = \"pi\"\nset = {{ \"fabric.aqm\" = {{ pie = {{}} }} }}\n\
            [[arm]]\nname = \"none\"\nset = {{ \"fabric.aqm\" = \"none\" }}\n\
            [sweep]\n{sweep}\n[run]\nend = \"1s\"\n"
        )
    };
    let arms = |text: &str, overrides: &Overrides| -> Vec<String> {
        let expanded = expand(text, overrides).unwrap_or_else(|error| panic!("{error}"));
        expanded.plans.iter().map(|plan| plan.arm.clone()).collect()
    };
    let none = Overrides::default();
    assert_eq!(
        arms(&text("\"fabric.aqm.threshold.mark-at\" = [\"10pkt\", \"30pkt\"]"), &none),
        ["step", "step", "pi", "none"]
    );
    assert_eq!(arms(&text("\"fabric.aqm.pie.target\" = [\"1ms\", \"2ms\"]"), &none), ["step", "pi", "pi", "none"]);
    let over = Overrides { sets: vec![("fabric.aqm.pie.target".to_owned(), "1ms".to_owned())], ..Overrides::default() };
    assert_eq!(arms(&text(""), &over), ["step", "pi", "none"]);
    let nobody = Overrides { sets: vec![("cc.gemini.beta".to_owned(), "0.3".to_owned())], ..Overrides::default() };
    for refused in
        [expand(&text(""), &nobody), expand(&text("\"fabric.aqm.codel.target\" = [\"1ms\", \"2ms\"]"), &none)]
    {
        let said = refused.map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("sets nothing: no scheme has that component there"), "{said}");
    }
}
