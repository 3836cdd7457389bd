//! Loading, choosing, watching, changing and unloading.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::Outcome;
use crate::shell::{LOAD, NARROWSD, ended, good, nothing_is_left, refused, run, status};
use crate::world::{SENDER, World, ip, within};

pub(crate) fn a_route_a_transfer_its_state_and_nothing_left() -> Outcome {
    let world = World::new();
    assert_eq!(good(LOAD), "gemini is registered as narrows_gemini\n");
    let said = refused(LOAD, 1);
    assert!(said.starts_with("error: gemini is loaded already\n  help: `narrowsd cc set gemini "), "{said}");
    world.choose_by_route("narrows_gemini");
    world.transfer(Duration::from_millis(1_500), || {
        let state = status("gemini");
        assert_eq!((&state["kept"], &state["flows_total"]), (&json!("pinned"), &json!(2)), "{state}");
        let flows = state["flows"].as_array().expect("a list");
        let local = |flow: &&serde_json::Value| flow["local"].as_str().expect("an address").starts_with(SENDER);
        let flow = flows.iter().find(local).expect("the sender is published");
        assert_eq!((&flow["netns"], &flow["ecn"]), (&json!(world.sender), &json!(true)), "{flow}");
        assert!(flow["window_packets"].as_f64() >= Some(1.0) && flow["pacing_bps"].is_u64(), "{flow}");
        assert!(flow["acked_packets"].as_u64() > Some(10) && flow["rtt_base_us"].is_u64(), "{flow}");

        let table = good("cc status gemini");
        assert!(
            table.contains("pinned in /sys/fs/bpf/narrows/gemini") && table.contains("capacity=200Mbps"),
            "{table}"
        );
        assert!(table.contains("rtt_base_us") && table.contains(&world.sender), "{table}");
        println!("{table}");

        assert_eq!(good("cc set gemini f=0.5 beta=0.25"), "");
        std::thread::sleep(Duration::from_millis(200));
        let state = status("gemini");
        let flow = state["flows"].as_array().expect("a list").iter().find(local).expect("the sender is published");
        assert_eq!(flow["factor"], json!(0.5), "living flows follow");
        assert_eq!(state["parameters"]["beta"], json!("0.25"));
        let said = good("cc unload gemini");
        assert!(said.starts_with("gemini is unloaded\n") && said.contains("keep it until they end"), "{said}");
        nothing_is_left("gemini");
    });
    // A route's choice that nobody answers to any more is none.
    world.transfer(Duration::from_millis(100), || {});
    assert_eq!(good("cc unload gemini"), "gemini is not loaded\n");
    let said = refused("cc set gemini t=1ms", 1);
    assert_eq!(said, "error: gemini is not loaded\n  help: narrowsd cc load gemini\n");
    Ok(())
}

pub(crate) fn a_namespace_that_chose_it_is_in_the_way() -> Outcome {
    let world = World::new();
    good("cc load vegas");
    world.choose_by_namespace("narrows_vegas");
    world.transfer(Duration::from_millis(300), || {
        assert_eq!(status("vegas")["flows"].as_array().map(Vec::len), Some(2))
    });
    assert_eq!(status("vegas")["default_of"], json!([world.sender, world.receiver]));
    let said = refused("cc unload vegas", 1);
    assert!(said.contains(&format!("namespaces {}, {}\n  help: set another", world.sender, world.receiver)), "{said}");
    assert_eq!(status("vegas")["loaded"], json!(true));
    good("cc unload --all --force");
    nothing_is_left("vegas");
    world.choose_by_namespace("reno");
    Ok(())
}

pub(crate) fn the_default_is_taken_and_put_back() -> Outcome {
    let world = World::new();
    let there = |line: &str| {
        let typed = || Command::new(NARROWSD).args(line.split(' ')).output().expect("it runs");
        ended(&within(&world.sender, typed))
    };
    let default =
        || within(&world.sender, || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")).expect("a name");
    let before = default();
    good("cc load dctcp");
    assert_eq!(default(), before, "only with --default");
    good("cc unload dctcp");
    let (code, out, error) = there("cc load dctcp --default");
    assert_eq!((code, default().trim()), (0, "narrows_dctcp"), "{out}{error}");
    assert!(out.ends_with(&format!("before it was {before}")), "{out}");
    assert_eq!(status("dctcp")["default_of"], json!([world.sender]));
    // From another namespace than it was loaded in.
    let said = good("cc unload dctcp");
    assert_eq!(said, format!("dctcp is unloaded\nthe default is {before}").trim_end().to_owned() + " again\n");
    assert_eq!(default(), before);
    nothing_is_left("dctcp");

    // Nor can what is gone be put back.
    good("cc load vegas");
    world.choose_by_namespace("narrows_vegas");
    there("cc load dctcp --default");
    good("cc unload vegas --force");
    let said = good("cc unload dctcp");
    assert!(
        said.ends_with("the default is reno: narrows_vegas, which it was before, cannot be chosen there now\n"),
        "{said}"
    );
    world.choose_by_namespace("reno");

    // What an operator chose since is not touched.
    there("cc load dctcp --default");
    within(&world.sender, || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno")).expect("as root");
    assert_eq!(good("cc unload dctcp"), "dctcp is unloaded\n");
    assert_eq!(default().trim(), "reno");
    nothing_is_left("dctcp");
    Ok(())
}

pub(crate) fn two_sets_at_once_lose_nothing() -> Outcome {
    good(LOAD);
    for round in 1..=10 {
        std::thread::scope(|scope| {
            for set in [format!("t={round}ms"), format!("h-max={round}"), format!("k={round}pkt")] {
                scope.spawn(move || good(&format!("cc set gemini {set}")));
            }
        });
        let parameters = &status("gemini")["parameters"];
        let seen = [&parameters["t"], &parameters["h-max"], &parameters["k"]];
        assert_eq!(seen, [&json!(format!("{round}ms")), &json!(round.to_string()), &json!(format!("{round}pkt"))]);
    }
    good("cc unload gemini");
    nothing_is_left("gemini");
    Ok(())
}

pub(crate) fn a_namespace_has_parameters_of_its_own() -> Outcome {
    let world = World::new();
    good(LOAD);
    good(&format!("cc set gemini t=1ms --netns {}", world.sender));
    let own = &status("gemini")["netns_parameters"][0];
    assert_eq!((&own["netns"], &own["parameters"]["t"]), (&json!(world.sender), &json!("1ms")));
    assert_eq!(status("gemini")["parameters"]["t"], json!("5ms"));
    let table = good("cc status gemini");
    assert!(table.contains(&format!("parameters of {}: the same but for t=1ms\n", world.sender)), "{table}");
    good(&format!("cc set gemini --clear --netns /run/netns/{}", world.sender));
    assert_eq!(status("gemini")["netns_parameters"], json!([]));
    good("cc unload gemini");
    Ok(())
}

fn inode(name: &str) -> u64 {
    fs::metadata(format!("/run/netns/{name}")).expect("it was made").ino()
}

/// Makes namespaces until one has this inode, 200 at most. The kernel takes a namespace down a moment after its last name is gone, and
/// gives the lowest free number.
fn until_inode(wanted: u64) -> Vec<String> {
    let mut made: Vec<String> = Vec::new();
    while made.len() < 200 && made.last().is_none_or(|last| inode(last) != wanted) {
        std::thread::sleep(Duration::from_millis(if made.is_empty() { 0 } else { 30 }));
        let name = format!("narrows-{}-inherits-{}", std::process::id(), made.len());
        ip(&format!("netns add {name}"));
        made.push(name);
    }
    made
}

/// Its default is its own choice, though one that is gone had its inode, and had its default taken.
pub(crate) fn a_new_namespace_does_not_inherit_what_was_before() -> Outcome {
    let first = World::new();
    within(&first.sender, || good("cc load vegas --default"));
    let before = inode(&first.sender);
    drop(first);
    let others = until_inode(before);
    let last = others.last().expect("at least one").clone();
    let inherits = inode(&last) == before;
    let sysctl = "/proc/sys/net/ipv4/tcp_congestion_control";
    within(&last, || fs::write(sysctl, "narrows_vegas")).expect("it may be chosen");
    let (code, said, error) = run("cc unload vegas");
    let kept = within(&last, || fs::read_to_string(sysctl)).expect("a name");
    within(&last, || fs::write(sysctl, "reno")).expect("it may be chosen");
    if code != 0 {
        good("cc unload vegas");
    }
    for name in &others {
        ip(&format!("netns delete {name}"));
    }
    nothing_is_left("vegas");
    if !inherits {
        return Err(format!("the kernel gave none of 200 namespaces the inode {before} of one that ended"));
    }
    assert_eq!((code, kept.as_str()), (1, "narrows_vegas\n"), "{said}{error}");
    assert!(error.contains(&format!("the network namespace {last}")), "{error}");
    Ok(())
}

/// The kernel gives the inode of a namespace that ended to the next one.
pub(crate) fn a_new_namespace_does_not_inherit_parameters() -> Outcome {
    good(LOAD);
    let first = World::new();
    good(&format!("cc set gemini t=1ms --netns {}", first.sender));
    let before = inode(&first.sender);
    drop(first);
    let others = until_inode(before);
    let last = others.last().expect("at least one").clone();
    let inherits = inode(&last) == before;
    let own = status("gemini")["netns_parameters"].clone();
    let labels = good("cc status gemini");
    good(&format!("cc set gemini beta=0.3 --netns {last}"));
    let after = status("gemini")["netns_parameters"].clone();
    for name in &others {
        ip(&format!("netns delete {name}"));
    }
    good("cc unload gemini");
    if !inherits {
        return Err(format!("the kernel gave none of 200 namespaces the inode {before} of one that ended"));
    }
    assert_eq!(own[0]["netns"], json!(null), "{own}");
    assert!(
        labels.contains("parameters of a namespace that ended, or that nothing here leads to (cookie "),
        "{labels}"
    );
    // The new one begins from everyone's, and what was set for the other is still told apart.
    let of_last = after.as_array().expect("a list").iter().find(|one| one["netns"] == json!(last));
    assert_eq!(of_last.map(|one| &one["parameters"]["t"]), Some(&json!("5ms")), "{after}");
    Ok(())
}

pub(crate) fn metrics_are_replaced_at_once() -> Outcome {
    let world = World::new();
    good("cc load vegas");
    world.choose_by_route("narrows_vegas");
    world.transfer(Duration::from_millis(600), || {
        good("cc status --prometheus --out /run/narrows.prom");
        let text = fs::read_to_string("/run/narrows.prom").expect("it was written");
        assert!(!fs::exists("/run/narrows.prom.new").expect("a folder"));
        assert!(text.contains("narrows_loaded{controller=\"vegas\"} 1\n"), "{text}");
        assert!(text.contains("narrows_loaded{controller=\"gemini\"} 0\n"), "{text}");
        let flows = format!("narrows_flows{{controller=\"vegas\",netns=\"{}\"}} 1\n", world.sender);
        assert!(text.contains(&flows) && !text.contains("narrows_flow_"), "{text}");
        let text = good("cc status vegas --prometheus --flows");
        assert!(text.contains("narrows_flow_cuts_total{controller=\"vegas\",netns=\""), "{text}");
    });
    good("cc unload vegas");
    Ok(())
}
