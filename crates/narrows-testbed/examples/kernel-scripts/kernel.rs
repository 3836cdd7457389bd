//! A kernel's end of a connection, behind a TUN device, on the real clock (of a guest: virtual time).
//!
//! A kernel takes some microseconds for what takes the model none, and its timers tick. So what it sends at once counts as sent
//! then; and where a script only lets time pass, a timer may be early or late by some ticks, and the script's clock follows it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::time::Duration;

use narrows_core::packet::{Flags, Segment, Seq, timestamp};
use narrows_core::tcp::EcnMode;
use narrows_core::units::{Bytes, Span, Time};
use narrows_testbed::address;
use narrows_testbed::agent::Info;
use narrows_testbed::host::{self, Parameters};
use narrows_testbed::namespace::{Claim, Namespace, set_parameter};
use narrows_testbed::tun::Tun;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, connect, listen, recv, send,
    socket_with, sockopt,
};
use rustix::time::{ClockId, clock_gettime};

use crate::packet_script::{Action, End, MSS, Outcome, Setting, State};
use crate::wire::{HOSTS, Numbers, PORTS};

const MS: u64 = 1_000_000;
/// How long an answer may take, ns.
const AT_ONCE: u64 = 2 * MS;
/// Ticks by which a timer may be off, ns.
const TICKS: u64 = 10 * MS;
/// And such a part of what it waits: the timer wheel has coarser slots for later times.
const SLOTS: u64 = 8;

/// By how much a timer may be off that waits so long, ns.
pub(crate) const fn patience(waits: u64) -> u64 {
    TICKS + waits / SLOTS
}

/// A new connection acknowledges so many segments at once; as many again, and an even number, for those that a delayed acknowledgement
/// takes along.
const QUICK_ACKS: u32 = 32;
/// With a buffer of so many bytes a window does not grow: half of it is below 64 KB.
const NO_GROWTH: u64 = 131_072;
/// A longer silence is cut to so much, ns.
const MAX_WAIT: u64 = 100_000 * MS;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// See the [module](self).
pub(crate) struct Kernel {
    tun: Tun,
    listener: Option<OwnedFd>,
    socket: Option<OwnedFd>,
    controller: &'static str,
    asks_for_ecn: bool,
    numbers: Numbers,
    /// Monotonic ns of the script's zero.
    zero: u64,
    now: Time,
    sent: VecDeque<(Time, Segment, u32)>,
    /// The kernel's timestamp of what it sent, by the script's milliseconds.
    stamps: BTreeMap<u32, u32>,
    /// And of what it sent last.
    last_stamp: u32,
    /// Bytes that the application has handed over and the kernel not taken yet.
    pending: u64,
    /// Where the script's own data ends.
    next: u32,
    timeouts_before: u64,
    // Last: removed when nothing is in it any more.
    _namespace: Namespace,
    _claim: Claim,
}

/// Why a script says nothing about a kernel, or one on which it can be played.
pub(crate) fn suits(text: &str, setting: &Setting) -> Result<(), String> {
    let kernel_has = [
        "initial-window",
        "tail-loss-probe",
        "clock-tick",
        "quick-acks",
        "receive-buffer",
        "restart-after-idle",
        "offload",
    ];
    let changed = |name| setting.changed.iter().any(|other| other == name);
    if changed("quick-acks") && changed("receive-buffer") && setting.profile.receive_buffer > NO_GROWTH {
        return Err("its window has grown before the script begins".to_owned());
    }
    if let Some(other) = setting.changed.iter().find(|name| !kernel_has.contains(&name.as_str())) {
        return Err(format!("a kernel has no switch for `{other}`"));
    }
    for line in text.lines() {
        if line.starts_with("at ") && (line.ends_with(" stop") || line.ends_with(" flush")) {
            return Err("no application of a kernel can do so".to_owned());
        }
        let range = line.split_once(" recv data ").and_then(|(_, what)| what.split(' ').next()?.split_once('-'));
        let many = range.and_then(|(from, to)| Some(to.parse::<u32>().ok()? - from.parse::<u32>().ok()?));
        if many.is_some_and(|many| many > 30) {
            return Err("a kernel takes longer for so many segments than it waits".to_owned());
        }
        if line.starts_with("expect ") && line.contains(" tag ") {
            return Err("a kernel knows of no messages".to_owned());
        }
    }
    controller(setting).map(drop)
}

fn controller(setting: &Setting) -> Result<&'static str, String> {
    match (setting.controller.as_str(), setting.ecn) {
        (_, EcnMode::Exact) => Ok("dctcp"),
        ("newreno", _) => Ok("reno"),
        ("cubic", _) => Ok("cubic"),
        (other, _) => Err(format!("no kernel has `{other}`")),
    }
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 * MS + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn said(what: &str) -> impl Fn(Errno) -> String + '_ {
    move |error| format!("{what}: {error}")
}

impl Kernel {
    /// Makes the end and, if the script says so, opens its connection. The calling thread is in the end's namespace then.
    pub(crate) fn new(setting: &Setting, opens: bool) -> Result<Kernel, String> {
        let claim = Claim::new().map_err(said("a namespace"))?;
        let parameters = Parameters {
            buffer: Bytes::new(setting.profile.receive_buffer),
            restart_after_idle: setting.profile.restart_after_idle,
            ecn: setting.ecn != EcnMode::Off,
        };
        let (namespace, tun) = host::make(&claim, (HOSTS[0], "script"), 1_500, &parameters).map_err(said("a host"))?;
        namespace.move_in().map_err(said("the namespace"))?;
        let probe = if setting.profile.tail_loss_probe { "3" } else { "0" };
        for (path, value) in [
            ("net/ipv4/tcp_early_retrans", probe),
            // The model has none: it is told by timestamps and reported duplicates alone that a timeout was spurious.
            ("net/ipv4/tcp_frto", "0"),
        ] {
            set_parameter(path, value).map_err(|error| format!("{path}: {error}"))?;
        }
        if setting.profile.offload_segments == 1 {
            tun.set_segments_at_once(1).map_err(said("one segment at once"))?;
        }
        if setting.changed.iter().any(|name| name == "initial-window") {
            let packets = u32::try_from(setting.profile.initial_window.get()).unwrap_or(u32::MAX);
            tun.set_initial_window(HOSTS[1], packets).map_err(said("the initial window"))?;
        }
        let mut kernel = Kernel {
            tun,
            listener: None,
            socket: None,
            controller: controller(setting)?,
            asks_for_ecn: parameters.ecn,
            numbers: Numbers { port: PORTS[0], ..Numbers::default() },
            zero: monotonic() / MS * MS,
            now: Time::ZERO,
            sent: VecDeque::new(),
            stamps: BTreeMap::new(),
            last_stamp: 0,
            pending: 0,
            next: Seq::FIRST.wire(),
            timeouts_before: timeouts()?,
            _namespace: namespace,
            _claim: claim,
        };
        kernel.begin();
        match setting.round_trip {
            Some(round_trip) => kernel.shake_hands(round_trip)?,
            None if !opens => kernel.listen()?,
            None => {}
        }
        if let Some(round_trip) = setting.round_trip {
            if setting.changed.iter().any(|name| name == "quick-acks") {
                kernel.use_up_quick_acks(round_trip)?;
            }
            kernel.begin();
        }
        Ok(kernel)
    }

    /// The script's zero is the next whole millisecond, so that timestamps of both clocks change at one time.
    fn begin(&mut self) {
        let before = self.zero;
        self.zero = (monotonic() / MS + 1) * MS;
        self.numbers.ms_before += u32::try_from((self.zero - before) / MS).expect("some milliseconds");
        self.wait_until(self.zero);
    }

    fn shake_hands(&mut self, round_trip: Span) -> Outcome {
        self.act(Action::Open)?;
        let (when, ..) = self.next_sent(AT_ONCE).ok_or("the kernel sends no SYN")?;
        self.wait_until(self.zero + when.as_ns() + round_trip.as_ns());
        let answer = Segment {
            flags: Flags::SYN.with(Flags::ACK).with_if(Flags::ECE, self.asks_for_ecn),
            ack: Seq::FIRST.wire(),
            window: 63,
            ..Segment::default()
        };
        self.send(&answer, 0)?;
        let (.., stamp) = self.next_sent(AT_ONCE).ok_or("the kernel does not complete the handshake")?;
        self.last_stamp = stamp;
        Ok(())
    }

    /// A new connection acknowledges its first segments one by one. They come one in an RTT, so that the kernel measures it as a
    /// receiver.
    fn use_up_quick_acks(&mut self, round_trip: Span) -> Outcome {
        for number in 0..QUICK_ACKS {
            let segment = Segment {
                seq: Seq::FIRST.wire() + number * u32::from(MSS),
                ack: Seq::FIRST.wire(),
                flags: Flags::ACK,
                length: MSS,
                window: u16::MAX,
                ..Segment::default()
            };
            self.send(&segment, self.last_stamp)?;
            self.wait_until(monotonic() + round_trip.as_ns());
            self.last_stamp = self.sent.back().map_or(self.last_stamp, |&(.., stamp)| stamp);
        }
        // And one that is delayed.
        self.wait_until(monotonic() + 60 * MS);
        self.sent.clear();
        self.numbers.sent_before = QUICK_ACKS * u32::from(MSS);
        self.next = Seq::FIRST.wire();
        Ok(())
    }

    fn listen(&mut self) -> Outcome {
        let socket = self.stream()?;
        sockopt::set_socket_reuseaddr(&socket, true).map_err(said("a listener"))?;
        bind(&socket, &SocketAddrV4::new(address::v4(HOSTS[0]), PORTS[0])).map_err(said("a listener"))?;
        listen(&socket, 8).map_err(said("a listener"))?;
        self.listener = Some(socket);
        Ok(())
    }

    fn stream(&self) -> Result<OwnedFd, String> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None).map_err(said("a socket"))?;
        sockopt::set_tcp_congestion(&socket, self.controller).map_err(said(self.controller))?;
        sockopt::set_tcp_nodelay(&socket, true).map_err(said("a socket"))?;
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).map_err(said("a socket"))?;
        Ok(socket)
    }

    fn script_time(&self, at_ns: u64) -> Time {
        Time::from_ns(at_ns.wrapping_sub(self.zero))
    }

    /// Takes what the kernel has sent by now.
    fn look(&mut self) -> usize {
        let (mut buffer, before) = ([0; 2_048], self.sent.len());
        while let Ok(Some(length)) = self.tun.read(&mut buffer) {
            if let Some((segment, stamp)) = self.numbers.segment(&buffer[..length]) {
                self.sent.push_back((self.script_time(monotonic()), segment, stamp));
            }
        }
        self.sent.len() - before
    }

    /// Waits until a monotonic time, and takes what comes.
    fn wait_until(&mut self, end: u64) {
        while monotonic() < end {
            self.wait_for_one(end);
        }
    }

    /// Waits until something comes, or until a monotonic time.
    fn wait_for_one(&mut self, end: u64) -> bool {
        while self.look() == 0 {
            let left = end.saturating_sub(monotonic());
            if left == 0 {
                return false;
            }
            // A wait may end late by a thousandth of its length.
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(left.min(10 * MS)).unwrap_or(0) };
            let _ = poll(&mut [PollFd::new(&self.tun, PollFlags::IN)], Some(&timeout));
        }
        true
    }

    fn next_sent(&mut self, patience: u64) -> Option<(Time, Segment, u32)> {
        self.look();
        if self.sent.is_empty() {
            self.wait_for_one(monotonic() + patience);
        }
        self.sent.pop_front()
    }

    /// The kernel's timestamp of what it sent at a script's millisecond, or would have sent.
    fn stamp_of(&self, ms: u32) -> u32 {
        if let Some(&stamp) = self.stamps.get(&ms) {
            return stamp;
        }
        let (&known, &stamp) = self.stamps.first_key_value().unwrap_or((&0, &self.last_stamp));
        stamp.wrapping_add(ms.wrapping_sub(known))
    }

    /// Sends a segment of the script's to the kernel, with an echo of its timestamps.
    fn send(&mut self, segment: &Segment, echo: u32) -> Outcome {
        let mut segment = *segment;
        if segment.length > 0 {
            let end = segment.seq.wrapping_add(u32::from(segment.length));
            self.next = if end.wrapping_sub(self.next) < 1 << 31 { end } else { self.next };
        } else if !segment.flags.contains(Flags::SYN) {
            segment.seq = self.next;
        }
        let stamp = match segment.timestamp {
            0 => (i128::from(monotonic()) - i128::from(self.zero)).div_euclid(i128::from(MS)),
            stated => i128::from(stated),
        };
        let packet = self.numbers.packet(&segment, i64::try_from(stamp).unwrap_or(0), echo);
        self.tun.write(&packet).map_err(said("a packet to the kernel"))?;
        self.serve()
    }

    /// The application's turn: it accepts, hands over what there is, and reads what has come.
    fn serve(&mut self) -> Outcome {
        if let (Some(listener), None) = (&self.listener, &self.socket)
            && let Ok(socket) = accept_with(listener, FLAGS)
        {
            sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).map_err(said("a socket"))?;
            self.socket = Some(socket);
        }
        if let Some(socket) = &self.socket {
            while self.pending > 0 {
                let data = vec![b'k'; usize::try_from(self.pending).map_err(|_| "too much")?];
                match send(socket, &data, SendFlags::NOSIGNAL) {
                    Ok(taken) => self.pending -= taken as u64,
                    Err(Errno::AGAIN | Errno::NOTCONN) => break,
                    Err(error) => return Err(format!("the kernel takes no data: {error}")),
                }
            }
            // What is written first takes the acknowledgement along.
            let mut buffer = [0; 4_096];
            while recv(socket, &mut buffer[..], RecvFlags::empty()).is_ok_and(|(_, length)| length > 0) {}
        }
        self.look();
        Ok(())
    }

    /// The script's clock shows `time` at `when` of its own.
    fn set_clock(&mut self, time: Time, when: Time) {
        self.zero = self.zero.wrapping_add(when.as_ns()).wrapping_sub(time.as_ns());
        for (at, ..) in &mut self.sent {
            *at = Time::from_ns((at.as_ns() + time.as_ns()).saturating_sub(when.as_ns()));
        }
    }
}

impl End for Kernel {
    fn run_until(&mut self, time: Time, by_timer: bool) -> Outcome {
        let mut waits = time.as_ns().saturating_sub(self.now.as_ns());
        if waits > MAX_WAIT && !by_timer {
            self.zero = self.zero.wrapping_sub(waits - MAX_WAIT);
            waits = MAX_WAIT;
        }
        self.now = time;
        let end = self.zero.wrapping_add(time.as_ns());
        if !by_timer {
            self.wait_until(end);
            return Ok(());
        }
        let patience = patience(waits);
        self.wait_until(end.saturating_sub(patience));
        if self.sent.is_empty() && self.wait_for_one(end + patience) {
            let when = self.sent[0].0;
            self.set_clock(time, when);
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::Offer(bytes, _) => {
                self.pending += bytes;
                self.serve()
            }
            Action::Open => {
                let socket = self.stream()?;
                bind(&socket, &SocketAddrV4::new(address::v4(HOSTS[0]), PORTS[0])).map_err(said("a connection"))?;
                match connect(&socket, &SocketAddrV4::new(address::v4(HOSTS[1]), PORTS[1])) {
                    Ok(()) | Err(Errno::INPROGRESS) => {}
                    Err(error) => return Err(format!("a connection: {error}")),
                }
                self.socket = Some(socket);
                self.look();
                Ok(())
            }
            Action::Receive(segment) => {
                let opens = segment.flags.contains(Flags::SYN);
                let ecn = if segment.flags.contains(Flags::ACK) { Flags::ECE } else { Flags::ECE.with(Flags::CWR) };
                let flags = segment.flags.with_if(ecn, opens && self.asks_for_ecn);
                let waits = self.pending > 0;
                let echo = match segment.timestamp_echo {
                    0 => 0,
                    ms => self.stamp_of(ms),
                };
                self.send(&Segment { flags, ..segment }, echo)?;
                // The model's third packet of a handshake carries data if there is some; a kernel's goes before it.
                let third = self.sent.front().is_some_and(|(_, segment, _)| segment.length == 0);
                if opens && waits && third {
                    self.sent.pop_front();
                }
                Ok(())
            }
            Action::Stop | Action::Flush => Err("a kernel cannot be told so".to_owned()),
        }
    }

    fn take_sent(&mut self) -> Option<(Time, Segment)> {
        let (when, segment, stamp) = self.next_sent(AT_ONCE)?;
        self.stamps.insert(timestamp(when), stamp);
        self.last_stamp = stamp;
        Some((when, segment))
    }

    fn peek_sent(&mut self) -> Option<(Time, Segment)> {
        self.look();
        self.sent.front().map(|&(when, segment, _)| (when, segment))
    }

    fn is_now(&self, when: Time, now: Time) -> bool {
        when.as_ns().abs_diff(now.as_ns()) <= AT_ONCE
    }

    fn state(&mut self, of: State) -> Option<String> {
        let info = || self.socket.as_ref().and_then(|socket| Info::of(socket).ok());
        Some(match of {
            State::Window => info()?.window().to_string(),
            State::Threshold => info()?.threshold().to_string(),
            State::Outstanding => info()?.outstanding()[0].to_string(),
            State::InFlight => {
                let [unacknowledged, reported, lost, again] = info()?.outstanding();
                (unacknowledged + again).saturating_sub(reported + lost).to_string()
            }
            State::Timeouts => (timeouts().ok()? - self.timeouts_before).to_string(),
            State::Established => info().is_some_and(|info| info.is_established()).to_string(),
            State::Phase => match info()?.congestion_state() {
                0 | 1 => "open",
                2 => "ecn-reduction",
                3 => "recovery",
                _ => "loss",
            }
            .to_owned(),
            State::Timer | State::Pacing => return None,
        })
    }
}

/// Expiries of retransmission timers in the thread's namespace so far.
fn timeouts() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").map_err(|error| format!("netstat: {error}"))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:")).map(str::split_whitespace);
    let (names, values) = (lines.next().into_iter().flatten(), lines.next().into_iter().flatten());
    let found = names.zip(values).find(|(name, _)| *name == "TCPTimeouts").and_then(|(_, value)| value.parse().ok());
    found.ok_or_else(|| "the kernel counts no timeouts".to_owned())
}
