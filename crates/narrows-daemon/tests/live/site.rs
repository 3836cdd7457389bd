//! Two sites and a WAN: a host and an edge router each, and between them a program that delays, drops, doubles and reorders as a
//! test wishes. Five network namespaces of this process' own, which go with it.

use std::collections::BinaryHeap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_core::rng::SmallStream;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::shell::{NARROWSD, ended};
use crate::world::{ip, within};

pub(crate) const LEFT_V4: &str = "192.0.2.1";
pub(crate) const RIGHT_V4: &str = "192.0.2.2";
pub(crate) const RIGHT_V6: &str = "2001:db8::2";
/// What a marked packet goes to.
pub(crate) const PORT: u16 = 8_936;
/// The DSCP of disguised packets.
const SIGN: &str = "44";
const KEY: &str = "5a5b5c5d5e5f505152535455565758595a5b5c5d5e5f50515253545556575859";

/// Interfaces of an edge: to its site, to the WAN.
pub(crate) const EDGES: [[&str; 2]; 2] = [["nbi0", "nbo0"], ["nbi1", "nbo1"]];
const WAN: [&str; 2] = ["nbw0", "nbw1"];
const HOSTS: [&str; 2] = ["nbh0", "nbh1"];

/// What the WAN does, parts in a thousand.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Loss of packets with data that are Not-ECT.
    pub(crate) loss_not_ect: AtomicU32,
    /// Loss of any with data.
    pub(crate) loss: AtomicU32,
    /// Bits a second of each direction, as on Ethernet's wire; 0 for any. And how many full packets wait for their turn.
    pub(crate) rate_bps: AtomicU64,
    pub(crate) room: AtomicU32,
    /// Packets that come a second time, and those that come some milliseconds later.
    pub(crate) twice: AtomicU32,
    pub(crate) late: AtomicU32,
    /// One way, microseconds.
    pub(crate) delay_us: AtomicU64,
    /// Whether all but the edges' own datagrams is thrown away, before it costs anything.
    pub(crate) tunnel_alone: AtomicBool,
    /// Bytes of an IP packet at most; 0 for any. Of what is longer the sender is told.
    pub(crate) longest: AtomicU32,
}

/// What it has seen, by the side that it came from.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) frames: [AtomicU64; 2],
    /// Marked packets, acknowledgements, greetings and welcomes.
    pub(crate) kinds: [[AtomicU64; 4]; 2],
    /// Of the marked, those that are no repairs.
    pub(crate) firsts: [AtomicU64; 2],
    pub(crate) dropped: AtomicU64,
    pub(crate) too_long: AtomicU64,
    /// The last of each kind of datagram.
    pub(crate) recorded: Mutex<[[Vec<u8>; 4]; 2]>,
}

/// See the [module](self).
pub(crate) struct Site {
    names: [String; 5],
    pub(crate) faults: Arc<Faults>,
    pub(crate) seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    wan: Vec<JoinHandle<()>>,
    folder: std::path::PathBuf,
}

impl Site {
    /// Both sites, and hosts that negotiate ECN if they are told to.
    pub(crate) fn new(ecn: bool) -> Site {
        let id = std::process::id();
        let names = ["a", "ea", "w", "eb", "b"].map(|name| format!("narrowsd-{id}-{name}"));
        let folder = std::env::temp_dir().join(format!("narrowsd-bridge-{id}"));
        let (stop, faults) = (Arc::new(AtomicBool::new(false)), Arc::new(Faults::default()));
        let mut site = Site { names, faults, seen: Arc::default(), stop, wan: vec![], folder };
        let [a, ea, w, eb, b] = &site.names;
        for name in &site.names {
            ip(&format!("netns add {name}"));
        }
        // Hosts send one packet at a time, as it is on the wire.
        for (one, in_one, other, in_other) in [
            (a, HOSTS[0], ea, EDGES[0][0]),
            (ea, EDGES[0][1], w, WAN[0]),
            (w, WAN[1], eb, EDGES[1][1]),
            (b, HOSTS[1], eb, EDGES[1][0]),
        ] {
            ip(&format!(
                "link add {in_one} netns {one} gso_max_segs 1 txqueuelen 10000 type veth peer name {in_other} netns {other} txqueuelen 10000"
            ));
        }
        for name in &site.names {
            within(name, || {
                // Nothing here speaks unasked.
                for which in ["all", "default"] {
                    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/accept_ra"), "0");
                }
                let _ = std::fs::write("/proc/sys/net/ipv4/tcp_ecn", if ecn { "1" } else { "0" });
                // What a test before this one learnt of a path.
                let _ = std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
            });
        }
        for name in [ea, w, eb] {
            within(name, || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")).expect("as root");
        }
        for (name, device) in
            [(ea, EDGES[0][0]), (ea, EDGES[0][1]), (eb, EDGES[1][0]), (eb, EDGES[1][1]), (w, WAN[0]), (w, WAN[1])]
        {
            let _ = within(name, || std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1"));
            ip(&format!("-n {name} link set {device} up"));
        }
        for (name, device, v4, v6) in [(a, HOSTS[0], LEFT_V4, "2001:db8::1"), (b, HOSTS[1], RIGHT_V4, RIGHT_V6)] {
            ip(&format!("-n {name} address add {v4}/24 dev {device}"));
            ip(&format!("-n {name} address add {v6}/64 dev {device} nodad"));
            ip(&format!("-n {name} link set {device} up"));
        }
        // And each with its checksum: what passes a raw socket has none otherwise.
        for (name, device) in [(a, HOSTS[0]), (b, HOSTS[1])] {
            within(name, || without_checksum_offload(device));
        }
        site.set_up_wan();
        std::fs::create_dir_all(&site.folder).expect("a folder");
        let path = site.key();
        std::fs::write(&path, KEY).expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("our own");
        site.faults.delay_us.store(5_000, Ordering::Relaxed);
        site
    }

    fn key(&self) -> std::path::PathBuf {
        self.folder.join("bridge.key")
    }

    fn set_up_wan(&mut self) {
        for from in 0..2 {
            let name = self.names[2].clone();
            let (faults, seen, stop) = (Arc::clone(&self.faults), Arc::clone(&self.seen), Arc::clone(&self.stop));
            self.wan.push(std::thread::spawn(move || {
                let (into, out) = within(&name, || (packet_socket(WAN[from]), packet_socket(WAN[1 - from])));
                forward(from, &into, &out, &faults, &seen, &stop);
            }));
        }
    }

    /// An end of the WAN's, to send frames to an edge from.
    pub(crate) fn wan_socket(&self, towards: usize) -> OwnedFd {
        within(&self.names[2], || packet_socket(WAN[towards]))
    }

    /// A host's interface, raw.
    pub(crate) fn host_socket(&self, host: usize) -> OwnedFd {
        within(self.host(host), || packet_socket(HOSTS[host]))
    }

    pub(crate) fn host(&self, host: usize) -> &str {
        &self.names[4 * host]
    }

    pub(crate) fn edge(&self, edge: usize) -> &str {
        &self.names[1 + 2 * edge]
    }

    /// An edge's process, once it works.
    pub(crate) fn bridge(&self, edge: usize, more: &str) -> Bridge {
        self.bridge_of(edge, EDGES[edge], more)
    }

    /// The same, of a WAN that is not of 1 Gbit/s and 12 ms.
    pub(crate) fn bridge_with(&self, edge: usize, options: &str) -> Bridge {
        self.started(edge, EDGES[edge], options)
    }

    /// The same, of other interfaces.
    pub(crate) fn bridge_of(&self, edge: usize, interfaces: [&str; 2], more: &str) -> Bridge {
        self.started(edge, interfaces, &format!("--rate 1Gbps --round-trip 12ms {more}"))
    }

    fn started(&self, edge: usize, [inside, outside]: [&str; 2], options: &str) -> Bridge {
        let (near, far) = if edge == 0 { ("left", "right") } else { ("right", "left") };
        let (name, key) = (self.edge(edge), self.key());
        let mut child = within(name, || {
            (Command::new(NARROWSD).args([
                "bridge",
                "--inside",
                inside,
                "--outside",
                outside,
                "--name",
                near,
                "--peer",
                far,
            ]))
            .arg("--key")
            .arg(key)
            .args(["--sign", SIGN])
            .args(options.split(' ').filter(|word| !word.is_empty()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs")
        });
        let mut said = std::io::BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut said, &mut line).expect("it writes");
        if !line.contains("are joined") {
            let output = child.wait_with_output().expect("it ends");
            panic!("{line}{:?}", ended(&output));
        }
        Bridge { child }
    }

    /// How a bridge fares.
    pub(crate) fn status(&self, edge: usize) -> Value {
        self.status_of(edge, EDGES[edge])
    }

    /// The same, of other interfaces.
    pub(crate) fn status_of(&self, edge: usize, [inside, outside]: [&str; 2]) -> Value {
        let output = within(self.edge(edge), || {
            Command::new(NARROWSD).args(["bridge", "status", "--inside", inside, "--outside", outside]).output()
        });
        let (code, out, error) = ended(&output.expect("it runs"));
        assert_eq!((code, error.as_str()), (0, ""));
        serde_json::from_str::<Value>(&out).expect("it is JSON")[0].clone()
    }

    /// What a bridge says of itself when it next does.
    pub(crate) fn status_soon(&self, edge: usize) -> Value {
        std::thread::sleep(Duration::from_millis(1_200));
        self.status(edge)
    }

    /// Removes a bridge; what it says.
    pub(crate) fn remove(&self, edge: usize) -> (i32, String, String) {
        let [inside, outside] = EDGES[edge];
        let output = within(self.edge(edge), || {
            Command::new(NARROWSD).args(["bridge", "remove", "--inside", inside, "--outside", outside]).output()
        });
        ended(&output.expect("it runs"))
    }

    /// Sends so many bytes from the left host to the right; how long that took and the longest time in which nothing came. `during` is called when
    /// a third has come. What arrives is what was sent.
    pub(crate) fn transfer(&self, to: &str, bytes: usize, during: impl FnOnce()) -> Transfer {
        let to: IpAddr = to.parse().expect("an address");
        let (ready, is_ready) = channel();
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let taken = &taken;
            let receiver = scope.spawn(move || {
                within(self.host(1), || {
                    let listener = TcpListener::bind((to, 0)).expect("a port is free");
                    ready.send(listener.local_addr().expect("it is bound")).expect("it is awaited");
                    take(&listener, taken)
                })
            });
            let address = is_ready.recv_timeout(Duration::from_secs(2)).expect("it listens");
            let begin = Instant::now();
            let sender = scope.spawn(move || within(self.host(0), || give(address, bytes)));
            let middle = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                while taken.load(Ordering::Relaxed) < bytes as u64 / 3 && begin.elapsed() < LONGEST {
                    std::thread::sleep(Duration::from_millis(1));
                }
                during();
            }));
            let sent = sender.join().expect("it ends");
            let (came, gap, end) = receiver.join().expect("it ends");
            middle.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert_eq!(sent, came, "what arrives is what was sent");
            let time = end - begin;
            Transfer { gap, mbps: bytes as f64 * 8e-6 / time.as_secs_f64() }
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.wan.drain(..) {
            let _ = thread.join();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        // Programs and pins end with their interfaces and mounts; what is said of them with this.
        let _ = std::fs::remove_dir_all("/run/narrows");
        let _ = std::fs::remove_dir_all("/sys/fs/bpf/narrows");
    }
}

/// What the sender is controlled by.
const CONTROLLER: &str = "cubic";
/// No transfer lasts longer.
const LONGEST: Duration = Duration::from_secs(120);

/// How a transfer went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) gap: Duration,
    pub(crate) mbps: f64,
}

fn give(to: std::net::SocketAddr, bytes: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10)).expect("it listens");
    // A namespace may choose among few.
    rustix::net::sockopt::set_tcp_congestion(&stream, CONTROLLER).expect("as root");
    stream.set_write_timeout(Some(Duration::from_secs(30))).expect("a time");
    let (mut random, mut hash, mut chunk) = (SmallStream::new(bytes as u64), Sha256::new(), vec![0; 1 << 16]);
    let mut left = bytes;
    while left > 0 {
        let size = left.min(chunk.len());
        chunk[..size]
            .chunks_mut(8)
            .for_each(|part| part.copy_from_slice(&random.next_u64().to_be_bytes()[..part.len()]));
        hash.update(&chunk[..size]);
        stream.write_all(&chunk[..size]).expect("the other end reads");
        left -= size;
    }
    hash.finalize().to_vec()
}

fn take(listener: &TcpListener, taken: &AtomicU64) -> (Vec<u8>, Duration, Instant) {
    let (mut stream, _) = listener.accept().expect("it is connected");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time");
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    let (mut last, mut gap) = (Instant::now(), Duration::ZERO);
    loop {
        let size = stream.read(&mut chunk).expect("the other end writes");
        gap = gap.max(last.elapsed());
        last = Instant::now();
        if size == 0 {
            return (hash.finalize().to_vec(), gap, last);
        }
        hash.update(&chunk[..size]);
        taken.fetch_add(size as u64, Ordering::Relaxed);
    }
}

/// A bridge's process, killed with its test if it was not before.
pub(crate) struct Bridge {
    child: Child,
}

impl Bridge {
    /// Before other processes.
    pub(crate) fn go_first(&self) {
        // SAFETY: it changes nothing but the order of processes.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, self.child.id(), -15) };
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it was killed");
    }

    /// Its processor time so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it lives");
        let fields: Vec<&str> = text.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().map(|&at: &usize| fields[at].parse::<u64>().expect("ticks")).sum();
        Duration::from_millis(ticks * 10)
    }

    /// It ends by itself, as a failure; what it said on its error stream.
    pub(crate) fn fails(mut self) -> String {
        let begin = Instant::now();
        while self.child.try_wait().expect("it is a child").is_none() {
            assert!(begin.elapsed() < Duration::from_secs(10), "it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.child.wait().expect("it has ended").code(), Some(1));
        let mut error = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut error).expect("it writes");
        error
    }

    /// Ends it in order; what it said on its error stream.
    pub(crate) fn end(mut self) -> String {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it lives");
        let ended = self.child.wait().expect("it ends");
        let mut error = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut error).expect("it writes");
        assert!(ended.success(), "{error}");
        error
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A raw socket on an interface of this thread's namespace, which hears what comes in.
fn packet_socket(device: &str) -> OwnedFd {
    let protocol = i32::from(u16::try_from(libc::ETH_P_ALL).expect("16 bits").to_be());
    // SAFETY: addresses and values outlive the calls; the descriptor is a new one.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0);
        assert!(socket >= 0, "as root");
        let socket = OwnedFd::from_raw_fd(socket);
        let name = std::ffi::CString::new(device).expect("a name");
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = u16::try_from(libc::AF_PACKET).expect("small");
        address.sll_protocol = u16::try_from(protocol).expect("16 bits");
        address.sll_ifindex = i32::try_from(libc::if_nametoindex(name.as_ptr())).expect("small");
        for (level, option, value) in [
            (libc::SOL_PACKET, 23, 1),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 1 << 25),
            (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 1 << 24),
        ] {
            let value: libc::c_int = value;
            libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), 4);
        }
        let size = u32::try_from(size_of_val(&address)).expect("small");
        assert_eq!(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size), 0, "{device}");
        socket
    }
}

/// This thread goes before others, until it is dropped.
pub(crate) struct GoFirst;

impl GoFirst {
    pub(crate) fn new() -> GoFirst {
        // SAFETY: it changes nothing but the order of threads.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
        GoFirst
    }
}

impl Drop for GoFirst {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
    }
}

/// A device of bare IP packets in this thread's namespace, as long as it is held.
pub(crate) fn tun(device: &str) -> OwnedFd {
    let file = std::fs::File::options().read(true).write(true).open("/dev/net/tun").expect("there are such devices");
    // SAFETY: a request is plain data, and outlives the call.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).expect("low ones");
        assert_eq!(libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request), 0, "{device}");
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK);
    }
    file.into()
}

/// Has a device of this thread's namespace send packets whole.
fn without_checksum_offload(device: &str) {
    const SET_TX_CHECKSUMS: u32 = 0x17;
    let mut value = [SET_TX_CHECKSUMS, 0];
    let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    // SAFETY: a request is plain data; it and what it points to outlive the call.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        assert_eq!(libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request), 0, "{device}");
    }
}

/// Has the kernel throw away what comes to a raw socket and is not UDP over IPv4.
fn take_udp_alone(socket: &OwnedFd) {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).expect("16 bits"), jt, jf, k };
    let filter = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 23),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, 17),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program and its steps outlive the call, which does not write to them.
    let done = unsafe {
        let size = u32::try_from(size_of_val(&program)).expect("small");
        let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const program).cast(), size)
    };
    assert_eq!(done, 0, "a filter is attached");
}

/// Sends a frame; the receiver may have no room.
pub(crate) fn send(socket: &OwnedFd, frame: &[u8]) -> bool {
    // SAFETY: the frame outlives the call.
    unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) >= 0 }
}

/// A frame, if one is there.
pub(crate) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Option<usize> {
    // SAFETY: the room outlives the call.
    let size = unsafe { libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
    usize::try_from(size).ok()
}

/// A frame on its way: the earliest is the greatest.
#[derive(PartialEq, Eq)]
struct Under(Instant, u64, Vec<u8>);

impl Ord for Under {
    fn cmp(&self, other: &Under) -> std::cmp::Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

impl PartialOrd for Under {
    fn partial_cmp(&self, other: &Under) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

fn forward(from: usize, into: &OwnedFd, out: &OwnedFd, faults: &Faults, seen: &Seen, stop: &AtomicBool) {
    let mut random = SmallStream::new(7 + from as u64);
    let mut room = vec![0; 1 << 16];
    let mut under: BinaryHeap<Under> = BinaryHeap::new();
    let (mut count, mut free, mut filtered) = (0, Instant::now(), false);
    while !stop.load(Ordering::Relaxed) {
        if faults.tunnel_alone.load(Ordering::Relaxed) && !filtered {
            filtered = true;
            take_udp_alone(into);
        }
        for _ in 0..256 {
            let Some(size) = receive(into, &mut room) else { break };
            let frame = &room[..size];
            seen.frames[from].fetch_add(1, Ordering::Relaxed);
            note(from, frame, seen);
            let packet = &frame[14..];
            let longest = usize::try_from(faults.longest.load(Ordering::Relaxed)).expect("32 bits");
            if longest > 0 && packet[0] >> 4 == 4 && packet.len() > longest {
                seen.too_long.fetch_add(1, Ordering::Relaxed);
                send(into, &complaint(frame, longest));
                continue;
            }
            let mut happens = |parts: &AtomicU32| random.below(1_000) < u64::from(parts.load(Ordering::Relaxed));
            let data = packet.len() > 200;
            let class = if packet[0] >> 4 == 6 { packet[1] >> 4 } else { packet[1] };
            let lost = data && (happens(&faults.loss) || (class & 3 == 0 && happens(&faults.loss_not_ect)));
            let (now, rate) = (Instant::now(), faults.rate_bps.load(Ordering::Relaxed));
            let time_of = |bytes: u64| Duration::from_nanos(bytes * 8_000_000_000 / rate.max(1));
            let queue = if rate == 0 { Duration::ZERO } else { free.saturating_duration_since(now) };
            let full = rate > 0 && queue > time_of(1_538).saturating_mul(faults.room.load(Ordering::Relaxed));
            if !full && rate > 0 {
                // Preamble, check sequence and gap are on the wire, too: they are not in the frame.
                free = now + queue + time_of(size as u64 + 24);
            }
            // What is lost on the wire has been sent.
            if full || lost {
                seen.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let mut due = now.max(free) + Duration::from_micros(faults.delay_us.load(Ordering::Relaxed));
            let twice = happens(&faults.twice);
            if happens(&faults.late) {
                due += Duration::from_millis(3);
            }
            for _ in 0..=u8::from(twice) {
                count += 1;
                under.push(Under(due, count, frame.to_vec()));
            }
        }
        let now = Instant::now();
        while under.peek().is_some_and(|first| first.0 <= now) {
            let first = under.pop().expect("it was looked at");
            send(out, &first.2);
        }
        let wait = under.peek().map_or(Duration::from_millis(5), |first| first.0 - now).min(Duration::from_millis(5));
        let mut wanted = libc::pollfd { fd: into.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait = libc::timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        // SAFETY: both outlive the call.
        unsafe { libc::ppoll(&raw mut wanted, 1, &raw const wait, std::ptr::null()) };
    }
}

/// Which of the edges' datagrams a frame is: 0 to 3.
pub(crate) fn kind(frame: &[u8]) -> Option<usize> {
    let udp = match frame.get(14)? >> 4 {
        4 if frame[23] == 17 => 34,
        6 if frame[20] == 17 => 54,
        _ => return None,
    };
    let port = u16::from_be_bytes([*frame.get(udp + 2)?, *frame.get(udp + 3)?]);
    let kind = usize::from(frame.get(udp + 8)?.wrapping_sub(0x11));
    (port == PORT && kind < 4).then_some(kind)
}

fn note(from: usize, frame: &[u8], seen: &Seen) {
    if let Some(kind) = kind(frame) {
        seen.kinds[from][kind].fetch_add(1, Ordering::Relaxed);
        let flags = 14 + if frame[14] >> 4 == 6 { 40 } else { 20 } + 8 + 1;
        if kind == 0 && frame.get(flags).is_some_and(|flags| flags >> 2 == 1) {
            seen.firsts[from].fetch_add(1, Ordering::Relaxed);
        }
        let mut recorded = seen.recorded.lock().expect("nobody fails with it");
        recorded[from][kind].clear();
        recorded[from][kind].extend_from_slice(frame);
    }
}

/// "Fragmentation needed", from a router on the way.
fn complaint(frame: &[u8], longest: usize) -> Vec<u8> {
    let quoted = &frame[14..14 + 96];
    let source: [u8; 4] = frame[26..30].try_into().expect("four bytes");
    let header = etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded {
        next_hop_mtu: u16::try_from(longest).expect("it is a packet's"),
    };
    let mut bytes = [&frame[6..12], &frame[..6], &[8, 0]].concat();
    etherparse::PacketBuilder::ipv4([192, 0, 2, 254], source, 60)
        .icmpv4(etherparse::Icmpv4Type::DestinationUnreachable(header))
        .write(&mut bytes, quoted)
        .expect("it is short");
    bytes
}
