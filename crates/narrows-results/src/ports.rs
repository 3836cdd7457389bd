//! A port's counters, and the looks at its backlog, become its row.

use narrows_core::queue::DropReason;
use narrows_core::units::{Bytes, Time};
use narrows_network::Counters;
use narrows_plan::Link;

use crate::rows::{PortRow, real};

impl PortRow {
    /// The row of a port whose counters were read at `now`, and reset when the measurement began. `looks` are the sampled
    /// backlogs since then, IP bytes, in any order; none where it is not sampled.
    pub fn new<B: Copy + Ord + Into<u64>>(
        port: u32,
        link: &Link,
        counters: &Counters,
        mut looks: Vec<B>,
        now: Time,
    ) -> PortRow {
        looks.sort_unstable();
        let percentile = |percent: usize| {
            let rank = (looks.len() * percent).div_ceil(100);
            looks.get(rank.saturating_sub(1)).map(|&bytes| bytes.into())
        };
        let dropped = |reason: DropReason| counters.dropped_for(reason).get();
        let measured = now.since(counters.since);
        PortRow {
            port,
            sent_packets: counters.sent.packets.get(),
            sent_bytes: counters.sent.bytes.get(),
            dropped_limit_packets: dropped(DropReason::Limit),
            dropped_pool_packets: dropped(DropReason::Pool),
            dropped_aqm_packets: dropped(DropReason::Aqm),
            dropped_outage_packets: dropped(DropReason::Outage),
            dropped_impairment_packets: dropped(DropReason::Impairment),
            lost_in_outage_packets: dropped(DropReason::Cut),
            late_packets: counters.late.get(),
            marked_packets: counters.marked.get(),
            congestion_samples: counters.samples.get(),
            paused_ns: counters.paused.as_ns(),
            longest_pause_ns: counters.longest_pause.as_ns(),
            pause_frames: counters.pause_frames.get(),
            queue_mean_bytes: real(counters.queue_mean(now).get()),
            queue_p50_bytes: percentile(50),
            queue_p99_bytes: percentile(99),
            queue_max_bytes: counters.queue_max.get(),
            utilisation: real(counters.busy(link.rate).as_ps()) / real(available(link, counters.since, now)).max(1.0),
            measured_ns: measured.as_ns(),
        }
    }
}

/// How long the line would take, at the rate with which it begins, for all that it had room for between two times.
fn available(link: &Link, from: Time, until: Time) -> u64 {
    if link.events.is_empty() {
        return until.since(from).as_ps();
    }
    let bits = link.schedule().capacity(from, until);
    link.rate.time_for(Bytes::new(bits / 8)).as_ps()
}

#[cfg(test)]
mod tests {
    use narrows_core::units::{Packets, Rate, Span};
    use narrows_plan::Role;

    use super::*;

    #[test]
    fn a_row_tells_of_the_time_since_the_reset() {
        let link = Link::new("a->b", (0, 1), Role::Edge, Rate::from_mbps(100), Span::from_us(1));
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let integral = u128::from(Span::from_ms(10).as_ps()) * 700;
        let mut counters = Counters { queue_integral: integral, since: at(5), ..Counters::default() };
        (counters.sent.bytes, counters.sent.packets) = (Bytes::new(10 * 1_462), Packets::new(10));
        let row = PortRow::new(3, &link, &counters, vec![9_u32, 1, 5, 7], at(15));
        // 15,000 bytes with their framing, of the 125,000 that 10 ms have room for.
        assert_eq!((row.port, row.measured_ns, row.utilisation), (3, 10_000_000, 0.12));
        assert_eq!((row.queue_mean_bytes, row.queue_p50_bytes, row.queue_p99_bytes), (700.0, Some(5), Some(9)));
        let unwatched =
            PortRow::new(3, &link, &Counters { since: at(5), ..Counters::default() }, Vec::<u32>::new(), at(5));
        assert_eq!((unwatched.utilisation, unwatched.queue_p50_bytes), (0.0, None));
    }
}
