//! x^0.9 in integers: the reward of a rate.
//!
//! x^0.9 = 2^(0.9·log₂ x), digit by digit. The logarithm's binary digits come from repeated squaring; the power is the product
//! of the roots 2^(1/2), 2^(1/4), … that the exponent's digits name.

/// Binary digits after the point, of logarithms.
const DIGITS: u32 = 40;
/// Binary digits after the point, of powers below two.
const MANTISSA: u32 = 62;
/// Binary digits after the point, of utilities.
pub(super) const UTILITY_BITS: u32 = 24;
/// log₂ 10⁶ (2^-40): rates are in bit/s, the utility's in Mbit/s.
const LOG_MILLION: u64 = log2(1_000_000);
/// 2^(2^-i) for i from 0 on (2^-62), each the root of the one before it, rounded down.
const ROOTS: [u64; DIGITS as usize + 1] = roots();

#[allow(clippy::cast_possible_truncation, reason = "roots of two are at most two")]
const fn roots() -> [u64; DIGITS as usize + 1] {
    let mut all = [2 << MANTISSA; DIGITS as usize + 1];
    let mut i = 1;
    while i < all.len() {
        all[i] = ((all[i - 1] as u128) << MANTISSA).isqrt() as u64;
        i += 1;
    }
    all
}

/// log₂ `x` (2^-40), rounded down; of 0 as of 1. Below the true value by at most 2^-40 and the squarings' rounding, which is
/// under 2^-61 in all: each loses at most 2^-63 of its value, and counts half as much as the one before it.
#[allow(clippy::cast_possible_truncation, reason = "a mantissa has 64 bits")]
const fn log2(x: u64) -> u64 {
    let x = if x == 0 { 1 } else { x };
    let mut log = (63 - x.leading_zeros()) as u64;
    // In [1, 2), 63 digits after the point.
    let mut mantissa = x << x.leading_zeros();
    let mut digit = 0;
    while digit < DIGITS {
        let square = (mantissa as u128 * mantissa as u128) >> 63;
        let carry = (square >> 64) as u32;
        mantissa = (square >> carry) as u64;
        log = log << 1 | carry as u64;
        digit += 1;
    }
    log
}

/// 2^`exponent` for an exponent below 62 (2^-40), rounded down: too small by at most one, and by 2^-55 of the value, as each of
/// the at most 40 products and roots loses less than 2^-61.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a product of two powers below two, whose exponents add up to less than one"
)]
fn exp2(exponent: u64) -> u64 {
    let whole = (exponent >> DIGITS).min(61);
    let mut power = 1u64 << MANTISSA;
    for (i, &root) in ROOTS.iter().enumerate().skip(1) {
        if exponent >> (DIGITS as usize - i) & 1 == 1 {
            power = ((u128::from(power) * u128::from(root)) >> MANTISSA) as u64;
        }
    }
    power >> (u64::from(MANTISSA) - whole)
}

/// x^0.9 for a rate x in Mbit/s, given in bit/s and at most 2^60 (2^-24). Wrong by at most 2^-24, and by 2^-39 of the value: each of
/// the two logarithms is short by up to 2^-40, of which 0.9·ln 2 counts, and so is their product by 0.9.
pub(super) fn reward(bps: u64) -> u64 {
    // The exponent is above zero: of 1 bit/s it is 24 - 0.9·19.9.
    let log = i128::from(log2(bps.min(1 << 60))) - i128::from(LOG_MILLION);
    let exponent = log * 9 / 10 + (i128::from(UTILITY_BITS) << DIGITS);
    exp2(u64::try_from(exponent).unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::float_arithmetic, reason = "the reference is in floats")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: f64 = (1u64 << UTILITY_BITS) as f64;

    #[test]
    fn rewards_of_round_rates_are_the_hand_computed() {
        assert_eq!(LOG_MILLION >> DIGITS, 19);
        for (mbps, power) in [(1, 1.0), (10, 7.943_282_347), (100, 63.095_734_448), (1_000, 501.187_233_627)] {
            let got = reward(mbps * 1_000_000) as f64 / ONE;
            assert!((got / power - 1.0).abs() < 1e-7, "{mbps} Mbit/s: {got}");
        }
    }

    proptest! {
        /// The stated bound, and what f64 itself is wrong by: an ulp of a logarithm of up to 40, a few of the power.
        #[test]
        fn rewards_are_within_their_stated_error(bps in 1u64..1 << 60, shift in 0u32..60) {
            let bps = (bps >> shift).max(1);
            let exact = (bps as f64 / 1e6).powf(0.9) * ONE;
            let got = reward(bps) as f64;
            prop_assert!((got - exact).abs() <= exact * (2f64.powi(-39) + 1e-14) + 1.0, "{bps}: {got} for {exact}");
        }

        /// The utility's gradient is a difference over a tenth of the rate: that is within 10^-6 of its value from 1 Mbit/s on.
        #[test]
        fn differences_are_fine_enough_for_a_gradient(kbps in 1_000u64..100_000_000) {
            let (up, down) = (kbps * 1_050, kbps * 950);
            let exact = (up as f64 / 1e6).powf(0.9) - (down as f64 / 1e6).powf(0.9);
            let got = (reward(up) - reward(down)) as f64 / ONE;
            prop_assert!((got / exact - 1.0).abs() < 2e-6, "{kbps} kbit/s: {got} {exact}");
        }

        #[test]
        fn no_rate_is_worth_less_than_a_lower_one(a in 1u64..1 << 60, b in 1u64..1 << 60) {
            prop_assert!(reward(a.min(b)) <= reward(a.max(b)));
        }
    }
}
