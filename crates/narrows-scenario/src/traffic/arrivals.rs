//! When flows arrive: Poisson processes, and the arithmetic that turns a load into one.

use narrows_core::rng::Stream;
use narrows_core::units::{Rate, Span, Time};

use super::sizes::unit;

/// Application bytes over wire bytes of full packets: 1448 of 1538, the Ethernet framing, preamble and gap included.
pub const GOODPUT_OVER_WIRE: f64 = 1_448.0 / 1_538.0;

/// Flows per second that put `load` on a link of `rate`, if they carry `mean` bytes and a `share` of them crosses it.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
pub fn flows_per_second(load: f64, rate: Rate, mean: f64, share: f64) -> f64 {
    load * rate.as_bps() as f64 * GOODPUT_OVER_WIRE / (8.0 * mean * share)
}

/// Share of a link of `rate` that flows take, the inverse of [`flows_per_second`].
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
pub fn load_of(flows_per_second: f64, rate: Rate, mean: f64, share: f64) -> f64 {
    flows_per_second * 8.0 * mean * share / (rate.as_bps() as f64 * GOODPUT_OVER_WIRE)
}

/// Mean time between flows at this rate, rounded to the nearest picosecond; at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating")]
pub fn interval(flows_per_second: f64) -> Span {
    Span::from_ps((libm::round(1e12 / flows_per_second) as u64).max(1))
}

/// An exponential time with this mean, rounded to the nearest picosecond.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, saturating, and a mean is known to 53 bits"
)]
pub fn exponential(mean: Span, stream: &mut Stream) -> Span {
    Span::from_ps(libm::round(-libm::log(unit(stream)) * mean.as_ps() as f64) as u64)
}

/// `count` instants uniform over `0..window`, in order: a Poisson process that is known to have so many arrivals.
pub fn uniform(count: usize, window: Span, stream: &mut Stream) -> Vec<Time> {
    let mut times: Vec<Time> = (0..count).map(|_| Time::from_ps(stream.below(window.as_ps().max(1)))).collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_percent_of_a_gigabit_is_62_web_searches_a_second() {
        let flows = flows_per_second(0.9, Rate::from_gbps(1), 1_711_250.0, 1.0);
        assert!((61.85..61.95).contains(&flows), "{flows}");
        let dci = flows_per_second(0.8, Rate::from_gbps(10), 1_711_250.0, 1.0);
        assert!((549.0..551.0).contains(&dci), "{dci}");
        assert!((load_of(flows, Rate::from_gbps(1), 1_711_250.0, 1.0) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn exponential_times_have_their_mean_and_spread() {
        let mut stream = Stream::named(1, "arrivals");
        let (count, mean) = (100_000, Span::from_ms(1));
        let times: Vec<f64> = (0..count).map(|_| exponential(mean, &mut stream).as_ps() as f64 / 1e9).collect();
        let average = times.iter().sum::<f64>() / f64::from(count);
        let square = times.iter().map(|time| time * time).sum::<f64>() / f64::from(count);
        let error = 4.0 / libm::sqrt(f64::from(count));
        assert!((average - 1.0).abs() < error, "{average}");
        assert!((square - 2.0).abs() < 5.0 * error, "{square}");
    }
}
