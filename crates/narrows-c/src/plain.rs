//! Controllers in plain C, `kit/include/narrows.h`: the contract's facts as numbers in seconds, packets, bytes and bit/s.

use std::ffi::{CStr, c_char, c_void};
use std::mem::{offset_of, size_of};
use std::ptr::null_mut;
use std::sync::Arc;

use narrows_core::cc::external::Machine;
use narrows_core::cc::{
    Ack, Cause, CongestionControl, Context, Limit, Lost, MIN_WINDOW, Owner, Path, Phase, RateSample, Sent,
};
use narrows_core::telemetry::Hop;
use narrows_core::units::{Packets, Rate, Span, Time};

use crate::connection::end_run;
use crate::library::Library;
use crate::socket::GUARD;
use crate::watchdog::Call;

/// The largest window and threshold, packets.
const MOST: f64 = (1u64 << 30) as f64;
/// The largest state of a connection, bytes.
const MAX_STATE: usize = 1 << 20;
/// The largest rate, bit/s.
const MAX_RATE: f64 = 1e15;

#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    window: f64,
    threshold: f64,
    pacing_rate: f64,
    state: *mut c_void,
}

#[repr(C)]
pub(crate) struct PathFacts {
    now: f64,
    srtt: f64,
    min_rtt: f64,
    rto: f64,
    line_rate: f64,
    una: u64,
    nxt: u64,
    in_flight: u64,
    initial_window: u64,
    mss: u64,
    packet: u64,
}

#[repr(C)]
pub(crate) struct AckFacts {
    rtt: f64,
    delivery_rate: f64,
    rtt_seq: u64,
    acked: u64,
    marked: u64,
    lost: u64,
    delivered: u64,
    prior_in_flight: u64,
    max_in_flight: u64,
    phase: u32,
    limited_by: u32,
    ece: bool,
    app_limited: bool,
    may_grow: bool,
}

#[repr(C)]
pub(crate) struct SentFacts {
    idle: f64,
    size: u64,
}

#[repr(C)]
pub(crate) struct LostFacts {
    sent_at: f64,
    segment: u64,
    in_flight_at_send: u64,
    lost_since_send: u64,
    delivered: u64,
    app_limited: bool,
}

#[repr(C)]
pub(crate) struct HopFacts {
    at: f64,
    rate: f64,
    queue: u64,
    sent: u64,
}

type Hook<A> = Option<unsafe extern "C-unwind" fn(*mut Sender, A, *const PathFacts)>;

/// `struct narrows_controller`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hooks {
    name: *const c_char,
    state_size: usize,
    pub(crate) needs_ecn: bool,
    pub(crate) needs_delivery_rate: bool,
    pub(crate) needs_telemetry: bool,
    owns_recovery: bool,
    init: Option<unsafe extern "C-unwind" fn(*mut Sender, *const PathFacts)>,
    on_ack: Hook<*const AckFacts>,
    on_lost: Hook<*const LostFacts>,
    on_telemetry: Option<unsafe extern "C-unwind" fn(*mut Sender, *const HopFacts, usize)>,
    on_congestion: Hook<u32>,
    on_timeout: Hook<bool>,
    on_sent: Hook<*const SentFacts>,
    on_idle_restart: Hook<f64>,
    on_undo: Option<unsafe extern "C-unwind" fn(*mut Sender, f64, f64)>,
}

/// What the end of `narrows_layout` of `runtime.c` must say.
pub(crate) const LAYOUT: [usize; 9] = [
    size_of::<PathFacts>(),
    size_of::<AckFacts>(),
    offset_of!(AckFacts, phase),
    offset_of!(AckFacts, may_grow),
    size_of::<LostFacts>(),
    offset_of!(LostFacts, app_limited),
    size_of::<HopFacts>(),
    size_of::<Hooks>(),
    offset_of!(Hooks, init),
];

impl Hooks {
    /// What it must have, and has not.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        match (self.on_ack, self.on_congestion) {
            _ if self.name.is_null() => Some("a name"),
            (None, _) => Some("on_ack"),
            (_, None) => Some("on_congestion"),
            _ if self.state_size > MAX_STATE => Some("a state_size of at most a MiB"),
            _ if self.on_lost.is_some() && !self.needs_delivery_rate => {
                Some("`.needs_delivery_rate = true`, without which its on_lost is never called")
            }
            _ if self.on_telemetry.is_some() && !self.needs_telemetry => {
                Some("`.needs_telemetry = true`, without which its on_telemetry is never called")
            }
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> String {
        if self.name.is_null() {
            return String::new();
        }
        // SAFETY: a text of the library.
        let name = unsafe { CStr::from_ptr(self.name) }.to_bytes();
        name.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' }).collect()
    }
}

fn since_start(time: Time) -> f64 {
    seconds(time.since(Time::ZERO))
}

fn seconds(span: Span) -> f64 {
    real(span.as_ps()) / 1e12
}

#[expect(clippy::cast_precision_loss, reason = "what the file computes with has 53 bits")]
fn real(value: u64) -> f64 {
    value as f64
}

fn or_nan(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, seconds)
}

impl PathFacts {
    fn new(now: Time, path: &Path) -> PathFacts {
        PathFacts {
            now: since_start(now),
            srtt: or_nan(path.srtt),
            min_rtt: or_nan(path.min_rtt),
            rto: seconds(path.rto),
            line_rate: real(path.line_rate.as_bps()),
            una: path.una.get(),
            nxt: path.nxt.get(),
            in_flight: path.in_flight.get(),
            initial_window: path.initial_window.get(),
            mss: path.mss.get(),
            packet: path.packet.get(),
        }
    }
}

impl AckFacts {
    fn new(ack: &Ack, path: &Path) -> AckFacts {
        let rate = |sample: RateSample| {
            let bits = real(sample.delivered.bytes(path.packet).get()) * 8.0;
            if sample.interval.is_zero() { f64::NAN } else { bits / seconds(sample.interval) }
        };
        AckFacts {
            rtt: or_nan(ack.rtt.map(|sample| sample.span)),
            delivery_rate: ack.delivery.map_or(f64::NAN, rate),
            rtt_seq: ack.rtt.map_or(0, |sample| sample.seq.get()),
            acked: ack.acked.get(),
            marked: ack.marked.get(),
            lost: ack.lost.get(),
            delivered: ack.delivered.get(),
            prior_in_flight: ack.prior_in_flight.get(),
            max_in_flight: ack.max_in_flight.get(),
            phase: match ack.phase {
                Phase::Open => 0,
                Phase::EcnReduction => 1,
                Phase::Recovery => 2,
                Phase::Loss => 3,
            },
            limited_by: match ack.limited_by {
                Limit::Window => 0,
                Limit::Receiver => 1,
                Limit::Application => 2,
                Limit::Pacing => 3,
                Limit::NearSource => 4,
            },
            ece: ack.ece,
            app_limited: ack.delivery.is_some_and(|sample| sample.app_limited),
            may_grow: ack.may_grow(),
        }
    }
}

/// The controller of one connection.
#[derive(Debug)]
pub(crate) struct Plain {
    library: Arc<Library>,
    hooks: *const Hooks,
    sender: Sender,
    /// What `sender.state` points to.
    state: Vec<u64>,
    random: u64,
    /// Window and threshold before the last reduction.
    before: (f64, f64),
}

// SAFETY: its pointers are to its own state, which does not move, and to the library.
unsafe impl Send for Plain {}
// SAFETY: as above.
unsafe impl Sync for Plain {}

impl Plain {
    pub(crate) fn new(library: Arc<Library>, hooks: *const Hooks, context: &Context<'_>) -> Plain {
        let mut random = context.random;
        // SAFETY: the library's, which `library` keeps.
        let size = unsafe { (*hooks).state_size };
        let mut state = vec![0; size.div_ceil(size_of::<u64>())];
        state.push(GUARD);
        let sender = Sender {
            window: real(context.path.initial_window.get()),
            threshold: f64::INFINITY,
            pacing_rate: 0.0,
            state: pointer(&mut state),
        };
        let mut made = Plain { library, hooks, sender, state, random: random.next_u64(), before: (1.0, f64::INFINITY) };
        if let Some(init) = made.hooks().init {
            // A connection may open at any time, which is not told here.
            let path = PathFacts { now: f64::NAN, ..PathFacts::new(Time::ZERO, context.path) };
            made.call("init", |sender| unsafe { init(sender, &raw const path) });
        }
        made
    }

    fn hooks(&self) -> &Hooks {
        // SAFETY: the library's, which `library` keeps.
        unsafe { &*self.hooks }
    }

    /// Calls a hook, and judges what it states.
    fn call(&mut self, hook: &str, of: impl FnOnce(*mut Sender)) {
        // SAFETY: the library's variable; one thread at a time runs its connections.
        unsafe { *self.library.stream = &raw mut self.random };
        {
            let _call = Call::begin();
            of(&raw mut self.sender);
        }
        let Sender { window, threshold, pacing_rate, .. } = self.sender;
        let file = &self.library.file;
        if self.state.last() != Some(&GUARD) {
            let size = self.hooks().state_size;
            end_run(format!(
                "{file}: {hook} writes beyond the {size} bytes of its state; state_size says how many it has"
            ));
        }
        if !(1.0..=MOST).contains(&window) {
            end_run(format!("{file}: {hook} leaves a window of {window} packets, where 1 to {MOST} are possible"));
        }
        if threshold.is_nan() || threshold < 1.0 {
            end_run(format!("{file}: {hook} leaves a threshold of {threshold} packets, where 1 or more are possible"));
        }
        if pacing_rate != 0.0 && !(1.0..=MAX_RATE).contains(&pacing_rate) {
            end_run(format!(
                "{file}: {hook} leaves a pacing rate of {pacing_rate} bit/s, where 0 and 1 to {MAX_RATE:e} are possible"
            ));
        }
    }

    fn remember(&mut self) {
        self.before = (self.sender.window, self.sender.threshold);
    }

    /// Three quarters of a window are remembered [RFC 2861 §3.2].
    fn remember_threshold(&mut self, window: f64) {
        self.sender.threshold = self.sender.threshold.max(window * 3.0 / 4.0);
    }
}

impl CongestionControl for Plain {
    fn recovery(&self) -> Owner {
        if self.hooks().owns_recovery { Owner::Controller } else { Owner::Transport }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let on_ack = self.hooks().on_ack.expect("a complete controller has it");
        let (ack, path) = (AckFacts::new(ack, path), PathFacts::new(ack.now, path));
        self.call("on_ack", |sender| unsafe { on_ack(sender, &raw const ack, &raw const path) });
    }

    fn on_lost(&mut self, lost: &Lost, path: &Path) {
        let Some(on_lost) = self.hooks().on_lost else { return };
        let facts = LostFacts {
            sent_at: since_start(lost.sent_at),
            segment: lost.segment,
            in_flight_at_send: lost.in_flight_at_send.get(),
            lost_since_send: lost.lost_since_send.get(),
            delivered: lost.delivered.get(),
            app_limited: lost.app_limited,
        };
        let path = PathFacts::new(lost.now, path);
        self.call("on_lost", |sender| unsafe { on_lost(sender, &raw const facts, &raw const path) });
    }

    fn on_telemetry(&mut self, hops: &[Hop]) {
        let Some(on_telemetry) = self.hooks().on_telemetry else { return };
        let facts = |hop: &Hop| HopFacts {
            at: since_start(hop.at),
            rate: real(hop.rate.as_bps()),
            queue: hop.queue.get(),
            sent: hop.sent.get(),
        };
        let hops: Vec<HopFacts> = hops.iter().map(facts).collect();
        self.call("on_telemetry", |sender| unsafe { on_telemetry(sender, hops.as_ptr(), hops.len()) });
    }

    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        self.remember();
        let on_congestion = self.hooks().on_congestion.expect("a complete controller has it");
        let cause = match cause {
            Cause::Loss => 0,
            Cause::Ecn => 1,
        };
        let path = PathFacts::new(now, path);
        self.call("on_congestion", |sender| unsafe { on_congestion(sender, cause, &raw const path) });
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        if !repeated {
            self.remember();
        }
        let Some(on_timeout) = self.hooks().on_timeout else {
            if !repeated {
                self.sender.threshold = (self.sender.window / 2.0).max(real(MIN_WINDOW.get()));
            }
            self.sender.window = 1.0;
            return;
        };
        let path = PathFacts::new(now, path);
        self.call("on_timeout", |sender| unsafe { on_timeout(sender, repeated, &raw const path) });
        let window = self.sender.window;
        if self.window() != Packets::new(1) {
            let file = &self.library.file;
            end_run(format!("{file}: on_timeout leaves a window of {window} packets, where 1 is possible"));
        }
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        let Some(on_sent) = self.hooks().on_sent else { return };
        let (sent, path) = (SentFacts { idle: or_nan(sent.idle), size: sent.size.get() }, PathFacts::new(now, path));
        self.call("on_sent", |sender| unsafe { on_sent(sender, &raw const sent, &raw const path) });
    }

    fn on_idle_restart(&mut self, now: Time, idle: Span, path: &Path) {
        if let Some(on_idle_restart) = self.hooks().on_idle_restart {
            let path = PathFacts::new(now, path);
            self.call("on_idle_restart", |sender| unsafe { on_idle_restart(sender, seconds(idle), &raw const path) });
            return;
        }
        // Half of it for each timeout, not below the initial one [RFC 2861 §3.2].
        self.remember_threshold(self.sender.window);
        let least = real(path.initial_window.get()).min(self.sender.window);
        let mut left = idle;
        while left > path.rto && self.sender.window > least {
            left = left.saturating_sub(path.rto);
            self.sender.window = (self.sender.window / 2.0).max(least);
        }
    }

    fn on_undo(&mut self) {
        let (window, threshold) = self.before;
        if let Some(on_undo) = self.hooks().on_undo {
            self.call("on_undo", |sender| unsafe { on_undo(sender, window, threshold) });
            return;
        }
        self.sender.window = self.sender.window.max(window);
        self.sender.threshold = self.sender.threshold.max(threshold);
        self.remember_threshold(window);
    }

    fn recall(&mut self, threshold: Packets) {
        self.sender.threshold = real(threshold.get());
    }

    #[inline]
    fn window(&self) -> Packets {
        packets(self.sender.window)
    }

    fn slow_start_threshold(&self) -> Packets {
        if self.sender.threshold > MOST { Packets::new(u64::MAX) } else { packets(self.sender.threshold) }
    }

    fn pacing(&self) -> Option<Rate> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "judged after each call")]
        (self.sender.pacing_rate > 0.0).then(|| Rate::from_bps(self.sender.pacing_rate as u64))
    }
}

/// What a controller gets of its state and the guard behind it: nothing if it has none.
fn pointer(state: &mut [u64]) -> *mut c_void {
    if state.len() > 1 { state.as_mut_ptr().cast() } else { null_mut() }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "judged after each call")]
fn packets(window: f64) -> Packets {
    Packets::new(window as u64)
}

impl Machine for Plain {
    fn copy(&self) -> Box<dyn Machine> {
        let mut state = self.state.clone();
        let sender = Sender { state: pointer(&mut state), ..self.sender };
        Box::new(Plain { library: Arc::clone(&self.library), sender, state, ..*self })
    }
}
