//! Time, rates and sizes: one canonical integer per quantity, and named rounding.
//!
//! Nothing else in the project carries a bare integer for these in a public signature. Text such as `"10Gbps"` is read
//! in `narrows-scenario`; seconds exist in Python only.

#![allow(
    clippy::cast_possible_truncation,
    reason = "128-bit intermediates; each result's range is stated where it is made"
)]

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Picoseconds since the run began. One bit at 1 Tbit/s lasts 1 ps; a `u64` lasts 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Time(u64);

/// Distance between two [`Time`]s, picoseconds. `Time - Time = Span`; `Time + Time` does not compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Span(u64);

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bytes(u64);

/// A number of packets. A TCP window is counted in these, as Linux does: a short last segment is one packet too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Packets(u64);

const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

impl Time {
    /// The beginning of the run.
    pub const ZERO: Time = Time(0);
    /// Later than everything: no deadline.
    pub const NEVER: Time = Time(u64::MAX);

    /// This many picoseconds after the run began.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// This many nanoseconds after the run began.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// Picoseconds since the run began.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds since the run began, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole microseconds since the run began, rounded down.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Whole milliseconds since the run began, rounded down: the tick of TCP timestamps and of CUBIC's clock.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000_000
    }
    /// Time since `earlier`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than everything.
    pub const MAX: Span = Span(u64::MAX);

    /// Whether it is no time at all.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }
    /// Picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }
    /// Nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns * 1_000)
    }
    /// Microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000_000)
    }
    /// Milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000_000)
    }
    /// Seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * PICOS_PER_SECOND)
    }
    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole microseconds, rounded down.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000_000
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
    /// `self * by`, or the longest span where that would overflow.
    pub const fn saturating_mul(self, by: u64) -> Span {
        Span(self.0.saturating_mul(by))
    }
    /// `self / by`, rounded down.
    pub const fn div(self, by: u64) -> Span {
        Span(self.0 / by)
    }
}

impl Rate {
    /// Bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }
    /// Megabits (10⁶ bits) per second.
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps * 1_000_000)
    }
    /// Gigabits (10⁹ bits) per second.
    pub const fn from_gbps(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// The rate that sends `size` in `span`, rounded down; a zero span counts as 1 ps.
    pub const fn of(size: Bytes, span: Span) -> Rate {
        let span = if span.0 == 0 { 1 } else { span.0 };
        let bps = quotient(size.0 as u128 * 8 * PICOS_PER_SECOND as u128, span);
        Rate(if bps > u64::MAX as u128 { u64::MAX } else { bps as u64 })
    }
    /// Serialisation time, rounded *up*: a link never beats its own rate. A zero rate never finishes.
    pub const fn time_for(self, size: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let bits = size.0 as u128 * 8 * PICOS_PER_SECOND as u128;
        Span(bits.div_ceil(self.0 as u128) as u64)
    }
    /// Whole bytes served in `span`, rounded *down*.
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes(quotient(self.0 as u128 * span.0 as u128, 8 * PICOS_PER_SECOND) as u64)
    }
    /// `self * numerator / denominator`, rounded down: gains such as 1.2 are `scaled(6, 5)`.
    pub const fn scaled(self, numerator: u64, denominator: u64) -> Rate {
        Rate(quotient(self.0 as u128 * numerator as u128, denominator) as u64)
    }
}

/// The whole part of a division. Most products fit 64 bits, in which the machine divides by itself.
const fn quotient(product: u128, divisor: u64) -> u128 {
    if product <= u64::MAX as u128 { (product as u64 / divisor) as u128 } else { product / divisor as u128 }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// A size in bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }
    /// The size in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Packets {
    /// None.
    pub const ZERO: Packets = Packets(0);
    /// A number of packets.
    pub const fn new(packets: u64) -> Packets {
        Packets(packets)
    }
    /// The number of packets.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Packets) -> Packets {
        Packets(self.0.saturating_sub(other.0))
    }
    /// These packets at `each` bytes.
    pub const fn bytes(self, each: Bytes) -> Bytes {
        Bytes(self.0 * each.0)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Saturates: "never" plus anything is never.
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}
impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, by: u64) -> Span {
        Span(self.0 * by)
    }
}

macro_rules! additive {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = $unit;
            fn add(self, other: $unit) -> $unit {
                $unit(self.0 + other.0)
            }
        }
        impl Sub for $unit {
            type Output = $unit;
            fn sub(self, other: $unit) -> $unit {
                $unit(self.0 - other.0)
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: $unit) {
                self.0 += other.0;
            }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, other: $unit) {
                self.0 -= other.0;
            }
        }
        impl Sum for $unit {
            fn sum<I: Iterator<Item = $unit>>(items: I) -> $unit {
                items.fold($unit(0), |sum, item| sum + item)
            }
        }
    )*};
}
additive!(Span, Bytes, Packets);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// The largest unit that leaves no fraction: `200us`, `4890us`, `10ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (size, unit) in [(PICOS_PER_SECOND, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")] {
            if self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}ps", self.0)
    }
}

impl fmt::Display for Rate {
    /// The largest unit that leaves no fraction: `10Gbps`, `1500Mbps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (size, unit) in [(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps")] {
            if self.0 != 0 && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}bps", self.0)
    }
}

impl fmt::Display for Bytes {
    /// The largest decimal unit that leaves no fraction: `4MB`, `1500B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (size, unit) in [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")] {
            if self.0 != 0 && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}pkt", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    #[test]
    fn a_full_frame_at_one_gigabit_lasts_12304_nanoseconds() {
        assert_eq!(Rate::from_gbps(1).time_for(Bytes::new(1538)), Span::from_ns(12_304));
    }

    #[test]
    fn units_print_without_a_fraction() {
        assert_eq!(
            format!("{} {} {}", Span::from_us(4_890), Rate::from_mbps(1_500), Bytes::new(4_000_000)),
            "4890us 1500Mbps 4MB"
        );
        assert_eq!(format!("{} {} {}", Span::from_ms(10), Rate::from_gbps(10), Bytes::new(1_500)), "10ms 10Gbps 1500B");
    }

    proptest! {
        #[test]
        fn a_link_never_beats_its_rate(bps in 1u64..400_000_000_000, size in 1u64..100_000) {
            let (rate, size) = (Rate::from_bps(bps), Bytes::new(size));
            prop_assert!(rate.bytes_in(rate.time_for(size)) >= size);
            let shorter = Span::from_ps(rate.time_for(size).as_ps() - 1);
            prop_assert!(rate.bytes_in(shorter) < size);
        }
    }
}
