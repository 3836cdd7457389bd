//! Facts of plans, which of them differ, and which are declared.

use crate::tests::{CONTROLLERS, plans};

/// Two arms, of which one shortens the other's buffers by the way.
const TEXT: &str = r#"
        [topology.dumbbell]
        [[traffic]]
        long = {}
        from = "left-*"
        to = "right-*"
        [[arm]]
        name = "cubic"
        cc = "cubic"
        [[arm]]
        name = "dctcp"
        cc = "dctcp"
        set = { "fabric.aqm.threshold.mark-at" = "20pkt", "host.min-rto" = "10ms" }
        [run]
        end = "1s"
    "#;

fn table(plans: &[&narrows_plan::Plan]) -> String {
    let line = |difference: super::Difference| {
        let super::Difference { path, values, declared } = difference;
        format!("{path}: {}{}", values.join(" | "), if declared { "" } else { "  (undeclared)" })
    };
    super::of(plans, CONTROLLERS).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_arms_declare_is_told_and_what_follows_from_it() {
    let plans = plans(TEXT);
    insta::assert_snapshot!(table(&[&plans[0], &plans[1]]));
}

/// The facts that differ and that no arm or axis declares.
fn undeclared(text: &str) -> Vec<String> {
    let plans = plans(text);
    let plans: Vec<&narrows_plan::Plan> = plans.iter().collect();
    let differences = super::of(&plans, CONTROLLERS);
    assert!(!differences.is_empty());
    differences.into_iter().filter(|difference| !difference.declared).map(|difference| difference.path).collect()
}

#[test]
fn what_the_traffic_of_many_hosts_differs_in_alike_is_told_once() {
    let text = r#"
        [topology.star]
        hosts = 4
        [[traffic]]
        name = "web"
        arrivals = { log-normal = { mean = "10ms", sigma = 1 } }
        size = { fixed = "1KB" }
        from = "h*"
        to = "h*"
        [[arm]]
        name = "small"
        cc = "cubic"
        [[arm]]
        name = "large"
        cc = "cubic"
        set = { "traffic.web.size.fixed" = "2KB" }
        [run]
        end = "1s"
    "#;
    let plans = plans(text);
    assert_eq!(plans[0].traffic.len(), 4);
    let differences = super::of(&[&plans[0], &plans[1]], CONTROLLERS);
    let paths: Vec<&str> = differences.iter().map(|difference| difference.path.as_str()).collect();
    assert_eq!(paths, ["traffic.web/*.size"]);
    // Of three of four each is told; what all differ in stands before, in the order of paths.
    let mut other = plans[1].clone();
    other.traffic[3] = plans[0].traffic[3].clone();
    other.traffic.iter_mut().for_each(|traffic| traffic.service_class = 1);
    let differences = super::of(&[&plans[0], &other], CONTROLLERS);
    let paths: Vec<&str> = differences.iter().map(|difference| difference.path.as_str()).collect();
    assert_eq!(paths.len(), 4);
    assert_eq!(paths[0], "traffic.web/*.service-class");
    assert!(paths[1..].iter().all(|path| path.ends_with(".size") && !path.contains('*')));
}

#[test]
fn a_declared_profile_declares_what_is_in_it() {
    let text = |key: &str| TEXT.replace("\"host.min-rto\" = \"10ms\"", &format!("\"{key}\" = \"linux-6\""));
    assert!(undeclared(&text("host.profile")).is_empty());
    assert!(undeclared(&text("traffic.traffic-1.host.profile")).is_empty());
    // What somebody else's profile says, a silent arm does not.
    let mut plans = plans(&text("host.profile"));
    plans[1].declared.retain(|(key, _)| key != "host.profile");
    let paths = super::of(&[&plans[0], &plans[1]], CONTROLLERS).into_iter();
    assert!(paths.filter(|difference| difference.path.starts_with("host.")).all(|difference| !difference.declared));
}

#[test]
fn what_an_axis_sets_is_declared_whatever_it_is_told_as() {
    let graph = r#"
            [topology.graph]
            switches = [{ name = "s1", site = 1 }, { name = "s2", site = 2 }]
            hosts = [{ name = "x", count = 3, switch = "s1" }, { name = "y", count = 3, switch = "s2" }]
            links = [{ name = "wan", ends = ["s1", "s2"] }]
            [[traffic]]
            name = "long"
            long = { flows = 1 }
            from = "x-1"
            to = "y-1"
            [[traffic]]
            name = "query"
            incast = { clients = "x-1", servers = "y-*", total = "60KB", repeats = 3 }
            [[traffic]]
            name = "web"
            arrivals = { poisson = { load = 0.5, of = "wan" } }
            size = { fixed = "10KB" }
            between = "datacenters"
            [[arm]]
            name = "cubic"
            cc = "cubic"
            [run]
            end = "1s"
            [sweep]
        "#;
    for axis in [
        "\"links.wan.forward.loss\" = [0.01, 0.02]",
        "\"links.wan.both.delay\" = [\"1ms\", \"2ms\"]",
        "\"hosts.x.link.delay\" = [\"1us\", \"2us\"]",
        "\"fabric.rate\" = [\"1Gbps\", \"2Gbps\"]",
        "\"traffic.long.long.flows\" = [1, 2]",
        "\"traffic.long.to\" = [\"y-1\", \"y-2\"]",
        "\"traffic.query.incast.count\" = [1, 2]",
        "\"traffic.query.incast.total\" = [\"60KB\", \"70KB\"]",
        "\"traffic.web.size.fixed\" = [\"10KB\", \"20KB\"]",
        "\"traffic.web.arrivals.poisson.load\" = [0.5, 0.6]",
        "\"host.stack-delay.tx\" = [\"1us\", \"2us\"]",
        "\"host.stack-delay.rx\" = [\"1us\", \"2us\"]",
        "\"host.stack-delay.jitter\" = [\"1us\", \"2us\"]",
        "\"wan.delay, host.stack-delay.tx\" = [\"1us\", \"2us\"]",
        "\"run.end\" = [\"1s\", \"2s\"]",
    ] {
        assert_eq!(undeclared(&format!("{graph}{axis}")), [""; 0], "{axis}");
    }
}

#[test]
fn limits_follow_from_where_packets_count_and_a_program_from_its_generator() {
    let text = r#"
            [topology.leaf-spine]
            leaves = 2
            spines = 1
            hosts-per-leaf = 2
            fabric = { limit = "100KB" }
            [[traffic]]
            name = "ring"
            program = { generate = { ring-all-reduce = { bytes = "1MB", ranks = 2 } } }
            [[arm]]
            name = "cubic"
            cc = "cubic"
            [[arm]]
            name = "more"
            cc = "cubic"
            set = { "fabric.limit" = "200KB" }
            [run]
            end = "1s"
            [sweep]
        "#;
    for axis in [
        "\"fabric.buffering\" = [\"input\", \"output\"]",
        "\"traffic.ring.program.generate\" = [{ ring-all-reduce = { bytes = \"2MB\", ranks = 3 } }, { tree-all-reduce = { bytes = \"2MB\", ranks = 2 } }]",
        "\"traffic.ring.program.generate.ring-all-reduce.bytes\" = [\"1MB\", \"2MB\"]",
        "\"traffic.ring.program.generate.ring-all-reduce.ranks\" = [2, 4]",
    ] {
        assert_eq!(undeclared(&format!("{text}{axis}")), [""; 0], "{axis}");
    }
}

#[test]
fn each_parameter_of_a_component_of_links_is_a_fact_of_its_name() {
    let qcn =
        r#"congestion-point = { qcn = { set-point = "66KB", weight = 3, sample-base = "90KB", notify = "tor" } }"#;
    let dcib =
        r#"bridge = { dcib = { rate = "1Gbps", round-trip = "12ms", store = "1MB", hold = "9ms", held = "2MB" } }"#;
    let told = |key: &str, value: &str| {
        let text = format!(
            r#"
                cc = "cubic"
                [topology.two-datacenters]
                servers = 2
                fabric = {{ {qcn} }}
                wan = {{ {dcib} }}
                [[traffic]]
                long = {{ flows = 1 }}
                from = "a1-1"
                to = "b1-1"
                [[arm]]
                name = "one"
                [[arm]]
                name = "other"
                set = {{ "{key}" = {value} }}
                [run]
                end = "1s"
                "#
        );
        let plans = plans(&text);
        let differences = super::of(&[&plans[0], &plans[1]], CONTROLLERS);
        let network = differences.into_iter().filter(|it| it.path.starts_with("fabric") || it.path.starts_with("wan"));
        network.map(|it| (it.path, it.values.join(" "))).collect::<Vec<_>>()
    };
    for (key, value, expected) in [
        ("fabric.congestion-point.qcn.set-point", "\"60KB\"", "66KB 60KB"),
        ("fabric.congestion-point.qcn.weight", "4", "3 4"),
        ("fabric.congestion-point.qcn.sample-base", "\"80KB\"", "90KB 80KB"),
        ("fabric.congestion-point.qcn.notify", "\"source-datacenter\"", "tor source-datacenter"),
        ("wan.bridge.dcib.share", "0.2", "0.1 0.2"),
        ("wan.bridge.dcib.choose", "\"band\"", "sampled band"),
        ("wan.bridge.dcib.rate", "\"2Gbps\"", "1Gbps 2Gbps"),
        ("wan.bridge.dcib.round-trip", "\"13ms\"", "12ms 13ms"),
        ("wan.bridge.dcib.repairs", "2", "3 2"),
        ("wan.bridge.dcib.store", "\"3MB\"", "1MB 3MB"),
        ("wan.bridge.dcib.hiding", "\"snoop\"", "resequence-repairable snoop"),
        ("wan.bridge.dcib.hold", "\"8ms\"", "9ms 8ms"),
        ("wan.bridge.dcib.held", "\"4MB\"", "2MB 4MB"),
        ("wan.bridge.dcib.marks", "\"drop\"", "clear drop"),
    ] {
        let own = told(key, value).into_iter().find(|(path, _)| path == key);
        assert_eq!(own, Some((key.to_owned(), expected.to_owned())));
        assert!(told(key, value).iter().all(|(path, _)| path == key), "{:?}", told(key, value));
    }
}

#[test]
fn what_does_not_follow_is_not_declared() {
    for (of_traffic, said, fact) in [
        (false, "host.stack-delay.tx", "edge.delay"),
        (false, "host.stack-delay.jitter", "host-link.delay"),
        (false, "host.min-rto", "host.max-rto"),
        (false, "links.wan.forward.loss", "wan.delay"),
        (false, "fabric.rate", "wan.rate"),
        (true, "incast.total", "incast.servers"),
        (true, "host.profile", "cc"),
        (false, "long.flows", "flows"),
        (false, "fabric.buffering", "wan.limit"),
        (false, "fabric.buffering", "fabric.rate"),
        (false, "fabric.rate", "fabric.limit of the input"),
        (true, "program.generate.ring-all-reduce.bytes", "program.ranks"),
        (true, "program.sigma", "program.ranks"),
    ] {
        assert!(!super::follows(of_traffic, said, fact), "{said}: {fact}");
    }
}

#[test]
fn what_no_arm_declares_is_told_as_such() {
    let (one, other) = (
        plans(TEXT),
        plans(&TEXT.replace("[topology.dumbbell]", "[topology.dumbbell]\nfabric = { limit = \"50pkt\" }")),
    );
    insta::assert_snapshot!(table(&[&one[0], &other[0]]));
}

#[test]
fn equal_plans_do_not_differ() {
    let plans = plans(TEXT);
    assert!(super::of(&[&plans[0], &plans[0].clone()], CONTROLLERS).is_empty());
    assert!(super::of(&[], CONTROLLERS).is_empty());
}
