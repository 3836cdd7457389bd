//! A random experiment, as its file: topology, links with what they do to packets and what happens to them, queues, hosts,
//! applications and controllers. Some combinations are refused, as they must be.

use narrows_core::cc::SPECS;

use crate::choices::Choices;

/// The text of an experiment.
pub(crate) fn text(choices: &mut Choices) -> String {
    let topology = choices.one_of(&["dumbbell", "star", "leaf-spine", "two-datacenters", "fat-tree"]);
    let hosts = choices.between(2, 6);
    let shape = match topology {
        "dumbbell" => format!("pairs = {hosts}"),
        "star" => format!("hosts = {}", hosts + 1),
        "leaf-spine" => {
            format!("leaves = {}\nspines = {}\nhosts-per-leaf = {hosts}", choices.between(2, 3), choices.between(1, 3))
        }
        "two-datacenters" => format!("servers = {hosts}\nracks = {}", choices.between(1, 2)),
        _ => "k = 4".to_owned(),
    };
    let lossless = topology != "two-datacenters" && choices.once_in(8);
    let classes = if choices.once_in(3) { choices.between(2, 4) } else { 1 };
    let fabric = link(
        choices,
        &["1Gbps", "10Gbps", "100Mbps", "2500Mbps"],
        &["5us", "0ns", "1us", "100us"],
        classes,
        lossless,
        false,
    );
    let has_choice = matches!(topology, "leaf-spine" | "fat-tree");
    let routing = if has_choice || choices.once_in(8) { routing(choices) } else { "" };
    let mut text = format!("{routing}[topology.{topology}]\n{shape}\nfabric = {{ {fabric} }}\n");
    let mut roles = vec![if topology == "star" { "edge" } else { "fabric" }];
    if topology == "two-datacenters" {
        let mut wan =
            link(choices, &["1Gbps", "100Mbps", "10Gbps"], &["1ms", "200us", "5ms", "20ms"], classes, false, true);
        if choices.once_in(5) {
            wan += &format!(
                ", bridge = {{ dcib = {{ share = {}, marks = \"{}\" }} }}",
                choices.one_of(&["0.1", "0.5", "1.0"]),
                choices.one_of(&["clear", "drop"])
            );
        }
        text += &format!("wan = {{ {wan} }}\n");
        roles.push("wan");
    }
    text += &format!("host = {{ {} }}\n", host(choices));
    for _ in 0..choices.below(3) {
        text += &event(choices, &roles, lossless);
    }
    for number in 1..=choices.between(1, 3) {
        text += &traffic(choices, number, classes, roles[0]);
    }
    text += &format!("[[arm]]\nname = \"a\"\ncc = \"{}\"\n{}", controller(choices), ecn(choices));
    let end = choices.one_of(&[20, 5, 60, 150]);
    let warmup = choices.one_of(&[0, 1, 3]) * end / 5;
    let drain = choices.one_of(&["1s", "0s", "30ms"]);
    text += &format!("[run]\nend = \"{end}ms\"\nwarmup = \"{warmup}ms\"\ndrain = \"{drain}\"\n");
    if choices.once_in(2) {
        // Only flows without a size have windows.
        let windows = if text.contains("long = { spread = \"2ms\"") && !text.contains("size = \"1MB\" }") {
            "windows = \"500us\"\ngoodput = \"1ms\"\n"
        } else {
            ""
        };
        text += &format!("[sample]\nqueues = \"100us\"\nthroughput = \"1ms\"\n{windows}");
    }
    text
}

/// Which of equal paths packets take.
fn routing(choices: &mut Choices) -> &'static str {
    choices.one_of(&[
        "",
        "routing = \"spray\"\n",
        "routing = { flowlet = { gap = \"50us\" } }\n",
        "routing = { rehash = { threshold = 0.01, rounds = 2, idle-rounds = 1, suspend = \"1ms\" } }\n",
    ])
}

fn controller(choices: &mut Choices) -> &'static str {
    let all: Vec<&str> = SPECS.iter().map(|spec| spec.name).collect();
    choices.one_of(&all)
}

/// A transport of connections between adapters, and a controller that goes with it.
fn rdma(choices: &mut Choices) -> String {
    let all: Vec<&str> = SPECS.iter().filter(|spec| !spec.needs_delivery_rate).map(|spec| spec.name).collect();
    let (controller, notified) = match choices.below(4) {
        0 => ("dcqcn", ", cnp-interval = \"50us\""),
        _ => (choices.one_of(&all), ""),
    };
    format!(
        "transport = {{ rdma = {{ recovery = \"{}\", timeout = \"{}\", ack-every = {}{} }} }}\ncc = \"{}\"\n{}",
        choices.one_of(&["go-back-n", "selective-repeat"]),
        choices.one_of(&["67ms", "1ms", "300ms"]),
        choices.one_of(&[1, 4, 64]),
        notified,
        controller,
        ecn(choices)
    )
}

fn ecn(choices: &mut Choices) -> &'static str {
    choices.one_of(&["", "", "ecn = true\n"])
}

/// The fields of a class of links.
fn link(choices: &mut Choices, rates: &[&str], delays: &[&str], classes: u64, lossless: bool, wan: bool) -> String {
    let mut fields =
        vec![format!("rate = \"{}\"", choices.one_of(rates)), format!("delay = \"{}\"", choices.one_of(delays))];
    let mut add = |field: String| fields.push(field);
    if lossless {
        add("limit = \"2MB\"".to_owned());
        add(format!("buffering = \"{}\"", choices.one_of(&["input", "output"])));
        add(format!(
            "flow-control = {{ pfc = {{ xoff = \"{}KB\", xon = \"3KB\" }} }}",
            choices.one_of(&["20", "5", "60"])
        ));
    } else {
        // In the WAN a port draws on no pool.
        add(match choices.below(if wan { 3 } else { 4 }) {
            0 => "limit = \"100pkt\"".to_owned(),
            1 => format!("limit = \"{}pkt\"", choices.between(1, 30)),
            2 => format!("limit = \"{}KB\"", choices.one_of(&["200", "3", "15"])),
            _ => format!(
                "pool = {{ size = \"{}KB\", alpha = {} }}",
                choices.one_of(&["400", "60"]),
                choices.one_of(&["1", "0.2"])
            ),
        });
    }
    let scheduler = if classes > 1 {
        let weights: Vec<String> = (0..classes).map(|_| choices.between(1, 4).to_string()).collect();
        match choices.below(2) {
            0 => format!("{{ drr = {{ weights = [{}] }} }}", weights.join(", ")),
            _ => format!("{{ strict-priority = {{ classes = {classes} }} }}"),
        }
    } else {
        choices.one_of(&["\"fifo\"", "\"fifo\"", "\"fifo\"", "\"fq\"", "\"fq-codel\"", "\"dual-pi2\""]).to_owned()
    };
    let has_own_aqm = ["\"fq\"", "\"fq-codel\"", "\"dual-pi2\""].contains(&scheduler.as_str());
    add(format!("scheduler = {scheduler}"));
    let at = choices.between(1, 40);
    let aqm = match choices.below(8) {
        0 => "\"none\"".to_owned(),
        1 => format!("{{ threshold = {{ mark-at = \"{at}pkt\" }} }}"),
        2 => format!("{{ threshold = {{ mark-at = \"{at}KB\", at-dequeue = true }} }}"),
        3 => format!("{{ red = {{ min = \"{at}pkt\", max = \"{}pkt\", max-probability = 0.1 }} }}", 3 * at),
        4 => "\"codel\"".to_owned(),
        5 => "\"pie\"".to_owned(),
        6 => "{ pi = { reference = \"20pkt\", a = 0.0002, b = 0.00015, period = \"100us\" } }".to_owned(),
        _ => format!("{{ phantom = {{ mark-at = \"{}KB\" }} }}", at + 2),
    };
    if !has_own_aqm {
        add(format!("aqm = {aqm}"));
    }
    match choices.below(8) {
        5 => add(format!("loss = {}", choices.one_of(&["0.001", "0.02", "0.3"]))),
        6 => add("loss = { gilbert-elliott = { p = 0.01, r = 0.3 } }".to_owned()),
        7 => {
            add(format!("reorder = {{ late = {{ share = {}, delay = \"50us\" }} }}", choices.one_of(&["0.01", "0.3"])))
        }
        _ => {}
    }
    if choices.once_in(10) {
        add("congestion-point = { qcn = { set-point = \"10KB\", sample-base = \"15KB\" } }".to_owned());
    }
    fields.join(", ")
}

fn host(choices: &mut Choices) -> String {
    let mut fields =
        vec![format!("profile = \"{}\"", choices.one_of(&["linux-6", "linux-4.9", "dctcp-2010", "freebsd-cee"]))];
    let mut add = |field: &str| fields.push(field.to_owned());
    match choices.below(4) {
        2 => add("stack-delay = { tx = \"5us\", rx = \"5us\", jitter = \"12us\" }"),
        3 => add("stack-delay = { tx = \"30us\", rx = \"10us\", jitter = \"0s\" }"),
        _ => {}
    }
    for field in [
        "receive-offload = \"off\"",
        "offload-segments = 1",
        "port = \"fq\"",
        "clock-spread = \"100ppm\"",
        "near-source = \"software\"",
        "nic-limiter = \"software\"",
        "restart-after-idle = false",
        "receive-buffer = \"20KB\"",
    ] {
        if choices.once_in(8) {
            add(field);
        }
    }
    match choices.below(8) {
        6 => fields.push("mtu = 9000".to_owned()),
        7 => fields.push("mtu = 576".to_owned()),
        _ => {}
    }
    fields.join(", ")
}

fn event(choices: &mut Choices, roles: &[&str], lossless: bool) -> String {
    let at = choices.between(1, 100);
    let what = match choices.below(if lossless { 2 } else { 5 }) {
        0 => format!("rate = \"{}\"", choices.one_of(&["500Mbps", "50Mbps", "5Gbps"])),
        1 => format!("loss = {}", choices.one_of(&["0.05", "0.0"])),
        2 => format!("delay = \"{}\"", choices.one_of(&["300us", "0s", "3ms"])),
        3 => format!("outage = \"{}\"", choices.one_of(&["2ms", "300ms"])),
        _ => "down = true".to_owned(),
    };
    format!("[[event]]\nat = \"{at}ms\"\nlink = \"{}\"\n{what}\n", choices.one_of(roles))
}

fn traffic(choices: &mut Choices, number: u64, classes: u64, role: &str) -> String {
    let mut text = format!("[[traffic]]\nname = \"t{number}\"\n");
    if classes > 1 {
        text += &format!("service-class = {}\n", choices.below(classes));
    }
    let size = choices.one_of(&["20KB", "1B", "1448B", "300KB", "3MB"]);
    let who = choices.one_of(&["between = \"all\"", "between = \"permutation\"", "from = \"*1\"\nto = \"*2\""]);
    let mut tcp = true;
    let kind = choices.below(9);
    text += &match kind {
        0 => format!("from = \"*1\"\nto = \"*2\"\nlong = {{ flows = 1, size = \"{size}\" }}\n"),
        1 => format!(
            "{who}\narrivals = {{ poisson = {{ rate = \"{}/s\" }} }}\nsize = {{ fixed = \"{size}\" }}\n",
            choices.one_of(&[1_000, 100, 5_000])
        ),
        2 => format!(
            "{who}\narrivals = {{ poisson = {{ load = {}, of = \"{role}\" }} }}\nsize = {{ cdf = \"{}\" }}\n",
            choices.one_of(&["0.3", "0.9"]),
            choices.one_of(&["web-search", "cache", "data-mining"])
        ),
        3 => format!(
            "{who}\narrivals = {{ on-off = {{ on = \"2ms\", off = \"5ms\", gap = \"300us\", sigma = 1 }} }}\nsize = {{ fixed = \"{size}\" }}\n"
        ),
        4 => format!(
            "{who}\nlong = {{ spread = \"2ms\"{} }}\n",
            choices.one_of(&["", ", stop = \"10ms\"", ", size = \"1MB\""])
        ),
        5 => format!(
            "incast = {{ clients = \"*1\", servers = \"*\", response = \"{size}\", repeats = {} }}\n",
            choices.between(1, 20)
        ),
        6 => format!(
            "all-to-all = {{ hosts = \"*\", size = \"{size}\", in-rounds = {}, repeats = {} }}\n",
            choices.one_of(&["false", "true"]),
            choices.between(1, 3)
        ),
        7 => format!(
            "program = {{ generate = {{ {} }}, sigma = {} }}\n",
            choices.one_of(&[
                "ring-all-reduce = { ranks = 4, bytes = \"200KB\" }",
                "tree-all-reduce = { ranks = 4, bytes = \"200KB\" }",
                "all-to-all = { ranks = 3, bytes = \"50KB\" }",
                "pipeline = { ranks = 4, stages = 2, microbatches = 3, activations = \"100KB\" }",
                "cg = { ranks = 4, points = 1000, iterations = 1, compute = \"1us\" }",
            ]),
            choices.one_of(&["0", "0.2"])
        ),
        _ => {
            tcp = false;
            format!(
                "{who}\ntransport = {{ datagram = {{ rate = \"{}%\" }} }}\nlong = {{ spread = \"1ms\", size = \"{size}\" }}\n",
                choices.one_of(&[50, 100, 3])
            )
        }
    };
    if tcp {
        text += choices.one_of(&[
            "",
            "",
            "connections = \"fresh-established\"\n",
            "connections = { persistent = { pool = 2 } }\n",
        ]);
        if choices.once_in(4) {
            text += &rdma(choices);
        } else if choices.once_in(3) {
            text += &format!("cc = \"{}\"\n{}", controller(choices), ecn(choices));
        }
        if (1..=4).contains(&kind) && choices.once_in(4) {
            text += "request = \"100B\"\n";
        }
    }
    text
}
