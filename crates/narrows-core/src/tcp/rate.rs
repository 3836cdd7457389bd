//! Delivery-rate estimation [draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate.c`].

use crate::cc::{Lost, RateSample};
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
    /// Packets found lost by then, modulo 2³².
    lost: u32,
    /// Packets in flight, the segment included; the highest bit says that the application limited the sender: so a stamp
    /// keeps to 32 bytes.
    in_flight: u32,
}

const APP_LIMITED: u32 = 1 << 31;

impl Stamp {
    fn in_flight(&self) -> Packets {
        Packets::new(u64::from(self.in_flight & !APP_LIMITED))
    }

    fn app_limited(&self) -> bool {
        self.in_flight & APP_LIMITED != 0
    }
}

/// The sender's side of the estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateEstimator {
    /// Packets delivered over the connection's life.
    delivered: u64,
    /// Packets found lost over the connection's life.
    lost: u64,
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

    /// The stamp of a segment sent now; `outstanding` and `in_flight` count segments before it.
    pub(super) fn stamp(&mut self, now: Time, outstanding: u32, in_flight: u32) -> Stamp {
        if outstanding == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost_count(),
            in_flight: (in_flight + 1) | if self.app_limited_until != 0 { APP_LIMITED } else { 0 },
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "modulo 2³², far above what is lost in an RTT")]
    fn lost_count(&self) -> u32 {
        self.lost as u32
    }

    fn lost_since(&self, stamp: &Stamp) -> Packets {
        Packets::new(u64::from(self.lost_count().wrapping_sub(stamp.lost)))
    }

    /// The transmission with this stamp, of the segment with this number, that left at `sent_at` was found lost.
    pub(super) fn lose(&mut self, now: Time, segment: u64, stamp: &Stamp, sent_at: Time) -> Lost {
        self.lost += 1;
        Lost {
            now,
            segment,
            sent_at,
            in_flight_at_send: stamp.in_flight(),
            lost_since_send: self.lost_since(stamp),
            app_limited: stamp.app_limited(),
            delivered: Packets::new(self.delivered),
        }
    }

    /// The application has nothing to send: samples taken on what is in flight say nothing about the network.
    pub(super) fn limited_by_application(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// `packets` were delivered; `newest` is the stamp of the latest transmission among them and when it was sent.
    /// Losses that the same acknowledgement tells of are not yet counted. There is no sample when the interval is shorter than the minimum RTT: the acknowledgements were bunched.
    #[inline(always)]
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
            app_limited: stamp.app_limited(),
            in_flight_at_send: stamp.in_flight(),
            lost_since_send: self.lost_since(&stamp),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leaves while the application has nothing more says nothing of the network until all of it is delivered.
    #[test]
    fn samples_are_of_the_application_until_what_was_in_flight_is_delivered() {
        let mut rate = RateEstimator::default();
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut stamps: std::vec::Vec<(Stamp, Time)> =
            (0..8).map(|sent| (rate.stamp(at(100 * u64::from(sent)), sent, sent), at(100 * u64::from(sent)))).collect();
        for (delivered, stamp) in stamps.drain(..4).enumerate() {
            rate.sample(at(1_000 + 100 * delivered as u64), 1, Some(stamp), None);
        }
        rate.limited_by_application(4);
        // Four are delivered and four under way: what leaves now is not of the network, until more than eight are delivered.
        let mut of_application = std::vec::Vec::new();
        for more in 0..8_u64 {
            let now = at(1_400 + 100 * more);
            let left = rate.stamp(now, 4, 4);
            stamps.push((left, now));
            of_application.push(left.app_limited());
            let oldest = stamps.remove(0);
            rate.sample(now, 1, Some(oldest), None);
        }
        assert_eq!(of_application, [true, true, true, true, true, false, false, false]);
    }

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
            stamps.push_back((
                rate.stamp(now, u32::try_from(stamps.len()).unwrap(), u32::try_from(stamps.len()).unwrap()),
                now,
            ));
        }
        let sample = last.unwrap();
        assert_eq!(sample.delivered.get() as f64 / sample.interval.as_us() as f64, 0.01);
        assert!(!sample.app_limited);
    }

    /// Of ten packets, sent one after another, the third and the fifth are lost: since the third was sent 1, and since the fifth
    /// 2, which is what the sixth's sample says, too. What is sent after that has seen none.
    #[test]
    fn a_stamp_tells_what_was_in_flight_and_what_was_lost_since() {
        assert_eq!(size_of::<Stamp>(), 32, "what a window of 10⁵ packets holds of each");
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut rate = RateEstimator::default();
        let stamps: std::vec::Vec<_> = (0..10u32).map(|sent| rate.stamp(at(sent.into()), sent, sent)).collect();
        rate.limited_by_application(10);
        let told = |lost: &Lost| {
            (lost.sent_at.as_us(), lost.in_flight_at_send.get(), lost.lost_since_send.get(), lost.app_limited)
        };
        assert_eq!(told(&rate.lose(at(20), 2, &stamps[2], at(2))), (2, 3, 1, false));
        assert_eq!(told(&rate.lose(at(20), 4, &stamps[4], at(4))), (4, 5, 2, false));
        let sample = rate.sample(at(21), 1, Some((stamps[5], at(5))), None).unwrap();
        assert_eq!((sample.in_flight_at_send.get(), sample.lost_since_send.get()), (6, 2));
        let later = rate.stamp(at(22), 7, 7);
        assert_eq!(told(&rate.lose(at(30), 10, &later, at(22))), (22, 8, 1, true));
    }
}
