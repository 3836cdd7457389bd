//! The controllers on this machine's kernel: two network namespaces, a veth pair, a bounded transfer. Needs root and BTF;
//! without them every test is listed as ignored with the reason, never as passed.

#[path = "live/world.rs"]
mod world;

use narrows_core::cc::Value;
use narrows_core::units::{Packets, Rate, Span};
use narrows_kernel::controllers::{self, CONTROLLERS};
use narrows_kernel::{
    Connection, Connections, Controller, Error, Kernel, Loaded, Namespace, Options, Registration, Settings, pinned,
    registered,
};
use rustix::net::sockopt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use world::{BpfFolder, Transfer, World};

/// Everything here, in the order in which it runs: registrations are the whole machine's, so one at a time.
const TESTS: &[(&str, fn())] = &[
    ("each_controller_carries_a_transfer_and_leaves_nothing", each_controller_carries_a_transfer_and_leaves_nothing),
    ("gemini_paces_and_follows_live_parameters", gemini_paces_and_follows_live_parameters),
    ("marks_reach_alpha_and_cut_the_window", marks_reach_alpha_and_cut_the_window),
    ("losses_are_answered_once_an_episode", losses_are_answered_once_an_episode),
    ("an_outage_is_a_timeout_and_the_transfer_goes_on", an_outage_is_a_timeout_and_the_transfer_goes_on),
    ("a_namespace_or_a_route_chooses_a_controller", a_namespace_or_a_route_chooses_a_controller),
    ("a_refused_ecn_is_said_and_falls_back", a_refused_ecn_is_said_and_falls_back),
    ("plain_registrations_work_too", plain_registrations_work_too),
    ("a_second_registration_says_that_the_name_is_taken", a_second_registration_says_that_the_name_is_taken),
    ("pins_outlive_their_holder_until_unloaded", pins_outlive_their_holder_until_unloaded),
    ("connections_are_found_and_lent", connections_are_found_and_lent),
    ("a_killed_process_leaves_nothing", a_killed_process_leaves_nothing),
    ("a_killed_process_leaves_a_plain_registration_that_can_be_removed", a_killed_process_leaves_a_plain_registration),
];

/// Told to load a controller and wait to be killed.
const CHILD: &str = "NARROWS_LIVE_CHILD";

fn main() -> ExitCode {
    if let Ok(told) = std::env::var(CHILD) {
        child(&told);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let wanted = |name: &str| {
        let mut filters = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
        filters.peek().is_none() || filters.any(|filter| name.contains(filter.as_str()))
    };
    let missing = missing();
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    for (name, test) in TESTS.iter().filter(|(name, _)| wanted(name)) {
        if let Some(reason) = &missing {
            println!("test {name} ... ignored, {reason}");
            ignored += 1;
        } else if catch_unwind(AssertUnwindSafe(test)).is_ok() {
            println!("test {name} ... ok");
            passed += 1;
        } else {
            println!("test {name} ... FAILED");
            failed += 1;
        }
    }
    println!("\ntest result: {passed} passed; {failed} failed; {ignored} ignored");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Why this machine cannot run these tests.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    if let Err(error) = Kernel::probe() {
        return Some(error.to_string());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("needs `ip` of iproute2".to_owned());
    }
    let taken = CONTROLLERS.iter().find(|controller| registered::is_registered(controller.registered))?;
    Some(format!("{} is in use on this host", taken.registered))
}

/// GEMINI must be told C, for a veth has no rate.
fn settings(controller: &Controller) -> Settings {
    let mut settings = Settings::defaults(controller);
    if controller.spec.name == "gemini" {
        settings.set("capacity", Value::Rate(Rate::from_mbps(200))).expect("within its range");
    }
    settings
}

fn load(name: &str) -> Loaded {
    let controller = controllers::find(name).expect("it is in the table");
    Loaded::load(controller, &settings(controller)).unwrap_or_else(|error| panic!("{error}"))
}

/// Registrations end a moment after their last holder.
fn is_gone(name: &str) -> bool {
    let begin = Instant::now();
    while registered::is_registered(name) {
        if begin.elapsed() > Duration::from_secs(2) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn each_controller_carries_a_transfer_and_leaves_nothing() {
    let world = World::new();
    for controller in CONTROLLERS {
        let loaded = load(controller.spec.name);
        assert!(registered::is_registered(controller.registered));
        let transfer = world.transfer(&Transfer { controller: controller.registered, ..Transfer::default() }, || {
            let flows = loaded.flows().expect("the map can be read");
            let flow = flows.iter().find(|flow| flow.remote.port() == world::PORT).expect("the sender is published");
            assert_eq!(Namespace::Cookie(flow.namespace_cookie), world.sender());
            assert_eq!(flow.namespace, world.sender_inode());
            assert_eq!(flow.ecn, controller.needs_ecn, "{flow:?}");
            assert_eq!(flow.local.ip().to_string(), world::SENDER);
            assert_eq!(flow.remote.ip().to_string(), world::RECEIVER);
            assert!(flow.window_q10 >= 1 << 10, "{flow:?}");
            assert!(flow.acked > Packets::new(10), "{flow:?}");
            assert_eq!(flow.pacing.is_some(), controller.spec.name == "gemini", "{flow:?}");
            assert_eq!(flow.rtt_base.is_some(), ["gemini", "vegas"].contains(&controller.spec.name), "{flow:?}");
        });
        let counters = loaded.counters().expect("the map can be read");
        println!("  {}: {:.1} Mbit/s, {counters:?}", controller.registered, transfer.mbps());
        assert_eq!((counters.flows, counters.ecn_refused, counters.unpublished), (2, 0, 0));
        // A busy machine delays and drops of itself: the rest is seen, and not judged.
        assert!(transfer.mbps() > 10.0, "{}", transfer.mbps());
        assert!(loaded.flows().expect("the map can be read").is_empty(), "ended flows are deleted");
        loaded.unload();
        assert!(is_gone(controller.registered));
    }
}

fn gemini_paces_and_follows_live_parameters() {
    let world = World::new();
    let loaded = load("gemini");
    let sender = world.sender();
    let flow = || {
        let flows = loaded.flows().expect("the map can be read");
        flows.into_iter().find(|flow| flow.remote.port() == world::PORT).expect("the sender is published")
    };
    world.transfer(&Transfer { controller: "narrows_gemini", milliseconds: 1_500, ..Transfer::default() }, || {
        let before = flow();
        // F = 4K/(C·RTT + K) with K = 10 packets and next to no C·RTT is just below 4.
        assert!((3_000..=4_096).contains(&before.factor_q10), "{before:?}");
        loaded.set(sender, "f", Value::Real(512)).expect("within its range");
        loaded.set(sender, "h-min", Value::Real(2_048)).expect("within its range");
        std::thread::sleep(Duration::from_millis(200));
        let after = flow();
        assert_eq!((after.factor_q10, after.step_q10), (512, 2_048), "{after:?}");
        loaded.set(Namespace::Every, "f", Value::Real(256)).expect("within its range");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(flow().factor_q10, 512, "the namespace has parameters of its own");
        let Namespace::Cookie(cookie) = sender else { panic!("a namespace has a cookie") };
        loaded.clear(cookie).expect("it was set");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!((flow().factor_q10, flow().step_q10), (256, 102), "back to everyone's");
    });
    let error = loaded.set(sender, "t", Value::Span(Span::from_secs(11))).expect_err("over its range");
    assert_eq!(error.to_string(), "t = 11s is out of range: 0s to 10s");
    let error = loaded.set(sender, "gamma", Value::Count(1)).expect_err("it has none");
    assert!(matches!(error, Error::UnknownParameter { .. }));
}

/// The path marks one packet in sixteen.
fn marks_reach_alpha_and_cut_the_window() {
    let world = World::new();
    world.harm(16, 0);
    for name in ["dctcp", "gemini", "newreno"] {
        let loaded = load(name);
        let transfer = Transfer { controller: loaded.controller().registered, ..Transfer::default() };
        let transfer = world.transfer(&transfer, || {
            let flows = loaded.flows().expect("the map can be read");
            let flow = flows.iter().find(|flow| flow.remote.port() == world::PORT).expect("the sender is published");
            println!("  {name}: alpha {:.3}, {:?}", alpha(flow.alpha_q20), (flow.marked, flow.acked, flow.cuts));
            assert!(flow.marked > Packets::ZERO && flow.cuts.ecn > 0, "{flow:?}");
            if name != "newreno" {
                assert!(flow.alpha_q20 < 1 << 20 && flow.alpha_q20 > 0, "{flow:?}");
            }
        });
        assert!(transfer.mbps() > 1.0);
    }
}

/// The path drops one full packet in a hundred.
fn losses_are_answered_once_an_episode() {
    let world = World::new();
    world.harm(0, 100);
    for controller in CONTROLLERS {
        let loaded = load(controller.spec.name);
        let transfer = Transfer { controller: controller.registered, ..Transfer::default() };
        let transfer = world.transfer(&transfer, || {
            let flows = loaded.flows().expect("the map can be read");
            let flow = flows.iter().find(|flow| flow.remote.port() == world::PORT).expect("the sender is published");
            println!("  {}: {:?}, {:?}", controller.registered, (flow.window_q10 >> 10, flow.threshold), flow.cuts);
            assert!(flow.cuts.loss > 0 && flow.threshold.is_some(), "{flow:?}");
            // A timeout now and then is in the nature of such a path.
            assert!(flow.cuts.timeout <= flow.cuts.loss, "{flow:?}");
        });
        assert!(transfer.mbps() > 1.0, "{}", transfer.mbps());
    }
}

#[allow(clippy::cast_precision_loss, reason = "for reading")]
fn alpha(q20: u64) -> f64 {
    q20 as f64 / f64::from(1 << 20)
}

fn an_outage_is_a_timeout_and_the_transfer_goes_on() {
    let world = World::new();
    for controller in CONTROLLERS {
        let loaded = load(controller.spec.name);
        let flow = || {
            let flows = loaded.flows().expect("the map can be read");
            flows.into_iter().find(|flow| flow.remote.port() == world::PORT).expect("the sender is published")
        };
        let transfer = Transfer { controller: controller.registered, milliseconds: 2_000, ..Transfer::default() };
        world.transfer(&transfer, || {
            world.outage(Duration::from_millis(300));
            let during = flow();
            assert!(during.cuts.timeout > 0, "{during:?}");
            std::thread::sleep(Duration::from_millis(600));
            let after = flow();
            println!("  {}: {:?}, {:?}", controller.registered, after.cuts, (after.acked, after.undone));
            assert!(after.acked > during.acked && after.window_q10 > 1 << 10, "{after:?}");
        });
    }
}

fn a_namespace_or_a_route_chooses_a_controller() {
    let by_namespace = |world: &World, controller| world.choose_by_namespace(controller);
    let by_route = |world: &World, controller: &'static str| world.choose_by_route(controller);
    for choose in [by_namespace, by_route] {
        let world = World::new();
        for name in ["dctcp", "gemini"] {
            let loaded = load(name);
            choose(&world, loaded.controller().registered);
            world.transfer(&Transfer::default(), || {
                let flows = loaded.flows().expect("the map can be read");
                assert!(flows.len() == 2 && flows.iter().all(|flow| flow.ecn), "{flows:?}");
            });
            choose(&world, "reno");
            loaded.unload();
            assert!(is_gone(&format!("narrows_{name}")));
        }
    }
}

/// A plain listener answers a SYN that is itself ECN-capable with a refusal.
fn a_refused_ecn_is_said_and_falls_back() {
    let world = World::new();
    let loaded = load("dctcp");
    let transfer = Transfer { controller: "narrows_dctcp", receiver: "reno", ..Transfer::default() };
    world.transfer(&transfer, || assert!(loaded.flows().expect("the map can be read").is_empty()));
    let counters = loaded.counters().expect("the map can be read");
    assert_eq!((counters.flows, counters.ecn_refused), (0, 1));
    drop(loaded);
    assert!(is_gone("narrows_dctcp"));
    // Where nobody of that name takes it over, it stays.
    let dctcp = controllers::find("dctcp").expect("it is in the table");
    let options = Options { fallback: Some("nobody".to_owned()), ..Options::default() };
    let loaded = Loaded::load_with(dctcp, &settings(dctcp), &options).unwrap_or_else(|error| panic!("{error}"));
    world.transfer(&transfer, || {
        let flows = loaded.flows().expect("the map can be read");
        assert!(flows.len() == 1 && !flows[0].ecn && flows[0].acked > Packets::new(10), "{flows:?}");
    });
}

/// As before Linux 6.4. The older shape of `cong_control` needs an older kernel: this one's verifier refuses it.
fn plain_registrations_work_too() {
    let world = World::new();
    for controller in CONTROLLERS {
        let options = Options { registration: Some(Registration::Plain), ..Options::default() };
        let loaded =
            Loaded::load_with(controller, &settings(controller), &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.registration(), Registration::Plain);
        world.transfer(&Transfer { controller: controller.registered, ..Transfer::default() }, || {});
        assert_eq!(loaded.counters().expect("the map can be read").flows, 2);
        loaded.unload();
        assert!(is_gone(controller.registered));
    }
}

fn a_second_registration_says_that_the_name_is_taken() {
    let first = load("vegas");
    let vegas = first.controller();
    for registration in [Registration::Link, Registration::Plain] {
        let options = Options { registration: Some(registration), ..Options::default() };
        let error = Loaded::load_with(vegas, &settings(vegas), &options).expect_err("the name is taken");
        assert!(matches!(error, Error::NameTaken { name: "narrows_vegas" }), "{error}");
    }
    drop(first);
    assert!(is_gone("narrows_vegas"));
}

fn pins_outlive_their_holder_until_unloaded() {
    let bpf = BpfFolder::new();
    for registration in [Registration::Link, Registration::Plain] {
        let gemini = controllers::find("gemini").expect("it is in the table");
        let options = Options { registration: Some(registration), ..Options::default() };
        let folder = bpf.path().join("gemini");
        let error = Loaded::load_with(gemini, &settings(gemini), &options)
            .and_then(|loaded| loaded.pin(&std::env::temp_dir().join("narrows-no-bpf")))
            .expect_err("no place for pins");
        assert!(matches!(error, Error::NoBpfFileSystem { .. }), "{error}");
        assert!(is_gone("narrows_gemini"));

        drop(
            Loaded::load_with(gemini, &settings(gemini), &options)
                .and_then(|loaded| loaded.pin(&folder))
                .expect("pinned"),
        );
        assert!(registered::is_registered("narrows_gemini"));
        let maps = pinned::open(gemini, &folder).expect("it is pinned");
        maps.set(Namespace::Every, "beta", Value::Real(1 << 18)).expect("within its range");
        let seen =
            pinned::open(gemini, &folder).and_then(|maps| maps.settings(Namespace::Every)).expect("it is pinned");
        assert_eq!(seen.get("beta"), Some(Value::Real(1 << 18)));
        drop(maps);
        let vegas = controllers::find("vegas").expect("it is in the table");
        let error = Loaded::load(vegas, &settings(vegas)).and_then(|loaded| loaded.pin(&folder)).expect_err("in use");
        assert!(matches!(error, Error::AlreadyPinned { .. }), "{error}");
        assert!(matches!(pinned::open(vegas, &folder), Err(Error::OtherVersion { .. })));
        assert!(registered::is_registered("narrows_gemini") && is_gone("narrows_vegas"));
        pinned::unload(gemini, &folder).expect("it is pinned");
        assert!(is_gone("narrows_gemini"));
        assert!(!folder.exists());
        assert!(matches!(pinned::open(gemini, &folder), Err(Error::NotPinned { .. })));
    }
}

/// Loads as told, says so, and waits.
fn child(told: &str) -> ! {
    let (name, registration) = told.split_once(' ').expect("a name and a kind");
    let controller = controllers::find(name).expect("it is in the table");
    let registration = if registration == "plain" { Registration::Plain } else { Registration::Link };
    let options = Options { registration: Some(registration), ..Options::default() };
    let _loaded = Loaded::load_with(controller, &settings(controller), &options).expect("it loads");
    println!("loaded");
    std::io::stdout().flush().expect("the parent reads");
    // Longer than the parent takes; an orphan ends by itself.
    std::thread::sleep(Duration::from_secs(30));
    std::process::exit(1);
}

fn kill_a_child(told: &str, registered: &str) {
    let mut child = Command::new(std::env::current_exe().expect("a test has a file"))
        .env(CHILD, told)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test can be run");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it was piped")).read_line(&mut line).expect("it speaks");
    let is_there = registered::is_registered(registered);
    child.kill().expect("SIGKILL");
    child.wait().expect("it was killed");
    assert_eq!(line, "loaded\n");
    assert!(is_there);
}

fn a_killed_process_leaves_nothing() {
    for controller in CONTROLLERS {
        kill_a_child(&format!("{} link", controller.spec.name), controller.registered);
        assert!(is_gone(controller.registered));
    }
}

fn a_killed_process_leaves_a_plain_registration() {
    let newreno = controllers::find("newreno").expect("it is in the table");
    kill_a_child("newreno plain", newreno.registered);
    assert!(registered::is_registered(newreno.registered));
    let error = Loaded::load(newreno, &settings(newreno)).expect_err("it was left behind");
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    assert_eq!(registered::remove_stale(newreno).expect("as root"), 1);
    assert!(is_gone(newreno.registered));
    assert_eq!(registered::remove_stale(newreno).expect("as root"), 0);
}

fn connections_are_found_and_lent() {
    let finder = Connections::load().expect("as root");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let there = listener.local_addr().expect("it is bound");
    let mut sender = TcpStream::connect(there).expect("it listens");
    let (mut receiver, _) = listener.accept().expect("it was connected");
    let local = sender.local_addr().expect("it is open");
    let find = || finder.all().expect("as root").into_iter().find(|found| found.local == local);
    let before = find().expect("it is open");
    assert_eq!(before.remote, there);
    assert_eq!(before.unacknowledged, before.next, "nothing was sent yet");
    sender.write_all(&[7; 1_000]).expect("it is open");
    receiver.read_exact(&mut [0; 1_000]).expect("it is open");
    let after = find().expect("it is open");
    assert_eq!(after.next.wrapping_sub(before.next), 1_000);
    assert_eq!(after.cookie, before.cookie);
    // What the two count from stays, whatever is acknowledged.
    let first = |found: &Connection| (u64::from(found.unacknowledged) + (1 << 32) - found.acked) % (1 << 32);
    assert_eq!(first(&after), first(&before));
    assert!(finder.all().expect("as root").iter().all(|found| found.local != there || found.remote == local));

    // What is set on what was lent is set on the connection.
    let lent = before.socket().expect("its process lives");
    assert_eq!(sockopt::socket_cookie(&lent), sockopt::socket_cookie(&sender));
    sockopt::set_tcp_nodelay(&lent, true).expect("it is open");
    assert!(sender.nodelay().expect("it is open"));
    drop(lent);

    // Nothing is held back: the other end hears of the end at once; and another file with the number is not taken for it.
    drop(sender);
    assert_eq!(receiver.read(&mut [0]).expect("it is open"), 0);
    let _others: Vec<TcpListener> =
        (0..8).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free")).collect();
    assert_eq!(before.socket().expect_err("it is closed"), rustix::io::Errno::NOTCONN);
    assert!(find().is_none());
}
