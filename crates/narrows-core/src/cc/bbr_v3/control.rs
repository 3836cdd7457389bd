//! What follows from the model: pacing rate, size of bursts, window [BBRv3 draft §5.6].

use super::{BbrV3, GAIN_ONE, MIN_WINDOW, State, bandwidth};
use crate::cc::Path;
use crate::units::{Rate, Span};

/// 4·ln 2, of pacing: the least gain that doubles the rate every round.
pub(super) const STARTUP_GAIN: u64 = 277;
/// Of pacing in Drain.
const DRAIN_GAIN: u64 = 50;
/// Of pacing in Down and Up.
const DOWN_GAIN: u64 = 90;
const UP_GAIN: u64 = 125;
/// Of the window (`DefaultCwndGain`), and in Up.
const WINDOW_GAIN: u64 = 200;
const UP_WINDOW_GAIN: u64 = 225;
/// Of the window in ProbeRtt (`ProbeRTTCwndGain`).
const PROBE_RTT_GAIN: u64 = 50;
/// What pacing stays below the bandwidth, percent (`PacingMarginPercent`): a queue drains over time.
const MARGIN_PERCENT: u64 = 1;
/// Most bytes in one piece, and its time at the pacing rate [BBRv3 draft §5.6.3].
const MAX_PIECE: u64 = 64 << 10;
const PIECE: Span = Span::from_ms(1);

impl BbrV3 {
    /// [BBRv3 draft §5.6.1]
    pub(super) fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup => STARTUP_GAIN,
            State::Drain { .. } => DRAIN_GAIN,
            State::Down => DOWN_GAIN,
            State::Cruise | State::Refill | State::ProbeRtt(_) => GAIN_ONE,
            State::Up => UP_GAIN,
        }
    }

    /// [BBRv3 draft §5.6.1]
    pub(super) fn window_gain(&self) -> u64 {
        match self.state {
            State::Up => UP_WINDOW_GAIN,
            State::ProbeRtt(_) => PROBE_RTT_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    /// The initial window per RTT, or per millisecond while there is none, at Startup's gain (`InitPacingRate`).
    pub(super) fn begin_pacing(&mut self, path: &Path) {
        let us = path.srtt.map_or(1_000, |srtt| srtt.as_us().max(1));
        self.paced_by_rtt = path.srtt.is_some();
        let nominal = self.initial_window.saturating_mul(bandwidth::BANDWIDTH_ONE) / us;
        self.pacing = Some(bandwidth::rate_of(nominal, STARTUP_GAIN, GAIN_ONE, self.packet).max(Rate::from_bps(1)));
        self.size_bursts(path);
    }

    /// Paces at `gain` times the bandwidth less the margin; before the pipe is full the rate only rises
    /// (`SetPacingRateWithGain`).
    pub(super) fn pace(&mut self, gain: u64) {
        let (gain, one) = (gain * (100 - MARGIN_PERCENT), GAIN_ONE * 100);
        let rate = bandwidth::rate_of(self.bandwidth(), gain, one, self.packet).max(Rate::from_bps(1));
        if self.full.reached || self.pacing.is_none_or(|now| rate > now) {
            self.pacing = Some(rate);
        }
    }

    /// A millisecond at the pacing rate in one piece, two packets at least, 64 KiB and what the host allows at most
    /// (`SetSendQuantum`).
    pub(super) fn size_bursts(&mut self, path: &Path) {
        let bytes = self.pacing.map_or(0, |rate| rate.bytes_in(PIECE).get()).min(MAX_PIECE);
        self.burst = (bytes / self.packet.get().max(1)).max(2).min(u64::from(path.burst).max(1));
    }

    /// Room for what the host, the adapter and the receiver hold in one piece (`QuantizationBudget`).
    fn with_quanta(&self, packets: u64) -> u64 {
        let budget = 3 * self.burst;
        let probing = if self.state == State::Up { 2 } else { 0 };
        packets.max(budget).max(MIN_WINDOW).saturating_add(probing)
    }

    /// What is in flight when nothing is queued (`Inflight`).
    pub(super) fn in_flight_for(&self, bandwidth: u64) -> u64 {
        self.with_quanta(self.product(bandwidth, GAIN_ONE))
    }

    /// The bottom of a dip (`ProbeRTTCwnd`).
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.product(self.bandwidth(), PROBE_RTT_GAIN).max(MIN_WINDOW)
    }

    /// (`UpdateMaxInflight`.)
    fn max_in_flight(&self) -> u64 {
        let product = self.product(self.bandwidth(), self.window_gain());
        self.with_quanta(product.saturating_add(self.aggregation.excess()))
    }

    /// Up to the model by one packet for each acknowledged, down to it at once (`SetCwnd`).
    pub(super) fn set_window(&mut self, acked: u64) {
        if core::mem::take(&mut self.restore_window) {
            self.window = self.window.max(self.prior_window);
        }
        let target = self.max_in_flight();
        if self.full.reached {
            self.window = self.window.saturating_add(acked).min(target);
        } else if self.window < target || self.delivered < self.initial_window {
            self.window = self.window.saturating_add(acked);
        }
        self.window = self.window.max(MIN_WINDOW);
        if matches!(self.state, State::ProbeRtt(_)) {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.window = self.window.min(self.model_bound());
    }

    /// What losses allow (`BoundCwndForModel`).
    fn model_bound(&self) -> u64 {
        let long_term = match self.state {
            State::Down | State::Refill | State::Up => self.long_term,
            State::Cruise | State::ProbeRtt(_) => self.with_headroom(),
            State::Startup | State::Drain { .. } => None,
        };
        let bounds = [long_term, self.short_term.in_flight];
        bounds.into_iter().flatten().min().unwrap_or(u64::MAX).max(MIN_WINDOW)
    }
}
