//! Every refusal as people see it.

use std::fmt::Write;

use super::*;

/// An experiment that is right; each case below breaks one line of it.
const RIGHT: &str = r#"[topology.two-datacenters]
servers = 4
fabric = { rate = "1Gbps", delay = "5us", pool = { size = "4MB", alpha = 0.2 } }
wan = { limit = "10000pkt" }

[[traffic]]
name = "web"
arrivals = { poisson = { load = 0.9, of = "wan" } }
size = { cdf = "web-search" }
between = "datacenters"

[[arm]]
name = "GEMINI"
cc = { gemini = { beta = 0.2 } }
set = { "fabric.aqm.threshold.mark-at" = "50pkt" }

[run]
end = "10s"
"#;

fn all_said(cases: &[(&str, &str)]) -> String {
    all_refused(RIGHT, cases)
}

#[test]
fn the_experiment_that_is_broken_below_is_right() {
    assert_eq!(plans(RIGHT).len(), 1);
}

#[test]
fn bounds_in_the_wrong_order() {
    let right = "cc = { gemini = { beta = 0.2 } }";
    insta::assert_snapshot!(all_said(&[
        (right, "cc = { vegas = { alpha = \"5pkt\" } }"),
        (right, "cc = { vegas = { beta = \"3pkt\", alpha = \"4pkt\" } }"),
    ]));
}

#[test]
fn random_queries_and_bursts() {
    let arrivals = "arrivals = { poisson = { load = 0.9, of = \"wan\" } }";
    let whole = "arrivals = { poisson = { load = 0.9, of = \"wan\" } }\nsize = { cdf = \"web-search\" }\nbetween = \"datacenters\"";
    let asks = |how: &str| format!("incast = {{ clients = \"a1-1\", servers = \"a*\", response = \"2KB\"{how} }}");
    insta::assert_snapshot!(all_said(&[
        (whole, &asks("")),
        (whole, &asks(", repeats = 3, arrivals = { poisson = { rate = \"7/s\" } }")),
        (whole, &asks(", arrivals = { poisson = { load = 0.5 } }")),
        (whole, &asks(", arrivals = { poisson = {} }")),
        (whole, &asks(", arrivals = { poisson = { rate = \"0/s\" } }")),
        (whole, &asks(", arrivals = { poisson = { rate = \"100000000/s\" } }")),
        (whole, &asks(", arrivals = { log-normal = { mean = \"1ms\", sigma = 1 } }")),
        (arrivals, "arrivals = { log-normal = { mean = \"0s\", sigma = 2 } }"),
        (arrivals, "arrivals = { log-normal = { mean = \"1ms\", sigma = 9 } }"),
        (arrivals, "arrivals = { log-normal = { mean = \"1ms\", sigma = 0.009 } }"),
        (arrivals, "arrivals = { log-normal = { mean = \"1ns\", sigma = 2 } }"),
        (arrivals, "arrivals = { log-normal = { mean = \"1ms\", sigma = 2 } }\nexact = true"),
    ]));
}

#[test]
fn exchanges() {
    let whole = "arrivals = { poisson = { load = 0.9, of = \"wan\" } }\nsize = { cdf = \"web-search\" }\nbetween = \"datacenters\"";
    let all = |what: &str| format!("all-to-all = {{ {what} }}");
    insta::assert_snapshot!(all_said(&[
        (whole, &all("hosts = \"a1-1\", size = \"1MB\"")),
        (whole, &all("hosts = \"c*\", size = \"1MB\"")),
        (whole, &all("hosts = \"a*\"")),
        (whole, &all("hosts = \"a*\", size = \"0B\"")),
        (whole, &all("hosts = \"a*\", size = \"1MB\", repeats = 0")),
        (whole, &all("hosts = \"a*\", size = \"1MB\", repeats = 4000000000")),
        (whole, &all("hosts = \"a*\", size = \"1MB\", in-rounds = 3")),
        (whole, &all("hosts = \"a*\", size = \"1MB\", rounds = true")),
        (whole, &all("hosts = \"a*\", size = \"1MB\", start = \"10s\"")),
        (whole, &format!("{}\nbetween = \"all\"", all("hosts = \"a*\", size = \"1MB\""))),
        (whole, &format!("{}\nlong = {{}}", all("hosts = \"a*\", size = \"1MB\""))),
        (whole, &format!("{}\nconnections = \"fresh\"", all("hosts = \"a*\", size = \"1MB\", repeats = 500000"))),
    ]));
}

#[test]
fn keys_and_shapes() {
    insta::assert_snapshot!(all_said(&[
        ("servers = 4", "servrs = 4"),
        ("servers = 4", "servers = 4\nrouting = \"spray\""),
        ("two-datacenters]", "two-datacentres]"),
        ("between = \"datacenters\"", "between = \"datacentres\""),
        ("servers = 4", "servers = \"four\""),
        ("[run]\nend = \"10s\"\n", ""),
        ("end = \"10s\"", ""),
        ("end = \"10s\"", "end = 10s"),
        ("size = { cdf = \"web-search\" }\n", ""),
        ("load = 0.9, of = \"wan\"", ""),
        ("between = \"datacenters\"\n", ""),
        ("arrivals =", "long = {}\narrivals ="),
    ]));
}

#[test]
fn quantities() {
    insta::assert_snapshot!(all_said(&[
        ("delay = \"5us\"", "delay = 5"),
        ("rate = \"1Gbps\"", "rate = \"10G\""),
        ("rate = \"1Gbps\"", "rate = \"0bps\""),
        ("rate = \"1Gbps\"", "rate = \"1mbps\""),
        ("\"50pkt\"", "50"),
        ("\"50pkt\"", "\"50\""),
        ("limit = \"10000pkt\"", "limit = \"1000B\""),
        ("limit = \"10000pkt\"", "limit = \"0pkt\""),
        ("size = \"4MB\"", "size = \"1KB\""),
        ("alpha = 0.2", "alpha = -1"),
        ("load = 0.9", "load = 1.7"),
        ("load = 0.9", "load = 0"),
        ("load = 0.9", "load = nan"),
        ("end = \"10s\"", "end = \"0s\""),
        ("end = \"10s\"", "end = \"100000000000s\""),
    ]));
}

#[test]
fn names() {
    insta::assert_snapshot!(all_said(&[
        ("gemini =", "gmini ="),
        ("cc = { gemini = { beta = 0.2 } }", "cc = \"dctpc\""),
        ("cc = { gemini = { beta = 0.2 } }", ""),
        ("beta = 0.2", "betta = 0.2"),
        ("\"web-search\"", "\"websearch\""),
        ("of = \"wan\"", "of = \"wn\""),
        ("between = \"datacenters\"", "from = \"a1-1\"\nto = \"c1-1\""),
        ("between = \"datacenters\"", "from = [\"a1-1\", \"a1-5\"]\nto = \"b*\""),
        ("between = \"datacenters\"", "from = \"a1-1\"\nto = \"a1-1\""),
        ("between = \"datacenters\"", "from = \"a1-1\"\nto = \"a1-2\""),
        ("servers = 4", "servers = 4\nhost = { profile = \"linux-4.8\" }"),
        ("[run]", "[[arm]]\nname = \"GEMINI\"\ncc = \"dctcp\"\n[run]"),
        ("[[arm]]", "[[traffic]]\nname = \"web\"\nlong = {}\nbetween = \"all\"\n[[arm]]"),
        ("name = \"web\"", "name = \"w.b\""),
        (
            "[[arm]]\nname = \"GEMINI\"\ncc = { gemini = { beta = 0.2 } }\nset = { \"fabric.aqm.threshold.mark-at\" = \"50pkt\" }\n",
            ""
        ),
    ]));
}

#[test]
fn parameters() {
    insta::assert_snapshot!(all_said(&[
        ("beta = 0.2", "beta = 1.5"),
        ("beta = 0.2", "beta = -0.2"),
        ("beta = 0.2", "beta = \"5ms\""),
        ("beta = 0.2", "t = 5"),
        ("beta = 0.2", "t = \"2s\""),
        ("beta = 0.2", "growth = \"frsh\""),
        ("beta = 0.2", "delay = 1"),
        ("[[arm]]", "[[arm]]\necn = false"),
    ]));
}

#[test]
fn a_parameter_may_be_a_size_and_then_has_a_unit() {
    use narrows_core::cc::{Value, dcqcn};
    let said = |text| crate::parameter_value(&dcqcn::SPEC, "byte-cycle", text).map_err(|problem| problem.to_string());
    assert_eq!(said("1.5MB"), Ok(Value::Bytes(narrows_core::units::Bytes::new(1_500_000))));
    assert_eq!(said("true").unwrap_err(), "parameter `byte-cycle` of `dcqcn` is a size such as \"10MB\"");
    assert!(said("1500000").unwrap_err().contains("unit"), "{:?}", said("1500000"));
    assert!(said("0B").unwrap_err().contains("1B"), "{:?}", said("0B"));
}

#[test]
fn paths() {
    insta::assert_snapshot!(all_said(&[
        ("\"fabric.aqm.threshold.mark-at\"", "\"fabrik.aqm.threshold.mark-at\""),
        ("\"fabric.aqm.threshold.mark-at\"", "\"fabric.aqm.threshold.markat\""),
        ("\"fabric.aqm.threshold.mark-at\"", "\"traffic.wep.active\""),
        ("\"fabric.aqm.threshold.mark-at\"", "\"servers.count\""),
        ("\"fabric.aqm.threshold.mark-at\"", "\"fabric..rate\""),
        ("[run]", "[sweep]\n\"fabric.delay\" = \"5us\"\n[run]"),
        ("[run]", "[sweep]\n\"fabric.delay\" = [5]\n[run]"),
        ("[run]", "[sweep]\n\"fabric.delay\" = [\"5us\", \"6us\", \"5us\"]\n[run]"),
        ("[run]", "[sweep]\n\"fabric.delay, wan.dely\" = [\"5us\"]\n[run]"),
        ("[run]", "[sweep]\n\"fabric.delay,\" = [\"5us\"]\n[run]"),
        ("[run]", "[sweep]\n\"servers\" = \"1..=9999\"\n\"wan.delay\" = [\"1ms\", \"2ms\"]\n[run]"),
    ]));
}

#[test]
fn axes_that_set_the_same() {
    let sweep = |axes: &str| refused(&RIGHT.replacen("[run]", &format!("[sweep]\n{axes}\n[run]"), 1));
    insta::assert_snapshot!(
        [
            "\"fabric.delay, wan.delay\" = [\"5us\", \"6us\"]\n\"wan.delay\" = [\"1ms\", \"2ms\"]",
            "\"wan.delay, fabric.delay,  wan.delay\" = [\"5us\"]",
            "\"topology.two-datacenters.wan.delay\" = [\"5us\"]\n\"wan . delay\" = [\"1ms\"]",
            "\"fabric.aqm\" = [\"none\"]\n\"wan.delay\" = [\"1ms\"]\n\"fabric.aqm.threshold.mark-at\" = [\"5pkt\"]",
            "\"cc.gemini.beta\" = [0.2]\n\"cc.gemini.t\" = [\"5ms\"]\n\"cc\" = [\"dctcp\"]",
        ]
        .map(sweep)
        .join("\n")
    );
    // Neighbours are not in each other's way, even where one's name begins like the other's.
    let apart = "[sweep]\n\"fabric.delay\" = [\"5us\"]\n\"wan.delay\" = [\"1ms\"]\n\"traffic.web.arrivals.poisson.load\" = [0.5]\n\
                 \"traffic.web.size\" = [{ fixed = \"1MB\" }]\n\"cc.gemini.t\" = [\"5ms\"]\n\"cc.gemini.beta\" = [0.2]\n";
    assert_eq!(plans(&RIGHT.replacen("[run]", &format!("{apart}[run]"), 1)).len(), 1);
}

#[test]
fn sizes_of_things() {
    insta::assert_snapshot!(all_said(&[
        ("servers = 4", "servers = 100000"),
        ("servers = 4", "servers = 4097"),
        ("servers = 4", "servers = 0"),
        ("end = \"10s\"", "end = \"86400s\""),
        ("size = { cdf = \"web-search\" }", "size = { fixed = \"1B\" }"),
        ("between = \"datacenters\"", "between = \"datacenters\"\nactive = 5"),
        (
            "load = 0.9, of = \"wan\" } }\nsize = { cdf = \"web-search\" }",
            "rate = \"5000000/s\" } }\nsize = { fixed = \"1B\" }"
        ),
        (
            "servers = 4\nfabric = { rate = \"1Gbps\", delay = \"5us\", pool = { size = \"4MB\", alpha = 0.2 } }\nwan = { limit = \"10000pkt\" }\n\n[[traffic]]\n",
            "servers = 1000\n\n[[traffic]]\nconnections = { persistent = { pool = 1000 } }\n"
        ),
        ("end = \"10s\"", "end = \"10s\"\nseeds = \"1..=100000\""),
        ("end = \"10s\"", "end = \"10s\"\nseeds = [1, 1]"),
    ]));
}

#[test]
fn parts_of_a_load() {
    insta::assert_snapshot!(all_said(&[
        ("load = 0.9,", "load = 0.9, part = 0,"),
        ("load = 0.9,", "load = 0.9, part = 1.2,"),
        ("load = 0.9, of = \"wan\"", "rate = \"10/s\", part = 0.5"),
    ]));
}

#[test]
fn congestion_points() {
    let with = |key: &str| format!("alpha = 0.2 }}, congestion-point = {{ qcn = {{ {key} }} }} }}");
    let keys = [
        "sample-base = \"1KB\"",
        "set-point = \"1TB\"",
        "weight = 65",
        "weight = 256",
        "notify = \"host\"",
        "samples = 3",
    ];
    let keys = keys.map(with);
    let mut all = all_said(&keys.each_ref().map(|key| ("alpha = 0.2 } }", key.as_str())));
    let (deep, bare) = (with("set-point = \"6MB\""), with("set-point = 33000"));
    let near = |floor: &str| format!("alpha = 0.2 }} }}\nhost.near-source.custom.floor = \"{floor}\"");
    let high = near("100Gbps");
    all += &all_said(&[("alpha = 0.2 } }", &deep), ("alpha = 0.2 } }", &bare), ("alpha = 0.2 } }", &high)]);
    insta::assert_snapshot!(all);
}

#[test]
fn classes() {
    let room = "alpha = 0.2 } }";
    let with = |drr: &str| format!("alpha = 0.2 }}, scheduler = {{ drr = {{ {drr} }} }} }}");
    let drr = ["weights = [1]", "weights = [1, 1, 1, 1, 1, 1, 1, 1, 1]", "weights = [5, 0]", "weights = [5, 1001]"];
    let drr = [drr[0], drr[1], drr[2], drr[3], "weights = [5, -1]", "weight = [5, 1]", "weights = [1, 1], quantum = 3"];
    let mut all = all_said(&drr.map(with).each_ref().map(|with| (room, with.as_str())));
    let flows = |keys: &str| format!("alpha = 0.2 }}, scheduler = {{ fq-codel = {{ {keys} }} }} }}");
    let fq = [
        "queues = 0",
        "queues = 65537",
        "quantum = \"0B\"",
        "target = \"0s\"",
        "interval = \"61s\"",
        "target = \"200ms\"",
    ];
    all += &all_said(&fq.map(flows).each_ref().map(|with| (room, with.as_str())));
    all += &all_said(&[(room, &flows("flows = 3"))]);
    let (two, class) = (with("weights = [5, 1]"), |class: &str| format!("service-class = {class}\narrivals"));
    let small = two.replace("}, scheduler", "}, limit = \"1pkt\", scheduler");
    all += &all_said(&[
        (room, &small),
        ("size = \"4MB\", alpha = 0.2 } }", &format!("size = \"10KB\", {two}")),
        (room, "alpha = 0.2 }, scheduler = \"wfq\" }"),
        ("arrivals", &class("8")),
        ("arrivals", &class("-1")),
        ("arrivals", &class("\"gold\"")),
    ]);
    let third = RIGHT.replacen(room, &two, 1).replacen("arrivals", &class("2"), 1);
    let _ = writeln!(all, "{}", refused(&third));
    insta::assert_snapshot!(all);
}

#[test]
fn flow_control() {
    let text = r#"
[topology.star]
hosts = 3
fabric = { rate = "10Gbps", delay = "500ns", limit = "102400B", buffering = "input", flow-control = { pfc = { xoff = "96KB", xon = "80KB" } } }
[[traffic]]
flows = { list = [{ from = "h1", to = "h3", size = "1MB" }] }
[[arm]]
name = "a"
cc = "newreno"
[run]
end = "1s"
"#;
    let graph = &plans(text)[0].network;
    for link in &graph.links {
        assert_eq!(link.limit, narrows_core::queue::Limit::Unlimited, "{}", link.name);
        assert_eq!(link.ingress.is_some(), link.role == narrows_plan::Role::Host, "{}", link.name);
    }
    let output = text.replace("buffering = \"input\", ", "").replace("102400B", "120KB");
    let graph = &plans(&output)[0].network;
    assert!(graph.links.iter().all(|link| link.pauses.is_some() == (link.role == narrows_plan::Role::Edge)));
    let ring = r#"
[topology.graph]
switches = [{ name = "s1" }, { name = "s2" }, { name = "s3" }, { name = "s4" }, { name = "s5" }]
hosts = [{ name = "a", switch = "s1" }, { name = "b", switch = "s2" }, { name = "c", switch = "s3" }, { name = "d", switch = "s4" }, { name = "e", switch = "s5" }]
links = [{ ends = ["s1", "s2"] }, { ends = ["s2", "s3"] }, { ends = ["s3", "s4"] }, { ends = ["s4", "s5"] }, { ends = ["s5", "s1"] }]
fabric = { limit = "200KB", buffering = "input", flow-control = { pfc = { xoff = "96KB", xon = "80KB" } } }
[[traffic]]
flows = { list = [{ from = "a", to = "c", size = "1MB" }] }
[[arm]]
name = "a"
cc = "newreno"
[run]
end = "1s"
"#;
    let line = ring.replace(", { ends = [\"s5\", \"s1\"] }", "");
    assert_eq!(plans(&line).len(), 1, "a line has no cycle");
    let mut all = all_refused(
        text,
        &[
            ("xoff = \"96KB\"", "xoff = \"97KB\""),
            ("xoff = \"96KB\"", "xoff = \"1KB\""),
            ("xon = \"80KB\"", "xon = \"97KB\""),
            ("102400B", "60pkt"),
            ("buffering = \"input\"", "buffering = \"both\""),
            ("{ pfc = {", "{ pause = {"),
            ("{ pfc = { xoff = \"96KB\", xon = \"80KB\" } }", "\"pfc\""),
            ("buffering = \"input\", ", ""),
            ("limit = \"102400B\", buffering = \"input\", ", ""),
            ("limit", "aqm = \"codel\", scheduler = { fq-codel = {} }, limit"),
            ("limit", "aqm = { codel = { target = \"200ms\" } }, limit"),
            ("buffering", "pool = { size = \"1MB\", alpha = 1 }, buffering"),
            ("buffering", "scheduler = { strict-priority = { classes = 2 } }, buffering"),
        ],
    );
    let two = output.replace("limit", "scheduler = { drr = { weights = [2, 1] } }, limit");
    let _ = writeln!(all, "{}", refused(&two));
    let _ = writeln!(all, "{}", refused(ring));
    insta::assert_snapshot!(all);
    // Each of two classes needs as much as the only one.
    assert_eq!(plans(&two.replace("120KB", "240KB")).len(), 1);
    let flows = text.replace(
        "buffering = \"input\", flow-control",
        "scheduler = { fq-codel = {} }, buffering = \"input\", flow-control",
    );
    assert_eq!(plans(&flows).len(), 1, "flow queues have one memory");
    let known = text.replace("xoff = \"96KB\", xon = \"80KB\"", "xoff = \"97KB\", xon = \"80KB\", may-lose = true");
    assert_eq!(plans(&known).len(), 1);
}

#[test]
fn bridges() {
    let graph = r#"
[topology.graph]
switches = [{ name = "s1", site = 1 }, { name = "s2", site = 2 }]
hosts = [{ name = "x", switch = "s1" }, { name = "y", switch = "s2" }]
links = [{ ends = ["s1", "s2"], both = {}, forward = {} }]
wan = { bridge = { dcib = {} }, loss-of = "data" }
edge = { limit = "100pkt" }
[[traffic]]
flows = { list = [{ from = "x", to = "y", size = "1MB" }] }
[[arm]]
name = "a"
cc = "cubic"
[run]
end = "1s"
"#;
    assert!(plans(graph)[0].network.links.iter().any(|link| link.bridge.is_some()));
    assert_eq!(plans(&graph.replace("bridge = { dcib = {} }", "bridge = \"dcib\"")), plans(graph));
    insta::assert_snapshot!(all_refused(
        graph,
        &[
            ("dcib = {}", "dcib = { share = 0 }"),
            ("dcib = {}", "dcib = { share = 1.5 }"),
            ("dcib = {}", "dcib = { repairs = 16 }"),
            ("dcib = {}", "dcib = { store = \"1KB\" }"),
            ("dcib = {}", "dcib = { hold = \"0s\" }"),
            ("dcib = {}", "dcib = { round-trip = \"2min\" }"),
            ("dcib = {}", "dcib = { hiding = \"hush\" }"),
            ("dcib = {}", "dcib = { clones = 3 }"),
            ("bridge = { dcib = {} }", "bridge = \"dcip\""),
            ("loss-of = \"data\"", "loss-of = \"syn\""),
            ("edge = { ", "edge = { bridge = { dcib = {} }, "),
            ("forward = {}", "forward = { bridge = \"none\" }"),
            ("dcib = {} }", "dcib = {} }, scheduler = { drr = { weights = [1, 1] } }"),
        ]
    ));
}

#[test]
fn overrides_are_shown_as_they_were_given() {
    let set =
        |path: &str, value: &str| Overrides { sets: vec![(path.to_owned(), value.to_owned())], ..Overrides::default() };
    let mut all = String::new();
    for (path, value) in
        [("fabric.rate", "10G"), ("fabric.rats", "10Gbps"), ("servers", "four"), ("a..b", "1"), ("run.seeds", "5..1")]
    {
        let _ = writeln!(all, "{}", expand(RIGHT, &set(path, value)).unwrap_err().render());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn graphs() {
    let graph = r#"
[topology.graph]
switches = [{ name = "s1" }, { name = "s2" }]
hosts = [{ name = "x", count = 2, switch = "s1" }, { name = "y", switch = "s2" }]
links = [{ ends = ["s1", "s2"] }]
[[traffic]]
flows = { list = [{ from = "x-1", to = "y", size = "1MB" }] }
[[arm]]
name = "a"
cc = "cubic"
[run]
end = "1s"
"#;
    assert_eq!(plans(graph)[0].network.links.len(), 8);
    insta::assert_snapshot!(all_refused(
        graph,
        &[
            ("links = [{ ends = [\"s1\", \"s2\"] }]", ""),
            ("ends = [\"s1\", \"s2\"]", "ends = [\"s1\", \"s3\"]"),
            ("ends = [\"s1\", \"s2\"]", "ends = [\"s1\", \"s1\"]"),
            ("{ name = \"s2\" }", "{ name = \"s1\" }"),
            ("name = \"y\"", "name = \"x-1\""),
            ("name = \"y\"", "name = \"y y\""),
            ("to = \"y\"", "to = \"z\""),
            ("to = \"y\"", "to = \"x-1\""),
            ("size = \"1MB\"", "size = \"0B\""),
            ("flows = {", "between = \"all\"\nflows = {"),
        ]
    ));
}

#[test]
fn memory_is_bounded_by_the_caller() {
    let limits = &Limits { memory: Bytes::new(1_000_000) };
    insta::assert_snapshot!(expand_in(None, RIGHT, &Overrides::default(), limits).unwrap_err().render());
}

#[test]
fn samples_of_long_lived_flows_count_as_memory() {
    let long = RIGHT.replace(
        "arrivals = { poisson = { load = 0.9, of = \"wan\" } }\nsize = { cdf = \"web-search\" }\n",
        "long = {}\n",
    );
    assert_eq!(plans(&format!("{long}[sample]\nwindows = \"1ms\"\ngoodput = \"10ms\"\n")).len(), 1);
    for sampler in ["windows", "goodput"] {
        let refused = expand(&format!("{long}[sample]\n{sampler} = \"1us\"\n"), &Overrides::default());
        let said = refused.unwrap_err().render();
        assert!(said.contains("000000 samples; 4000 MB are allowed\n"), "{said}");
        assert!(said.contains("help: sample less often"), "{said}");
    }
}

#[test]
fn files_stand_beside_the_experiment() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments");
    let mut all = String::new();
    for file in ["down.cdf", "short.cdf", "absent.cdf", "../../Cargo.toml", "/etc/hostname", "not-utf8.cdf"] {
        let text = RIGHT.replacen("cdf = \"web-search\"", &format!("file = \"{file}\""), 1);
        let outcome = expand_in(Some(&folder), &text, &Overrides::default(), &Limits::default());
        let _ = writeln!(all, "{}", outcome.unwrap_err().render());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_experiment_that_is_not_there_is_said_so() {
    let error = load(Path::new("no/such/experiment.toml"), &Overrides::default(), &Limits::default()).unwrap_err();
    insta::assert_snapshot!(error.render());
}

proptest::proptest! {
    /// Broken text is refused, never a panic: any bytes in place of a piece of a right experiment.
    #[test]
    fn no_text_makes_the_reader_panic(at in 0..RIGHT.len(), length in 0usize..40, junk in "[a-z0-9 \"{}=.,\\[\\]\n-]{0,20}") {
        let mut text = RIGHT.to_owned();
        let end = (at + length).min(text.len());
        text.replace_range(at..end, &junk);
        if let Err(error) = expand(&text, &Overrides::default()) {
            proptest::prop_assert!(!error.render().is_empty());
        }
    }
}

#[test]
fn transports() {
    let between = "between = \"datacenters\"";
    let datagram = |more: &str| format!("{between}\ntransport = {{ datagram = {{ rate = \"100Mbps\" }} }}\n{more}");
    let whole = "arrivals = { poisson = { load = 0.9, of = \"wan\" } }\nsize = { cdf = \"web-search\" }\nbetween = \"datacenters\"";
    let asks = "transport = { datagram = { rate = \"50 %\" } }\nincast = { clients = \"a1-1\", servers = \"b*\", response = \"2KB\" }";
    let transport = |of: &str| format!("{between}\ntransport = {of}");
    insta::assert_snapshot!(all_said(&[
        (between, &transport("\"udp\"")),
        (between, &transport("\"datagram\"")),
        (between, &transport("{ datagram = { rate = 5 } }")),
        (between, &transport("{ datagram = { rate = \"0bps\" } }")),
        (between, &transport("{ datagram = { rate = \"120 %\" } }")),
        (between, &transport("{ datagram = { rate = \"fast\" } }")),
        (between, &transport("{ datagram = { rate = \"2Gbps\" } }")),
        (between, &transport("{ tcp = { rate = \"1Gbps\" } }")),
        (between, &datagram("cc = \"cubic\"")),
        (between, &datagram("ecn = true")),
        (between, &datagram("connections = \"fresh\"")),
        (between, &datagram("request = \"300B\"")),
        (between, &datagram("host = { near-source = \"software\" }")),
        (between, &datagram("host = { min-rto = \"1ms\" }")),
        (whole, asks),
    ]));
}

#[test]
fn rdma() {
    let between = "between = \"datacenters\"";
    let rdma = |of: &str, more: &str| format!("{between}\ntransport = {{ rdma = {{ {of} }} }}\n{more}");
    insta::assert_snapshot!(all_said(&[
        (between, &rdma("recovery = \"go-back\"", "")),
        (between, &rdma("timeout = \"1us\"", "")),
        (between, &rdma("ack-every = 0", "")),
        (between, &rdma("cnp-interval = 50", "")),
        (between, &rdma("", "cc = \"bbr\"")),
        (between, &rdma("cnp-interval = \"50us\"", "cc = \"dctcp\"")),
        (between, &rdma("", "connections = \"fresh\"")),
        (between, &rdma("", "host = { near-source = \"software\" }")),
        (between, &rdma("", "host = { min-rto = \"1ms\" }")),
    ]));
}

#[test]
fn freebsd_hosts() {
    let servers = "servers = 4";
    let host = |of: &str| format!("servers = 4\nhost = {{ profile = \"freebsd-cee\", {of} }}");
    insta::assert_snapshot!(all_said(&[
        (servers, &host("host-cache = \"linux\"")),
        (servers, &host("host-cache = { custom = { min-window = \"70pkt\" } }")),
        (servers, &host("host-cache = { custom = { min-window = \"0pkt\" } }")),
        (servers, &host("adaptive-buffers = { custom = { first = \"1KB\" } }")),
        (servers, &host("adaptive-buffers = { custom = { first = \"300KB\" } }")),
        (servers, &host("adaptive-buffers = { custom = { most = \"1GB\" } }")),
        (servers, &host("initial-rtt-variance = \"100s\"")),
        (servers, &host("reassembly-segments = 70000")),
    ]));
}

#[test]
fn packet_sizes() {
    let servers = "servers = 4";
    let mtu = |of: &str| format!("servers = 4\nhost = {{ mtu = {of} }}");
    let (pool, small) = ("pool = { size = \"4MB\", alpha = 0.2 }", "limit = \"5KB\"");
    let jumbo = RIGHT.replace(servers, &mtu("9000"));
    insta::assert_snapshot!(
        all_said(&[
            (servers, &mtu("575")),
            (servers, &mtu("9217")),
            (servers, &mtu("\"9KB\"")),
            ("between =", "host = { mtu = 9000 }\nbetween ="),
        ]) + &all_refused(&jumbo, &[(pool, small), (pool, "pool = { size = \"40KB\", alpha = 0.2 }")])
    );
}

#[test]
fn link_functions() {
    let wan = "wan = { limit = \"10000pkt\" }";
    let with = |what: &str| format!("wan = {{ limit = \"10000pkt\", {what} }}");
    insta::assert_snapshot!(all_said(&[
        (wan, &with("loss = 1")),
        (wan, &with("loss = -0.1")),
        (wan, &with("loss = \"lots\"")),
        (wan, &with("loss = { bernoulli = {} }")),
        (wan, &with("loss = { gilbert-eliot = { p = 0.1, r = 0.2 } }")),
        (wan, &with("loss = { gilbert-elliott = { p = 0.1 } }")),
        (wan, &with("loss = { gilbert-elliott = { p = 0, r = 0.2 } }")),
        (wan, &with("loss = { gilbert-elliott = { p = 0.1, r = 1.5 } }")),
        (wan, &with("loss = { gilbert-elliott = { p = 0.1, r = 0.2, loss-good = 0.5, loss-bad = 0.1 } }")),
        (wan, &with("reorder = { late = { share = 0.1 } }")),
        (wan, &with("reorder = { late = { share = 0.1, delay = \"0s\" } }")),
        (wan, &with("reorder = { late = { share = 0.1, delay = \"2ms\", delay-max = \"1ms\" } }")),
        (wan, &with("reorder = { late = { share = 1.1, delay = \"2ms\" } }")),
        (
            wan,
            "wan = { limit = \"10MB\", flow-control = { pfc = { xoff = \"100KB\", xon = \"50KB\" } }, reorder = { late = { share = 0.1, delay = \"2ms\" } } }"
        ),
        (wan, &with("bridge = \"dcib\", reorder = { late = { share = 0.1, delay = \"2ms\" } }")),
    ]));
}

#[test]
fn events() {
    let run = "[run]";
    let of = |what: &str| format!("[[event]]\nat = \"20ms\"\nlink = \"wan\"\n{what}\n[run]");
    let two = |one: &str, other: &str| {
        let event = |what: &str| format!("[[event]]\nlink = \"border-a->border-b\"\n{what}\n");
        format!("{}{}[run]", event(one), event(other))
    };
    insta::assert_snapshot!(all_said(&[
        (run, &of("")),
        (run, &of("rate = \"1Gbps\"\ndelay = \"5ms\"")),
        (run, &of("rate = \"0Gbps\"")),
        (run, &of("rate = \"-1Gbps\"")),
        (run, &of("rate = \"1000000Gbps\"")),
        (run, &of("delay = \"61s\"")),
        (run, &of("loss = 1")),
        (run, &of("outage = \"0s\"")),
        (run, &of("outage = \"2000000s\"")),
        (run, &of("outage = \"99999999999999999999s\"")),
        (run, &of("down = false")),
        (run, &of("up = true")),
        (run, &of("speed = \"1Gbps\"")),
        (run, "[[event]]\nat = \"1ms\"\nlink = \"wam\"\ndown = true\n[run]"),
        (run, "[[event]]\nlink = \"wan\"\ndown = true\n[run]"),
        (run, "[[event]]\nat = \"1ms\"\ndown = true\n[run]"),
        (run, &two("at = \"1ms\"\noutage = \"5ms\"", "at = \"5ms\"\noutage = \"5ms\"")),
        (run, &two("at = \"1ms\"\ndown = true", "at = \"5ms\"\ndown = true")),
        (run, &two("at = \"1ms\"\nrate = \"1Mbps\"", "at = \"1ms\"\nrate = \"2Mbps\"")),
        (
            "wan = { limit = \"10000pkt\" }",
            &format!(
                "wan = {{ limit = \"10000pkt\", bridge = \"dcib\" }}\n{}",
                &of("down = true")[..of("down = true").len() - 5]
            )
        ),
    ]));
}
