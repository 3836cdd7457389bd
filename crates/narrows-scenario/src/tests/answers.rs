//! What was answered wrongly once: accepted and not measured, told of the wrong thing, or not told at all.

use std::fmt::Write;
use std::time::Duration;

use super::*;
use crate::experiment::Seeds;
use narrows_plan::{FlowStart, Pattern, SampledFlow};

/// Two switches and what joins them.
fn parallel(links: &str, rest: &str) -> String {
    format!(
        r#"
[topology.graph]
switches = [{{ name = "s1" }}, {{ name = "s2" }}]
hosts = [{{ name = "x", count = 2, switch = "s1" }}, {{ name = "y", count = 2, switch = "s2" }}]
links = [{links}]
[[traffic]]
name = "long"
long = {{}}
from = "x-*"
to = "y-*"
[[arm]]
name = "a"
cc = "cubic"
[run]
end = "1s"
{rest}"#
    )
}

#[test]
fn parallel_links_have_names_of_their_own() {
    let ends = r#"ends = ["s1", "s2"]"#;
    let names = |links: &str| -> Vec<String> {
        let links = plans(&parallel(links, "")).remove(0).network.links.into_iter();
        links.filter(|link| link.role == narrows_plan::Role::Fabric).map(|link| link.name).collect()
    };
    assert_eq!(names(&format!("{{ {ends} }}")), ["s1->s2", "s2->s1"]);
    assert_eq!(
        names(&format!(r#"{{ {ends} }}, {{ name = "fast", {ends} }}, {{ ends = ["s2", "s1"] }}"#)),
        ["s1->s2#1", "s2->s1#1", "s1->s2#fast", "s2->s1#fast", "s2->s1#3", "s1->s2#3"]
    );
}

#[test]
fn a_links_own_name_can_be_watched() {
    let links = r#"{ name = "slow", ends = ["s1", "s2"] }, { name = "fast", ends = ["s1", "s2"] }"#;
    let watched = |pattern: &str| -> Vec<String> {
        let sample = format!("[sample]\nqueues = \"1ms\"\nwatch = \"{pattern}\"\n");
        let links = plans(&parallel(links, &sample)).remove(0).network.links.into_iter();
        links.filter(|link| link.watched).map(|link| link.name).collect()
    };
    assert_eq!(watched("fast"), ["s1->s2#fast", "s2->s1#fast"]);
    assert_eq!(watched("s1->s2#*"), ["s1->s2#slow", "s1->s2#fast"]);
}

#[test]
fn what_measures_nothing_is_refused() {
    let two = r#"{ name = "up", ends = ["s1", "s2"] }"#;
    let one = r#"{ ends = ["s1", "s2"] }"#;
    let mut all = String::new();
    for text in [
        parallel(&format!("{two}, {two}"), ""),
        parallel(&format!(r#"{{ name = "2", ends = ["s1", "s2"] }}, {one}"#), ""),
        parallel(r#"{ ends = ["s1", "s2", "s1"] }"#, ""),
        parallel(r#"{ ends = ["s1"] }"#, ""),
        parallel(one, "warmup = \"1s\""),
        parallel(one, "warmup = \"2s\""),
        parallel(one, "seeds = \"5..3\""),
        parallel(one, "seeds = [1, 1]"),
        parallel(one, "seeds = -1"),
        parallel(one, "[sample]\nflows = [\"long/*\"]"),
        parallel(one, "[sample]\nwindows = \"1ms\"\nflows = [\"lang/*\"]"),
        parallel(one, "[sample]\nwindows = \"1ms\"\nflows = [\"long\"]"),
        parallel(one, "[sample]\nwindows = \"1ms\"\nflows = [1.5]"),
        parallel(one, "[sample]\nwindows = \"1ms\"").replace("long = {}", "long = { size = \"1MB\" }"),
        parallel(one, "[sample]\nwindows = \"1ms\"\nflows = [440]").replace(
            "long = {}\nfrom = \"x-*\"\nto = \"y-*\"",
            "incast = { clients = \"x-1\", servers = \"y-*\", response = \"2KB\", repeats = 3 }",
        ),
    ] {
        let _ = writeln!(all, "{}", refused(&text));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn flows_with_a_size_are_sampled_by_name_and_number() {
    let text = parallel(r#"{ ends = ["s1", "s2"] }"#, "[sample]\ngoodput = \"1ms\"\nflows = [\"l*/*\", \"long/1\", 7]");
    let sampled = plans(&text.replace("long = {}", "long = { size = \"1MB\", flows = 8 }")).remove(0).sampling.flows;
    assert_eq!(sampled, [SampledFlow::All(0), SampledFlow::One { traffic: 0, sequence: 1 }, SampledFlow::Number(7)]);
}

#[test]
fn a_range_of_seeds_has_both_ends_everywhere() {
    let seeds = |written: &str| {
        let text = parallel(r#"{ ends = ["s1", "s2"] }"#, &format!("seeds = {written}"));
        expand(&text, &Overrides::default()).unwrap().seeds
    };
    for (written, expected) in [
        ("\"1..5\"", vec![1, 2, 3, 4, 5]),
        ("\"1..=5\"", vec![1, 2, 3, 4, 5]),
        ("\"7\"", vec![7]),
        ("7", vec![7]),
        ("[3, 1]", vec![3, 1]),
        ("\"9, 1..3\"", vec![9, 1, 2, 3]),
    ] {
        assert_eq!(seeds(written), expected, "{written}");
        let overrides = Overrides { sets: vec![("run.seeds".to_owned(), written.to_owned())], ..Overrides::default() };
        assert_eq!(expand(&parallel(r#"{ ends = ["s1", "s2"] }"#, ""), &overrides).unwrap().seeds, expected);
    }
}

#[test]
fn a_text_of_seeds_is_of_digits_ranges_and_commas() {
    for (text, expected) in [
        ("1,3,5..9", vec![1, 3, 5, 6, 7, 8, 9]),
        (" 1 .. 3 ", vec![1, 2, 3]),
        ("1..= 2", vec![1, 2]),
        ("9223372036854775807", vec![u64::MAX / 2]),
    ] {
        assert_eq!(Seeds::parse(text), Some(Seeds(expected)), "{text}");
    }
    for text in [
        "",
        ",",
        "1,",
        "..3",
        "1..",
        "3..1",
        "1,1",
        "1..3,2",
        "+1",
        "-1",
        "1.5",
        "a",
        "1...3",
        "9223372036854775808",
        "0..10000",
    ] {
        assert_eq!(Seeds::parse(text), None, "{text}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a reader that waits for a writer waits for ever")]
fn a_file_that_is_none_is_refused_at_once() {
    let folder = std::env::temp_dir().join(format!("narrows-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let fifo = folder.join("experiment.toml");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = fifo.clone();
    // A thread of its own: one that waits for a writer would wait for ever.
    std::thread::spawn(move || sender.send(load(&path, &Overrides::default(), &Limits::default()).err()));
    let said = receiver.recv_timeout(Duration::from_secs(10));
    std::fs::remove_dir_all(&folder).unwrap();
    let error = said.expect("an answer within seconds").expect("it is refused");
    assert!(error.to_string().ends_with("is not a regular file"), "{error}");
}

/// 20,000 kinds of traffic, and 100,000 arms that are too many: minutes where each was held against all others.
#[test]
fn large_files_take_time_in_proportion() {
    let base = parallel(r#"{ ends = ["s1", "s2"] }"#, "");
    let (head, tail) = base.split_at(base.find("[[arm]]").unwrap());
    let mut traffic = head.to_owned();
    for index in 0..20_000 {
        let _ = write!(
            traffic,
            "[[traffic]]\nname = \"t{index}\"\nlong = {{ start = \"{}us\" }}\nfrom = \"x-1\"\nto = \"y-1\"\n",
            index
        );
    }
    let begin = on_processor();
    let mut many = plans(&(traffic + tail));
    assert_eq!(many.remove(0).traffic.len(), 20_001);
    let mut arms = head.to_owned();
    (0..100_000).for_each(|index| _ = write!(arms, "[[arm]]\nname = \"{index}\"\ncc = \"cubic\"\n"));
    assert!(refused(&(arms + "[run]\nend = \"1s\"\n")).contains("more than the 10000 that are allowed"));
    let spent = on_processor() - begin;
    // 12 s were measured on an idle machine, and 32 s beside a compiler.
    assert!(spent < Duration::from_secs(60), "{spent:?}");
}

/// How long this thread has been on a processor, whatever else the machine does.
fn on_processor() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn a_long_line_is_quoted_around_its_fault() {
    let long = "x".repeat(1 << 20);
    let base = parallel(r#"{ ends = ["s1", "s2"] }"#, "");
    for text in [
        base.replace("long = {}", &format!("long = {{ flaws = 3, title = \"{long}\" }}")),
        base.replace("long = {}", &format!("{long} = 3")),
        base.replace("\"x-*\"", &format!("\"{long}\"")),
        base.replace("[run]", &format!("[run]\nx = [ \"{long}\", \"{long}\" ]")),
    ] {
        let said = refused(&text);
        assert!(said.len() < 2_000, "{} bytes", said.len());
    }
    // The mark stands below what it marks.
    let said =
        refused(&base.replace("long = {}", &format!("long = {{ start = \"0s\", {} flaws = 3 }}", " ".repeat(500))));
    let lines: Vec<&str> = said.lines().collect();
    let column = lines[3].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[2].chars().skip(column).take(5).collect::<String>(), "flaws");
}

fn warnings(text: &str) -> Vec<(String, Vec<usize>)> {
    let found = expand(text, &Overrides::default()).unwrap().warnings;
    found.into_iter().map(|warning| (warning.text, warning.plans)).collect()
}

/// NewReno 785/47/55/50 Mbit/s where flows from equal ports meet; 1.1 Gbit/s, 1 us of jitter or random traffic mend it.
#[test]
fn flows_that_may_lock_each_other_out_are_told_of() {
    let locked = parallel(r#"{ ends = ["s1", "s2"] }"#, "");
    let said = warnings(&locked);
    assert_eq!(said.len(), 1);
    assert!(said[0].0.contains("drop-tail port `s1->s2`, exactly as fast"), "{}", said[0].0);
    let random = "[[traffic]]\nname = \"web\"\narrivals = { poisson = { rate = \"5/s\" } }\nsize = { fixed = \"1MB\" }\nfrom = \"x-1\"\nto = \"y-1\"\n[[arm]]";
    for (what, from, to) in [
        ("jitter", "switches", "host = { stack-delay = { jitter = \"1us\" } }\nswitches"),
        ("a faster sender", "switches", "edge = { rate = \"1.1Gbps\" }\nswitches"),
        ("an AQM", "switches", "fabric = { aqm = { threshold = { mark-at = \"20pkt\" } } }\nswitches"),
        ("no limit", "switches", "fabric = { limit = \"unlimited\" }\nswitches"),
        ("one sender", "\"x-*\"", "\"x-1\""),
        ("flows with a size", "long = {}", "long = { size = \"1MB\" }"),
        ("random traffic", "[[arm]]", random),
    ] {
        assert!(locked.contains(from), "{from}");
        assert_eq!(warnings(&locked.replacen(from, to, 1)), [], "{what}");
    }
}

#[test]
fn a_scheme_that_needs_marks_is_told_that_there_are_none() {
    let text = |class: &str| {
        parallel(r#"{ ends = ["s1", "s2"] }"#, "")
            .replacen("switches", &format!("edge = {{ rate = \"2Gbps\" }}\nfabric = {{ {class} }}\nswitches"), 1)
            .replacen("[run]", "[[arm]]\nname = \"b\"\ncc = \"dctcp\"\n[run]", 1)
    };
    let said = warnings(&text("rate = \"1Gbps\""));
    assert_eq!(said, [("`dctcp` needs ECN marks, and no port on the paths of `long` marks".to_owned(), vec![1])]);
    let red = |ecn: bool| {
        text(&format!("aqm = {{ red = {{ min = \"5pkt\", max = \"15pkt\", max-probability = 0.1, ecn = {ecn} }} }}"))
    };
    assert_eq!(warnings(&text("aqm = { threshold = { mark-at = \"20pkt\" } }")), []);
    assert_eq!(warnings(&red(true)), []);
    assert_eq!(warnings(&red(false)).len(), 1);
}

#[test]
fn a_scheme_that_needs_every_acknowledgement_is_told_of_delayed_ones() {
    let text = |hosts: &str| {
        parallel(r#"{ ends = ["s1", "s2"] }"#, "")
            .replacen("switches", &format!("edge = {{ rate = \"2Gbps\" }}\n{hosts}\nswitches"), 1)
            .replacen("[run]", "[[arm]]\nname = \"b\"\ncc = \"swift\"\n[run]", 1)
    };
    let said = "`swift` needs each packet acknowledged at once, and hosts of `long` delay acknowledgements";
    for hosts in ["", "host = { ack-every = 1 }", "host = { receive-offload = \"off\" }"] {
        assert_eq!(warnings(&text(hosts)), [(said.to_owned(), vec![1])], "{hosts}");
    }
    assert_eq!(warnings(&text("host = { ack-every = 1, receive-offload = \"off\" }")), []);
}

#[test]
fn rdma_is_told_of_what_it_does_not_do_and_of_timeouts_that_are_too_short() {
    let text = |transport: &str, host: &str, cc: &str| {
        parallel(r#"{ ends = ["s1", "s2"] }"#, "")
            .replacen(
                "switches",
                &format!("edge = {{ rate = \"2Gbps\" }}\nfabric = {{ delay = \"1ms\" }}\n{host}\nswitches"),
                1,
            )
            .replacen(
                "long = {}",
                &format!("long = {{}}\ntransport = {{ rdma = {{ {transport} }} }}\ncc = \"{cc}\""),
                1,
            )
    };
    assert_eq!(warnings(&text("timeout = \"10ms\"", "", "newreno")), []);
    let [(said, _)] = &warnings(&text("timeout = \"1ms\"", "", "newreno"))[..] else { panic!("one") };
    assert!(said.contains("the timeout of `long` is 1ms, and its longest base RTT 6ms"), "{said}");
    let [(said, _)] = &warnings(&text("", "host = { near-source = \"software\" }", "newreno"))[..] else {
        panic!("one")
    };
    assert!(said.contains("`long` does not listen to near-source switches"), "{said}");
    // The host's settings of TCP delay nothing here.
    assert_eq!(warnings(&text("", "", "swift")), []);
    let [(said, _)] = &warnings(&text("ack-every = 4", "", "swift"))[..] else { panic!("one") };
    assert!(said.contains("`swift` needs each packet acknowledged at once"), "{said}");
}

#[test]
fn controllers_of_rates_are_told_of_windows_that_are_shorter_than_the_rtt() {
    let text = |cc: &str| {
        parallel(r#"{ ends = ["s1", "s2"] }"#, "")
            .replacen(
                "switches",
                "edge = { rate = \"2Gbps\" }\nfabric = { delay = \"1ms\", aqm = { threshold = { mark-at = \"20pkt\" } } }\nswitches",
                1,
            )
            .replacen("long = {}", &format!("long = {{}}\ncc = {cc}"), 1)
    };
    let [(said, _)] = &warnings(&text("\"dcqcn\""))[..] else { panic!("one") };
    let expected = "of `long` has at most what its line sends in 4ms in flight, and its longest base RTT is 6ms";
    assert!(said.contains(expected) && said.contains("at most 66 % of the line"), "{said}");
    assert_eq!(warnings(&text("{ dcqcn = { window = \"7ms\" } }")), []);
}

#[test]
fn what_flow_control_does_not_keep_is_told_of() {
    let text = |class: &str, second: u8| {
        format!(
            r#"
            [topology.star]
            hosts = 3
            fabric = {{ rate = "10Gbps", delay = "500ns", limit = "102400B", buffering = "input", {class} }}
            [[traffic]]
            name = "a"
            flows = {{ list = [{{ from = "h1", to = "h3", size = "1MB" }}] }}
            [[traffic]]
            name = "b"
            service-class = {second}
            flows = {{ list = [{{ from = "h2", to = "h3", size = "1MB" }}] }}
            [[arm]]
            name = "a"
            cc = "newreno"
            [run]
            end = "1s"
            "#
        )
    };
    let pfc = |more: &str| format!("flow-control = {{ pfc = {{ xoff = \"96KB\", xon = \"80KB\"{more} }} }}");
    assert_eq!(warnings(&text(&pfc(""), 0)), []);
    let lossy = warnings(&text(&format!("loss = 0.001, {}", pfc("")), 0));
    assert!(lossy[0].0.contains("`h1->switch`") && lossy[0].0.contains("loses packets"), "{}", lossy[0].0);
    let classes = warnings(&text(&pfc(""), 5));
    assert!(classes[0].0.starts_with("2 service classes share the memory"), "{}", classes[0].0);
    assert_eq!(warnings(&text(&format!("loss = 0.001, {}", pfc(", may-lose = true")), 5)), []);
}

#[test]
fn flows_after_the_end_are_counted() {
    let flow = |at: &str| format!("{{ from = \"x-1\", to = \"y-1\", size = \"1MB\", at = \"{at}\" }}");
    let list = format!("flows = {{ list = [{}, {}, {}] }}", flow("0s"), flow("1s"), flow("3s"));
    let text = parallel(r#"{ ends = ["s1", "s2"] }"#, "").replace("long = {}\nfrom = \"x-*\"\nto = \"y-*\"", &list);
    let said = warnings(&text);
    assert_eq!(said[0].0, "2 of the 3 flows of `long` begin at or after the run's end at 1s, and are left out");
    let begins = |flow: &FlowStart| flow.at;
    let Pattern::List(flows) = &plans(&text)[0].traffic[0].pattern else { panic!() };
    assert_eq!(flows.iter().map(begins).filter(|at| at.as_ms() < 1_000).count(), 1);
}

/// A run with these sampled flows, whose traffic is this.
fn sampling(traffic: &str, flows: &str) -> String {
    let text = parallel(r#"{ ends = ["s1", "s2"] }"#, &format!("[sample]\nwindows = \"1ms\"\nflows = {flows}"));
    text.replace("long = {}", traffic)
}

#[test]
fn sampled_flows_that_do_not_exist_are_refused() {
    let three = "long = { size = \"1MB\", flows = 3 }";
    let six = "incast = { clients = \"x-1\", servers = \"y-*\", response = \"2KB\", repeats = 3 }";
    let of_six = |flows: &str| sampling(six, flows).replace("from = \"x-*\"\nto = \"y-*\"\n", "");
    for (text, said) in [
        (sampling(three, "[]"), "`flows` names no flows"),
        (sampling("long = {}", "[]"), "`flows` names no flows"),
        (sampling(three, "[\"long/0\", \"long/3\"]"), "there is no flow `long/3`: its traffic has at most 3"),
        (sampling(three, "[2, 3]"), "there is no flow `3`: a run has at most 3"),
        (of_six("[\"long/6\"]"), "there is no flow `long/6`: its traffic has at most 6"),
    ] {
        let found = refused(&text);
        assert!(found.contains(said), "{found}");
    }
    plans(&sampling(three, "[\"long/0\", \"long/2\", \"*/*\", 2]"));
    plans(&of_six("[\"long/5\"]"));
}

/// 50 flows are expected in the second; a Poisson count beyond 120 has a probability of 10^-16.
#[test]
fn sampled_flows_that_will_hardly_exist_are_told_of() {
    let random = "arrivals = { poisson = { rate = \"50/s\" } }\nsize = { fixed = \"1MB\" }";
    let far = "sample.flows";
    let told = |flows: &str| -> Vec<String> {
        let said = warnings(&sampling(random, flows)).into_iter().map(|(text, _)| text);
        said.filter(|text| text.contains(far)).collect()
    };
    assert_eq!(
        told("[\"long/99999\"]"),
        ["`sample.flows` names `long/99999`, and about 50 flows of `long` are expected"]
    );
    assert_eq!(told("[123456]"), ["`sample.flows` names flow 123456, and about 50 flows are expected"]);
    assert_eq!(told("[\"long/*\", \"long/120\", 120]"), <[String; 0]>::default());
    assert_eq!(told("[\"long/121\"]").len(), 1);
}

/// A queue of its own, by class or by flow, ends the warning; so does a port that does not mark.
#[test]
fn controllers_that_react_otherwise_in_one_marking_queue_are_told_of() {
    let said = |one: &str, other: &str, fabric: &str| -> Vec<String> {
        let text = format!(
            "[topology.dumbbell]\npairs = 2\nfabric = {{ rate = \"1Gbps\", limit = \"300pkt\", {fabric} }}\n\
            edge = {{ rate = \"10Gbps\", aqm = \"none\", scheduler = \"fifo\" }}\n\
            [[traffic]]\nname = \"one\"\nlong = {{}}\nfrom = \"left-1\"\nto = \"right-1\"\n{one}\n\
            [[traffic]]\nname = \"other\"\nlong = {{}}\nfrom = \"left-2\"\nto = \"right-2\"\n{other}\n\
            [[arm]]\nname = \"it\"\ncc = \"dctcp\"\n[run]\nend = \"1s\"\n"
        );
        warnings(&text).into_iter().map(|(text, _)| text).filter(|text| text.contains("share the marking")).collect()
    };
    let marking = "aqm = { threshold = { mark-at = \"20pkt\" } }";
    let expected = "`dctcp` and `cubic` share the marking queue of `switch-left->switch-right`";
    let found = said("", "cc = \"cubic\"", marking);
    assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    assert_eq!(said("", "cc = \"cubic\"\necn = true", marking).len(), 1);
    assert_eq!(said("", "cc = \"gemini\"", marking), <[String; 0]>::default());
    assert_eq!(said("cc = \"vegas\"", "cc = \"cubic\"", marking), <[String; 0]>::default());
    assert_eq!(said("", "cc = \"cubic\"", "aqm = \"none\""), <[String; 0]>::default());
    let classes = format!("{marking}, scheduler = {{ drr = {{ weights = [1, 1] }} }}");
    assert_eq!(said("", "cc = \"cubic\"\nservice-class = 1", &classes), <[String; 0]>::default());
    assert_eq!(said("", "cc = \"cubic\"", &classes).len(), 1);
    assert_eq!(said("", "cc = \"cubic\"", "scheduler = \"fq-codel\""), <[String; 0]>::default());
    // DCTCP sends ECT(0), and waits in the classic queue.
    assert_eq!(said("", "cc = \"cubic\"", "scheduler = \"dual-pi2\"").len(), 1);
    // Each pair of controllers, and each port.
    let third = "cc = \"newreno\"\n[[traffic]]\nname = \"third\"\nlong = {}\nfrom = \"left-1\"\nto = \"right-2\"";
    let found = said(third, "cc = \"cubic\"", marking);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn an_aqm_whose_queue_the_port_cannot_hold_is_told_of() {
    let said = |wan: &str| -> Vec<String> {
        let text = format!(
            "[topology.two-datacenters]\nservers = 1\nwan = {{ rate = \"1Gbps\", {wan} }}\n\
            [[traffic]]\nlong = {{}}\nfrom = \"a1-1\"\nto = \"b1-1\"\n\
            [[arm]]\nname = \"it\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\ndrain = \"0s\"\n"
        );
        let warnings = expand(&text, &Overrides::default()).unwrap().warnings;
        warnings.into_iter().map(|warning| warning.text).filter(|text| text.contains("acts beyond")).collect()
    };
    let ports = "`border-a->border-b`, `border-b->border-a`";
    // 15 ms at 1 Gbit/s are 1.875 MB.
    assert_eq!(said("limit = \"1876KB\", aqm = \"pie\""), Vec::<String>::new());
    assert_eq!(
        said("limit = \"1875KB\", aqm = \"pie\""),
        [format!("`pie` acts beyond 15ms and so hardly ever at {ports}, whose buffer holds 1875KB, or 15ms")]
    );
    assert_eq!(said("limit = \"625KB\", scheduler = \"fq-codel\"").len(), 1);
    assert_eq!(said("limit = \"626KB\", scheduler = \"fq-codel\"").len(), 0);
    for (limit, told) in [("50pkt", 1), ("51pkt", 0), ("75KB", 1), ("77KB", 0)] {
        let found = said(&format!("limit = \"{limit}\", aqm = {{ threshold = {{ mark-at = \"50pkt\" }} }}"));
        assert_eq!(found.len(), told, "{limit}: {found:?}");
    }
}
