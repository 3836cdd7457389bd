//! Sizes of flows: a cumulative distribution, linear between its points.

use narrows_core::rng::Stream;
use narrows_core::units::Bytes;

use crate::SizeDistribution;

/// A number uniform over the open interval from 0 to 1, with 53 bits.
pub(crate) fn unit(stream: &mut Stream) -> f64 {
    unit_of(stream.next_u64())
}

/// The same of these bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub(crate) fn unit_of(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

impl SizeDistribution {
    /// One size for all.
    pub fn fixed(size: Bytes) -> SizeDistribution {
        SizeDistribution { name: format!("fixed {size}"), points: vec![(size.get(), 0.0), (size.get(), 1.0)] }
    }

    /// Mean size, bytes.
    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53")]
    pub fn mean(&self) -> f64 {
        self.points.windows(2).map(|w| (w[1].1 - w[0].1) * (w[0].0 as f64 + w[1].0 as f64) / 2.0).sum()
    }

    /// Variance of the size, bytes².
    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53")]
    pub fn variance(&self) -> f64 {
        let square = self.points.windows(2).map(|w| {
            let (low, high) = (w[0].0 as f64, w[1].0 as f64);
            (w[1].1 - w[0].1) * (low * low + low * high + high * high) / 3.0
        });
        square.sum::<f64>() - self.mean() * self.mean()
    }

    /// The size at a cumulative probability between 0 and 1: linear interpolation, rounded down, at least 1 byte.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are positive and below 2^53"
    )]
    pub fn quantile(&self, probability: f64) -> Bytes {
        let above = self.points.partition_point(|(_, cumulative)| *cumulative < probability);
        let above = above.clamp(1, self.points.len() - 1);
        let ((low, below), (high, upto)) = (self.points[above - 1], self.points[above]);
        let share = if upto > below { ((probability - below) / (upto - below)).clamp(0.0, 1.0) } else { 1.0 };
        let size = low as f64 + share * (high - low) as f64;
        Bytes::new((libm::floor(size) as u64).max(1))
    }

    /// One size.
    pub fn sample(&self, stream: &mut Stream) -> Bytes {
        self.quantile(unit(stream))
    }

    /// `count` sizes, one from each of as many equally probable strata, in random order: their sum strays little from
    /// `count` times the mean even where the tail is heavy.
    #[expect(clippy::cast_precision_loss, reason = "numbers of flows are far below 2^53")]
    pub fn stratified(&self, count: usize, stream: &mut Stream) -> Vec<Bytes> {
        let mut sizes: Vec<Bytes> =
            (0..count).map(|stratum| self.quantile((stratum as f64 + unit(stream)) / count as f64)).collect();
        for last in (1..count).rev() {
            let other = usize::try_from(stream.below(last as u64 + 1)).expect("below a usize");
            sizes.swap(last, other);
        }
        sizes
    }
}
