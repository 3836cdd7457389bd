//! Changes of a link at times that are known before the run: its rate, its delay, its loss, and whether it is up.
//!
//! As all are known ahead, a departure is computed when a packet enters its port, as at a link that never changes: the time
//! at which the integral of the rate, constant between changes, has come to the packet's bits.
//!
//! - **Rate**: from the time of the change on, also for the rest of a packet in service.
//! - **Delay**: of packets whose last bit leaves from then on. A wire keeps the order: what leaves after a decrease arrives
//!   no sooner than what left before.
//! - **Loss**: of packets that arrive from then on.
//! - **Outage**: what real hardware does when the carrier is lost, and no routing protocol acts on it. A packet of which a bit
//!   is to leave, or has not arrived yet, when the link goes down is lost; so is what waits at the port then, and what comes
//!   until the link is up: Linux empties a device's queues and discards what is sent to it (`dev_deactivate` in
//!   `net/sched/sch_generic.c`), and a switch flushes the port's. A packet whose last bit arrives at the very moment has
//!   arrived; one that is offered at the moment at which the link comes up is taken.
//!
//! Invariants: times ascend; outages do not overlap.

use alloc::vec;
use alloc::vec::Vec;

use crate::units::{Rate, Span, Time};

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Change {
    /// The line's rate; never zero.
    Rate(Rate),
    /// From a departure to the arrival at the far end, the stack's delay of a host included.
    Delay(Span),
    /// The probability of an independent loss, in units of 2⁻³².
    Loss(u32),
    /// It goes down.
    Down,
    /// It comes up.
    Up,
}

/// A change and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Event {
    /// When.
    pub at: Time,
    /// What.
    pub change: Change,
}

/// All that changes at one link. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    rates: Vec<(Time, Rate)>,
    delays: Vec<(Time, Span)>,
    losses: Vec<(Time, u32)>,
    outages: Vec<(Time, Time)>,
}

/// Bits times picoseconds in a second: a work of one bit, where rates are per second.
const BIT: u128 = 1_000_000_000_000;

impl Schedule {
    /// Of a link that begins with this rate, delay and loss. Of two changes of one thing at one time the later counts.
    pub fn new(rate: Rate, delay: Span, loss: u32, events: &[Event]) -> Schedule {
        let mut schedule = Schedule {
            rates: vec![(Time::ZERO, rate)],
            delays: vec![(Time::ZERO, delay)],
            losses: vec![(Time::ZERO, loss)],
            outages: Vec::new(),
        };
        let mut events = events.to_vec();
        events.sort_by_key(|event| event.at);
        for Event { at, change } in events {
            match change {
                Change::Rate(rate) => schedule.rates.push((at, rate)),
                Change::Delay(delay) => schedule.delays.push((at, delay)),
                Change::Loss(loss) => schedule.losses.push((at, loss)),
                Change::Down => schedule.outages.push((at, Time::NEVER)),
                Change::Up => {
                    if let Some(last) = schedule.outages.last_mut() {
                        last.1 = last.1.min(at);
                    }
                }
            }
        }
        schedule
    }

    /// When the last bit of `wire_bytes` has left that begin to leave at `start`, were there no outage; rounded up.
    pub fn finish(&self, start: Time, wire_bytes: u64) -> Time {
        let mut work = u128::from(wire_bytes) * 8 * BIT;
        let mut from = start;
        let mut next = self.rates.partition_point(|(at, _)| *at <= start);
        loop {
            let rate = u128::from(self.rates[next - 1].1.as_bps());
            let needed = work.div_ceil(rate);
            let until = self.rates.get(next).map_or(Time::NEVER, |(at, _)| *at);
            if needed <= u128::from(until.since(from).as_ps()) || until == Time::NEVER {
                return from + Span::from_ps(u64::try_from(needed).unwrap_or(u64::MAX));
            }
            work -= u128::from(until.since(from).as_ps()) * rate;
            (from, next) = (until, next + 1);
        }
    }

    /// The bits that the line has room for between two times, outages left out; rounded down.
    pub fn capacity(&self, from: Time, until: Time) -> u64 {
        let ends = self.rates.iter().skip(1).map(|(at, _)| *at).chain([Time::NEVER]);
        let work: u128 = (self.rates.iter().zip(ends))
            .map(|(&(begin, rate), end)| {
                let (begin, end) = (begin.max(from), end.min(until));
                let down: u64 =
                    (self.outages.iter()).map(|&(down, up)| up.min(end).since(down.max(begin)).as_ps()).sum();
                u128::from(end.since(begin).as_ps() - down) * u128::from(rate.as_bps())
            })
            .sum();
        u64::try_from(work / BIT).unwrap_or(u64::MAX)
    }

    /// The line's rate at `at`.
    pub fn rate(&self, at: Time) -> Rate {
        in_force(&self.rates, at)
    }

    /// The least and the greatest rate that it ever has.
    pub fn extreme_rates(&self) -> [Rate; 2] {
        let rates = || self.rates.iter().map(|(_, rate)| *rate);
        [rates().min(), rates().max()].map(|rate| rate.expect("it begins with one"))
    }

    /// The delay of a packet whose last bit leaves at `at`.
    pub fn delay(&self, at: Time) -> Span {
        in_force(&self.delays, at)
    }

    /// The least delay that it ever has.
    pub fn least_delay(&self) -> Span {
        self.delays.iter().map(|(_, delay)| *delay).min().unwrap_or(Span::ZERO)
    }

    /// The greatest delay that it ever has.
    pub fn greatest_delay(&self) -> Span {
        self.delays.iter().map(|(_, delay)| *delay).max().unwrap_or(Span::ZERO)
    }

    /// The probability of loss of a packet that arrives at `at`, in units of 2⁻³²; `None` if it never changes.
    pub fn loss(&self, at: Time) -> Option<u32> {
        (self.losses.len() > 1).then(|| in_force(&self.losses, at))
    }

    /// When it goes down and comes up, in order.
    pub fn outages(&self) -> &[(Time, Time)] {
        &self.outages
    }

    /// Whether it is down at `at`.
    pub fn is_down(&self, at: Time) -> bool {
        self.outages.iter().any(|&(down, up)| (down..up).contains(&at))
    }

    /// The outage that ends the service of a packet that came at `now` and would have left at `departure`: its place among
    /// outages, and when it begins.
    pub fn flushed(&self, now: Time, departure: Time) -> Option<(usize, Time)> {
        let first = self.outages.iter().position(|&(down, _)| down > now)?;
        let (down, _) = self.outages[first];
        (down <= departure).then_some((first, down))
    }

    /// Whether what left the port at `departure` was no packet that had been sent: the link went down.
    pub fn is_flushed(&self, departure: Time) -> bool {
        self.outages.iter().any(|&(down, _)| down == departure)
    }

    /// Whether the link goes down while a packet is under way.
    pub fn is_cut(&self, departure: Time, arrival: Time) -> bool {
        self.outages.iter().any(|&(down, _)| departure <= down && down < arrival)
    }
}

/// The value at a time.
fn in_force<T: Copy>(values: &[(Time, T)], at: Time) -> T {
    values[values.partition_point(|(from, _)| *from <= at) - 1].1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Bytes;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn event(us: u64, change: Change) -> Event {
        Event { at: at(us), change }
    }

    #[test]
    fn a_change_of_rate_acts_on_the_rest_of_a_packet() {
        let events = [event(8, Change::Rate(Rate::from_gbps(10))), event(9, Change::Rate(Rate::from_mbps(100)))];
        let schedule = Schedule::new(Rate::from_gbps(1), Span::ZERO, 0, &events);
        // 1,000 bytes in 8 µs, 1,250 in 1 µs, then 80 ns each.
        assert_eq!(schedule.finish(Time::ZERO, 1_000), at(8));
        assert_eq!(schedule.finish(Time::ZERO, 2_250), at(9));
        assert_eq!(schedule.finish(Time::ZERO, 2_350), at(17));
        assert_eq!(schedule.finish(at(4), 500 + 1_250 + 25), at(11));
        assert_eq!(schedule.capacity(at(4), at(11)), 8 * (500 + 1_250 + 25));
    }

    #[test]
    fn what_has_not_left_or_arrived_when_the_link_goes_down_is_lost() {
        let events = [event(10, Change::Down), event(20, Change::Up), event(30, Change::Down)];
        let schedule = Schedule::new(Rate::from_gbps(1), Span::ZERO, 0, &events);
        assert_eq!(schedule.outages(), [(at(10), at(20)), (at(30), Time::NEVER)]);
        assert_eq!(
            [9, 10, 19, 20, 29, 30, 99].map(|us| schedule.is_down(at(us))),
            [false, true, true, false, false, true, true]
        );
        assert_eq!(schedule.flushed(at(5), at(9)), None);
        assert_eq!(schedule.flushed(at(5), at(10)), Some((0, at(10))));
        assert_eq!(schedule.flushed(at(20), at(40)), Some((1, at(30))));
        assert!(!schedule.is_cut(at(5), at(10)) && schedule.is_cut(at(5), at(11)) && schedule.is_cut(at(10), at(11)));
        assert!(!schedule.is_cut(at(21), at(25)));
        assert_eq!(schedule.capacity(at(5), at(35)), 15_000);
    }

    #[test]
    fn the_last_of_several_changes_at_one_time_counts() {
        let events = [event(5, Change::Delay(Span::from_us(3))), event(5, Change::Delay(Span::from_us(7)))];
        let schedule = Schedule::new(Rate::from_gbps(1), Span::from_us(4), 0, &events);
        assert_eq!([0, 5, 6].map(|us| schedule.delay(at(us))), [4, 7, 7].map(Span::from_us));
        assert_eq!((schedule.least_delay(), schedule.loss(at(3))), (Span::from_us(3), None));
    }

    proptest! {
        /// Against the definition: at the time found, and not a picosecond before, the line has had room for the bits.
        #[test]
        fn a_packet_has_left_when_the_integral_of_the_rate_has_come_to_its_bits(
            rates in prop::collection::vec((0u64..200, 1_000_000u64..20_000_000_000), 0..8),
            start in 0u64..100,
            bytes in 84u64..10_000,
        ) {
            let events: Vec<Event> = rates.iter().map(|&(us, bps)| event(us, Change::Rate(Rate::from_bps(bps)))).collect();
            let schedule = Schedule::new(Rate::from_gbps(1), Span::ZERO, 0, &events);
            let end = schedule.finish(at(start), bytes);
            prop_assert!(schedule.capacity(at(start), end) >= 8 * bytes);
            prop_assert!(schedule.capacity(at(start), Time::from_ps(end.as_ps() - 1)) < 8 * bytes);
        }

        #[test]
        fn without_changes_it_is_the_line_s_own_time(bps in 1_000_000u64..400_000_000_000, bytes in 84u64..10_000) {
            let rate = Rate::from_bps(bps);
            let schedule = Schedule::new(rate, Span::ZERO, 0, &[]);
            prop_assert_eq!(schedule.finish(at(3), bytes), at(3) + rate.time_for(Bytes::new(bytes)));
        }
    }
}
