//! Notifications, genuine and forged, to a host with a connection under way.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use narrows_core::units::Rate;
use narrows_kernel::{Connection, Connections};
use narrows_testbed::agent::{most_rate, set_most_rate};
use narrows_wire::notification::PORT;
use narrows_wire::{Flow, Key, Notification, Refusal};
use rustix::net::sockopt;
use rustix::process::{Pid, Signal, kill_process};

use crate::Outcome;
use crate::shell::{NARROWSD, ended};
use crate::world::{RECEIVER, SENDER, World, ip, within};

const KEY: [u8; 32] = [0x5a; 32];
const IDENTITY: u64 = 0x3_0000_0007;
/// Where the switch stands: behind a device of its own, so that it is heard where the rest of the network is not.
const SWITCH: &str = "198.51.100.2";
const HOST: &str = "198.51.100.1";
/// What the victim is held to by itself, so that its goodput says what an attack takes away and not what this machine can do.
const OWN_RATE: Rate = Rate::from_mbps(200);
const BASELINE: Duration = Duration::from_secs(3);

/// A host with a connection, a receiver, and a switch next door.
struct Shared {
    world: World,
    folder: PathBuf,
}

impl Shared {
    fn new() -> Shared {
        let world = World::new();
        let (host, other) = (&world.sender, &world.receiver);
        for arguments in [
            format!("link add nrw2 netns {host} type veth peer name nrw3 netns {other}"),
            format!("-n {host} address add {HOST}/24 dev nrw2"),
            format!("-n {other} address add {SWITCH}/24 dev nrw3"),
            format!("-n {host} link set nrw2 up"),
            format!("-n {other} link set nrw3 up"),
        ] {
            ip(&arguments);
        }
        let folder = std::env::temp_dir().join(format!("narrowsd-near-source-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let digits: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file = (fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600))
            .open(folder.join("switch.key"))
            .expect("a file");
        file.write_all(digits.as_bytes()).expect("it is written");
        let told = format!("address = \"{SWITCH}\"\nhost = \"{SENDER}\"\nkey-file = \"switch.key\"\n");
        let entry = format!("[[sender]]\nidentity = \"{IDENTITY:#x}\"\n{told}");
        fs::write(folder.join("senders.toml"), entry).expect("it is written");
        Shared { world, folder }
    }

    /// The command, once it listens.
    fn listening(&self, profile: &str) -> Listening {
        self.started(Command::new(NARROWSD), profile)
    }

    /// The same, of a program and its first arguments that become the command.
    fn started(&self, mut command: Command, profile: &str) -> Listening {
        let (senders, metrics) = (self.folder.join("senders.toml"), self.folder.join("metrics"));
        let mut child = within(&self.world.sender, || {
            (command.args(["near-source", "--line-rate", "1Gbps", "--senders"]).arg(senders))
                .arg("--metrics")
                .arg(metrics)
                .args(["--every", "1", "--profile", profile])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it runs")
        });
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let (mut text, begin) = (String::new(), Instant::now());
        while !text.contains("listens to 1 congestion point") {
            let read = said.read_line(&mut text).expect("it writes");
            assert!(read > 0 && begin.elapsed() < Duration::from_secs(5), "{text}");
        }
        Listening { child, said, text }
    }

    /// A connection from the host to the receiver, and both ends of it.
    fn connection(&self) -> (TcpStream, TcpStream) {
        let listener = within(&self.world.receiver, || TcpListener::bind((RECEIVER, 0)).expect("a port is free"));
        let address = listener.local_addr().expect("it is bound");
        let sender = within(&self.world.sender, || TcpStream::connect(address).expect("it listens"));
        let (receiver, _) = listener.accept().expect("it was connected");
        (sender, receiver)
    }

    /// Where the switch speaks from.
    fn switch(&self) -> UdpSocket {
        let socket = within(&self.world.receiver, || UdpSocket::bind((SWITCH, 0)).expect("a port is free"));
        socket.set_ttl(255).expect("as far as it goes");
        socket.connect((HOST, PORT)).expect("next door");
        socket
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Listening {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    /// What it said so far.
    text: String,
}

impl Listening {
    /// Ends it in order; what it said, and how often each outcome was.
    fn end(self) -> (String, BTreeMap<String, u64>) {
        let (text, error, counts) = self.end_with_warnings();
        assert_eq!(error, "", "{text}");
        (text, counts)
    }

    /// The same, and what it warned of.
    fn end_with_warnings(mut self) -> (String, String, BTreeMap<String, u64>) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it lives");
        self.said.read_to_string(&mut self.text).expect("it writes");
        let output = self.child.wait_with_output().expect("it ends");
        let (code, _, error) = ended(&output);
        assert_eq!(code, 0, "{}{error}", self.text);
        let rows = self.text.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(' '));
        let counts = rows.filter_map(|(name, count)| Some((name.to_owned(), count.trim().parse().ok()?))).collect();
        (self.text, error, counts)
    }
}

fn fd(stream: &TcpStream) -> OwnedFd {
    stream.try_clone().expect("a descriptor").into()
}

fn now_ns() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos()).expect("before 2554")
}

/// What the switch would say of a packet at the far end of the connection's flight.
fn genuine(connection: &Connection) -> Notification {
    let payload = 1_000;
    Notification {
        sender: IDENTITY,
        sent_ns: now_ns(),
        feedback: 32,
        offset: 1,
        growth: 1,
        flow: Flow { source: connection.local, destination: connection.remote },
        seq: connection.next.wrapping_sub(u32::from(payload)),
        payload,
    }
}

fn of<'a>(all: &'a [Connection], stream: &TcpStream) -> &'a Connection {
    // To several others an end may have one port.
    let ends = (stream.local_addr().expect("it is open"), stream.peer_addr().expect("it is open"));
    all.iter().find(|found| (found.local, found.remote) == ends).expect("it is open")
}

/// Until `done`, for a second at most.
fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(1), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A connection whose flight stands still, and both ends of it.
type Flight = (TcpStream, TcpStream, Connection);

/// Connections whose flights stand still: their packets are lost, and the host hears the switch alone.
fn flights(shared: &Shared, finder: &Connections, count: usize) -> Vec<Flight> {
    let mut some = vec![0; 100_000];
    let mut ends: Vec<_> = (0..count).map(|_| shared.connection()).collect();
    for (sender, receiver) in &mut ends {
        sender.write_all(&some).expect("there is room");
        receiver.read_exact(&mut some).expect("they come");
    }
    // The link stays up, and what comes is for nobody.
    ip(&format!("-n {} address delete {RECEIVER}/24 dev nrw1", shared.world.receiver));
    for (sender, _) in &mut ends {
        sender.write_all(&some[..50_000]).expect("there is room");
    }
    let mut found = Vec::new();
    soon("something is in flight", || {
        let all = finder.all().expect("as root");
        found = ends.iter().map(|(sender, _)| of(&all, sender).clone()).collect();
        found.iter().all(|one| one.next.wrapping_sub(one.unacknowledged) > 5_000)
    });
    ends.into_iter().zip(found).map(|((sender, receiver), found)| (sender, receiver, found)).collect()
}

/// A flight of this connection that stands still, as [`flights`] makes them of new ones.
fn stand_still(shared: &Shared, finder: &Connections, (sender, receiver): &(TcpStream, TcpStream)) -> Connection {
    let (mut sender, mut receiver) = (sender, receiver);
    let mut some = vec![0; 100_000];
    sender.write_all(&some).expect("there is room");
    receiver.read_exact(&mut some).expect("they come");
    ip(&format!("-n {} address delete {RECEIVER}/24 dev nrw1", shared.world.receiver));
    sender.write_all(&some[..50_000]).expect("there is room");
    let mut found = None;
    soon("something is in flight", || {
        let now = of(&finder.all().expect("as root"), sender).clone();
        let flies = now.next.wrapping_sub(now.unacknowledged) > 5_000;
        found = Some(now);
        flies
    });
    found.expect("it is in flight")
}

fn held_flight(shared: &Shared, finder: &Connections) -> Flight {
    flights(shared, finder, 1).pop().expect("one")
}

/// The switch speaks of all of them until all are held.
fn hold(shared: &Shared, flights: &[Flight]) {
    let switch = shared.switch();
    soon("all are held", || {
        for (_, _, connection) in flights {
            switch.send(&genuine(connection).seal(&Key::new(KEY))).expect("next door");
        }
        std::thread::sleep(Duration::from_millis(10));
        flights.iter().all(|(sender, ..)| most_rate(&fd(sender)).expect("it is open").is_some())
    });
}

/// Their process ends all of them at once.
fn cut(flights: Vec<Flight>) {
    for (sender, ..) in &flights {
        sockopt::set_socket_linger(sender, Some(Duration::ZERO)).expect("it is open");
    }
}

pub(crate) fn a_genuine_notification_holds_a_connection_until_it_recovers() -> Outcome {
    // By the standard a limit begins at the line rate, so that what it is can be said.
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let listening = shared.listening("standard");
    let (sender, receiver, connection) = held_flight(&shared, &finder);
    let switch = shared.switch();
    let rate = || most_rate(&fd(&sender)).expect("it is open");
    assert_eq!(rate(), None);
    switch.send(&genuine(&connection).seal(&Key::new(KEY))).expect("next door");
    soon("it is held", || rate().is_some());
    let first = rate().expect("it is held");
    assert_eq!(first, Rate::from_mbps(750), "a line of 1 Gbit/s less 32/128");
    // Nothing else comes: its timer lets it go.
    let begin = Instant::now();
    while rate().is_some() {
        assert!(begin.elapsed() < Duration::from_secs(10), "it is held still");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Who ends it, leaves nothing held.
    switch.send(&genuine(&connection).seal(&Key::new(KEY))).expect("next door");
    soon("it is held again", || rate().is_some());
    let (text, counts) = listening.end();
    assert_eq!(rate(), None);
    assert_eq!(counts["taken"], 2, "{text}");
    assert!(text.contains("reaction: p50 "), "{text}");
    println!("{text}");
    drop(receiver);
    Ok(())
}

/// The file of senders is read anew while it listens: the new key is believed beside the old one, then alone. What cannot be
/// used changes nothing.
pub(crate) fn a_key_is_changed_while_it_listens() -> Outcome {
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let mut listening = shared.listening("software");
    let (sender, receiver, connection) = held_flight(&shared, &finder);
    let switch = shared.switch();
    let rate = || most_rate(&fd(&sender)).expect("it is open");
    let file = shared.folder.join("senders.toml");
    let entry = fs::read_to_string(&file).expect("it was written");
    let digits = "a5".repeat(31) + "a4";
    let new_key = Key::parse(&digits).expect("it is one");
    let mut key = (fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600))
        .open(shared.folder.join("new.key"))
        .expect("a file");
    key.write_all(digits.as_bytes()).expect("it is written");
    let mut reread = |text: &str| {
        fs::write(&file, text).expect("it is ours");
        kill_process(Pid::from_child(&listening.child), Signal::HUP).expect("it lives");
        listening.text.clear();
        listening.said.read_line(&mut listening.text).expect("it writes");
        assert_eq!(listening.text, "listens to 1 congestion point\n");
    };
    reread(&format!("{entry}other-key-file = \"new.key\"\n"));
    for key in [&Key::new(KEY), &new_key] {
        switch.send(&genuine(&connection).seal(key)).expect("next door");
        soon("it is held", || rate().is_some());
        soon("it is let go", || rate().is_none());
    }
    reread(&entry.replace("switch.key", "new.key"));
    switch.send(&genuine(&connection).seal(&Key::new(KEY))).expect("next door");
    switch.send(&genuine(&connection).seal(&new_key)).expect("next door");
    soon("it is held", || rate().is_some());
    fs::write(&file, "[[sender]]\n").expect("it is ours");
    kill_process(Pid::from_child(&listening.child), Signal::HUP).expect("it lives");
    std::thread::sleep(Duration::from_millis(100));
    switch.send(&genuine(&connection).seal(&new_key)).expect("next door");
    std::thread::sleep(Duration::from_millis(100));
    let (text, error, counts) = listening.end_with_warnings();
    assert!(error.contains("missing field `identity`") && error.ends_with("warning: nothing was changed\n"), "{error}");
    assert_eq!((counts["taken"], counts["unauthenticated"]), (4, 1), "{text}");
    drop(receiver);
    Ok(())
}

const UNIT: &str = include_str!("../../packaging/systemd/narrowsd-near-source.service");

/// What starts a program with the privileges that a unit has.
pub(crate) fn with_the_units_privileges(unit: &str, program: &str) -> Command {
    let allowed =
        unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).expect("the unit names them");
    let kept = allowed.split(' ').map(|name| format!(",+{}", name.trim_start_matches("CAP_").to_lowercase()));
    let mut command = Command::new("setpriv");
    command.args([&format!("--bounding-set=-all{}", kept.collect::<String>()), "--no-new-privs", program]);
    command
}

pub(crate) fn with_the_privileges_of_its_unit_it_works_and_says_what_room_it_has() -> Outcome {
    if !with_the_units_privileges(UNIT, "true").output().is_ok_and(|output| output.status.success()) {
        return Err("needs `setpriv` of util-linux".to_owned());
    }
    let bound = fs::read_to_string("/proc/sys/net/core/rmem_max").expect("a number");
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let listening = shared.started(with_the_units_privileges(UNIT, NARROWSD), "standard");
    let (sender, receiver, connection) = held_flight(&shared, &finder);
    shared.switch().send(&genuine(&connection).seal(&Key::new(KEY))).expect("next door");
    let rate = || most_rate(&fd(&sender)).expect("it is open");
    soon("it is held", || rate().is_some());
    let (text, warned, counts) = listening.end_with_warnings();
    assert_eq!((rate(), counts["taken"]), (None, 1), "{text}");
    let room: u32 = bound.trim().parse().expect("a number");
    let expected =
        if room < 1 << 23 { format!("warning: there is room for {} KB of", room / 1_000) } else { String::new() };
    assert!(warned.starts_with(&expected) && warned.is_empty() == expected.is_empty(), "{warned}");
    drop(receiver);
    Ok(())
}

pub(crate) fn what_a_killed_one_held_is_let_go_by_the_next() -> Outcome {
    // Close to the line rate and, by the standard's clock, not taken up again for 60 ms.
    let own = Rate::from_mbps(950);
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let mut listening = shared.listening("standard");
    let (sender, receiver, connection) = held_flight(&shared, &finder);
    set_most_rate(&fd(&sender), Some(own)).expect("it is open");
    // From whatever it had up to the line rate, by almost a half each.
    for _ in 0..6 {
        let said = Notification { feedback: 63, ..genuine(&connection) };
        shared.switch().send(&said.seal(&Key::new(KEY))).expect("next door");
    }
    let rate = || most_rate(&fd(&sender)).expect("it is open");
    soon("it is held", || rate() < Some(own));
    listening.child.kill().expect("it lives");
    listening.child.wait().expect("it ends");
    assert!(rate() < Some(own), "nobody has let it go");
    let next = shared.listening("standard");
    assert!(next.text.starts_with("1 connections that a killed process held are let go\n"), "{}", next.text);
    assert_eq!(rate(), Some(own), "as its own process had set it");
    next.end();
    drop(receiver);
    Ok(())
}

pub(crate) fn connections_that_end_together_are_forgotten_together() -> Outcome {
    const COUNT: usize = 300;
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let listening = shared.listening("standard");
    let flights = flights(&shared, &finder, COUNT);
    hold(&shared, &flights);
    cut(flights);
    // What is written a second later is of later. A walk for each of them would take three seconds at least.
    std::thread::sleep(Duration::from_secs(1));
    soon("they are forgotten", || {
        let metrics = fs::read_to_string(shared.folder.join("metrics")).expect("it is written");
        metrics.contains("narrows_near_source_held_flows 0\n")
    });
    listening.end();
    Ok(())
}

pub(crate) fn what_has_ended_is_not_said_to_be_held_still() -> Outcome {
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let listening = shared.listening("standard");
    let flights = flights(&shared, &finder, 20);
    hold(&shared, &flights);
    cut(flights);
    // It says nothing on the error stream.
    listening.end();
    let records = fs::read_dir("/run/narrows").expect("it was made").filter_map(Result::ok);
    let left: Vec<_> = records.map(|record| record.path()).filter(|path| path.extension().is_none()).collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

/// Forgeries of every kind, in turn. Those behind the tag are sealed with the right key: what a broken-into switch could do.
struct Forger {
    switch: UdpSocket,
    far: UdpSocket,
    connection: Connection,
    /// One that was sealed with the key, as somebody recorded it a moment ago.
    recorded: Cell<Option<[u8; 88]>>,
}

impl Forger {
    /// What is sent to be refused for this reason.
    fn about(reason: Refusal) -> &'static str {
        match reason {
            Refusal::Malformed => "88 bytes of ones",
            Refusal::TooFar => "genuine, a hop further away: TTL 254",
            Refusal::UnknownSender => "of an identity that is not in the file",
            Refusal::Unauthenticated => "sealed with another key",
            Refusal::Stale => "sealed with the right key, a second old",
            Refusal::Replayed => "a recorded one, again",
            Refusal::Feedback => "sealed with the right key, feedback 64",
            Refusal::UnknownFlow | Refusal::NotNow => "sealed with the right key, of a flow that does not exist",
            Refusal::NotInFlight => "sealed with the right key, of a byte that is not in flight",
        }
    }

    fn send(&self, reason: Refusal) {
        let said = genuine(&self.connection);
        let key = Key::new(KEY);
        let from_nowhere = Flow { source: (said.flow.source.ip(), 9).into(), ..said.flow };
        let bytes = match reason {
            Refusal::Malformed => [0xff; 88],
            Refusal::TooFar => said.seal(&key),
            Refusal::UnknownSender => Notification { sender: 1, ..said }.seal(&key),
            Refusal::Unauthenticated => said.seal(&Key::new([1; 32])),
            Refusal::Stale => Notification { sent_ns: said.sent_ns - 1_000_000_000, ..said }.seal(&key),
            Refusal::Replayed => self.recorded.get().expect("one was sent before"),
            Refusal::Feedback => Notification { feedback: 64, ..said }.seal(&key),
            // The host looks for it, or says that it does not look for it now.
            Refusal::UnknownFlow | Refusal::NotNow => Notification { flow: from_nowhere, ..said }.seal(&key),
            // Half a circle away from anything.
            Refusal::NotInFlight => Notification { seq: said.seq ^ 1 << 31, ..said }.seal(&key),
        };
        let socket = if reason == Refusal::TooFar { &self.far } else { &self.switch };
        if reason == Refusal::Feedback {
            self.recorded.set(Some(bytes));
        }
        // The host may be too busy to take it.
        let _ = socket.send(&bytes);
    }
}

/// Bytes that the receiver takes in while the victim sends as fast as it may.
fn goodput(sender: &TcpStream, receiver: &TcpStream, during: impl FnOnce(&dyn Fn() -> u64)) {
    let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut sender, chunk) = (sender, [0; 1 << 16]);
            // It waits for room: the connection is held to its own rate.
            while !stop.load(Ordering::Relaxed) {
                if sender.write_all(&chunk).is_err() {
                    break;
                }
            }
            let _ = sender.shutdown(Shutdown::Write);
        });
        scope.spawn(|| {
            let (mut receiver, mut chunk) = (receiver, vec![0; 1 << 16]);
            while let Ok(count) = receiver.read(&mut chunk) {
                if count == 0 {
                    break;
                }
                taken.fetch_add(count as u64, Ordering::Relaxed);
            }
        });
        std::thread::sleep(Duration::from_millis(500));
        let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| during(&|| taken.load(Ordering::Relaxed))));
        stop.store(true, Ordering::Relaxed);
        work.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Mbit/s over a time in which `act` is called again and again.
fn measured(taken: &dyn Fn() -> u64, time: Duration, mut act: impl FnMut()) -> f64 {
    let (begin, before) = (Instant::now(), taken());
    while begin.elapsed() < time {
        act();
    }
    let seconds = begin.elapsed().as_secs_f64();
    f64::from(u32::try_from(taken() - before).expect("seconds at 200 Mbit/s are less than 4 GB")) * 8e-6 / seconds
}

pub(crate) fn ten_thousand_forgeries_a_second_leave_a_flow_its_goodput() -> Outcome {
    let shared = Shared::new();
    let finder = Connections::load().expect("as root");
    let listening = shared.listening("software");
    let (sender, receiver) = shared.connection();
    set_most_rate(&fd(&sender), Some(OWN_RATE)).expect("it is open");
    let far = shared.switch();
    far.set_ttl(254).expect("a hop less");
    let connection = of(&finder.all().expect("as root"), &sender).clone();
    let forger = Forger { switch: shared.switch(), far, connection, recorded: Cell::new(None) };
    let beside = shared.connection();
    let mut ratio = 0.0;
    let mut attack = Attack { forger: &forger, sent: BTreeMap::new() };
    goodput(&sender, &receiver, |taken| {
        let quiet = measured(taken, BASELINE, || std::thread::sleep(Duration::from_millis(10)));
        let begin = Instant::now();
        let attacked = measured(taken, BASELINE, attack.paced());
        let count = attack.count();
        assert!(count > PER_SECOND * BASELINE.as_secs() * 95 / 100, "{count} were sent");
        ratio = attacked / quiet;
        println!(
            "{count} forgeries in {:.1} s to a host with one connection, held to 200 Mbit/s by itself",
            begin.elapsed().as_secs_f64()
        );
        println!("goodput: {quiet:.1} Mbit/s before, {attacked:.1} Mbit/s meanwhile, {:.2} %", ratio * 100.0);
    });
    assert_eq!(most_rate(&fd(&sender)).expect("it is open"), Some(OWN_RATE), "nobody holds it");
    // Among as many forgeries a genuine one does what it should.
    let (held, connection) = (&beside.0, stand_still(&shared, &finder, &beside));
    let (begin, mut step, mut told) = (Instant::now(), attack.paced(), None);
    while told.is_none() || most_rate(&fd(held)).expect("it is open").is_none() {
        step();
        if told.is_none() && begin.elapsed() > Duration::from_millis(500) {
            forger.switch.send(&genuine(&connection).seal(&Key::new(KEY))).expect("next door");
            told = Some(Instant::now());
        }
        assert!(begin.elapsed() < Duration::from_secs(2), "a genuine notification is lost among forgeries");
    }
    let waited = told.map_or(Duration::ZERO, |told| told.elapsed());
    drop(step);
    let (text, mut counts) = listening.end();
    println!("one genuine notification among them, to another connection: held within {} ms", waited.as_millis() + 1);
    assert_eq!(counts["taken"], 1, "{text}");
    assert!(counts["unknown-flow"] > 0, "{text}");
    // The host looks for a flow that is not there, or says that it does not look for it now.
    let mut sent = attack.sent;
    let nowhere = Refusal::UnknownFlow.name();
    let not_now = sent.remove(Refusal::NotNow.name()).unwrap_or_default();
    *sent.entry(nowhere).or_default() += not_now;
    *counts.entry(nowhere.to_owned()).or_default() += counts[Refusal::NotNow.name()];
    println!("{:<17} {:>7} {:>8}  what was forged", "reason", "sent", "refused");
    for reason in Refusal::ALL.into_iter().filter(|reason| *reason != Refusal::NotNow) {
        let (sent, refused) = (sent[reason.name()], counts[reason.name()]);
        println!("{:<17} {sent:>7} {refused:>8}  {}", reason.name(), Forger::about(reason));
        assert!(refused <= sent && refused * 100 >= sent * 99, "{}: {refused} of {sent} are counted", reason.name());
    }
    println!("{text}");
    assert!(ratio >= 0.99, "goodput fell to {ratio} of what it was");
    Ok(())
}

/// Forgeries a second.
const PER_SECOND: u64 = 10_000;

/// Forgeries at a pace, and how many of each kind were sent.
struct Attack<'a> {
    forger: &'a Forger,
    sent: BTreeMap<&'static str, u64>,
}

impl Attack<'_> {
    fn count(&self) -> u64 {
        self.sent.values().sum()
    }

    /// Sends what is due, in bursts: whatever the machine does, so many a second.
    fn paced(&mut self) -> impl FnMut() {
        let (begin, mut count) = (Instant::now(), 0);
        move || {
            let due = u64::try_from(begin.elapsed().as_millis()).expect("seconds") * PER_SECOND / 1_000;
            while count < due {
                // Backwards, so that there is something to replay.
                let kinds = Refusal::ALL.len();
                let reason = Refusal::ALL[kinds - 1 - usize::try_from(count).expect("few") % kinds];
                self.forger.send(reason);
                *self.sent.entry(reason.name()).or_default() += 1;
                count += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
