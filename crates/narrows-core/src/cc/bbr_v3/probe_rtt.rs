//! The minimum RTT, and the dips that measure it anew [BBRv3 draft §5.3.4, §5.5.7].

use super::{BbrV3, ShortTerm, State};
use crate::cc::Ack;
use crate::units::{Span, Time};

/// The minimum RTT is that of so long (`MinRTTFilterLen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Without a lower RTT for so long, a dip measures it (`ProbeRTTInterval`).
const PROBE_INTERVAL: Span = Span::from_secs(5);
/// How long a dip holds its small window at least (`ProbeRTTDuration`).
const PROBE_DURATION: Span = Span::from_ms(200);

/// The stages of a dip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dip {
    /// Until no more than half a bandwidth-delay product is in flight.
    Falling,
    /// At the bottom until this moment (`probe_rtt_done_stamp`), and until a round has passed.
    Holding { until: Time, round_passed: bool },
}

/// Two minima of the RTT: one that says when the next dip is due, and the one that is used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// Nanoseconds (`min_rtt`), and when it was seen; `None` before the first.
    pub(super) ns: Option<u64>,
    at: Option<Time>,
    /// Since the last dip (`probe_rtt_min_delay`), and when it was seen.
    recent_ns: Option<u64>,
    recent_at: Option<Time>,
    /// The latter is older than five seconds (`probe_rtt_expired`).
    is_dip_due: bool,
}

impl MinRtt {
    /// Time begins, with the handshake's RTT.
    pub(super) fn begin(&mut self, now: Time, handshake: Option<Span>) {
        self.at.get_or_insert(now);
        self.recent_at.get_or_insert(now);
        if self.ns.is_none() {
            self.ns = handshake.map(|span| span.as_ns().max(1));
            self.recent_ns = self.ns;
        }
    }

    /// (`UpdateMinRTT`.)
    fn update(&mut self, now: Time, sample: Option<Span>) {
        let is_older = |at: Option<Time>, span| at.is_some_and(|at| now > at + span);
        self.is_dip_due = is_older(self.recent_at, PROBE_INTERVAL);
        if let Some(ns) = sample.map(|span| span.as_ns().max(1))
            && (self.is_dip_due || self.recent_ns.is_none_or(|least| ns < least))
        {
            (self.recent_ns, self.recent_at) = (Some(ns), Some(now));
        }
        let is_lower = self.recent_ns.is_some_and(|recent| self.ns.is_none_or(|least| recent < least));
        if is_lower || is_older(self.at, MIN_RTT_WINDOW) {
            (self.ns, self.at) = (self.recent_ns, self.recent_at);
        }
    }
}

impl BbrV3 {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        self.rtt.update(ack.now, ack.rtt.map(|sample| sample.span));
    }

    /// Begins a dip where one is due, and moves through it. A pause of the application has emptied the queue already
    /// (`CheckProbeRTT`).
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack) {
        if self.rtt.is_dip_due && !self.restarting_from_idle && !matches!(self.state, State::ProbeRtt(_)) {
            self.save_window();
            self.state = State::ProbeRtt(Dip::Falling);
            self.cycle.acks = super::probe_bandwidth::Acks::ProbeStopping;
            self.begin_round();
            self.muted = Some((self.delivered, self.delivered));
        }
        self.dip(ack);
        if ack.acked.get() > 0 {
            self.restarting_from_idle = false;
        }
    }

    /// (`HandleProbeRTT`.)
    fn dip(&mut self, ack: &Ack) {
        let bottom = self.probe_rtt_window();
        let State::ProbeRtt(dip) = &mut self.state else { return };
        let in_flight = ack.in_flight.get();
        if let Some((_, to)) = &mut self.muted {
            *to = self.delivered + in_flight;
        }
        match dip {
            Dip::Falling if in_flight <= bottom => {
                *dip = Dip::Holding { until: ack.now + PROBE_DURATION, round_passed: false };
                self.begin_round();
            }
            Dip::Falling => {}
            Dip::Holding { round_passed, .. } => {
                *round_passed |= self.rounds.started;
                if *round_passed {
                    self.end_probe_rtt_if_due(ack.now);
                }
            }
        }
    }

    /// Back to Cruise, as less than a bandwidth-delay product is in flight, or to Startup (`CheckProbeRTTDone`,
    /// `ExitProbeRTT`). The window is restored with the next acknowledgement at the latest.
    pub(super) fn end_probe_rtt_if_due(&mut self, now: Time) {
        let State::ProbeRtt(Dip::Holding { until, .. }) = self.state else { return };
        if now <= until {
            return;
        }
        self.rtt.recent_at = Some(now);
        self.restore_window = true;
        self.short_term = ShortTerm::default();
        if self.full.reached {
            self.begin_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
