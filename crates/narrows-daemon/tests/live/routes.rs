//! `narrowsd cc route`: routes as they stand, changed and given back.

use std::net::TcpListener;
use std::process::Command;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use serde_json::{Value, json};

use crate::Outcome;
use crate::shell::{good, refused};
use crate::world::{PORT, RECEIVER, World, ip, within};

/// All routes of the main tables, as the kernel tells them.
fn routes(namespace: &str) -> [String; 2] {
    ["-4", "-6"].map(|family| {
        let arguments = ["-n", namespace, family, "-d", "-o", "route", "show", "table", "main"];
        let output = Command::new("ip").args(arguments).output().expect("ip runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

/// `/run/narrows` has what is undone later, and locks of who changes something.
pub(crate) fn who_only_reads_leaves_no_file() -> Outcome {
    let world = World::new();
    let folder = std::path::Path::new("/run/narrows");
    // Of the tests before; nobody works now.
    let _ = std::fs::remove_dir_all(folder);
    let config = "/run/narrowsd.toml";
    std::fs::write(config, "[controller.vegas]\n").expect("a folder of our own");
    for line in [
        "cc list",
        "cc status",
        "cc status --prometheus",
        "cc unload --all --dry-run",
        "cc route list",
        "cc route add 192.0.2.0/24 reno --dry-run",
        "bridge status",
        "bridge status --prometheus",
        &format!("serve --check --config {config}"),
    ] {
        within(&world.sender, || good(line));
        assert!(!folder.exists(), "{line}");
    }
    for line in
        ["cc route remove 192.0.2.0/24 --dry-run", "cc set vegas alpha=3pkt", "bridge remove --inside a --outside b"]
    {
        within(&world.sender, || refused(line, 1));
        assert!(!folder.exists(), "{line}");
    }
    std::fs::remove_file(config).expect("it was written");
    Ok(())
}

/// One gateway with what routes may have, several gateways, IPv6, none; exact ones and parts of them.
pub(crate) fn a_route_is_given_back_as_it_was() -> Outcome {
    let world = World::new();
    let name = &world.sender;
    ip(&format!("-n {name} address add 2001:db8::1/64 dev nrw0 nodad"));
    // As routing daemons make them.
    ip(&format!("-n {name} nexthop add id 5 via 192.0.2.2 dev nrw0"));
    for route in [
        "default via 192.0.2.2 metric 100 src 192.0.2.1 mtu 1400 advmss 1300",
        "default via 192.0.2.3 metric 200",
        "198.51.100.0/24 proto static nexthop via 192.0.2.2 weight 1 nexthop via 192.0.2.3 weight 2",
        "203.0.113.0/24 via 192.0.2.2 congctl lock cubic",
        "198.18.0.0/24 via 192.0.2.2 rto_min 5ms",
        "198.18.1.0/24 tos 0x10 via 192.0.2.3",
        "198.18.1.0/24 via 192.0.2.2",
        "198.19.0.0/24 nhid 5",
        "2001:db8:1::/48 via 2001:db8::2 metric 512",
        "2001:db8:2::/48 nexthop via 2001:db8::2 nexthop via 2001:db8::3",
    ] {
        ip(&format!("-n {name} route add {route}"));
    }
    let before = routes(name);
    good("cc load vegas");
    let narrowsd = |line: &str| within(name, || good(line));
    let listed = || -> Value { serde_json::from_str(&narrowsd("cc route list --json")).expect("it is JSON") };
    for (prefix, family, made) in [
        (
            "default",
            0,
            "unicast default via 192.0.2.2 dev nrw0 proto boot scope global src 192.0.2.1 metric 100 mtu 1400 advmss 1300 congctl narrows_vegas",
        ),
        (
            "192.0.2.0/24",
            0,
            "unicast 192.0.2.0/24 dev nrw0 proto kernel scope link src 192.0.2.1 congctl narrows_vegas",
        ),
        (
            "198.51.100.0/24",
            0,
            "unicast 198.51.100.0/24 proto static scope global congctl narrows_vegas \\\tnexthop via 192.0.2.2 dev nrw0 weight 1",
        ),
        (
            "203.0.113.0/24",
            0,
            "unicast 203.0.113.0/24 via 192.0.2.2 dev nrw0 proto boot scope global congctl narrows_vegas",
        ),
        (
            "2001:db8:1::/48",
            1,
            "unicast 2001:db8:1::/48 via 2001:db8::2 dev nrw0 proto boot scope global metric 512 congctl narrows_vegas pref medium",
        ),
        (
            "2001:db8:2::/48",
            1,
            "unicast 2001:db8:2::/48 proto boot scope global metric 1024 congctl narrows_vegas pref medium",
        ),
        (
            "198.18.0.0/24",
            0,
            "unicast 198.18.0.0/24 via 192.0.2.2 dev nrw0 proto boot scope global rto_min lock 5ms congctl narrows_vegas",
        ),
        (
            "198.18.1.0/24",
            0,
            "unicast 198.18.1.0/24 via 192.0.2.2 dev nrw0 proto boot scope global congctl narrows_vegas",
        ),
        (
            "198.19.0.0/24",
            0,
            "unicast 198.19.0.0/24 nhid 5 via 192.0.2.2 dev nrw0 proto boot scope global congctl narrows_vegas",
        ),
        // Canaries: parts of these, with a route of their own.
        ("192.0.2.2", 0, "unicast 192.0.2.2 dev nrw0 proto static scope link src 192.0.2.1 congctl narrows_vegas"),
        (
            "198.51.100.128/25",
            0,
            "unicast 198.51.100.128/25 proto static scope global congctl narrows_vegas \\\tnexthop via 192.0.2.2 dev nrw0 weight 1",
        ),
        (
            "100.64.0.0/10",
            0,
            "unicast 100.64.0.0/10 via 192.0.2.2 dev nrw0 proto static scope global src 192.0.2.1 metric 100 mtu 1400 advmss 1300",
        ),
        (
            "2001:db8:1:8::/64",
            1,
            "unicast 2001:db8:1:8::/64 via 2001:db8::2 dev nrw0 proto static scope global metric 512 congctl narrows_vegas pref medium",
        ),
    ] {
        let dry = narrowsd(&format!("cc route add {prefix} vegas --dry-run"));
        assert!(dry.contains("would run:  ip -") && dry.contains("to undo it: ip -"), "{dry}");
        assert_eq!(routes(name), before, "nothing was done");
        let said = narrowsd(&format!("cc route add {prefix} vegas"));
        assert!(said.contains(" use narrows_vegas"), "{said}");
        let now = routes(name);
        assert!(now[family].contains(made), "{prefix}: {}", now[family]);
        assert_eq!(now[1 - family], before[1 - family]);
        let notes = listed();
        let [note] = &notes.as_array().expect("a list")[..] else { panic!("one: {notes}") };
        assert_eq!((&note["controller"], &note["state"]), (&json!("narrows_vegas"), &json!("in force")));
        let error = within(name, || refused(&format!("cc route add {prefix} cubic"), 1));
        let again = narrowsd(&format!("cc route add {prefix} vegas"));
        assert!(again.ends_with(" use narrows_vegas already\n"), "{again}");
        assert!(error.contains("has been changed already\n  help: narrowsd cc route remove "), "{error}");
        narrowsd(&format!("cc route remove {prefix}"));
        let mut sorted = [before.clone(), routes(name)];
        // Where several ways are of one prefix, or a route was deleted meanwhile, the kernel may list them in another order.
        for text in sorted.iter_mut().flatten() {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            *text = lines.join("\n");
        }
        assert_eq!(sorted[1], sorted[0], "{prefix}");
    }
    assert_eq!(listed(), json!([]));
    for (prefix, said) in [
        ("10.0.0.0/33", "the length is a number from 0 to 32"),
        ("192.0.2.1/24", "192.0.2.0/24 is the network"),
        ("::/0 vegas --table 77", "no route of the table 77 leads to ::/0"),
        ("192.0.2.1 vegas", "192.0.2.1: no connection to another machine takes such a route"),
        ("127.0.0.0/8 vegas", "no connection to another machine"),
        ("ff02::1 vegas", "no connection to another machine"),
        ("224.0.0.0/4 vegas", "no connection to another machine"),
        ("192.0.2.1 vegas --table 255", "no connection to another machine"),
        ("default htcp", "unknown controller `htcp`"),
    ] {
        let line = format!("cc route add {prefix}{}", if prefix.contains(' ') { "" } else { " vegas" });
        let (code, _, error) = within(name, || crate::shell::run(&line));
        assert!([1, 2].contains(&code) && error.contains(said), "{line}: {error}");
    }
    let error = within(name, || refused("cc route add default gemini", 1));
    assert_eq!(error, "error: gemini is not loaded\n  help: narrowsd cc load gemini\n");
    good("cc unload vegas");
    Ok(())
}

/// What another changed since is left alone; and a controller that is unloaded says which routes name it.
pub(crate) fn a_route_that_another_changed_is_left_as_it_is() -> Outcome {
    let world = World::new();
    let name = &world.sender;
    let narrowsd = |line: &str| within(name, || good(line));
    good("cc load vegas");
    narrowsd("cc route add 192.0.2.2/32 vegas");
    // Also from another namespace.
    let error = refused("cc unload vegas", 1);
    let expected = format!(
        "error: narrows_vegas is named by the route to 192.0.2.2 (network namespace {name})\n  help: in that namespace: narrowsd cc route remove PREFIX; or unload with --force\n"
    );
    assert_eq!(error, expected);
    narrowsd("cc unload vegas --force");
    let said = narrowsd("cc route list");
    assert_eq!(said, "192.0.2.2 uses narrows_vegas (table main): not in force: the controller is not loaded\n");
    ip(&format!("-n {name} route replace 192.0.2.2/32 dev nrw0 mtu 1300"));
    assert!(narrowsd("cc route list").ends_with("changed since by another\n"));
    let before = routes(name);
    let said = narrowsd("cc route remove 192.0.2.2/32");
    assert_eq!(said, "the route to 192.0.2.2 was changed since by another, and is left as it is\n");
    assert_eq!(routes(name), before);
    let error = within(name, || refused("cc route remove 192.0.2.2/32", 1));
    assert!(error.starts_with("error: no route to 192.0.2.2 was changed in the table main\n"), "{error}");
    assert_eq!(narrowsd("cc route list"), "no route was changed in this network namespace\n");
    // Of a controller that is not loaded any more, too.
    ip(&format!("-n {name} route delete 192.0.2.2/32"));
    let before = routes(name);
    for prefix in ["192.0.2.2/32", "192.0.2.0/24"] {
        good("cc load vegas");
        narrowsd(&format!("cc route add {prefix} vegas"));
        good("cc unload vegas --force");
        assert!(narrowsd("cc route list").ends_with("not in force: the controller is not loaded\n"));
        good("cc load vegas");
        assert!(narrowsd("cc route list").ends_with("in force\n"), "the kernel knows it by its name");
        good("cc unload vegas --force");
        narrowsd(&format!("cc route remove {prefix}"));
        assert_eq!(routes(name), before);
    }
    Ok(())
}

/// Who wins, as docs/how-to/deploy.md has it: the route at the beginning of a connection, whatever was chosen before; what is
/// chosen afterwards, unless the route is locked.
pub(crate) fn the_route_wins_at_the_beginning_and_the_application_afterwards() -> Outcome {
    let world = World::new();
    let name = &world.sender;
    good("cc load vegas");
    let listener = within(&world.receiver, || TcpListener::bind((RECEIVER, PORT)).expect("the port is free"));
    let open = || {
        within(name, || {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
            set_tcp_congestion(&socket, "reno").expect("every kernel has it");
            let to: std::net::SocketAddrV4 = format!("{RECEIVER}:{PORT}").parse().expect("an address");
            connect(&socket, &to).expect("it listens");
            socket
        })
    };
    let used = |socket: &rustix::fd::OwnedFd| tcp_congestion(socket).expect("it has one").to_owned();
    let plain = open();
    assert_eq!(used(&plain), "reno", "what the application chose");
    within(name, || good("cc route add 192.0.2.0/24 vegas"));
    let routed = open();
    assert_eq!(used(&routed), "narrows_vegas", "the route, over what was chosen before");
    assert_eq!(used(&plain), "reno", "a connection that was there keeps what it has");
    set_tcp_congestion(&routed, "cubic").expect("it is not locked");
    assert_eq!(used(&routed), "cubic", "what is chosen afterwards");
    within(name, || good("cc route remove 192.0.2.0/24"));
    within(name, || good("cc route add 192.0.2.0/24 vegas --lock"));
    let locked = open();
    assert_eq!(set_tcp_congestion(&locked, "cubic"), Err(rustix::io::Errno::PERM));
    assert_eq!(used(&locked), "narrows_vegas");
    within(name, || good("cc route remove 192.0.2.0/24"));
    assert_eq!(used(&open()), "reno");
    drop((plain, routed, locked, listener));
    good("cc unload vegas");
    Ok(())
}
