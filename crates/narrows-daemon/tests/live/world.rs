//! A host of its own for each test: two network namespaces joined by a veth pair, and mounts that nobody else sees.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Addresses for documentation, RFC 5737: nothing outside is called so.
pub(crate) const RECEIVER: &str = "192.0.2.2";
pub(crate) const SENDER: &str = "192.0.2.1";
pub(crate) const PORT: u16 = 5_202;
/// Of a chunk every 5 ms: about 100 Mbit/s.
const CHUNK: usize = 1 << 16;

/// From here on this process and its children have a `/run` and a bpf file system of their own, which end with them. Call it
/// before threads are made.
pub(crate) fn own_mounts() -> Result<(), String> {
    // SAFETY: no file descriptors are unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|error| format!("unshare: {error}"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|error| format!("make mounts private: {error}"))?;
    for (kind, path) in [("tmpfs", "/run"), ("bpf", "/sys/fs/bpf")] {
        mount(kind, path, kind, MountFlags::empty(), Some(c"mode=755"))
            .map_err(|error| format!("mount {path}: {error}"))?;
    }
    Ok(())
}

pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip runs");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The two namespaces.
pub(crate) struct World {
    pub(crate) sender: String,
    pub(crate) receiver: String,
}

impl World {
    pub(crate) fn new() -> World {
        let id = std::process::id();
        let world = World { sender: format!("narrowsd-{id}-a"), receiver: format!("narrowsd-{id}-b") };
        let (a, b) = (&world.sender, &world.receiver);
        for arguments in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add nrw0 netns {a} type veth peer name nrw1 netns {b}"),
            format!("-n {a} address add {SENDER}/24 dev nrw0"),
            format!("-n {b} address add {RECEIVER}/24 dev nrw1"),
            format!("-n {a} link set nrw0 up"),
            format!("-n {b} link set nrw1 up"),
        ] {
            ip(&arguments);
        }
        world
    }

    /// Both ends' route to the other chooses a controller.
    pub(crate) fn choose_by_route(&self, controller: &str) {
        for (namespace, device) in [(&self.sender, "nrw0"), (&self.receiver, "nrw1")] {
            ip(&format!("-n {namespace} route replace 192.0.2.0/24 dev {device} congctl {controller}"));
        }
    }

    /// Both ends' namespaces choose it.
    pub(crate) fn choose_by_namespace(&self, controller: &str) {
        for namespace in [&self.sender, &self.receiver] {
            within(namespace, || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", controller))
                .expect("it may be chosen");
        }
    }

    /// Sends for this time, at most 5 s; `during` is called after its first third.
    pub(crate) fn transfer(&self, time: Duration, during: impl FnOnce()) {
        assert!(time <= Duration::from_secs(5));
        let (ready, is_ready) = channel();
        std::thread::scope(|scope| {
            let receiver =
                scope.spawn(move || within(&self.receiver, || receive(|| ready.send(()).expect("it is awaited"))));
            is_ready.recv_timeout(Duration::from_secs(2)).expect("the receiver listens");
            let sender = scope.spawn(move || within(&self.sender, || send(time)));
            std::thread::sleep(time / 3);
            // Its panic waits until both ends are done.
            let middle = std::panic::catch_unwind(std::panic::AssertUnwindSafe(during));
            sender.join().expect("the sender ends");
            receiver.join().expect("the receiver ends");
            middle.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for name in [&self.sender, &self.receiver] {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// Does something in a namespace; processes started there stay there.
pub(crate) fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file: PathBuf = Path::new("/run/netns").join(namespace);
    std::thread::scope(|scope| {
        let entered = scope.spawn(move || {
            let file = File::open(file).expect("it was made");
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("as root");
            work()
        });
        entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn receive(ready: impl FnOnce()) {
    let listener = TcpListener::bind((RECEIVER, PORT)).expect("the port is free");
    ready();
    let (mut stream, _) = listener.accept().expect("the sender connects");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    let mut buffer = vec![0; CHUNK];
    while stream.read(&mut buffer).expect("the sender sends") > 0 {}
}

fn send(time: Duration) {
    let mut stream = TcpStream::connect((RECEIVER, PORT)).expect("the receiver listens");
    stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a time");
    let begin = Instant::now();
    while begin.elapsed() < time {
        stream.write_all(&[0; CHUNK]).expect("the receiver reads");
        std::thread::sleep(Duration::from_millis(5));
    }
}
