//! Delivery-rate estimation [draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`].

use crate::cc::RateSample;
use crate::units::{Packets, Span, Time};

/// What a segment remembers from its transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp {
    /// Packets delivered by then.
    pub(super) delivered: u64,
    /// When the last of those was.
    delivered_at: Time,
    /// When the first segment of the current sampling interval was sent.
    first_sent_at: Time,
    app_limited: bool,
}

/// The sender's side of the estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateEstimator {
    /// Packets delivered over the connection's life.
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// The delivered count up to which samples are limited by the application; 0 for none.
    app_limited_until: u64,
}

impl RateEstimator {
    /// Packets delivered over the connection's life.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The stamp of a segment sent now; `outstanding` counts segments before it.
    pub(super) fn stamp(&mut self, now: Time, outstanding: u32) -> Stamp {
        if outstanding == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// The application has nothing to send: samples taken on what is in flight say nothing about the network.
    pub(super) fn limited_by_application(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// `packets` were delivered; `newest` is the stamp of the latest transmission among them and when it was sent.
    /// There is no sample when the interval is shorter than the minimum RTT: the acknowledgements were bunched.
    pub(super) fn sample(
        &mut self,
        now: Time,
        packets: u32,
        newest: Option<(Stamp, Time)>,
        min_rtt: Option<Span>,
    ) -> Option<RateSample> {
        self.delivered += u64::from(packets);
        if packets > 0 {
            self.delivered_at = now;
        }
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let (stamp, sent_at) = newest?;
        let sending = sent_at.since(stamp.first_sent_at);
        self.first_sent_at = sent_at;
        let interval = sending.max(now.since(stamp.delivered_at));
        if interval == Span::ZERO || min_rtt.is_some_and(|least| interval < least) {
            return None;
        }
        Some(RateSample {
            delivered: Packets::new(self.delivered - stamp.delivered),
            interval,
            prior_delivered: Packets::new(stamp.delivered),
            app_limited: stamp.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_measured_at_its_rate() {
        // One packet each 100 us, each delivered 1 ms after it left: 10,000 packets per second.
        let mut rate = RateEstimator::default();
        let mut stamps = std::collections::VecDeque::new();
        let mut last = None;
        for tick in 0..200u64 {
            let now = Time::ZERO + Span::from_us(100) * tick;
            if tick >= 10 {
                let sent: (Stamp, Time) = stamps.pop_front().unwrap();
                last = rate.sample(now, 1, Some(sent), Some(Span::from_ms(1)));
            }
            stamps.push_back((rate.stamp(now, u32::try_from(stamps.len()).unwrap()), now));
        }
        let sample = last.unwrap();
        assert_eq!(sample.delivered.get() as f64 / sample.interval.as_us() as f64, 0.01);
        assert!(!sample.app_limited);
    }
}
