//! ON and OFF periods that take turns, flows in ON periods only, all lengths log-normal [Benson 2009; Benson 2010].
//!
//! The periods are in equilibrium when a run begins: it begins in an ON period with the probability of their share of
//! time, and in the period that is under way, which is chosen by its length, at a uniform moment. The times between
//! flows are in equilibrium at the begin of each ON period, so that one of length L has L / (mean gap) flows on average,
//! however short it is.

use core::ops::Range;

use narrows_core::rng::Stream;
use narrows_core::units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::arrivals::LogNormal;
use crate::sizes::unit;

/// Medians of the lengths, and what they have in common. All lengths are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OnOff {
    /// Median of the ON periods.
    pub on: Span,
    /// Median of the OFF periods.
    pub off: Span,
    /// Median of the times between flows in an ON period.
    pub gap: Span,
    /// Standard deviation of the logarithm of all three, above 0.
    pub sigma: f64,
}

impl OnOff {
    /// The part of all time that is in ON periods: of the medians as of the means, which are as many times longer.
    #[expect(clippy::cast_precision_loss, reason = "a length is known to 53 bits")]
    pub fn share(&self) -> f64 {
        self.on.as_ps() as f64 / (self.on.as_ps() as f64 + self.off.as_ps() as f64)
    }

    /// ON periods per second.
    pub fn periods_per_second(&self) -> f64 {
        self.share() * 1e12 / LogNormal::of_median(self.on, self.sigma).mean()
    }

    /// Mean time between flows, OFF periods included, rounded to the nearest picosecond.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating")]
    pub fn mean_interarrival(&self) -> Span {
        Span::from_ps(libm::round(self.gaps().mean() / self.share()) as u64)
    }

    /// Times between flows in an ON period.
    pub(crate) fn gaps(&self) -> LogNormal {
        LogNormal::of_median(self.gap, self.sigma)
    }
}

/// The ON periods of a run.
#[derive(Debug)]
pub(crate) struct Periods {
    on: LogNormal,
    off: LogNormal,
    stream: Stream,
}

impl Periods {
    /// Periods from this stream, and the first ON period of a run that begins at zero: the rest of one, or one that
    /// follows the rest of an OFF period.
    pub(crate) fn begin(of: &OnOff, mut stream: Stream) -> (Periods, Range<Time>) {
        let is_on = unit(&mut stream) < of.share();
        let [on, off] = [of.on, of.off].map(|median| LogNormal::of_median(median, of.sigma));
        let mut periods = Periods { on, off, stream };
        let first = if is_on {
            Time::ZERO..Time::ZERO + on.first(&mut periods.stream)
        } else {
            let begin = Time::ZERO + off.first(&mut periods.stream);
            periods.on_from(begin)
        };
        (periods, first)
    }

    /// The ON period after one that ended then.
    pub(crate) fn after(&mut self, end: Time) -> Range<Time> {
        let begin = end + self.off.sample(&mut self.stream);
        self.on_from(begin)
    }

    fn on_from(&mut self, begin: Time) -> Range<Time> {
        begin..begin + self.on.sample(&mut self.stream)
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::units::Bytes;

    use super::*;
    use crate::{Open, Pairs, Schedule, SizeDistribution};

    /// Of the paper's workload [CEE], where a fifth of the time is in ON periods.
    const BACKGROUND: OnOff =
        OnOff { on: Span::from_ms(5), off: Span::from_ms(20), gap: Span::from_us(500), sigma: 1.5 };

    /// Arrivals in milliseconds, of a run that is so long.
    fn arrivals(of: OnOff, seed: u64, length: Span) -> Vec<f64> {
        let open = Open {
            mean_interarrival: of.mean_interarrival(),
            sigma: None,
            on_off: Some(of),
            sizes: SizeDistribution::fixed(Bytes::new(1_000)),
            pairs: Pairs::Listed(vec![(0, 1)]),
            exact: false,
            request: None,
        };
        let schedule = Schedule { end: Time::ZERO + length, drain: Span::ZERO, warmup: Span::ZERO };
        open.flows(seed, "t", &schedule).map(|flow| flow.at.as_ps() as f64 / 1e9).collect()
    }

    /// Mean and variance.
    fn moments(values: &[f64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0))
    }

    /// Within four standard errors of the mean of these values.
    fn near(values: &[f64], expected: f64) -> bool {
        let (mean, variance) = moments(values);
        (mean - expected).abs() < 4.0 * libm::sqrt(variance / values.len() as f64)
    }

    #[test]
    fn means_have_their_closed_form() {
        // A log-normal time has the mean exp(mu + sigma²/2).
        let factor = libm::exp(1.5 * 1.5 / 2.0);
        let mean = BACKGROUND.mean_interarrival().as_ps() as f64 / 1e9;
        assert!((BACKGROUND.share() - 0.2).abs() < 1e-15);
        assert!((mean - 0.5 * factor / 0.2).abs() < 1e-9, "{mean}");
        assert!((BACKGROUND.periods_per_second() - 1e3 / (25.0 * factor)).abs() < 1e-9);
    }

    #[test]
    fn every_part_of_a_run_has_the_stated_rate() {
        let runs: Vec<Vec<f64>> = (0..20_000).map(|seed| arrivals(BACKGROUND, seed, Span::from_ms(100))).collect();
        let between = |run: &[f64], from, to| run.iter().filter(|at| (from..to).contains(*at)).count() as f64;
        let expected = 10.0 * 1e9 / BACKGROUND.mean_interarrival().as_ps() as f64;
        for begin in (0..100).step_by(10).map(f64::from) {
            let counts: Vec<f64> = runs.iter().map(|run| between(run, begin, begin + 10.0)).collect();
            assert!(near(&counts, expected), "from {begin} ms: {:?}, not {expected}", moments(&counts));
        }
        // The first tenth against the rest.
        let beyond = |run: &Vec<f64>| between(run, 0.0, 10.0) - between(run, 10.0, 100.0) / 9.0;
        let beyond: Vec<f64> = runs.iter().map(beyond).collect();
        assert!(near(&beyond, 0.0), "{:?}", moments(&beyond));
    }

    #[test]
    fn on_periods_have_their_share_of_time_from_the_start() {
        let at = [0, 300, 3_000, 30_000, 300_000].map(|us| Time::ZERO + Span::from_us(us));
        let mut on = [0.0; 5];
        let runs = 20_000;
        for seed in 0..runs {
            let (mut periods, mut period) = Periods::begin(&BACKGROUND, Stream::named(seed, "periods"));
            while period.start <= at[4] {
                on.iter_mut().zip(&at).for_each(|(on, at)| *on += f64::from(u8::from(period.contains(at))));
                period = periods.after(period.end);
            }
        }
        let error = libm::sqrt(0.2 * 0.8 / runs as f64);
        assert!(on.iter().all(|on| (on / runs as f64 - 0.2).abs() < 4.0 * error), "{on:?}");
    }

    #[test]
    fn an_on_period_has_flows_in_proportion_to_its_length() {
        // ON for longer than the run, or for very short times: flows per time in ON periods are the same.
        for on in [Span::from_secs(100), Span::from_us(40)] {
            let of = OnOff { on, off: on, gap: Span::from_us(500), sigma: 1.0 };
            let (mut flows, mut lengths) = (vec![], vec![]);
            for seed in 0..4_000 {
                let (mut periods, mut period) = Periods::begin(&of, Stream::named(seed, "traffic/t/periods"));
                let (end, mut length) = (Time::ZERO + Span::from_ms(4), Span::ZERO);
                while period.start < end {
                    length += period.end.min(end).since(period.start);
                    period = periods.after(period.end);
                }
                flows.push(arrivals(of, seed, Span::from_ms(4)).len() as f64);
                lengths.push(length.as_ps() as f64 / of.gaps().mean());
            }
            let beyond: Vec<f64> = flows.iter().zip(&lengths).map(|(flows, expected)| flows - expected).collect();
            assert!(near(&beyond, 0.0), "{on}: {:?}", moments(&beyond));
        }
    }

    #[test]
    fn flows_are_as_bursty_as_their_periods() {
        // Variance of the number of flows over its mean, in windows of 100 mean pairs of periods. Of the time in ON periods
        // the variance grows by 2 c² on² off² / (on + off)³ per time, with squared coefficients of variation
        // c² = exp(sigma²) − 1; the renewals within add c².
        let of = OnOff { sigma: 0.5, ..BACKGROUND };
        let (windows, window) = (2_000_u32, 2_833_u32);
        let length = f64::from(windows * window);
        let flows = arrivals(of, 1, Span::from_ms(u64::from(windows * window)));
        let dispersion = |width: f64| {
            let squares = flows.chunk_by(|one, other| libm::floor(one / width) == libm::floor(other / width));
            let mean = flows.len() as f64 * width / length;
            squares.map(|flows| (flows.len() * flows.len()) as f64).sum::<f64>() / flows.len() as f64 - mean
        };
        let squared = libm::exp(0.25) - 1.0;
        let expected = squared + 2.0 * squared * 5.0 * 20.0 * 20.0 / (25.0 * 25.0) / 0.5;
        let error = 4.0 * libm::sqrt(2.0 / f64::from(windows));
        assert!(
            (dispersion(window.into()) / expected - 1.0).abs() < error,
            "{}, not {expected}",
            dispersion(window.into())
        );
        // In a window in which there is hardly ever a second flow it is 1, as of any process.
        assert!((dispersion(0.002) - 1.0).abs() < 0.01, "{}", dispersion(0.002));
    }

    #[test]
    fn the_same_seed_has_the_same_periods_whatever_the_gaps_are() {
        let flows = |of, seed| arrivals(of, seed, Span::from_secs(2));
        let dense = OnOff { gap: Span::from_us(1), ..BACKGROUND };
        assert_eq!(flows(BACKGROUND, 1), flows(BACKGROUND, 1));
        assert_ne!(flows(BACKGROUND, 1), flows(BACKGROUND, 2));
        let dense = flows(dense, 1);
        // Where a flow comes once in 500 us, one comes within 100 us if it does every us.
        let next = |at: &f64| dense.partition_point(|other| other < at);
        let far = |at: &&f64| dense.get(next(at)).is_none_or(|other| other - **at > 0.1);
        let all = flows(BACKGROUND, 1);
        assert!(all.len() > 20 && all.iter().filter(far).count() <= all.len() / 20, "{}", all.len());
        assert!(dense.is_sorted() && all.is_sorted());
    }
}
