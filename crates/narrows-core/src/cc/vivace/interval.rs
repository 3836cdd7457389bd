//! A monitor interval: what was sent at one rate, what became of it, and its utility.

use super::power::{UTILITY_BITS, reward};
use crate::units::{Rate, Span, Time};

/// One, of coefficients, RTT gradients and shares of loss.
pub(super) const ONE: u64 = 1 << 20;
/// Gradients smaller than 0.01 count as none [WebRTC pcc].
const TOLERANCE: i128 = ONE as i128 / 100;
/// Sums stay below 2^127 if times and RTTs are below 2^32 ns, about 4 s, and samples fewer than this.
const MAX_SAMPLES: i128 = 1 << 20;

/// The line through the RTTs of an interval's packets, over the times at which they left, by least squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slope {
    samples: i128,
    /// Sums, nanoseconds: of times since the interval's start, of RTTs beyond the first one's, of products of both and of squares
    /// of the times.
    times: i128,
    rtts: i128,
    products: i128,
    squares: i128,
    first: i128,
}

impl Slope {
    /// A packet left `after` the interval's start, and its RTT was `rtt`.
    pub(super) fn add(&mut self, after: Span, rtt: Span) {
        if self.samples == MAX_SAMPLES {
            return;
        }
        let bounded = |span: Span| i128::from(span.as_ns().min(u64::from(u32::MAX)));
        let (time, rtt) = (bounded(after), bounded(rtt));
        if self.samples == 0 {
            self.first = rtt;
        }
        let rtt = rtt - self.first;
        self.samples += 1;
        self.times += time;
        self.rtts += rtt;
        self.products += time * rtt;
        self.squares += time * time;
    }

    /// dRTT/dt (2^-20), rounded towards zero; 0 of less than two packets, or of packets that left at one moment.
    pub(super) fn get(&self) -> i128 {
        let over = self.samples * self.squares - self.times * self.times;
        let rise = self.samples * self.products - self.times * self.rtts;
        if over > 0 { rise * i128::from(ONE) / over } else { 0 }
    }
}

/// What a rate is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Utility {
    /// b (2^-20).
    pub(super) latency: u64,
    /// c (2^-20).
    pub(super) loss: u64,
    /// Whether a falling RTT is worth something.
    pub(super) rewards_falling: bool,
}

impl Utility {
    /// u = x^0.9 - b·x·max(0, dRTT/dt) - c·x·L, or with dRTT/dt itself (2^-24), x in Mbit/s; `gradient` and `lost`, L, in 2^-20
    /// [PCC Vivace; PCC-Uspace].
    pub(super) fn of(&self, bps: u64, gradient: i128, lost: u64) -> i128 {
        let least = if self.rewards_falling { -(1 << 40) } else { 0 };
        let gradient = gradient.clamp(least, 1 << 40);
        let gradient = if gradient.abs() < TOLERANCE { 0 } else { gradient };
        // The product of two numbers in 2^-20 is in 2^-40.
        let per_mbit = i128::from(self.latency) * gradient + i128::from(self.loss) * i128::from(lost);
        let penalty = (per_mbit >> (40 - UTILITY_BITS)).saturating_mul(i128::from(bps)) / 1_000_000;
        // In range, so that a difference of two can be scaled to bit/s.
        i128::from(reward(bps)).saturating_sub(penalty).clamp(i64::MIN.into(), i64::MAX.into())
    }
}

/// A monitor interval, in the order of its life: planned, sent, seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// What it is sent at.
    pub(super) rate: Rate,
    /// When its first packet left, and when the first after it did.
    pub(super) began: Option<Time>,
    pub(super) ended: Option<Time>,
    slope: Slope,
    delivered: u64,
    lost: u64,
}

impl Interval {
    /// One that is to be sent at `rate`.
    pub(super) fn at(rate: Rate) -> Interval {
        Interval { rate, began: None, ended: None, slope: Slope::default(), delivered: 0, lost: 0 }
    }

    fn has(&self, sent_at: Time) -> bool {
        self.began.is_some_and(|began| sent_at >= began) && self.ended.is_none_or(|ended| sent_at < ended)
    }

    /// A packet that left at `sent_at` had this RTT.
    pub(super) fn take_rtt(&mut self, sent_at: Time, rtt: Span) {
        if let Some(began) = self.began.filter(|_| self.has(sent_at)) {
            self.slope.add(sent_at.since(began), rtt);
        }
    }

    /// So many packets that left at about `sent_at` have arrived.
    pub(super) fn take_delivered(&mut self, sent_at: Time, packets: u64) {
        if self.has(sent_at) {
            self.delivered += packets;
        }
    }

    /// A packet that left at `sent_at` is lost.
    pub(super) fn take_lost(&mut self, sent_at: Time) {
        self.lost += u64::from(self.has(sent_at));
    }

    /// Whether what left at `sent_at` left after it.
    pub(super) fn is_before(&self, sent_at: Time) -> bool {
        self.ended.is_some_and(|ended| sent_at >= ended)
    }

    /// L, the share of its packets that is lost (2^-20).
    pub(super) fn lost(&self) -> u64 {
        let share = u128::from(self.lost) * u128::from(ONE) / u128::from((self.lost + self.delivered).max(1));
        u64::try_from(share).unwrap_or(ONE)
    }

    /// Its utility (2^-24).
    pub(super) fn utility(&self, utility: &Utility) -> i128 {
        utility.of(self.rate.as_bps(), self.slope.get(), self.lost())
    }
}
