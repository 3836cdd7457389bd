//! Two network namespaces joined by a veth pair, transfers between them, and a bpf file system: all with names of this
//! process' own, and all removed when dropped.

use libbpf_rs::{ObjectBuilder, TC_INGRESS, TcHook};
use narrows_kernel::Namespace;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The receiver's port.
pub(crate) const PORT: u16 = 5_201;
/// Addresses for documentation, RFC 5737: nothing outside is called so.
pub(crate) const SENDER: &str = "192.0.2.1";
pub(crate) const RECEIVER: &str = "192.0.2.2";

/// No transfer sends more.
const MAX_BYTES: u64 = 100_000_000;
/// `mark.bpf.c`.
const MARK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mark.bpf.o"));
const CHUNK: usize = 1 << 16;

/// The two namespaces.
pub(crate) struct World {
    sender: String,
    receiver: String,
}

/// One bounded transfer.
pub(crate) struct Transfer {
    /// Of the sender; what the host has chosen where empty.
    pub(crate) controller: &'static str,
    /// Of the receiver; the sender's where empty.
    pub(crate) receiver: &'static str,
    /// How long it lasts, at most 3,000.
    pub(crate) milliseconds: u64,
}

impl Default for Transfer {
    fn default() -> Transfer {
        Transfer { controller: "", receiver: "", milliseconds: 400 }
    }
}

/// What the receiver got.
pub(crate) struct Outcome {
    bytes: u64,
    seconds: f64,
}

impl Outcome {
    #[allow(clippy::cast_precision_loss, reason = "for reading")]
    pub(crate) fn mbps(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.seconds
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

impl World {
    /// Both namespaces with an end of the pair each.
    pub(crate) fn new() -> World {
        let id = std::process::id();
        let world = World { sender: format!("narrows-{id}-a"), receiver: format!("narrows-{id}-b") };
        let (a, b) = (&world.sender, &world.receiver);
        let made = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            // One packet at a time, as on a wire: what is marked or dropped is a segment and not 64 KB.
            format!("link add nrw0 netns {a} gso_max_segs 1 type veth peer name nrw1 netns {b} gso_max_segs 1"),
            format!("-n {a} address add {SENDER}/24 dev nrw0"),
            format!("-n {b} address add {RECEIVER}/24 dev nrw1"),
            format!("-n {a} link set nrw0 up"),
            format!("-n {b} link set nrw1 up"),
        ];
        for arguments in &made {
            ip(arguments).unwrap_or_else(|error| panic!("ip {arguments}: {error}"));
        }
        world
    }

    fn file(name: &str) -> PathBuf {
        Path::new("/run/netns").join(name)
    }

    pub(crate) fn sender(&self) -> Namespace {
        Namespace::of(&World::file(&self.sender)).expect("it was made")
    }

    pub(crate) fn sender_inode(&self) -> u32 {
        let file = std::fs::metadata(World::file(&self.sender)).expect("it was made");
        u32::try_from(file.ino()).expect("namespaces are numbered in 32 bits")
    }

    /// Where packets reach the receiver, out of the sender's sight, marks one ECN-capable packet in `mark` and drops one full one in `drop`, until the
    /// world ends; 0 for none.
    pub(crate) fn harm(&self, mark: u32, drop: u32) {
        let at = World::file(&self.receiver);
        let attach = move || {
            enter(&at);
            let index = rustix::net::netdevice::name_to_index(
                socket(AddressFamily::INET, SocketType::DGRAM, None).expect("a socket"),
                "nrw1",
            );
            let mut open = ObjectBuilder::default().open_memory(MARK).expect("it was compiled with this test");
            for mut map in open.maps_mut().filter(|map| map.name() == ".rodata.harm") {
                map.set_initial_value(&[mark.to_ne_bytes(), drop.to_ne_bytes()].concat()).expect("two integers");
            }
            let object = open.load().expect("as root");
            let program = object.progs_mut().next().expect("it has one");
            let mut hook = TcHook::new(program.as_fd());
            hook.ifindex(i32::try_from(index.expect("it was made")).expect("few devices")).attach_point(TC_INGRESS);
            hook.create().and_then(|mut hook| hook.attach()).expect("as root");
        };
        std::thread::spawn(attach).join().expect("the filter is attached");
    }

    /// The receiver is deaf for a while: without its address, but with its link, whose loss the sender would see.
    pub(crate) fn outage(&self, time: Duration) {
        ip(&format!("-n {} address delete {RECEIVER}/24 dev nrw1", self.receiver)).expect("it has it");
        std::thread::sleep(time);
        ip(&format!("-n {} address add {RECEIVER}/24 dev nrw1", self.receiver)).expect("it had it");
    }

    /// Makes a controller the default of both namespaces.
    pub(crate) fn choose_by_namespace(&self, controller: &'static str) {
        for namespace in [&self.sender, &self.receiver].map(|name| World::file(name)) {
            let choose = move || {
                enter(&namespace);
                std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", controller)
            };
            std::thread::spawn(choose).join().expect("it enters").expect("any may choose it");
        }
    }

    /// Makes a controller that of the route to the other end, at both ends.
    pub(crate) fn choose_by_route(&self, controller: &str) {
        for (namespace, device) in [(&self.sender, "nrw0"), (&self.receiver, "nrw1")] {
            ip(&format!("-n {namespace} route replace 192.0.2.0/24 dev {device} congctl {controller}"))
                .expect("a route");
        }
    }

    /// Sends for the time that `transfer` states; `during` is called in its middle.
    pub(crate) fn transfer(&self, transfer: &Transfer, during: impl FnOnce()) -> Outcome {
        assert!(transfer.milliseconds <= 3_000);
        let (from, to) = (World::file(&self.sender), World::file(&self.receiver));
        let receiving = if transfer.receiver.is_empty() { transfer.controller } else { transfer.receiver };
        let sending = transfer.controller;
        let time = Duration::from_millis(transfer.milliseconds);
        let (ready, is_ready) = channel();
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || receive(&to, receiving, || ready.send(()).expect("it is awaited")));
            is_ready.recv_timeout(Duration::from_secs(2)).expect("the receiver listens");
            let sender = scope.spawn(move || send(&from, sending, time));
            std::thread::sleep(time / 2);
            // Its panic waits until both ends are done.
            let middle = std::panic::catch_unwind(std::panic::AssertUnwindSafe(during));
            sender.join().expect("the sender ends");
            let outcome = receiver.join().expect("the receiver ends");
            if let Err(panic) = middle {
                std::panic::resume_unwind(panic);
            }
            outcome
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for name in [&self.sender, &self.receiver] {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Moves this thread, which ends with its work.
fn enter(namespace: &Path) {
    let file = File::open(namespace).expect("it was made");
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("as root");
}

fn choose(socket: &impl AsFd, controller: &str) {
    if !controller.is_empty() {
        set_tcp_congestion(socket, controller).expect("it is registered");
    }
}

fn receive(namespace: &Path, controller: &str, ready: impl FnOnce()) -> Outcome {
    enter(namespace);
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    choose(&listener, controller);
    let address: SocketAddrV4 = format!("{RECEIVER}:{PORT}").parse().expect("an address");
    rustix::net::sockopt::set_socket_reuseaddr(&listener, true).expect("a new socket");
    bind(&listener, &address).expect("the port is free");
    listen(&listener, 1).expect("it is bound");
    ready();
    let (mut stream, _) = TcpListener::from(listener).accept().expect("the sender connects");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    let mut buffer = vec![0; CHUNK];
    let begin = Instant::now();
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer).expect("the sender sends") {
            0 => return Outcome { bytes, seconds: begin.elapsed().as_secs_f64() },
            read => bytes += read as u64,
        }
    }
}

fn send(namespace: &Path, controller: &str, time: Duration) {
    enter(namespace);
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    choose(&stream, controller);
    let address: SocketAddrV4 = format!("{RECEIVER}:{PORT}").parse().expect("an address");
    connect(&stream, &address).expect("the receiver listens");
    let mut stream = TcpStream::from(stream);
    stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a time");
    let buffer = vec![0; CHUNK];
    let begin = Instant::now();
    let mut bytes = 0;
    // 200 Mbit/s at most: an application that never gives more than that stays far within the bytes allowed.
    while begin.elapsed() < time && bytes < MAX_BYTES {
        stream.write_all(&buffer).expect("the receiver reads");
        bytes += CHUNK as u64;
        let due = Duration::from_nanos(bytes * 8 * 5);
        if let Some(wait) = due.checked_sub(begin.elapsed()) {
            std::thread::sleep(wait);
        }
    }
}

/// A bpf file system of one's own.
pub(crate) struct BpfFolder(PathBuf);

impl BpfFolder {
    pub(crate) fn new() -> BpfFolder {
        let path = std::env::temp_dir().join(format!("narrows-bpf-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        let folder = BpfFolder(path);
        mount("bpf", folder.path(), "bpf", MountFlags::empty(), None).expect("as root");
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for BpfFolder {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.0);
    }
}
