//! Small networks, and what is sent over them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use narrows_core::queue::Limit;
use narrows_core::queue::aqm::threshold::Config as Threshold;
use narrows_core::units::{Packets, Rate, Span, Time};
use narrows_plan::{Graph, Link, Node, NodeKind, Role, Sampling, Schedule};
use narrows_testbed::clock::Clock;
use narrows_testbed::emulator::{Control, Emulator, Observed, Options};
use narrows_testbed::host::{self, Parameters};
use narrows_testbed::namespace::{Claim, Namespace};
use narrows_testbed::{address, doctor};
use narrows_wire::Key;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, sendto, socket_with, sockopt,
};

/// The machine, for one test at a time; `None`, after saying why, where it cannot run any.
pub(crate) fn machine(test: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if let Err(missing) = doctor::examine() {
        eprintln!("{test} is SKIPPED: {missing}");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Two hosts at 1 Gbps and a bottleneck of 100 Mbps between their switches, which takes half of `rtt` each way.
pub(crate) fn dumbbell(rtt: Span, limit: u64, mark_at: Option<u64>) -> Graph {
    let nodes = vec![
        Node::new("left", NodeKind::Host),
        Node::new("right", NodeKind::Host),
        Node::new("x", NodeKind::Switch),
        Node::new("y", NodeKind::Switch),
    ];
    let plain = |from: u32, to: u32, role, mbps, delay| {
        Link::new(format!("{from}->{to}"), (from, to), role, Rate::from_mbps(mbps), delay)
    };
    let outer = [(0, 2), (2, 0), (1, 3), (3, 1)].map(|(from, to)| plain(from, to, Role::Host, 1_000, Span::ZERO));
    let inner = [(2, 3), (3, 2)].map(|(from, to)| Link {
        limit: Limit::Packets(Packets::new(limit)),
        aqm: mark_at.map(Threshold::at),
        watched: true,
        ..plain(from, to, Role::Fabric, 100, rtt.div(2))
    });
    let links = outer.into_iter().chain(inner).collect();
    Graph { nodes, links, ..Graph::default() }
}

/// The link that is the bottleneck from left to right.
pub(crate) const BOTTLENECK: u32 = 4;

/// Runs the network for at most `length` while `act` uses its hosts; what `act` gives, and what the emulator saw.
pub(crate) fn with_network<T>(
    graph: &Graph,
    length: Span,
    ecn: bool,
    act: impl FnOnce(&[Namespace]) -> T,
) -> (T, Observed) {
    let claim = Claim::new().expect("a claim");
    let schedule = Schedule { end: Time::ZERO + length, drain: Span::ZERO, warmup: Span::ZERO };
    let sampling = Sampling { queues: Span::from_ms(1), ..Sampling::default() };
    let mut hosts = Vec::new();
    let mut devices = Vec::new();
    for (number, node) in (0..).zip(graph.nodes.iter().filter(|node| node.kind == NodeKind::Host)) {
        let parameters = Parameters { ecn, ..Parameters::default() };
        let (namespace, device) =
            host::make(&claim, (number, &node.name), graph.mtu.get(), &parameters).expect("a host");
        devices.push(device);
        hosts.push(namespace);
    }
    let clock = Clock::start();
    let emulator = Emulator::new(
        graph,
        1,
        devices,
        (&schedule, &sampling),
        (clock, Span::ZERO),
        Options::default(),
        Key::new([1; 32]),
    )
    .expect("a network");
    let control = Control::default();
    thread::scope(|scope| {
        let running = scope.spawn(|| emulator.run(Time::ZERO + length, &control));
        let stopper = StopAtEnd(&control.stop);
        let given = act(&hosts);
        drop(stopper);
        (given, running.join().expect("no panic").expect("the emulator goes on"))
    })
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// RTTs of so many pings from one host to another, one every 20 ms.
pub(crate) fn ping(from: &Namespace, to: u32, count: u16) -> Vec<Duration> {
    let open = || socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ICMP));
    let socket = from.enter(open).expect("a raw socket");
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_millis(500)))
        .expect("an open socket");
    let to = SocketAddr::new(address::v4(to).into(), 0);
    let mut trips = Vec::new();
    for number in 0..count {
        let mut request = [8, 0, 0, 0, 0x12, 0x34, 0, 0];
        request[6..].copy_from_slice(&number.to_be_bytes());
        let sum: u32 = request.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let checksum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("folded");
        request[2..4].copy_from_slice(&checksum.to_be_bytes());
        let sent = Instant::now();
        sendto(&socket, &request, SendFlags::empty(), &to).expect("a ping is sent");
        let mut answer = [0; 200];
        while let Ok((_, length)) = recv(&socket, &mut answer[..], RecvFlags::empty()) {
            // An echo reply, after 20 bytes of IP header.
            if length >= 28 && answer[20] == 0 && answer[26..28] == number.to_be_bytes() {
                trips.push(sent.elapsed());
                break;
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    trips
}

/// Sends so many bytes from host 0 to host 1; Mbit/s from the arrival of the byte `skip` on. A transfer that takes longer than
/// `most` fails.
pub(crate) fn transfer(hosts: &[Namespace], congestion: &str, (skip, size): (usize, usize), most: Duration) -> f64 {
    let to = SocketAddr::new(address::v4(1).into(), 5_001);
    let listener = hosts[1].enter(|| TcpListener::bind(to).map_err(errno)).expect("a listener");
    // An accept that nobody comes to ends, too.
    sockopt::set_socket_timeout(&listener, sockopt::Timeout::Recv, Some(most)).expect("an open socket");
    thread::scope(|scope| {
        scope.spawn(move || {
            hosts[0].move_in().expect("the host's namespace");
            let mut sender = TcpStream::connect_timeout(&to, most).expect("a connection");
            sockopt::set_tcp_congestion(&sender, congestion).expect("a controller of this kernel");
            sender.set_write_timeout(Some(most)).expect("an open socket");
            sender.write_all(&vec![0; size]).expect("everything is sent");
        });
        let (mut receiver, _) = listener.accept().expect("a connection");
        receiver.set_read_timeout(Some(most)).expect("an open socket");
        let begun = Instant::now();
        let (mut bytes, mut buffer, mut counted) = (0, vec![0; 1 << 17], None);
        while bytes < size {
            assert!(begun.elapsed() < most, "{bytes} bytes of {size} after {most:?}");
            bytes += receiver.read(&mut buffer).expect("something comes");
            if bytes >= skip && counted.is_none() {
                counted = Some((bytes, Instant::now()));
            }
        }
        let (before, since) = counted.expect("more is sent than skipped");
        #[allow(clippy::cast_precision_loss, reason = "a few megabytes")]
        let bits = (bytes - before) as f64 * 8.0;
        bits / since.elapsed().as_secs_f64() / 1e6
    })
}

fn errno(error: std::io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}
