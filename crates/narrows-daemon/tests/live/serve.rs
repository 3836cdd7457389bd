//! `narrowsd serve`: what a configuration file says, changed while it runs, and undone.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Outcome;
use crate::ends::{Process, signal};
use crate::near_source::with_the_units_privileges;
use crate::shell::{NARROWSD, good, nothing_is_left, refused, status};
use crate::world::{World, ip, within};

/// In the tests' own `/run`.
const FILE: &str = "/run/narrowsd.toml";
const UNIT: &str = include_str!("../../packaging/systemd/narrowsd.service");
const LOG: &str = "/run/narrowsd.log";
const METRICS: &str = "127.0.0.1:9936";
const WHOLE: &str = r#"
log = "json"
metrics = "127.0.0.1:9936"
[controller.vegas]
set = { alpha = "3pkt" }
[controller.newreno]
[[route]]
prefix = "198.51.100.0/24"
controller = "vegas"
"#;

/// In a namespace, once it has said that it is ready.
fn begun(namespace: &str) -> Process {
    let manager = UnixDatagram::bind("/run/manager").expect("a socket of our own");
    manager.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
    let log = fs::File::create(LOG).expect("a file of our own");
    let child = within(namespace, || {
        let mut command = with_the_units_privileges(UNIT, NARROWSD);
        command.args(["serve", "--config", FILE]).env("NOTIFY_SOCKET", "/run/manager").stdin(Stdio::null()).stderr(log);
        command.spawn().expect("it runs")
    });
    let mut said = [0; 16];
    let length = manager.recv(&mut said).unwrap_or_else(|error| panic!("{error}: {}", logged()));
    assert_eq!(&said[..length], b"READY=1");
    fs::remove_file("/run/manager").expect("it is ours");
    Process(child)
}

fn logged() -> String {
    fs::read_to_string(LOG).expect("it is there")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(15), "{what}\n{}", logged());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn metrics(namespace: &str) -> String {
    metrics_at(namespace, METRICS)
}

fn metrics_at(namespace: &str, address: &str) -> String {
    within(namespace, || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    })
}

fn route(namespace: &str) -> String {
    let output =
        Command::new("ip").args(["-n", namespace, "route", "show", "198.51.100.0/24"]).output().expect("ip runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn holder(name: &str) -> Value {
    status(name)["holders"].clone()
}

fn world() -> World {
    let world = World::new();
    ip(&format!("-n {} link set lo up", world.sender));
    ip(&format!("-n {} route add default via 192.0.2.2", world.sender));
    world
}

pub(crate) fn a_file_is_served_reloaded_and_undone() -> Outcome {
    let world = world();
    let name = &world.sender;
    fs::write(FILE, WHOLE).expect("a file of our own");
    let mut service = begun(name);
    assert_eq!(status("vegas")["parameters"]["alpha"], json!("3pkt"), "{}", logged());
    until("the route", || route(name).contains("congctl narrows_vegas"));
    for line in [
        "narrows_metrics_complete{part=\"controllers\"} 1",
        "narrows_metrics_complete{part=\"bridges\"} 1",
        "narrows_unit_up{unit=\"controller.vegas\"} 1",
        "narrows_loaded{controller=\"vegas\"} 1",
        "narrows_loaded{controller=\"dctcp\"} 0",
    ] {
        until(line, || metrics(name).contains(line));
    }
    for line in logged().lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["time"].is_string() && line["level"] == "info", "{line}");
    }

    let said = within(name, || refused(&format!("serve --config {FILE}"), 1));
    assert!(said.contains("another `narrowsd serve` runs in this network namespace"), "{said}");

    // A parameter, in the process that holds it; a controller more, another less, and no route.
    let before = holder("vegas");
    fs::write(FILE, "[controller.vegas]\nset = { beta = \"16pkt\" }\n[controller.dctcp]\n").expect("it is ours");
    signal(&service, Signal::HUP);
    until("the new parameter", || status("vegas")["parameters"]["beta"] == json!("16pkt"));
    assert_eq!(status("vegas")["parameters"]["alpha"], json!("2pkt"), "what is no longer in the file is the default");
    until("another controller", || status("dctcp")["loaded"] == json!(true));
    until("one less", || status("newreno")["loaded"] == json!(false));
    assert_eq!(holder("vegas"), before);
    assert_eq!(route(name), "");
    assert!(within(name, || TcpStream::connect(METRICS)).is_err(), "metrics are no longer asked for");

    // What cannot be used changes nothing.
    fs::write(FILE, "[controller.vegas]\nset = { alpa = \"1pkt\" }\n").expect("it is ours");
    signal(&service, Signal::HUP);
    until("the refusal", || logged().contains("did you mean `alpha`?\nnothing was changed"));
    assert_eq!((holder("vegas"), status("dctcp")["loaded"].clone()), (before.clone(), json!(true)));

    // What is killed is started again, with what the file says.
    let killed = before[0].as_i64().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(killed.expect("a process"), Signal::KILL).expect("it lives");
    until("a new process", || status("vegas")["loaded"] == json!(true) && holder("vegas") != before);
    assert_eq!(status("vegas")["parameters"]["beta"], json!("16pkt"));

    signal(&service, Signal::TERM);
    assert!(service.0.wait().expect("it ends").success());
    nothing_is_left("vegas");
    nothing_is_left("dctcp");
    Ok(())
}

/// Its processes end in order all the same. The route stays, has no effect, and the next service takes it over.
pub(crate) fn a_killed_service_leaves_nothing() -> Outcome {
    let world = world();
    let name = &world.sender;
    fs::write(FILE, WHOLE).expect("a file of our own");
    let mut service = begun(name);
    until("the route", || route(name).contains("congctl narrows_vegas"));
    service.kill();
    nothing_is_left("vegas");
    nothing_is_left("newreno");
    assert!(route(name).starts_with("198.51.100.0/24 via 192.0.2.2"), "{}", route(name));
    // The next one takes it over, though it be for another controller; of what its file does not have it tells.
    fs::write(FILE, WHOLE.replace("controller = \"vegas\"", "controller = \"newreno\"")).expect("it is ours");
    let mut service = begun(name);
    until("the other controller", || route(name).contains("congctl narrows_newreno"));
    // Its controller goes: the route, which would have no effect, is as it was, and waits.
    fs::write(FILE, WHOLE.replace("[controller.vegas]\nset = { alpha = \"3pkt\" }\n", "")).expect("it is ours");
    signal(&service, Signal::HUP);
    until("the route's end", || route(name).is_empty());
    fs::write(FILE, WHOLE).expect("it is ours");
    signal(&service, Signal::HUP);
    until("the route", || route(name).contains("congctl narrows_vegas"));
    service.kill();
    nothing_is_left("vegas");
    fs::write(FILE, "[controller.vegas]\n").expect("it is ours");
    let mut service = begun(name);
    assert!(
        logged().contains("that to 198.51.100.0/24 (table main) names narrows_vegas and is not in the file"),
        "{}",
        logged()
    );
    signal(&service, Signal::TERM);
    assert!(service.0.wait().expect("it ends").success());
    within(name, || good("cc route remove 198.51.100.0/24"));
    assert_eq!(route(name), "");
    assert_eq!(within(name, || good("cc route list --json")), "[]\n");
    nothing_is_left("vegas");
    Ok(())
}

/// What other programs do to routes is noticed; a route that leads where it did is made again, any other is told.
pub(crate) fn a_route_that_is_lost_is_told_and_made_again() -> Outcome {
    let world = world();
    let name = &world.sender;
    let is_up = |state: &str| {
        let line = format!("narrows_route_up{{prefix=\"198.51.100.0/24\"}} {state}\n");
        until(&line, || metrics(name).contains(&line));
    };
    let is_in_force = || until("the route", || route(name).contains("congctl narrows_vegas"));
    fs::write(FILE, WHOLE).expect("a file of our own");
    let mut service = begun(name);
    is_in_force();
    is_up("1");

    // Its link takes it along, and what it was copied from.
    ip(&format!("-n {name} link set nrw0 down"));
    is_up("0");
    ip(&format!("-n {name} link set nrw0 up"));
    ip(&format!("-n {name} route add default via 192.0.2.2"));
    is_in_force();
    is_up("1");

    ip(&format!("-n {name} route replace 198.51.100.0/24 via 192.0.2.2 dev nrw0"));
    assert!(!route(name).contains("congctl"));
    is_in_force();
    assert!(
        logged().contains("the route to 198.51.100.0/24: changed since by another; it is added again"),
        "{}",
        logged()
    );

    // Someone undoes it by hand: it is the file's.
    within(name, || good("cc route remove 198.51.100.0/24"));
    is_in_force();

    // Another route than before is not ours to choose.
    ip(&format!("-n {name} route replace 198.51.100.0/24 via 192.0.2.2 dev nrw0 mtu 1400"));
    is_up("0");
    assert_eq!(logged().matches("another than before leads there, or none").count(), 2, "once each time\n{}", logged());
    std::thread::sleep(Duration::from_secs(6));
    assert!(!route(name).contains("congctl"), "{}", route(name));
    assert_eq!(logged().matches("another than before leads there, or none").count(), 2, "{}", logged());
    signal(&service, Signal::HUP);
    is_in_force();
    assert!(route(name).contains("mtu 1400"), "{}", route(name));
    is_up("1");

    // What somebody made for another controller is not the service's.
    within(name, || good("cc route remove 198.51.100.0/24"));
    within(name, || good("cc route add 198.51.100.0/24 reno"));
    is_up("0");
    assert!(logged().contains("made for reno by `narrowsd cc route add`"), "{}", logged());
    signal(&service, Signal::TERM);
    assert!(service.0.wait().expect("it ends").success());
    assert!(route(name).contains("congctl reno"), "{}", route(name));
    within(name, || good("cc route remove 198.51.100.0/24"));
    assert!(route(name).contains("mtu 1400") && !route(name).contains("congctl"), "{}", route(name));
    nothing_is_left("vegas");
    nothing_is_left("newreno");
    Ok(())
}

/// An interface, an address for metrics and a way to a prefix may come later than the service, which works meanwhile.
pub(crate) fn what_is_not_there_yet_is_waited_for() -> Outcome {
    let world = World::new();
    let name = &world.sender;
    // What a host says to itself goes this way.
    ip(&format!("-n {name} link set lo up"));
    let key = "/run/narrowsd.key";
    fs::write(key, "0123456789abcdef".repeat(4)).expect("a file of our own");
    fs::set_permissions(key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let text = r#"
metrics = "198.51.100.1:9936"
[controller.vegas]
[bridge.paris]
inside = "absent0"
outside = "nrw0"
peer = "frankfurt"
key = "/run/narrowsd.key"
rate = "1Gbps"
[[route]]
prefix = "203.0.113.0/24"
controller = "vegas"
"#;
    fs::write(FILE, text).expect("a file of our own");
    let mut service = begun(name);
    assert_eq!(status("vegas")["loaded"], json!(true));
    std::thread::sleep(Duration::from_secs(4));
    let log = logged();
    assert!(log.matches("there is no interface absent0 here").count() >= 2, "it is tried again\n{log}");
    assert_eq!(log.matches("no route of the table main leads to 203.0.113.0/24").count(), 1, "it is said once\n{log}");
    assert!(log.contains("metrics cannot be told at 198.51.100.1:9936"), "{log}");
    ip(&format!("-n {name} address add 198.51.100.1/32 dev nrw0"));
    ip(&format!("-n {name} route add default via 192.0.2.2"));
    let to = |prefix: &str| {
        let output = Command::new("ip").args(["-n", name, "route", "show", prefix]).output().expect("ip runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    until("the route", || to("203.0.113.0/24").contains("congctl narrows_vegas"));
    until("metrics", || within(name, || TcpStream::connect("198.51.100.1:9936")).is_ok());
    let told = metrics_at(name, "198.51.100.1:9936");
    assert!(told.contains("narrows_unit_up{unit=\"bridge.paris\"} 0"), "{told}");
    ip(&format!("-n {name} link add absent0 type veth peer name absent1"));
    ip(&format!("-n {name} link set absent0 up"));
    ip(&format!("-n {name} link set absent1 up"));
    until("the edge router", || {
        metrics_at(name, "198.51.100.1:9936").contains("narrows_unit_up{unit=\"bridge.paris\"} 1")
    });
    // It is not ended for what could not take its place.
    let restarts = || {
        let told = metrics_at(name, "198.51.100.1:9936");
        let line = told.lines().find(|line| line.starts_with("narrows_unit_restarts_total{unit=\"bridge.paris\"}"));
        line.expect("it is told").to_owned()
    };
    let before = restarts();
    for (from, to, why) in
        [("nrw0", "absent9", "there is no interface absent9 here"), ("frankfurt", "paris", "different names")]
    {
        fs::write(FILE, text.replace(from, to)).expect("it is ours");
        signal(&service, Signal::HUP);
        until("the refusal", || logged().contains(why));
    }
    assert_eq!(logged().matches("nothing was changed").count(), 2);
    until("what became of the reload", || {
        metrics_at(name, "198.51.100.1:9936").contains("narrows_reload_successful 0")
    });
    assert_eq!(restarts(), before);
    // Another secret in the same file is another edge router.
    fs::write(FILE, text).expect("it is ours");
    fs::write(key, "fedcba9876543210".repeat(4)).expect("a file of our own");
    signal(&service, Signal::HUP);
    until("a new process", || restarts() != before);

    signal(&service, Signal::TERM);
    assert!(service.0.wait().expect("it ends").success());
    within(name, || good("bridge remove --inside absent0 --outside nrw0"));
    assert_eq!(to("203.0.113.0/24"), "");
    nothing_is_left("vegas");
    Ok(())
}
