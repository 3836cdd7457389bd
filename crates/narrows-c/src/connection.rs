//! One connection's controller: the contract's facts become fields of the socket, and its calls the kernel's hooks, in the order
//! in which `tcp_ack` of Linux calls them.

use std::ffi::{CStr, c_char};
use std::mem::{transmute, zeroed};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use narrows_core::cc::external::Machine;
use narrows_core::cc::parts::reno::after_idle;
use narrows_core::cc::{Ack, Cause, CongestionControl, Context, Limit, MIN_WINDOW, Owner, Path, Phase, Sent};
use narrows_core::packet::Seq;
use narrows_core::tcp::reduction::Reduction;
use narrows_core::units::{Packets, Rate, Span, Time};

use crate::Misbehaved;
use crate::compiler::KIT_FOLDER as KIT;
use crate::library::Library;
use crate::ops::{CongControlBefore, Event, Ops};
use crate::socket::{AckSample, GUARD, INFINITE, PACING_NEEDED, PRIVATE, RateSample, STATE, Socket};
use crate::watchdog::Call;

/// Jiffies per second: `CONFIG_HZ` of `runtime.c`.
const HZ: u64 = 250;
const CA_DISORDER: u8 = 1;
const CA_CWR: u8 = 2;
const CA_ACK_SLOWPATH: u32 = 1;
const CA_ACK_WIN_UPDATE: u32 = 2;
const CA_ACK_ECE: u32 = 4;
const TCP_ESTABLISHED: u8 = 1;
/// A piece is what leaves within 2^-10 s (`sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
const TCP_ECN_OK: u8 = 1;
const FLAG_DATA_ACKED: i32 = 0x04;
const FLAG_DATA_SACKED: i32 = 0x20;
const FLAG_ECE: i32 = 0x40;

/// What ends a run from within the file's functions.
pub(crate) unsafe extern "C-unwind" fn fail(file: *const c_char, line: u32, what: *const c_char) {
    // SAFETY: both are texts of the library.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy();
    let (file, what) = (text(file), text(what));
    match file.trim_start_matches("./") {
        own if own.starts_with(KIT) => end_run(format!("a function of the kernel {what} ({own}:{line})")),
        theirs => end_run(format!("{theirs}:{line}: {what}")),
    }
}

/// Unwinds without a word on standard error: whoever ends the run says it.
pub(crate) fn end_run(message: String) -> ! {
    resume_unwind(Box::new(Misbehaved(message)))
}

/// The controller of one connection.
#[derive(Debug)]
pub(crate) struct Connection {
    library: Arc<Library>,
    ops: *const Ops,
    socket: Box<Socket>,
    /// What the peer adds to its timestamps, as Linux does for each connection (`secure_tcp_ts_off`).
    peer_offset: u32,
    /// `init` was called: once the connection's RTT is known, as in Linux.
    is_begun: bool,
    /// Payload of a full segment and its IP packet, bytes.
    full: (u64, u64),
    /// What `set_state` was called with last, but for Disorder.
    told: Phase,
    /// Where the transport stood with the last acknowledgement.
    acked: Phase,
    /// [`on_ack`](CongestionControl::on_ack) has called the hooks of the episode that `on_congestion` is about to tell.
    is_told: bool,
    /// The reduction that the controller asked for by `tcp_enter_cwr`, of which the transport does not know; the window follows it.
    asked: Option<Reduction>,
    /// The last reduction was undone, which no acknowledgement has told yet.
    is_undone: bool,
    /// The loss that `on_congestion` may be about to tell is answered by the reduction in which it was found.
    is_answered: bool,
}

// SAFETY: the socket's pointers are to its own storage and to the library.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    pub(crate) fn new(library: Arc<Library>, ops: *const Ops, context: &Context<'_>, ecn: bool) -> Connection {
        // SAFETY: numbers and pointers, of which zero is a value.
        let mut socket: Box<Socket> = Box::new(unsafe { zeroed() });
        let mut random = context.random;
        socket.connection.sock.random = random.next_u64();
        #[expect(clippy::cast_possible_truncation, reason = "any 32 bits")]
        let peer_offset = random.next_u64() as u32;
        socket.connection.sock.pacing_rate = u64::MAX;
        socket.connection.sock.max_pacing_rate = u64::MAX;
        socket.connection.sock.state = TCP_ESTABLISHED;
        let piece = u64::from(context.path.burst).saturating_mul(context.path.mss.get());
        socket.connection.sock.gso_max_size = u32::try_from(piece).unwrap_or(u32::MAX);
        socket.connection.sock.pacing_shift = PACING_SHIFT;
        socket.connection.ops = ops;
        socket.connection.guard = [GUARD; 4];
        socket.cwnd = whole(context.path.initial_window);
        socket.cwnd_clamp = u32::MAX;
        socket.ssthresh = INFINITE;
        socket.ecn_flags = if ecn { TCP_ECN_OK } else { 0 };
        let mut made = Connection {
            library,
            ops,
            socket,
            peer_offset,
            is_begun: false,
            full: (1, 1),
            told: Phase::Open,
            acked: Phase::Open,
            is_told: false,
            asked: None,
            is_undone: false,
            is_answered: false,
        };
        made.look_at(Time::ZERO, context.path);
        made
    }

    /// Calls `init` when something first happens, as soon as there is an RTT: `with_or_without` one if it is an acknowledgement.
    fn begin_if_new(&mut self, path: &Path, with_or_without: bool) {
        if !self.is_begun && (with_or_without || path.srtt.is_some()) {
            self.is_begun = true;
            if let Some(init) = self.ops().init {
                self.call("init", |socket| unsafe { init(socket) });
            }
        }
    }

    fn ops(&self) -> &Ops {
        // SAFETY: the library's, which `library` keeps.
        unsafe { &*self.ops }
    }

    /// Calls a hook, whose window must be one.
    #[inline]
    fn call<R>(&mut self, hook: &str, of: impl FnOnce(*mut Socket) -> R) -> R {
        let socket: *mut Socket = &raw mut *self.socket;
        // SAFETY: the library's variable; one thread at a time runs its connections.
        unsafe { *self.library.stream = &raw mut (*socket).connection.sock.random };
        let returned = {
            let _call = Call::begin();
            of(socket)
        };
        if self.socket.connection.guard != [GUARD; 4] {
            let file = &self.library.file;
            end_run(format!(
                "{file}: {hook} writes beyond the {PRIVATE} bytes of a controller's own state (icsk_ca_priv)"
            ));
        }
        let window = self.socket.cwnd;
        if !(1..=INFINITE).contains(&window) {
            let file = &self.library.file;
            end_run(format!("{file}: {hook} leaves a window of {window} packets, where 1 to {INFINITE} are possible"));
        }
        returned
    }

    fn tell(&mut self, event: Event) {
        if let Some(cwnd_event) = self.ops().cwnd_event {
            self.call("cwnd_event", |socket| unsafe { cwnd_event(socket, event) });
        }
    }

    /// `tcp_set_ca_state`: the hook sees the state before.
    fn enter(&mut self, phase: Phase) {
        self.set_state(number(phase));
        self.told = phase;
    }

    fn set_state(&mut self, state: u8) {
        if let Some(set_state) = self.ops().set_state {
            self.call("set_state", |socket| unsafe { set_state(socket, state) });
        }
        self.socket.connection.ca_state = self.socket.connection.ca_state & !STATE | state;
    }

    /// `tcp_try_keep_open`: without an episode, whether something is known to have arrived beyond a hole.
    fn keep_open(&mut self) {
        let state = if self.socket.sacked_out > 0 { CA_DISORDER } else { number(Phase::Open) };
        if self.told == Phase::Open && self.socket.connection.ca_state & STATE != state {
            // `high_seq` says here how far an answered reduction goes, and stays.
            self.set_state(state);
        }
    }

    fn threshold(&mut self) -> u32 {
        let ssthresh = self.ops().ssthresh.expect("a complete controller has it");
        self.call("ssthresh", |socket| unsafe { ssthresh(socket) })
    }

    /// `tcp_current_ssthresh`: outside of a reduction at least three quarters of the window are remembered.
    fn current_threshold(&self) -> u32 {
        match self.told {
            Phase::EcnReduction | Phase::Recovery => self.socket.ssthresh,
            Phase::Open | Phase::Loss => self.socket.ssthresh.max((self.socket.cwnd >> 1) + (self.socket.cwnd >> 2)),
        }
    }

    /// `tcp_enter_recovery` and `tcp_enter_cwr`: where the transport's reduction leads is the window from now on.
    fn begin(&mut self, phase: Phase) {
        // A reduction answers what is found within it; the hook for the state may do more.
        if self.told == Phase::EcnReduction || self.is_answered {
            self.is_answered = false;
        } else {
            // What an echo asks for is not undone.
            self.socket.prior_ssthresh = if phase == Phase::Recovery { self.current_threshold() } else { 0 };
            self.socket.prior_cwnd = self.socket.cwnd;
            self.socket.ssthresh = self.threshold();
            self.socket.cwnd_cnt = 0;
        }
        // As far as the transport's episode goes.
        self.socket.high_seq = self.socket.snd_nxt;
        if phase != self.told {
            self.enter(phase);
        }
        self.asked = None;
        // A window of one packet stays.
        if self.socket.cwnd > 1 {
            self.end_reduction();
        }
    }

    /// The window is the threshold, be it above, where the transport reduces.
    fn end_reduction(&mut self) {
        if self.recovery() == Owner::Transport && self.socket.ssthresh < INFINITE {
            self.socket.cwnd = self.socket.ssthresh.max(1);
        }
    }

    /// `tcp_process_tlp_ack`: a reduction that is over at once.
    fn answer_repaired_loss(&mut self) {
        let prior = self.socket.prior_ssthresh;
        self.begin(Phase::EcnReduction);
        self.socket.prior_ssthresh = prior;
        self.tell_of_completion();
        self.told = Phase::Open;
        self.keep_open();
    }

    /// `tcp_end_cwnd_reduction`.
    fn tell_of_completion(&mut self) {
        if self.recovery() == Owner::Transport {
            self.tell(Event::CompleteCwr);
        }
    }

    /// How much is not acknowledged of what was out when the last episode began; `None` if more than that is.
    fn left_of_episode(&self) -> Option<u32> {
        let left = self.socket.high_seq.wrapping_sub(self.socket.snd_una);
        (left <= i32::MAX.unsigned_abs()).then_some(left)
    }

    /// The reduction that a function has asked for by `tcp_enter_cwr` begins.
    fn begin_asked(&mut self) {
        if self.told == Phase::Open && self.socket.connection.ca_state & STATE == CA_CWR {
            let Socket { prior_cwnd, ssthresh, .. } = *self.socket;
            self.asked = Some(Reduction::begin(u64::from(prior_cwnd), u64::from(ssthresh)));
            self.told = Phase::EcnReduction;
        }
    }

    /// What is undone or over by now, whatever begins next: step D of `tcp_fastretrans_alert`, and its undoing.
    fn end_episodes(&mut self) {
        self.begin_asked();
        let left = self.left_of_episode();
        let is_undone = std::mem::take(&mut self.is_undone);
        if is_undone && self.told == Phase::Recovery && left.is_some_and(|left| left > 0) {
            // `tcp_try_undo_partial` and `tcp_try_undo_dsack`: no reduction is completed.
            self.told = Phase::Open;
            self.keep_open();
            return;
        }
        match self.told {
            // Held until something above is acknowledged.
            Phase::EcnReduction if left.is_none() => {
                self.asked = None;
                self.end_reduction();
                self.tell_of_completion();
                self.enter(Phase::Open);
            }
            Phase::Recovery if left.is_none_or(|left| left == 0) => {
                self.enter(Phase::Open);
                if !is_undone {
                    self.end_reduction();
                }
                self.tell_of_completion();
            }
            Phase::Loss if left.is_none_or(|left| left == 0) => self.enter(Phase::Open),
            _ => {}
        }
    }

    /// Leads the window through the reduction that the controller asked for, as `tcp_cwnd_reduction`; false if there is none, or
    /// the transport does it.
    fn continue_asked(&mut self, ack: &Ack) -> bool {
        let Some(reduction) = self.asked.as_mut().filter(|_| ack.phase == Phase::Open) else { return false };
        if ack.acked > Packets::ZERO {
            let clean = ack.in_order && ack.lost == Packets::ZERO;
            reduction.on_ack(ack.acked.get(), ack.in_flight.get(), clean);
            let window = u32::try_from(reduction.window()).unwrap_or(INFINITE).clamp(1, INFINITE);
            if self.recovery() == Owner::Transport {
                self.socket.cwnd = window;
            }
        }
        true
    }

    /// The state changes that an acknowledgement brings, before windows grow. What begins is told by `on_congestion`, right after; but
    /// a controller that owns its window hears of it first, as in the kernel, where `cong_control` comes last.
    fn follow(&mut self, ack: &Ack) {
        self.end_episodes();
        if self.continue_asked(ack) {
            return;
        }
        match ack.phase {
            Phase::Open => {
                if self.told != Phase::Open {
                    // The transport undid it.
                    self.enter(Phase::Open);
                }
                self.keep_open();
            }
            Phase::Recovery | Phase::EcnReduction if ack.phase != self.told && self.recovery() == Owner::Controller => {
                self.begin(ack.phase);
                self.is_told = true;
            }
            // A loss within a reduction, which answers it: of this the transport may not tell.
            Phase::Recovery if self.told == Phase::EcnReduction => {
                self.enter(Phase::Recovery);
                self.socket.high_seq = self.socket.snd_nxt;
                self.asked = None;
                self.is_answered = true;
            }
            Phase::Recovery | Phase::EcnReduction | Phase::Loss => {}
        }
    }

    fn look_at(&mut self, now: Time, path: &Path) {
        // SAFETY: the library's variable; one thread at a time runs its connections.
        unsafe { *self.library.now_ns = now.as_ns() };
        self.full = (path.mss.get().max(1), path.packet.get());
        let socket = &mut *self.socket;
        let (una, nxt) = (wire(path.una), wire(path.nxt));
        socket.mstamp = now.as_us();
        socket.snd_una = una;
        socket.snd_nxt = nxt;
        socket.write_seq = nxt;
        let mss = u32::try_from(path.mss.get()).unwrap_or(u32::MAX).max(1);
        socket.mss_cache = mss;
        socket.advmss = mss;
        socket.packets_out = path.outstanding;
        socket.in_flight = whole(path.in_flight);
        socket.sacked_out = socket.packets_out.saturating_sub(socket.in_flight);
        socket.clock_cache = now.as_ns();
        socket.wstamp_ns = path.departs_at.as_ns();
        socket.srtt_us = path.srtt.map_or(0, |srtt| micros(srtt).saturating_mul(8));
        let least = path.min_rtt.map_or(u32::MAX, micros);
        for sample in 0..3 {
            socket.rtt_min[2 * sample + 1] = least;
        }
        socket.connection.rto = u32::try_from(path.rto.as_us() * HZ / 1_000_000).unwrap_or(u32::MAX);
    }

    fn rate_sample(&self, ack: &Ack) -> RateSample {
        let delivery = ack.delivery;
        RateSample {
            prior_mstamp: delivery.map_or(0, |it| ack.now.as_us().saturating_sub(it.interval.as_us())),
            prior_delivered: delivery.map_or(0, |it| whole(it.prior_delivered)),
            delivered: delivery.map_or(-1, |it| signed(it.delivered.get())),
            interval_us: delivery.map_or(-1, |it| i64::try_from(it.interval.as_us()).unwrap_or(i64::MAX)),
            snd_interval_us: delivery.map_or(0, |it| micros(it.interval)),
            rcv_interval_us: delivery.map_or(0, |it| micros(it.interval)),
            rtt_us: ack.rtt.map_or(-1, |it| i64::from(micros(it.span))),
            losses: signed(ack.lost.get()),
            acked_sacked: whole(ack.acked),
            prior_in_flight: whole(ack.prior_in_flight),
            last_end_seq: wire(ack.una),
            is_app_limited: delivery.is_some_and(|it| it.app_limited),
            is_ack_delayed: false,
        }
    }
}

impl CongestionControl for Connection {
    fn recovery(&self) -> Owner {
        if self.ops().cong_control.is_some() { Owner::Controller } else { Owner::Transport }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let before = self.socket.snd_una;
        self.look_at(ack.now, path);
        self.begin_if_new(path, true);
        let acked = whole(ack.acked);
        let socket = &mut *self.socket;
        socket.max_packets_out = whole(ack.max_in_flight);
        socket.limited = u8::from(matches!(ack.limited_by, Limit::Window | Limit::Pacing));
        socket.bytes_acked += u64::from(acked) * u64::from(socket.mss_cache);
        socket.delivered = whole(ack.delivered);
        socket.delivered_mstamp = socket.mstamp;
        socket.timestamps = [ack.timestamps.0.wrapping_add(self.peer_offset), ack.timestamps.1];
        socket.delivered_ce = socket.delivered_ce.wrapping_add(whole(ack.marked));
        socket.lost = socket.lost.wrapping_add(whole(ack.lost));
        // Samples are the application's until what was out when it had no more is delivered (`tcp_rate_check_app_limited`).
        if ack.limited_by == Limit::Application {
            socket.app_limited = socket.delivered.wrapping_add(socket.in_flight).max(1);
        } else if socket.delivered > socket.app_limited {
            socket.app_limited = 0;
        }
        if let Some(pkts_acked) = self.ops().pkts_acked {
            let earlier =
                ack.delivery.map_or(ack.prior_in_flight, |it| ack.delivered.saturating_sub(it.prior_delivered));
            let sample = AckSample {
                pkts_acked: self.socket.snd_una.wrapping_sub(before).div_ceil(self.socket.mss_cache),
                rtt_us: ack.rtt.map_or(-1, |it| signed(it.span.as_us())),
                in_flight: whole(earlier).saturating_mul(self.socket.mss_cache),
            };
            self.call("pkts_acked", |socket| unsafe { pkts_acked(socket, &raw const sample) });
        }
        if let Some(in_ack_event) = self.ops().in_ack_event {
            // The acknowledgement that ends an episode is slow, too: its window is hardly ever the one predicted.
            let is_open = (self.told, ack.phase) == (Phase::Open, Phase::Open);
            let is_slow = ack.ece || !ack.in_order || !is_open;
            let flags =
                if is_slow { CA_ACK_SLOWPATH } else { CA_ACK_WIN_UPDATE } | if ack.ece { CA_ACK_ECE } else { 0 };
            self.call("in_ack_event", |socket| unsafe { in_ack_event(socket, flags) });
        }
        (self.is_told, self.is_answered, self.acked) = (false, false, ack.phase);
        self.follow(ack);
        if let Some(cong_control) = self.ops().cong_control {
            let sample = self.rate_sample(ack);
            let acknowledged = wire(ack.una);
            let sacked = if ack.in_order { FLAG_DATA_ACKED } else { FLAG_DATA_SACKED };
            let flags = sacked | if ack.ece { FLAG_ECE } else { 0 };
            let is_before = self.library.is_before_6_10;
            self.call("cong_control", |socket| unsafe {
                if is_before {
                    transmute::<crate::ops::CongControl, CongControlBefore>(cong_control)(socket, &raw const sample);
                } else {
                    cong_control(socket, acknowledged, flags, &raw const sample);
                }
            });
        } else if let (true, Some(cong_avoid)) = (ack.may_grow() && self.asked.is_none(), self.ops().cong_avoid) {
            // Behind a near-source limiter the window is not what limits: what grew there would leave at once.
            if ack.limited_by != Limit::NearSource {
                let una = wire(ack.una);
                self.call("cong_avoid", |socket| unsafe { cong_avoid(socket, una, acked) });
            }
        }
        self.begin_asked();
    }

    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        let by_ack = self.socket.clock_cache == now.as_ns();
        if !by_ack {
            (self.is_told, self.is_answered) = (false, false);
        }
        if std::mem::take(&mut self.is_told) {
            return;
        }
        self.look_at(now, path);
        self.begin_if_new(path, true);
        if !by_ack {
            // An acknowledgement that delivered nothing new is not told, but may have ended an episode or shown it to be spurious.
            self.end_episodes();
        }
        match cause {
            // Without an episode it is what a tail loss probe has repaired, mostly one sent before a reduction that is under way: of
            // that it is a part.
            Cause::Loss if by_ack && self.acked == Phase::Open => {
                if self.told == Phase::Open {
                    self.answer_repaired_loss();
                }
            }
            Cause::Loss => self.begin(Phase::Recovery),
            Cause::Ecn => self.begin(Phase::EcnReduction),
        }
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        self.look_at(now, path);
        self.begin_if_new(path, true);
        self.end_episodes();
        // A reduction that the controller asked for answers the timeout.
        let is_answered = self.asked.take().is_some() && self.left_of_episode().is_some_and(|left| left > 0);
        if !(repeated || is_answered) {
            self.socket.prior_ssthresh = self.current_threshold();
            self.socket.prior_cwnd = self.socket.cwnd;
            self.socket.ssthresh = self.threshold();
            self.tell(Event::Loss);
        }
        self.socket.cwnd = 1;
        self.socket.cwnd_cnt = 0;
        self.socket.high_seq = self.socket.snd_nxt;
        self.enter(Phase::Loss);
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        if sent.starts || !self.is_begun {
            self.look_at(now, path);
        }
        // `tcp_event_data_sent` comes before the segment counts, and so does `init`.
        let socket = &mut *self.socket;
        if sent.idle.is_some() {
            (socket.snd_nxt, socket.packets_out, socket.in_flight, socket.sacked_out) = (socket.snd_una, 0, 0, 0);
        } else if sent.starts {
            (socket.in_flight, socket.sacked_out) = (0, socket.packets_out);
        }
        self.begin_if_new(path, false);
        if sent.starts && self.is_begun {
            if sent.idle.is_some() {
                // It had nothing to send.
                self.socket.app_limited = self.socket.delivered.max(1);
            }
            self.tell(Event::TxStart);
        }
        self.socket.lsndtime = jiffies(now);
        if let Some(reduction) = &mut self.asked {
            reduction.on_sent();
        }
    }

    fn on_idle_restart(&mut self, now: Time, idle: Span, path: &Path) {
        if self.recovery() == Owner::Controller {
            return; // as `tcp_slow_start_after_idle_check`
        }
        self.look_at(now, path);
        self.begin_if_new(path, true);
        self.tell(Event::CwndRestart);
        let window = u64::from(self.socket.cwnd);
        self.socket.ssthresh = self.current_threshold();
        let left = after_idle(window, path.initial_window.get(), idle, path);
        self.socket.cwnd = u32::try_from(left).unwrap_or(INFINITE).max(1);
    }

    fn on_undo(&mut self) {
        if let Some(undo_cwnd) = self.ops().undo_cwnd {
            self.is_undone = true;
            if self.socket.prior_ssthresh == 0 {
                return;
            }
            let window = self.call("undo_cwnd", |socket| unsafe { undo_cwnd(socket) });
            if !(1..=INFINITE).contains(&window) {
                let file = &self.library.file;
                end_run(format!("{file}: undo_cwnd returns {window} packets, where 1 to {INFINITE} are possible"));
            }
            self.socket.cwnd = window;
            self.socket.ssthresh = self.socket.ssthresh.max(self.socket.prior_ssthresh);
        }
    }

    fn recall(&mut self, threshold: Packets) {
        self.socket.ssthresh = whole(Packets::new(threshold.get().max(MIN_WINDOW.get()))).min(INFINITE);
    }

    #[inline]
    fn window(&self) -> Packets {
        Packets::new(u64::from(self.socket.cwnd.min(self.socket.cwnd_clamp).max(1)))
    }

    fn slow_start_threshold(&self) -> Packets {
        let threshold = self.socket.ssthresh;
        Packets::new(if threshold >= INFINITE { u64::MAX } else { u64::from(threshold) })
    }

    fn pacing(&self) -> Option<Rate> {
        let sock = &self.socket.connection.sock;
        let is_set = sock.pacing_rate != u64::MAX && sock.pacing_rate != 0;
        let paces = sock.pacing_status == PACING_NEEDED || self.ops().cong_control.is_some();
        // The kernel paces payload (`tcp_update_skb_after_send`), the transport IP packets.
        let (payload, packet) = self.full;
        (is_set && paces).then(|| Rate::from_bps(sock.pacing_rate.saturating_mul(8)).scaled(packet, payload))
    }
}

impl Machine for Connection {
    fn copy(&self) -> Box<dyn Machine> {
        assert!(self.ops().release.is_none(), "what `release` gives back cannot be copied");
        let mut copy = Connection { library: Arc::clone(&self.library), socket: self.socket.clone(), ..*self };
        // SAFETY: it is a copy of another connection's socket.
        unsafe { (self.library.copy_storage)(&raw mut *copy.socket) };
        Box::new(copy)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (Some(release), true) = (self.ops().release, self.is_begun) {
            // A fault of it ends nothing: the connection is over, and so may be the run.
            let _ = catch_unwind(AssertUnwindSafe(|| self.call("release", |socket| unsafe { release(socket) })));
        }
        // SAFETY: nothing calls the controller any more.
        unsafe { (self.library.free_storage)(&raw mut *self.socket) };
    }
}

fn number(phase: Phase) -> u8 {
    match phase {
        Phase::Open => 0,
        Phase::EcnReduction => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

fn whole(packets: Packets) -> u32 {
    u32::try_from(packets.get()).unwrap_or(u32::MAX)
}

fn signed(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_us()).unwrap_or(u32::MAX)
}

fn jiffies(now: Time) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "jiffies wrap")]
    let wrapped = (now.as_us() / (1_000_000 / HZ)) as u32;
    wrapped
}

/// A sequence number as packets carry it.
fn wire(seq: Seq) -> u32 {
    seq.wire()
}
