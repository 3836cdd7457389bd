//! When flows arrive: Poisson processes, processes with log-normal times, and the arithmetic that turns a load into one.

use narrows_core::packet::Mtu;
use narrows_core::rng::{SmallStream, Stream};
use narrows_core::units::{Rate, Span, Time};

use super::sizes::{unit, unit_of};
use crate::Transport;

/// Application bytes over wire bytes of full packets: of 1500 bytes, 1448 of 1538, the Ethernet framing, preamble and gap
/// included; of datagrams, 1472.
#[expect(clippy::cast_precision_loss, reason = "packets are below 2^53 bytes")]
pub fn goodput_over_wire(mtu: Mtu, transport: &Transport) -> f64 {
    f64::from(transport.payload(mtu)) / mtu.frame().get() as f64
}

/// Flows per second that put `load` on a link of `rate`, if they carry `mean` bytes and a `share` of them crosses it, of which
/// `efficiency` is the [payload's part](goodput_over_wire).
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
pub fn flows_per_second(load: f64, rate: Rate, efficiency: f64, mean: f64, share: f64) -> f64 {
    load * rate.as_bps() as f64 * efficiency / (8.0 * mean * share)
}

/// Share of a link of `rate` that flows take, the inverse of [`flows_per_second`].
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
pub fn load_of(flows_per_second: f64, rate: Rate, efficiency: f64, mean: f64, share: f64) -> f64 {
    flows_per_second * 8.0 * mean * share / (rate.as_bps() as f64 * efficiency)
}

/// Mean time between flows at this rate, rounded to the nearest picosecond; at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating")]
pub fn interval(flows_per_second: f64) -> Span {
    Span::from_ps((libm::round(1e12 / flows_per_second) as u64).max(1))
}

/// Flows per second at this mean time between them, the inverse of [`interval`].
#[expect(clippy::cast_precision_loss, reason = "a mean time is known to 53 bits")]
pub fn per_second(mean: Span) -> f64 {
    1e12 / mean.as_ps().max(1) as f64
}

/// Mean time between those flows that are this share of all, rounded to the nearest picosecond.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, saturating, and a mean is known to 53 bits"
)]
pub fn thinned(mean: Span, share: f64) -> Span {
    Span::from_ps(libm::round(mean.as_ps() as f64 / share) as u64)
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

/// Times between arrivals that are log-normal: bursts, and lulls between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    /// Mean of the logarithm of the time in picoseconds.
    mu: f64,
    /// Its standard deviation.
    sigma: f64,
}

impl LogNormal {
    /// Times with this mean; `sigma` is the standard deviation of their logarithm, above 0.
    #[expect(clippy::cast_precision_loss, reason = "a mean is known to 53 bits")]
    pub fn new(mean: Span, sigma: f64) -> LogNormal {
        LogNormal { mu: libm::log(mean.as_ps() as f64) - sigma * sigma / 2.0, sigma }
    }

    /// Times with this median, above zero; `sigma` is the standard deviation of their logarithm, above 0.
    #[expect(clippy::cast_precision_loss, reason = "a median is known to 53 bits")]
    pub fn of_median(median: Span, sigma: f64) -> LogNormal {
        LogNormal { mu: libm::log(median.as_ps() as f64), sigma }
    }

    /// The mean, in picoseconds.
    pub fn mean(&self) -> f64 {
        libm::exp(self.mu + self.sigma * self.sigma / 2.0)
    }

    /// One time, rounded to the nearest picosecond.
    pub fn sample(&self, stream: &mut Stream) -> Span {
        picoseconds(libm::exp(self.mu + self.sigma * normal(stream)))
    }

    /// One time, of a small generator's first two numbers; none if the mean is none.
    pub fn draw(&self, mut stream: SmallStream) -> Span {
        let [radius, angle] = [(); 2].map(|()| unit_of(stream.next_u64()));
        picoseconds(libm::exp(self.mu + self.sigma * normal_of(radius, angle)))
    }

    /// The time from an arbitrary moment to the next arrival, of a process that has gone on for ever: a uniform part of an
    /// interval that is chosen by its length, whose logarithm has the mean mu + sigma². A process that began with a whole
    /// interval would offer too much at first, by (exp(sigma²) − 2) / 2 arrivals.
    pub fn first(&self, stream: &mut Stream) -> Span {
        let around = libm::exp(self.mu + self.sigma * self.sigma + self.sigma * normal(stream));
        picoseconds(unit(stream) * around)
    }
}

/// A normal number with mean 0 and deviation 1, from two uniform ones [Box and Muller 1958].
fn normal(stream: &mut Stream) -> f64 {
    let radius = unit(stream);
    normal_of(radius, unit(stream))
}

fn normal_of(radius: f64, angle: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * angle)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating")]
fn picoseconds(time: f64) -> Span {
    // A week is longer than any run, and far from the end of the clock.
    Span::from_ps((libm::round(time) as u64).min(604_800_000_000_000_000))
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
        let efficiency = goodput_over_wire(Mtu::ETHERNET, &Transport::Tcp);
        let flows = flows_per_second(0.9, Rate::from_gbps(1), efficiency, 1_711_250.0, 1.0);
        assert!((61.85..61.95).contains(&flows), "{flows}");
        let dci = flows_per_second(0.8, Rate::from_gbps(10), efficiency, 1_711_250.0, 1.0);
        assert!((549.0..551.0).contains(&dci), "{dci}");
        assert!((load_of(flows, Rate::from_gbps(1), efficiency, 1_711_250.0, 1.0) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn log_normal_times_have_their_mean_and_spread() {
        let mut stream = Stream::named(1, "arrivals");
        let (count, sigma) = (200_000, 0.8);
        let times = LogNormal::new(Span::from_ms(1), sigma);
        let drawn: Vec<f64> = (0..count).map(|_| times.sample(&mut stream).as_ps() as f64 / 1e9).collect();
        let average = drawn.iter().sum::<f64>() / f64::from(count);
        // The variance of a log-normal time of mean 1 is exp(sigma²) − 1.
        let error = 4.0 * libm::sqrt((libm::exp(sigma * sigma) - 1.0) / f64::from(count));
        assert!((average - 1.0).abs() < error, "{average}");
        let logs: Vec<f64> = drawn.iter().map(|time| libm::log(*time)).collect();
        let mean = logs.iter().sum::<f64>() / f64::from(count);
        let spread = libm::sqrt(logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / f64::from(count));
        assert!((mean + sigma * sigma / 2.0).abs() < 0.01 && (spread - sigma).abs() < 0.01, "{mean} {spread}");
    }

    #[test]
    fn a_log_normal_process_offers_its_rate_from_the_start() {
        // 10 mean times each; begun with a whole interval they would have 0.97 arrivals more on average.
        let (times, processes) = (LogNormal::new(Span::from_ms(1), 1.17), 20_000);
        let mut stream = Stream::named(2, "arrivals");
        let mut arrived = 0;
        for _ in 0..processes {
            let mut clock = times.first(&mut stream);
            while clock < Span::from_ms(10) {
                arrived += 1;
                clock += times.sample(&mut stream);
            }
        }
        let average = f64::from(arrived) / f64::from(processes);
        // Deviation of a count: at most sqrt(exp(sigma²) − 1) · sqrt(10) = 5.4.
        assert!((average - 10.0).abs() < 4.0 * 5.4 / libm::sqrt(f64::from(processes)), "{average}");
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
