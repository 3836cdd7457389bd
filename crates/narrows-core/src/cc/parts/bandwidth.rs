//! Bandwidth as Linux's BBR counts it: packets per microsecond, Q24.

use crate::units::{Bytes, Rate};

/// One packet per microsecond, of bandwidths.
pub const BANDWIDTH_ONE: u64 = 1 << 24;

/// `bandwidth`·`gain`/`one` in bits per second of IP packets of this size.
#[inline]
pub fn rate_of(bandwidth: u64, gain: u64, one: u64, packet: Bytes) -> Rate {
    let bits = u128::from(bandwidth) * u128::from(packet.get() * 8) * u128::from(gain) / u128::from(one);
    Rate::from_bps(u64::try_from((bits * 1_000_000) >> 24).unwrap_or(u64::MAX))
}

/// `bandwidth`·`rtt_us`·`gain`/`one` in packets, rounded up; with an RTT in nanoseconds, `one` is a thousand times as much.
#[inline]
pub fn product(bandwidth: u64, rtt_us: u64, gain: u64, one: u64) -> u64 {
    let product = u128::from(bandwidth) * u128::from(rtt_us) * u128::from(gain) / u128::from(one);
    u64::try_from(product.div_ceil(u128::from(BANDWIDTH_ONE))).unwrap_or(u64::MAX >> 1)
}
