//! A window in fractions of a packet, for controllers whose window is a real number.

use crate::cc::Path;
use crate::units::{Packets, Span};

/// One packet, and one as a factor: 2^20.
pub const ONE: u64 = 1 << 20;
/// The largest window: 2^30 packets.
pub const MOST: u64 = ONE << 30;

/// A window in 2^-20 packets, and what an undo restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fractional {
    window: u64,
    /// Before the last cut.
    before: Option<u64>,
    /// After a timeout one packet goes, until something is acknowledged.
    is_probing: bool,
}

impl Fractional {
    /// A window of `initial` packets.
    pub fn new(initial: Packets) -> Fractional {
        let window = initial.get().saturating_mul(ONE).clamp(ONE, MOST);
        Fractional { window, before: None, is_probing: false }
    }

    /// The window in 2^-20 packets; after a timeout what it will be once something is acknowledged.
    pub fn get(&self) -> u64 {
        self.window
    }

    /// The window as the transport knows it: whole packets, at least one, and one after a timeout.
    pub fn packets(&self) -> Packets {
        if self.is_probing { Packets::new(1) } else { Packets::new((self.window / ONE).max(1)) }
    }

    /// Something was acknowledged: there is a path.
    pub fn end_probing(&mut self) {
        self.is_probing = false;
    }

    /// Adds `per_window` (2^-20 packets) for each window acknowledged; below a window of one packet for each packet.
    pub fn grow(&mut self, acked: u64, per_window: u64) {
        let whole = u128::from(acked) * u128::from(per_window);
        let step = whole * u128::from(ONE) / u128::from(self.window.max(ONE));
        self.raise(u64::try_from(step).unwrap_or(MOST));
    }

    /// Adds `step`, in 2^-20 packets.
    pub fn raise(&mut self, step: u64) {
        self.window = self.window.saturating_add(step).min(MOST);
    }

    /// Takes off `per_window` for each window acknowledged, but leaves `least`. Both in 2^-20 packets.
    pub fn shrink(&mut self, acked: u64, per_window: u64, least: u64) {
        let whole = u128::from(acked) * u128::from(per_window);
        let step = whole * u128::from(ONE) / u128::from(self.window.max(1));
        let step = u64::try_from(step).unwrap_or(MOST);
        self.window = self.window.saturating_sub(step).max(least.min(self.window));
    }

    /// Sets the window to `to` (2^-20 packets) if that is less.
    pub fn limit(&mut self, to: u64) {
        self.window = self.window.min(to.max(1));
    }

    /// Multiplies the window by `factor` (2^-20, at most 1), but leaves `least`.
    pub fn scale(&mut self, factor: u64, least: u64) {
        let scaled = u128::from(self.window) * u128::from(factor.min(ONE)) / u128::from(ONE);
        let scaled = u64::try_from(scaled).unwrap_or(MOST);
        self.window = scaled.max(least.min(self.window));
    }

    /// Remembers the window for an undo, unless it remembers one: before a cut.
    pub fn remember(&mut self) {
        self.before.get_or_insert(self.window);
    }

    /// An undo restores nothing any more.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// One packet goes until something is acknowledged.
    pub fn probe(&mut self) {
        self.is_probing = true;
    }

    /// The window before the last cut, if it was larger.
    pub fn undo(&mut self) {
        self.is_probing = false;
        self.window = self.window.max(self.before.take().unwrap_or(0));
    }

    /// The time from one packet to the next if a window is spread over `rtt`.
    pub fn spacing(&self, rtt: Span) -> Span {
        spacing(self.window, rtt)
    }
}

/// The time from one packet to the next if `window` (2^-20 packets) is spread over `rtt`.
pub fn spacing(window: u64, rtt: Span) -> Span {
    let ps = u128::from(rtt.as_ps()) * u128::from(ONE) / u128::from(window.max(1));
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// What the host's line sends in `rtt`, in 2^-20 packets.
pub fn bandwidth_delay(path: &Path, rtt: Span) -> u64 {
    let bytes = path.line_rate.bytes_in(rtt).get();
    let packets = u128::from(bytes) * u128::from(ONE) / u128::from(path.packet.get().max(1));
    u64::try_from(packets).unwrap_or(u64::MAX)
}

/// 1/√`window` as a factor of 2^-20, for a window in 2^-20 packets.
pub fn inverse_root(window: u64) -> u64 {
    (ONE << 20) / window.clamp(1, MOST >> 10).saturating_mul(ONE).isqrt().max(1)
}

/// `part`/`whole` as a factor of 2^-20, at most `most`.
pub fn ratio(part: Span, whole: Span, most: u64) -> u64 {
    let scaled = u128::from(part.as_ps()) * u128::from(ONE) / u128::from(whole.as_ps().max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_adds_one_step_per_window_and_below_one_packet_per_packet() {
        let mut window = Fractional::new(Packets::new(10));
        for _ in 0..10 {
            window.grow(1, ONE);
        }
        assert!(window.get().abs_diff(11 * ONE) < ONE / 20, "{}", window.get());
        window.limit(ONE / 4);
        window.grow(1, ONE / 4);
        assert_eq!((window.get(), window.packets().get()), (ONE / 2, 1));
    }

    #[test]
    fn roots_are_those_of_real_numbers() {
        for (window, inverse) in [(ONE, ONE), (4 * ONE, ONE / 2), (ONE / 4, 2 * ONE), (100 * ONE, ONE / 10)] {
            assert!(inverse_root(window).abs_diff(inverse) <= inverse >> 12, "{window}");
        }
    }

    #[test]
    fn a_probe_and_a_cut_are_undone() {
        let mut window = Fractional::new(Packets::new(8));
        window.remember();
        window.scale(ONE / 2, 0);
        window.probe();
        assert_eq!(window.packets().get(), 1);
        window.undo();
        assert_eq!(window.packets().get(), 8);
    }

    #[test]
    fn a_fraction_of_a_packet_is_spaced_over_more_than_an_rtt() {
        let mut window = Fractional::new(Packets::new(1));
        window.limit(ONE / 4);
        assert_eq!(window.spacing(Span::from_us(50)), Span::from_us(200));
    }
}
