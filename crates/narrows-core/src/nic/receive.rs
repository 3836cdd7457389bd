//! The receive queue of a network adapter: when it interrupts, and so when its host polls it.
//!
//! Adapters moderate their interrupts in two ways. A *throttle* keeps a least gap between two of them, so that a packet that
//! comes after a pause waits for nothing [Linux `e1000e`, `igb`, `ixgbe`, `i40e`: ITR]. A *delay* lets the first packet wait
//! for others, at most so many [Linux `tg3`, `bnx2`; `ethtool -C` rx-usecs, rx-frames]. An interrupt begins a poll (NAPI). A
//! host's processor takes no time here, so that a poll finds what has arrived by then, takes all of it, and is over at once.

use alloc::vec::Vec;

use crate::units::{Rate, Span, Time};

/// How packets reach a host's stack: moderation of interrupts, and what a poll merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct ReceiveOffload {
    /// Most segments merged into one; 1 merges none.
    pub segments: u8,
    /// Flows of which a poll holds a run at once; the oldest is handed up for another (Linux `MAX_GRO_SKBS`).
    pub flows: u8,
    /// Packets after which a poll hands up all that it holds, and goes on (Linux: the weight of NAPI).
    pub budget: u16,
    /// Least time between two interrupts; `None`: as drivers do at the port's rate, see [`ReceiveOffload::at`].
    pub interrupt_gap: Option<Span>,
    /// What the first packet after an interrupt waits for others.
    pub interrupt_delay: Span,
    /// So many packets do not wait longer; 0: no number does.
    pub interrupt_frames: u16,
}

impl ReceiveOffload {
    /// 64 KB are 44 full segments; runs of eight flows at once (until 4.19); a budget of 64 [Linux `net/core/dev.c`].
    pub const LINUX_4_9: ReceiveOffload = ReceiveOffload {
        segments: 44,
        flows: 8,
        budget: 64,
        interrupt_gap: None,
        interrupt_delay: Span::ZERO,
        interrupt_frames: 0,
    };

    /// Runs of eight flows in each of eight buckets of a hash table (4.19).
    pub const LINUX_6: ReceiveOffload = ReceiveOffload { flows: 64, ..ReceiveOffload::LINUX_4_9 };

    /// Up to 1 Gbit/s 20,000 interrupts per second, as drivers of that rate have under load; above, one each 8 us, as some
    /// adapters for 10 Gbit/s and more are set [Linux `igb_main.c` `igb_update_itr`, `mlx5/core/en.h`
    /// `MLX5E_PARAMS_DEFAULT_RX_CQ_MODERATION_USEC_FROM_CQE`]. Others begin at 50 us and adapt [Linux `ixgbe.h`
    /// `IXGBE_20K_ITR`].
    #[must_use]
    pub fn at(self, port: Rate) -> ReceiveOffload {
        let usual = Span::from_us(if port <= Rate::from_gbps(1) { 50 } else { 8 });
        ReceiveOffload { interrupt_gap: Some(self.interrupt_gap.unwrap_or(usual)), ..self }
    }
}

/// See the [module](self). Calls come in the order of time.
#[derive(Clone, Debug)]
pub struct ReceiveQueue<P> {
    waiting: Vec<P>,
    /// No interrupt before this.
    open: Time,
    /// When the packets that wait ask for one; [`Time::NEVER`] while none waits.
    asked: Time,
}

impl<P> Default for ReceiveQueue<P> {
    fn default() -> ReceiveQueue<P> {
        ReceiveQueue { waiting: Vec::new(), open: Time::ZERO, asked: Time::NEVER }
    }
}

impl<P> ReceiveQueue<P> {
    /// A packet has arrived. When the queue is to be [polled](Self::poll), not before now.
    #[inline]
    pub fn arrive(&mut self, now: Time, packet: P, config: &ReceiveOffload) -> Time {
        self.waiting.push(packet);
        if self.waiting.len() == usize::from(config.interrupt_frames) {
            self.asked = now;
        } else if self.waiting.len() == 1 {
            self.asked = now + config.interrupt_delay;
        }
        self.due()
    }

    /// When it is to be polled; [`Time::NEVER`] while nothing waits.
    #[inline]
    pub fn due(&self) -> Time {
        self.asked.max(self.open)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An interrupt: what waits goes into `packets`, which is empty, in the order of arrival.
    #[inline]
    pub fn poll(&mut self, now: Time, packets: &mut Vec<P>, config: &ReceiveOffload) {
        debug_assert!(packets.is_empty() && now >= self.due());
        core::mem::swap(&mut self.waiting, packets);
        self.open = now + config.interrupt_gap.unwrap_or(Span::ZERO);
        self.asked = Time::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const THROTTLED: ReceiveOffload =
        ReceiveOffload { interrupt_gap: Some(Span::from_us(50)), ..ReceiveOffload::LINUX_4_9 };
    /// As `tg3`: 20 us or 5 frames.
    const DELAYED: ReceiveOffload =
        ReceiveOffload { interrupt_gap: None, interrupt_delay: Span::from_us(20), interrupt_frames: 5, ..THROTTLED };

    /// Packets at these times: when each is polled, in their order.
    fn polled(arrivals: &[Time], config: &ReceiveOffload) -> Vec<Time> {
        let (mut queue, mut batch, mut times) = (ReceiveQueue::default(), Vec::new(), Vec::new());
        let mut numbers = Vec::new();
        let mut poll = |queue: &mut ReceiveQueue<usize>, now: Time| {
            queue.poll(now, &mut batch, config);
            times.extend(batch.iter().map(|_| now));
            numbers.append(&mut batch);
        };
        for (number, &at) in arrivals.iter().enumerate() {
            // Arrivals come before a poll at the same time.
            while queue.due() < at {
                let due = queue.due();
                poll(&mut queue, due);
            }
            if queue.arrive(at, number, config) <= at {
                poll(&mut queue, at);
            }
        }
        while !queue.is_empty() {
            let due = queue.due();
            poll(&mut queue, due);
        }
        assert_eq!(numbers, (0..arrivals.len()).collect::<Vec<_>>(), "each once, in their order");
        times
    }

    fn every(gap: Span, count: u64) -> Vec<Time> {
        (0..count).map(|number| Time::ZERO + Span::from_us(100) + gap * number).collect()
    }

    fn batches(times: &[Time]) -> Vec<usize> {
        times.chunk_by(|one, other| one == other).map(<[Time]>::len).collect()
    }

    #[test]
    fn a_throttle_lets_a_lone_packet_pass_and_a_delay_does_not() {
        let lone: Vec<Time> = every(Span::from_us(60), 10);
        assert_eq!(polled(&lone, &THROTTLED), lone);
        let late: Vec<Time> = lone.iter().map(|&at| at + Span::from_us(20)).collect();
        assert_eq!(polled(&lone, &DELAYED), late);
    }

    #[test]
    fn at_line_rate_a_poll_finds_what_comes_in_a_gap_and_packets_wait_half_of_it() {
        // 1538 bytes at 1, 10 and 100 Gbit/s: 4.06, 40.6 and 406 packets in 50 us.
        for (ps, expected) in [(12_304_000, 50_000_000.0 / 12_304_000.0), (1_230_400, 40.637), (123_040, 406.37)] {
            let arrivals = every(Span::from_ps(ps), 100_000);
            let times = polled(&arrivals, &THROTTLED);
            let sizes = batches(&times);
            // The first comes alone after a pause, the last poll finds what is left.
            let inner = &sizes[1..sizes.len() - 1];
            let mean = inner.iter().sum::<usize>() as f64 / inner.len() as f64;
            assert!((mean / expected - 1.0).abs() < 0.01, "{mean} of {expected}");
            assert!(inner.iter().all(|&size| (size as f64 - expected).abs() <= 1.0));
            let waited: f64 = times.iter().zip(&arrivals).map(|(at, came)| at.since(*came).as_ps() as f64).sum();
            let mean_us = waited / arrivals.len() as f64 / 1e6;
            // Half a gap, less half of a packet's time, as the last of a batch comes up to one before the poll.
            let least = 25.0 - ps as f64 / 2e6 - 0.2;
            assert!((least..25.2).contains(&mean_us), "{mean_us} us at {ps} ps");
        }
    }

    #[test]
    fn fast_ports_interrupt_more_often_unless_a_gap_is_stated() {
        let gap = |config: ReceiveOffload, gbps| config.at(Rate::from_gbps(gbps)).interrupt_gap.unwrap();
        assert_eq!([1, 10].map(|gbps| gap(ReceiveOffload::LINUX_6, gbps)), [50, 8].map(Span::from_us));
        let stated = ReceiveOffload { interrupt_gap: Some(Span::ZERO), ..ReceiveOffload::LINUX_6 };
        assert_eq!(gap(stated, 10), Span::ZERO);
    }

    #[test]
    fn a_number_of_frames_ends_a_delay() {
        // At 10 Gbit/s five frames come within 20 us.
        let arrivals = every(Span::from_ps(1_230_400), 100);
        let times = polled(&arrivals, &DELAYED);
        assert_eq!(batches(&times), [5; 20]);
        assert_eq!(times[0], arrivals[4]);
        // At 1 Gbit/s two come: at 0 and at 12.3 us.
        assert_eq!(batches(&polled(&every(Span::from_ps(12_304_000), 100), &DELAYED)), [2; 50]);
    }

    proptest! {
        /// No packet waits longer than the gap and the delay, none is polled twice, and interrupts keep their gap.
        #[test]
        fn waits_are_bounded_whatever_comes(
            pauses in prop::collection::vec(0_u64..100_000_000, 1..300),
            gap in 0_u64..100,
            delay in 0_u64..100,
            frames in 0_u16..20,
        ) {
            let config = ReceiveOffload {
                interrupt_gap: Some(Span::from_us(gap)),
                interrupt_delay: Span::from_us(delay),
                interrupt_frames: frames,
                ..THROTTLED
            };
            let mut now = Time::ZERO;
            let arrivals: Vec<Time> = pauses.iter().map(|&pause| { now += Span::from_ps(pause); now }).collect();
            let times = polled(&arrivals, &config);
            for (at, came) in times.iter().zip(&arrivals) {
                prop_assert!(at >= came && at.since(*came) <= Span::from_us(gap.max(delay)));
            }
            let mut polls = times.clone();
            polls.dedup();
            for pair in polls.windows(2) {
                prop_assert!(pair[1].since(pair[0]) >= Span::from_us(gap));
            }
        }
    }
}
