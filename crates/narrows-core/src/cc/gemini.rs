//! GEMINI: one window for two kinds of network [GEMINI §III].
//!
//! Inside a datacenter congestion shows as ECN marks, across the WAN as delay. GEMINI listens to both, answers the
//! stronger at most once per RTT, scales the answer to ECN by F (long paths are cut gently) and the growth by h
//! (long paths grow faster), and paces every packet.
//!
//! ```text
//! acknowledgement ─▶ measure: α, RTT_min of the window, RTT_base
//!                 ─▶ detect:  ECE?   RTT_min of the previous window > RTT_base + T?
//!                 ─▶ react:   either ─▶ W ← W·(1 − max(α·F, β))   once per RTT
//!                             neither ─▶ W ← W + h/W per packet, or slow start
//! ```
//!
//! The controller owns its window in every phase ([`Owner::Controller`]): the kernel runs it as a `cong_control` module.
//! The arithmetic is in [`arithmetic`], all in 64-bit integers.

use super::parts::reno::after_idle;
use super::parts::windowed::WindowedMin;
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Phase, Spec, Value, parameters,
};
use crate::packet::Seq;
use crate::units::{Packets, Rate, Span, Time};

pub mod arithmetic;
#[cfg(test)]
mod tests;

use arithmetic::{MAX_WINDOW, MIN_WINDOW, ONE_Q10, ONE_Q20};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "gemini",
    title: "GEMINI",
    about: "Reacts to ECN marks inside datacenters and to delay across the WAN, with steps scaled by the RTT.",
    source: "GEMINI",
    ecn: EcnUse::Exact,
    kernel: Kernel::Twin,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[("h-min", "h-max")],
    parameters: parameters! {
        "capacity": Kind::Rate, Value::Auto, (1_000, 400_000_000_000),
            "C, the bandwidth in F and h; left out, the line rate of the sending host's port.";
        "k": Kind::Packets, Value::Auto, (1, 1 << 20),
            "K, the marking threshold of the switches; left out, 50 packets per Gbit/s of capacity [GEMINI Table IV].";
        "t": Kind::Span, Value::Span(Span::from_ms(5)), (0, Span::from_secs(10).as_ps()),
            "T, the queueing delay above the base RTT that counts as congestion [GEMINI Table IV].";
        "t-share": Kind::Real { bits: 20 }, Value::Real(0), (0, 16 * ONE_Q20),
            "T as a share of the base RTT, where that is more than `t`; 0 as in the paper, whose T is the same on every path.";
        "beta": Kind::Real { bits: 20 }, Value::Real(209_715), (0, ONE_Q20),
            "β, the relative cut on delay; 0.2 [GEMINI Table IV].";
        "h": Kind::Real { bits: 36 }, Value::Real(8_246), (0, 1 << 36),
            "H, packets of growth per RTT and bit of bandwidth-delay product; 1.2e-7 [GEMINI Table IV].";
        "h-min": Kind::Real { bits: 10 }, Value::Real(102), (0, 1 << 20),
            "Minimum growth h, packets per RTT; 0.1 [GEMINI §III-D].";
        "h-max": Kind::Real { bits: 10 }, Value::Real(5 * ONE_Q10), (0, 1 << 20),
            "Maximum growth h, packets per RTT; 5 [GEMINI §III-D].";
        "g-shift": Kind::Count, Value::Count(4), (0, 16),
            "α's gain g as a power of one half; 4 is DCTCP's 1/16, which GEMINI adopts [RFC 8257 §4.2].";
        "initial-alpha": Kind::Real { bits: 20 }, Value::Real(ONE_Q20), (0, ONE_Q20),
            "α before the first window of data; 1, the cautious choice [RFC 8257 §3.3].";
        "f": Kind::Real { bits: 10 }, Value::Auto, (0, 1 << 20),
            "A fixed scale factor F instead of 4K/(C·RTT + K); for tests of the theorem [GEMINI §III-C].";
        "f-max": Kind::Real { bits: 10 }, Value::Auto, (0, 1 << 20),
            "Upper limit of F itself; left out, none. An ablation: it breaks the balance of F and h on short paths.";
        "f-dcn-max": Kind::Real { bits: 20 }, Value::Real(ONE_Q20 / 2), (0, ONE_Q20),
            "Upper limit of the cut α·F on ECN; 0.5, the largest cut of DCTCP and of standard TCP.";
        "ecn": Kind::Switch, Value::Switch(true), "Whether ECE counts; off, α is never updated and only delay acts.";
        "delay": Kind::Switch, Value::Switch(true), "Whether delay counts; off, only ECN and losses act.";
        "grow-during-cut-round": Kind::Switch, Value::Switch(true),
            "Whether acknowledgements without a signal grow the window in the round after a cut [GEMINI Algorithm 1]; off, as in Linux's CWR state.";
        "gate": Kind::Choice(&["seq", "timer-base"]), Value::Choice(0),
            "What separates two cuts: all data outstanding at the first is acknowledged, or the base RTT has passed.";
        "delay-window": Kind::Choice(&["fresh", "literal"]), Value::Choice(0),
            "Whether samples of packets sent before a delay cut are left out of the next decision, or kept [GEMINI Algorithm 1].";
        "loss-response": Kind::Choice(&["reno", "linux49"]), Value::Choice(0),
            "The cut on a loss: half, or the cut of the signals that stand, as a module derived from Linux 4.9's DCTCP does.";
        "rtt-base-window": Kind::Span, Value::Span(Span::from_secs(300)),
            (Span::from_ms(1).as_ps(), Span::from_secs(100_000).as_ps()),
            "How long RTT_base remembers its least sample; 300 s, Linux's tcp_min_rtt_wlen.";
        "route-change-after": Kind::Count, Value::Count(0), (0, 1_000_000),
            "Delay cuts in a row, or windows at the floor, that do not end the delay before RTT_base follows it; 0 for never, as in the paper.";
        "window-fraction": Kind::Choice(&["dropped", "carried"]), Value::Choice(0),
            "What becomes of the window's fraction of a packet: nothing, as a kernel counts packets; or it is added to the next window of data, so that the mean is exact.";
        "pacing": Kind::Switch, Value::Switch(true), "Whether every packet is paced [GEMINI §III-D].";
        "pacing-gain-slow-start": Kind::Real { bits: 10 }, Value::Real(2 * ONE_Q10), (ONE_Q10 / 4, 16 * ONE_Q10),
            "Pacing rate in slow start, in windows per smoothed RTT; 2 as Linux's tcp_pacing_ss_ratio.";
        "pacing-gain": Kind::Real { bits: 10 }, Value::Real(1_229), (ONE_Q10 / 4, 16 * ONE_Q10),
            "Pacing rate otherwise, in windows per smoothed RTT; 1.2 as Linux's tcp_pacing_ca_ratio.";
    },
};

/// The parameters, resolved.
#[derive(Clone, Copy, Debug)]
struct Config {
    capacity_bps: u64,
    k: u64,
    t_us: u64,
    t_share: u64,
    beta: u64,
    h: u64,
    h_least: u64,
    h_most: u64,
    g_shift: u64,
    fixed_factor: Option<u64>,
    factor_most: u64,
    ecn_cut_most: u64,
    ecn: bool,
    delay: bool,
    grow_during_cut_round: bool,
    gate_by_timer: bool,
    fresh_samples: bool,
    halve_on_loss: bool,
    route_change_after: u64,
    carries_fraction: bool,
    pacing: bool,
    gain_slow_start: u64,
    gain: u64,
    packet_bits: u64,
}

/// Which kinds of congestion an acknowledgement finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signal {
    ecn: bool,
    delay: bool,
}

/// The state of one GEMINI sender.
#[derive(Clone, Debug)]
pub struct Gemini {
    config: Config,
    /// CWND, Q10 packets.
    window: u64,
    /// Slow-start threshold, Q10 packets; `u64::MAX` where there is none yet.
    threshold: u64,
    /// Remainder of additive increases, in units of 1/window.
    credit: u64,
    /// α, Q20.
    alpha: u64,
    acked: u64,
    marked: u64,
    /// End of the window of data over which α and RTT_min are measured.
    window_end: Seq,
    /// RTT_min so far in this window and of the window before, microseconds.
    rtt_current: Option<u64>,
    rtt_previous: Option<u64>,
    /// RTT_base, microseconds, on a clock of microseconds.
    rtt_base: WindowedMin,
    /// F and h at the present RTT_base, both Q10.
    factor: u64,
    step: u64,
    /// The next cut waits until this is acknowledged.
    cut_end: Seq,
    last_cut: Option<Time>,
    last_cut_was_loss: bool,
    /// Delay samples count only on packets from here on.
    fresh_from: Seq,
    /// Delay cuts since the delay was last seen below its threshold, and windows at the floor since the window was last
    /// above it: the route may have become longer.
    futile_cuts: u64,
    futile_windows: u64,
    /// Of the window's fractions so far, what no packet was sent for: Q10 packets below one.
    carried: u64,
    pacing: Option<Rate>,
    /// Window and threshold before the last loss, for an undo.
    before: Option<(u64, u64)>,
}

impl Gemini {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Gemini {
        let settings = &context.settings;
        let capacity_bps = settings.rate_or_auto("capacity").unwrap_or(context.path.line_rate).as_bps();
        let config = Config {
            capacity_bps,
            // 50 packets per Gbit/s are one packet per 20 Mbit/s.
            k: settings.packets_or_auto("k").map_or((capacity_bps / 20_000_000).max(1), Packets::get),
            t_us: settings.span("t").as_us(),
            t_share: settings.real("t-share"),
            beta: settings.real("beta"),
            h: settings.real("h"),
            h_least: settings.real("h-min"),
            h_most: settings.real("h-max"),
            g_shift: settings.count("g-shift"),
            fixed_factor: settings.real_or_auto("f"),
            factor_most: settings.real_or_auto("f-max").unwrap_or(u64::MAX),
            ecn_cut_most: settings.real("f-dcn-max"),
            ecn: settings.switch("ecn"),
            delay: settings.switch("delay"),
            grow_during_cut_round: settings.switch("grow-during-cut-round"),
            gate_by_timer: settings.choice("gate") == "timer-base",
            fresh_samples: settings.choice("delay-window") == "fresh",
            halve_on_loss: settings.choice("loss-response") == "reno",
            route_change_after: settings.count("route-change-after"),
            carries_fraction: settings.choice("window-fraction") == "carried",
            pacing: settings.switch("pacing"),
            gain_slow_start: settings.real("pacing-gain-slow-start"),
            gain: settings.real("pacing-gain"),
            packet_bits: context.path.packet.get() * 8,
        };
        let initial = context.path.initial_window.get().clamp(1, MAX_WINDOW / ONE_Q10) * ONE_Q10;
        let window = settings.span("rtt-base-window").as_us();
        let mut gemini = Gemini {
            config,
            window: initial,
            threshold: u64::MAX,
            credit: 0,
            alpha: settings.real("initial-alpha"),
            acked: 0,
            marked: 0,
            window_end: Seq::SYN,
            rtt_current: None,
            rtt_previous: None,
            rtt_base: WindowedMin::new(window),
            factor: 0,
            step: 0,
            cut_end: Seq::SYN,
            last_cut: None,
            last_cut_was_loss: false,
            fresh_from: Seq::SYN,
            futile_cuts: 0,
            futile_windows: 0,
            carried: 0,
            pacing: None,
            before: None,
        };
        gemini.follow_base();
        gemini.pace(context.path);
        gemini
    }

    /// α, Q20.
    pub fn alpha(&self) -> u64 {
        self.alpha
    }

    /// The window with its fraction, Q10 packets.
    pub fn window_q10(&self) -> u64 {
        self.window
    }

    /// RTT_base in microseconds, once there was a sample.
    pub fn base_round_trip_us(&self) -> Option<u64> {
        self.rtt_base.value()
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Takes the acknowledgement's samples and, at the end of a window of data, closes the books on it.
    fn measure(&mut self, ack: &Ack, path: &Path) {
        let now_us = ack.now.as_us();
        // The handshake's RTT is a sample too; the transport's minimum holds it [Linux `tcp_min_rtt`].
        let first = if self.rtt_base.value().is_none() { path.min_rtt } else { None };
        let known = self.rtt_base.value();
        for span in first.into_iter().chain(ack.rtt.map(|sample| sample.span)) {
            self.rtt_base.update(now_us, span.as_us());
        }
        if let Some(sample) = ack.rtt
            && sample.seq >= self.fresh_from
        {
            let least = self.rtt_current.unwrap_or(u64::MAX).min(sample.span.as_us());
            self.rtt_current = Some(least);
        }
        self.acked = self.acked.saturating_add(ack.acked.get());
        self.marked = self.marked.saturating_add(ack.marked.get());
        if ack.una >= self.window_end {
            if self.config.ecn {
                let fraction = arithmetic::marked_fraction(self.marked, self.acked);
                self.alpha = arithmetic::average(self.alpha, fraction, self.config.g_shift);
            }
            self.rtt_previous = self.rtt_current;
            self.carried = if self.config.carries_fraction { (self.window + self.carried) % ONE_Q10 } else { 0 };
            self.begin_window(ack.nxt);
            self.watch_route(now_us);
        }
        if self.rtt_base.value() != known {
            self.follow_base();
        }
    }

    /// Starts counting and measuring afresh, over the data outstanding now.
    fn begin_window(&mut self, nxt: Seq) {
        self.acked = 0;
        self.marked = 0;
        self.rtt_current = None;
        self.window_end = nxt;
    }

    /// F and h depend on RTT_base alone.
    fn follow_base(&mut self) {
        let config = &self.config;
        let bits = arithmetic::bandwidth_delay_bits(config.capacity_bps, self.rtt_base.value().unwrap_or(0));
        let factor = arithmetic::scale_factor(config.k, bits, config.packet_bits);
        self.factor = config.fixed_factor.unwrap_or(factor).min(config.factor_most);
        self.step = arithmetic::additive_step(config.h, bits, config.h_least, config.h_most);
    }

    /// The delay signal: RTT_min of the previous window above RTT_base + T [GEMINI Algorithm 1].
    fn delayed(&self) -> bool {
        match (self.rtt_previous, self.rtt_base.value()) {
            (Some(previous), Some(base)) => {
                let threshold = arithmetic::delay_threshold(self.config.t_us, self.config.t_share, base);
                self.config.delay && previous > base.saturating_add(threshold)
            }
            _ => false,
        }
    }

    /// A delay that outlives many cuts may be a path that became longer: if asked to, RTT_base follows it. It may as well
    /// be a queue that others keep, and then RTT_base absorbs the queue; so it is off unless an experiment asks.
    fn watch_route(&mut self, now_us: u64) {
        let patience = self.config.route_change_after;
        self.futile_windows = if self.window <= MIN_WINDOW { self.futile_windows + 1 } else { 0 };
        let Some(previous) = self.rtt_previous else { return };
        if !self.delayed() {
            self.futile_cuts = 0;
            self.futile_windows = 0;
        } else if patience > 0 && self.futile_cuts.max(self.futile_windows) >= patience {
            self.rtt_base.reset(now_us, previous);
            self.futile_cuts = 0;
            self.futile_windows = 0;
        }
    }

    /// Whether a cut is allowed: at most one per RTT.
    fn may_cut(&self, ack: &Ack) -> bool {
        if !self.config.gate_by_timer {
            return ack.una >= self.cut_end;
        }
        let base = Span::from_us(self.rtt_base.value().unwrap_or(0));
        self.last_cut.is_none_or(|last| ack.now.since(last) > base)
    }

    /// max(f_dcn, f_wan) [GEMINI Algorithm 1], Q20.
    fn relative_cut(&self, signal: Signal) -> u64 {
        let ecn = arithmetic::ecn_cut(self.alpha, self.factor, self.config.ecn_cut_most);
        let ecn = if signal.ecn { ecn } else { 0 };
        ecn.max(if signal.delay { self.config.beta } else { 0 })
    }

    fn cut(&mut self, signal: Signal, ack: &Ack) {
        self.window = arithmetic::reduce(self.window, self.relative_cut(signal));
        self.threshold = self.window;
        self.begin_cut_round(ack.now, ack.nxt, false);
        if signal.delay {
            self.futile_cuts += 1;
            if self.config.fresh_samples {
                self.forget_delay(ack.nxt);
            }
        }
    }

    /// For an undo.
    fn remember(&mut self) {
        self.before = Some((self.window, self.current_threshold()));
    }

    /// At least three quarters of the window stay as the threshold [RFC 2861 §3.2; Linux `tcp_current_ssthresh`].
    fn current_threshold(&self) -> u64 {
        self.threshold.max(self.window / 2 + self.window / 4)
    }

    fn begin_cut_round(&mut self, now: Time, nxt: Seq, loss: bool) {
        self.credit = 0;
        self.cut_end = nxt;
        self.last_cut = Some(now);
        self.last_cut_was_loss = loss;
    }

    /// What was sent before a delay cut says nothing about the window after it. A cut on ECN alone forgets nothing: a
    /// flow marked in every round would never see the delay.
    fn forget_delay(&mut self, nxt: Seq) {
        self.fresh_from = nxt;
        self.rtt_current = None;
        self.rtt_previous = None;
    }

    /// Whether the sender used its window. Pacing derives from the window, so waiting for it counts as use; a near-source
    /// limiter does not.
    fn window_was_used(&self, ack: &Ack) -> bool {
        if !ack.in_order || ack.limited_by == Limit::NearSource {
            return false;
        }
        if self.in_slow_start() {
            return self.window / ONE_Q10 < ack.max_in_flight.get().saturating_mul(2);
        }
        matches!(ack.limited_by, Limit::Window | Limit::Pacing)
    }

    /// Slow start up to the threshold; what is left of `acked` then grows the window by h per RTT.
    fn grow(&mut self, acked: u64) {
        let mut left = acked;
        if self.in_slow_start() {
            let room = self.threshold.min(MAX_WINDOW).saturating_sub(self.window);
            let grown = acked.saturating_mul(ONE_Q10).min(room);
            self.window += grown;
            left = acked - grown.div_ceil(ONE_Q10);
        }
        if left > 0 {
            (self.window, self.credit) = arithmetic::increase(self.window, self.credit, left, self.step);
        }
    }

    /// gain·CWND/SRTT in IP bytes, the window's fraction included.
    fn pace(&mut self, path: &Path) {
        self.pacing = None;
        if let (true, Some(srtt)) = (self.config.pacing, path.srtt) {
            let gain = if self.in_slow_start() { self.config.gain_slow_start } else { self.config.gain };
            let bits = u128::from(self.window) * u128::from(gain) * u128::from(path.packet.get() * 8);
            let bps = bits * 1_000_000_000_000 / (u128::from(srtt.as_ps().max(1)) << 20);
            self.pacing = Some(Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1)));
        }
    }
}

impl CongestionControl for Gemini {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.measure(ack, path);
        let signal = Signal { ecn: ack.ece && self.config.ecn, delay: self.delayed() };
        match ack.phase {
            // The loss was answered already, and a timeout's repair is slow start as in any TCP [RFC 5681 §3.1].
            Phase::Recovery => {}
            Phase::Loss => {
                if self.window_was_used(ack) {
                    self.grow(ack.acked.get());
                }
            }
            Phase::Open | Phase::EcnReduction if signal.ecn || signal.delay => {
                // Congested but cut already in this round: neither more nor less.
                if self.may_cut(ack) {
                    self.cut(signal, ack);
                }
            }
            Phase::Open | Phase::EcnReduction => {
                let frozen = !self.config.grow_during_cut_round && !self.may_cut(ack);
                if !frozen && self.window_was_used(ack) {
                    self.grow(ack.acked.get());
                }
            }
        }
        self.pace(path);
    }

    /// Echoes of ECN were answered in `on_ack`. A loss halves the window once per window of data, whatever ECN and delay
    /// did in it [RFC 8257 §3.5]; α stays.
    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        if cause == Cause::Ecn || (self.last_cut_was_loss && path.una < self.cut_end) {
            return;
        }
        self.remember();
        let signals = Signal { ecn: self.config.ecn, delay: self.delayed() };
        let cut = if self.config.halve_on_loss { ONE_Q20 / 2 } else { self.relative_cut(signals) };
        self.window = arithmetic::reduce(self.window, cut);
        self.threshold = self.window.max(MIN_WINDOW);
        self.begin_cut_round(now, path.nxt, true);
        self.forget_delay(path.nxt);
        self.pace(path);
    }

    /// One packet, and slow start up to half of what there was [RFC 5681 §3.1].
    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        if !repeated {
            self.remember();
            self.threshold = (self.window / 2).max(MIN_WINDOW);
        }
        self.window = ONE_Q10;
        self.begin_window(path.nxt);
        self.begin_cut_round(now, path.nxt, true);
        self.forget_delay(path.nxt);
        self.pace(path);
    }

    fn on_sent(&mut self, _now: Time, _sent: &super::Sent, path: &Path) {
        // The first flight after the handshake is paced as well: its RTT is known by then.
        if self.pacing.is_none() {
            self.pace(path);
        }
    }

    /// As others: the kernel does it for any controller that leaves its window to the transport. Measurements of the window
    /// are stale; RTT_base is not.
    fn on_idle_restart(&mut self, _now: Time, idle: Span, path: &Path) {
        let initial = path.initial_window.get().clamp(1, MAX_WINDOW / ONE_Q10) * ONE_Q10;
        self.threshold = self.current_threshold();
        self.window = after_idle(self.window, initial, idle, path);
        self.credit = 0;
        self.begin_window(path.nxt);
        self.forget_delay(path.nxt);
        self.pace(path);
    }

    fn on_undo(&mut self) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
            if self.config.carries_fraction {
                // No fewer packets than before the cut, whatever was carried then.
                self.carried = ONE_Q10 - 1;
            }
            // The cut is taken back: the next loss in the same window of data is answered.
            self.last_cut_was_loss = false;
        }
    }

    fn window(&self) -> Packets {
        Packets::new((self.window + self.carried) / ONE_Q10)
    }

    fn slow_start_threshold(&self) -> Packets {
        Packets::new(if self.threshold == u64::MAX { u64::MAX } else { self.threshold / ONE_Q10 })
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn burst(&self) -> Option<Packets> {
        self.config.pacing.then_some(Packets::new(1))
    }
}
