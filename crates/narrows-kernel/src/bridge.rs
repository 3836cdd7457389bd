//! Two interfaces joined by BPF programs, which stay when the process that made them goes, and hand it packets while it lives.
//!
//! # Life of a bridge
//! 1. [`Joined::load`] makes programs and maps; nothing is attached yet.
//! 2. [`Joined::attach`] puts them in the place of whatever this made before on the two interfaces, at once for each: no frame is lost.
//! 3. [`Joined::beat`], every few milliseconds, has TCP packets and what the far edge sends handed to [`Frames`]. Without it for
//!    [`ALIVE`] the programs forward everything by themselves.
//! 4. The process may end in any way. [`detach`] takes everything away.

use crate::controllers::object;
use crate::error::Error;
use crate::record::Fields;
use crate::said;
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder, TC_EGRESS, TC_INGRESS, TcHook,
    libbpf_sys,
};
use rustix::io::Errno;
use std::cell::Cell;
use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// How long a heartbeat counts.
pub const ALIVE: Duration = Duration::from_millis(40);
const ALIVE_NS: u64 = ALIVE.subsec_nanos() as u64;
/// Largest frame that is handed to the process, bytes.
pub const MAX_FRAME: usize = 9_472 - 8 - FRAME_BYTES;
/// Most addresses that are told apart as this machine's own.
pub const MAX_OWN: usize = 8;

/// Bytes ahead of a frame's own in `struct narrows_frame`.
const FRAME_BYTES: usize = 24;
/// Names of pins, and in the object.
const COUNTERS: &str = "passed";
/// What marks our filters among others' on an interface.
const HANDLE: u32 = 0x6e77;
const PRIORITY: u32 = 1;
/// Where pins are.
const ROOT: &str = "/sys/fs/bpf/narrows";

/// A side of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Its own site.
    Inside,
    /// The WAN.
    Outside,
}

impl Side {
    /// Both, in the order of the programs.
    pub const BOTH: [Side; 2] = [Side::Inside, Side::Outside];
}

/// Why a frame is handed to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is TCP.
    Tcp,
    /// It begins as the far edge's datagrams do.
    Tunnel,
    /// A router complains of a datagram to the tunnel's port.
    Error,
}

/// An interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its own link address; frames for it are this machine's.
    pub mac: [u8; 6],
}

/// What the programs are to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By [`Side`].
    pub interfaces: [Interface; 2],
    /// Whether frames have an Ethernet header, or begin with that of IP.
    pub ethernet: bool,
    /// The UDP port of the far edge's datagrams.
    pub port: u16,
    /// The tunnel that they are of.
    pub tunnel: u16,
    /// The DSCP of disguised packets, if there are any.
    pub sign: Option<u8>,
    /// Whether marked packets are dropped that no process authenticates, for it is gone or does not keep up: else the kernel
    /// unwraps them, which it cannot authenticate.
    pub drop_unseen: bool,
    /// Bytes of the ring, a power of two.
    pub ring_bytes: u32,
    /// Without Ethernet headers: packets for these addresses are this machine's.
    pub own: Vec<IpAddr>,
}

impl Settings {
    /// `struct narrows_bridge`.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(164);
        for interface in self.interfaces {
            bytes.extend(interface.index.to_ne_bytes());
        }
        bytes.extend(if self.ethernet { 14_u32 } else { 0 }.to_ne_bytes());
        bytes.extend(u32::try_from(ALIVE.as_nanos()).unwrap_or(u32::MAX).to_ne_bytes());
        bytes.extend(self.port.to_ne_bytes());
        bytes.extend(self.tunnel.to_ne_bytes());
        let own: Vec<&IpAddr> = self.own.iter().take(MAX_OWN).collect();
        bytes.extend([self.sign.unwrap_or(0), u8::try_from(own.len()).unwrap_or(0)]);
        for interface in self.interfaces {
            bytes.extend(interface.mac);
        }
        bytes.extend([u8::from(self.drop_unseen), 0]);
        for at in 0..MAX_OWN {
            bytes.extend(match own.get(at) {
                Some(IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
                Some(IpAddr::V6(address)) => address.octets(),
                None => [0; 16],
            });
        }
        bytes
    }
}

/// Frames of one side, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Handed to the process.
    pub diverted: u64,
    /// Neither TCP nor of the tunnel: sent on by the kernel.
    pub straight: u64,
    /// For this machine.
    pub own: u64,
    /// For many: sent on, and for this machine too.
    pub group: u64,
    /// Joined from several by an offload, or with a VLAN tag beside it: sent on as they are.
    pub joined: u64,
    /// Too long for the ring: sent on by the kernel.
    pub too_long: u64,
    /// There was no room in the ring: sent on by the kernel.
    pub ring_full: u64,
    /// There was no process: sent on by the kernel.
    pub alone: u64,
    /// Of the last three, marked packets that the kernel unwrapped.
    pub unwrapped: u64,
    /// Of the last three, disguised packets.
    pub undisguised: u64,
    /// Of the last three, what edges tell each other: dropped.
    pub dropped: u64,
}

impl Passed {
    fn read(record: &[u8]) -> Passed {
        let mut fields = Fields(record);
        let mut next = || fields.u64();
        Passed {
            diverted: next(),
            straight: next(),
            own: next(),
            group: next(),
            joined: next(),
            too_long: next(),
            ring_full: next(),
            alone: next(),
            unwrapped: next(),
            undisguised: next(),
            dropped: next(),
        }
    }

    fn add(&mut self, other: &Passed) {
        self.diverted += other.diverted;
        self.straight += other.straight;
        self.own += other.own;
        self.group += other.group;
        self.joined += other.joined;
        self.too_long += other.too_long;
        self.ring_full += other.ring_full;
        self.alone += other.alone;
        self.unwrapped += other.unwrapped;
        self.undisguised += other.undisguised;
        self.dropped += other.dropped;
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("diverted", self.diverted),
            ("straight", self.straight),
            ("own", self.own),
            ("group", self.group),
            ("joined", self.joined),
            ("too-long", self.too_long),
            ("ring-full", self.ring_full),
            ("alone", self.alone),
            ("unwrapped", self.unwrapped),
            ("undisguised", self.undisguised),
            ("dropped", self.dropped),
        ]
    }
}

/// A frame that was handed to the process.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it came, nanoseconds of `CLOCK_MONOTONIC`.
    pub came_ns: u64,
    /// Where.
    pub side: Side,
    /// Why.
    pub kind: Kind,
    /// How many frames of this side had gone past the process before, as it had no room or no time for them.
    pub past: u32,
    /// Whether newer ones of this side went past it while it waited.
    pub overtaken: bool,
    /// The whole of it, from its link header on.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    fn read(record: &'a [u8]) -> Option<Frame<'a>> {
        let (head, rest) = record.split_first_chunk::<FRAME_BYTES>()?;
        let mut fields = Fields(head);
        let came_ns = fields.u64();
        let length = usize::try_from(fields.u32()).ok()?;
        let [side, kind]: [u8; 2] = fields.take();
        let side = *Side::BOTH.get(usize::from(side))?;
        let kind = *[Kind::Tcp, Kind::Tunnel, Kind::Error].get(usize::from(kind))?;
        let _: [u8; 2] = fields.take();
        let past = fields.u32();
        Some(Frame { came_ns, side, kind, past, overtaken: false, bytes: rest.get(..length)? })
    }
}

/// Programs and maps of a bridge.
#[derive(Debug)]
pub struct Joined {
    object: Object,
    interfaces: [u32; 2],
    heartbeat: MapHandle,
}

/// What [`detach`] must know.
#[derive(Clone, Copy, Debug)]
pub struct Attached {
    /// The interface.
    pub index: u32,
    /// Its qdisc for programs was made for ours.
    pub made_qdisc: bool,
}

impl Joined {
    /// Loads the programs.
    ///
    /// # Errors
    /// [`Error::NoPrivileges`], [`Error::Rejected`], [`Error::Bpf`].
    pub fn load(settings: &Settings) -> Result<Joined, Error> {
        said::listen();
        let refused = |source| Error::refused("bridge", source);
        let prepared = |source| Error::of("prepare the program", source);
        let mut open = ObjectBuilder::default().open_memory(object!("bridge")).map_err(refused)?;
        for mut map in open.maps_mut() {
            match map.name().to_string_lossy().as_ref() {
                ".rodata.bridge" => map.set_initial_value(&settings.bytes()).map_err(prepared)?,
                "ring" => map.set_max_entries(settings.ring_bytes).map_err(prepared)?,
                _ => {}
            }
        }
        let object = open.load().map_err(refused)?;
        let heartbeat = handle(&object, "heartbeat")?;
        Ok(Joined { object, interfaces: settings.interfaces.map(|interface| interface.index), heartbeat })
    }

    /// Puts the programs on both interfaces, in the place of what this made before, and pins their counters in `folder`. `note` is told of
    /// each interface just before its program is there.
    ///
    /// # Errors
    /// [`Error::NoBpfFileSystem`], [`Error::File`], [`Error::NoPrivileges`], [`Error::Bpf`].
    pub fn attach(&self, folder: &Path, mut note: impl FnMut(Side, Attached)) -> Result<(), Error> {
        crate::pinned::check_file_system(folder)?;
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let pin = folder.join(COUNTERS);
        match fs::remove_file(&pin) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(&pin)(error)),
            _ => {}
        }
        handle(&self.object, COUNTERS)?.pin(&pin).map_err(|source| Error::of("pin", source))?;
        for (side, name) in Side::BOTH.into_iter().zip(["inside", "outside"]) {
            let index = self.interfaces[side as usize];
            let program = self.object.progs().find(|program| program.name() == name);
            let mut hook = hook(program.expect("the object was compiled from this crate's sources").as_fd(), index);
            let failed = |source| Error::of("attach a program to an interface", source);
            let made_qdisc = make_qdisc(index).map_err(failed)?;
            note(side, Attached { index, made_qdisc });
            hook.replace(true).attach().map_err(failed)?;
        }
        Ok(())
    }

    /// Says that the process is alive at this reading of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn beat(&self, now_ns: u64) -> Result<(), Error> {
        let written = self.heartbeat.update(&0_u32.to_ne_bytes(), &now_ns.to_ne_bytes(), MapFlags::ANY);
        written.map_err(|source| Error::of("write the heartbeat", source))
    }

    /// What is handed to the process, each frame once, in the order in which they came; `take` is given them.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn frames<'a>(&self, mut take: impl FnMut(Frame<'_>) + 'a) -> Result<Frames<'a>, Error> {
        let ring = handle(&self.object, "ring")?;
        let failed = |source| Error::of("read frames", source);
        let mut builder = RingBufferBuilder::new();
        let past = handle(&self.object, "past")?;
        let taken_at = Rc::new(Cell::new(0_u64));
        let now = Rc::clone(&taken_at);
        let each = move |record: &[u8]| {
            // Always a whole one: the program writes them.
            if let Some(mut frame) = Frame::read(record) {
                // The kernel forwards nothing by itself as long as the heartbeat counts. A look costs a system call.
                if now.get().saturating_sub(frame.came_ns) > ALIVE_NS {
                    let went = past.lookup(&(frame.side as u32).to_ne_bytes(), MapFlags::ANY).ok().flatten();
                    let went = went.and_then(|bytes| Some(u32::from_ne_bytes(*bytes.first_chunk()?)));
                    frame.overtaken = went.is_some_and(|went| went != frame.past);
                }
                take(frame);
            }
            0
        };
        builder.add(&ring, each).map_err(failed)?;
        Ok(Frames { ring: builder.build().map_err(failed)?, taken_at })
    }

    /// What became of frames so far, by [`Side`].
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn passed(&self) -> Result<[Passed; 2], Error> {
        sum(&handle(&self.object, COUNTERS)?)
    }
}

/// What is handed to the process. It outlives [`Joined`], though nothing comes any more then.
#[derive(Debug)]
pub struct Frames<'a> {
    ring: RingBuffer<'a>,
    /// When they are taken, nanoseconds of `CLOCK_MONOTONIC`: one reading for all that are taken at a time.
    taken_at: Rc<Cell<u64>>,
}

impl Frames<'_> {
    /// Takes so many frames at most, at this reading of `CLOCK_MONOTONIC`; how many there were.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn take(&self, most: usize, now_ns: u64) -> Result<usize, Error> {
        self.taken_at.set(now_ns);
        let taken = self.ring.consume_raw_n(most);
        usize::try_from(taken).map_err(|_| Error::of("read frames", libbpf_rs::Error::from_raw_os_error(-taken)))
    }

    /// Readable when there are frames.
    pub fn wakes(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which is borrowed for as long.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}

/// Where the pins of a bridge are, named by its interfaces and the inode of their network namespace.
pub fn folder(namespace: u64, inside: &str, outside: &str) -> PathBuf {
    Path::new(ROOT).join(format!("bridge-{namespace}-{inside}-{outside}"))
}

/// What became of the frames of a bridge whose pins are here, by [`Side`]; `None` if there is none. The process may be gone.
///
/// # Errors
/// [`Error::NoPrivileges`], [`Error::Bpf`].
pub fn passed(folder: &Path) -> Result<Option<[Passed; 2]>, Error> {
    let pin = folder.join(COUNTERS);
    if !pin.exists() {
        return Ok(None);
    }
    let map = MapHandle::from_pinned_path(pin).map_err(|source| Error::of("open a pin", source))?;
    sum(&map).map(Some)
}

/// Whether our program is on an interface.
pub fn is_attached(index: u32) -> bool {
    query(index).is_some()
}

/// Takes our program off an interface, and the qdisc if it was made for it; whether there was one.
///
/// # Errors
/// [`Error::NoPrivileges`], [`Error::Bpf`].
pub fn detach(attached: Attached) -> Result<bool, Error> {
    let Some(mut hook) = query(attached.index) else { return Ok(false) };
    let failed = |source| Error::of("take a program off an interface", source);
    hook.detach().map_err(failed)?;
    if attached.made_qdisc {
        hook.attach_point(TC_INGRESS | TC_EGRESS).destroy().map_err(failed)?;
    }
    Ok(true)
}

/// Removes the pins of a bridge; those that are not there are no error.
///
/// # Errors
/// [`Error::File`].
pub fn unpin(folder: &Path) -> Result<(), Error> {
    for result in [fs::remove_file(folder.join(COUNTERS)), fs::remove_dir(folder)] {
        match result {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(folder)(error)),
            _ => {}
        }
    }
    // It stays while it holds others.
    let _ = fs::remove_dir(ROOT);
    Ok(())
}

fn hook(program: BorrowedFd<'_>, index: u32) -> TcHook {
    let mut hook = TcHook::new(program);
    let index = i32::try_from(index).expect("the kernel numbers them so");
    hook.ifindex(index).attach_point(TC_INGRESS).handle(HANDLE).priority(PRIORITY);
    hook
}

/// Our filter on an interface, if it is there.
fn query(index: u32) -> Option<TcHook> {
    said::listen();
    // No program is asked for by its descriptor.
    let null = fs::File::open("/dev/null").ok()?;
    let mut hook = hook(null.as_fd(), index);
    let found = hook.query().is_ok();
    found.then_some(hook)
}

/// Gives an interface the qdisc for programs; whether it had none.
fn make_qdisc(index: u32) -> libbpf_rs::Result<bool> {
    let mut hook = libbpf_sys::bpf_tc_hook {
        sz: size_of::<libbpf_sys::bpf_tc_hook>() as libbpf_sys::size_t,
        ifindex: i32::try_from(index).expect("the kernel numbers them so"),
        attach_point: TC_INGRESS,
        ..libbpf_sys::bpf_tc_hook::default()
    };
    // SAFETY: the call reads what is lent to it.
    match unsafe { libbpf_sys::bpf_tc_hook_create(&raw mut hook) } {
        0 => Ok(true),
        there if there == -Errno::EXIST.raw_os_error() => Ok(false),
        error => Err(libbpf_rs::Error::from_raw_os_error(-error)),
    }
}

fn handle(object: &Object, name: &str) -> Result<MapHandle, Error> {
    let map = object.maps().find(|map| map.name() == name).expect("the object was compiled from this crate's sources");
    MapHandle::try_from(&map).map_err(|source| Error::of("keep a map", source))
}

fn sum(map: &MapHandle) -> Result<[Passed; 2], Error> {
    let mut all = [Passed::default(); 2];
    for side in Side::BOTH {
        let key = (side as u32).to_ne_bytes();
        let found = map.lookup_percpu(&key, MapFlags::ANY).map_err(|source| Error::of("read counters", source))?;
        found.into_iter().flatten().for_each(|record| all[side as usize].add(&Passed::read(&record)));
    }
    Ok(all)
}
