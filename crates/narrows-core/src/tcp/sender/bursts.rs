//! How much may go at once: the rate of the window, the host's small queue, the pieces of segmentation offload.

use super::{Sender, TICK};
use crate::cc::Phase;
use crate::tcp::Stack;
use crate::tcp::profile::BurstSizing;
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// A piece may be held back while less than this part of the window could leave (Linux `tcp_tso_win_divisor`).
const OFFLOAD_WINDOW_DIVISOR: u64 = 3;
/// Linux's gains of a rate that paces nothing but sizes small queues and offload: percent of window per RTT, in slow
/// start and in congestion avoidance (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const SMALL_QUEUE_GAINS: (u16, u16) = (200, 120);

/// Segments of a piece at least (`tcp_min_tso_segs`).
const MIN_PIECE: u64 = 2;
/// So many pieces a second at the rate (`sk_pacing_shift`: 2¹⁰).
const PER_SECOND: u64 = 1_024;
/// Bytes of a piece at most (`GSO_LEGACY_MAX_SIZE`).
const LARGEST_PIECE: u64 = 65_536;
/// Each so many microseconds of the minimum RTT halve what a piece is longer by on short paths: 2⁹.
const HALVED_EACH_US: u64 = 512;

impl Sender {
    /// The rate that transmissions are paced at: the controller's, or the host's if it paces everyone.
    #[inline(always)]
    pub(in crate::tcp) fn pacing_rate(&self, stack: &Stack) -> Option<Rate> {
        debug_assert!(!self.never_paces || self.controller.pacing().is_none());
        if !self.never_paces
            && let Some(rate) = self.controller.pacing()
        {
            return Some(rate);
        }
        stack.profile.host_pacing.and_then(|gains| self.window_rate(gains, stack))
    }

    /// Window over RTT times a gain in percent: Linux's `sk_pacing_rate`, also of senders that do not pace.
    fn window_rate(&self, gains: (u16, u16), stack: &Stack) -> Option<Rate> {
        let srtt = self.rtt.smoothed()?;
        let window = self.window();
        let bytes = Packets::new(window.max(u64::from(self.board.outstanding()))).bytes(stack.packet());
        Some(Rate::of(bytes, srtt).scaled(self.gain(window, gains), 100))
    }

    /// Linux: the slow-start gain holds up to half the threshold, where growth still doubles the window each round.
    fn gain(&self, window: u64, (slow_start, avoidance): (u16, u16)) -> u64 {
        u64::from(if window < self.controller.slow_start_threshold().get() / 2 { slow_start } else { avoidance })
    }

    /// Whether so many bytes of this connection in its host's port are below the [limit](Self::small_queue_limit).
    #[inline(always)]
    pub(in crate::tcp) fn has_room(&self, waiting: Bytes, stack: &Stack) -> bool {
        waiting < stack.min_small_queue() || self.is_below_limit(waiting, stack)
    }

    /// The limit takes three divisions. It is kept until something changes that it follows from: it is asked for again as each
    /// packet departs.
    #[inline(always)]
    fn is_below_limit(&self, waiting: Bytes, stack: &Stack) -> bool {
        let known = self.known_limit.get();
        if known > 0 && self.is_window_open() {
            return waiting < Bytes::new(u64::from(known));
        }
        self.find_limit(waiting, stack)
    }

    #[inline(never)]
    fn find_limit(&self, waiting: Bytes, stack: &Stack) -> bool {
        let limit = self.small_queue_limit(stack);
        if self.is_window_open() && self.controller.pacing().is_none() {
            self.known_limit.set(u32::try_from(limit.get()).unwrap_or(0));
        }
        waiting < limit
    }

    /// Whether the window in force is the controller's and no less than what is out, so that the small queue's limit follows from
    /// it, the RTT and the threshold alone.
    #[inline(always)]
    fn is_window_open(&self) -> bool {
        (self.phase == Phase::Open) & (u64::from(self.board.outstanding()) <= self.controller_window)
    }

    /// Most bytes of this connection that may wait in its host's port: a millisecond's worth and no more than a number of
    /// bytes, at least two segments [Linux TCP small queues].
    pub(in crate::tcp) fn small_queue_limit(&self, stack: &Stack) -> Bytes {
        let rate = self.controller.pacing().or_else(|| self.window_rate(SMALL_QUEUE_GAINS, stack));
        rate.map_or(Bytes::new(stack.packet().get() * 10), |rate| rate.bytes_in(stack.profile.small_queue))
            .clamp(stack.min_small_queue(), stack.profile.small_queue_bytes.max(stack.min_small_queue()))
    }

    /// Segments that Linux would hand to the port in one piece: about a millisecond's worth, at least so many
    /// (`tcp_tso_autosize`).
    pub(super) fn offload_goal(&self, least: u64, stack: &Stack) -> u64 {
        let most = u64::from(stack.profile.offload_segments).max(1);
        if most == 1 {
            return 1;
        }
        let rate = self.controller.pacing().or_else(|| self.window_rate(SMALL_QUEUE_GAINS, stack));
        let sized = rate.map_or(most, |rate| match stack.profile.burst_sizing {
            BurstSizing::Linux40 | BurstSizing::Linux49 => rate.bytes_in(TICK).get() / stack.mss(),
            // Of packets' bytes, as the rate counts them, as many segments as of payload.
            BurstSizing::Linux6 => {
                let packets = rate.as_bps() / 8 / PER_SECOND;
                (packets * stack.mss() / stack.packet().get() + self.added_near()) / stack.mss()
            }
        });
        sized.clamp(least.min(most), most)
    }

    /// What pieces are longer by where the minimum RTT is short, bytes (`tcp_tso_rtt_log`).
    fn added_near(&self) -> u64 {
        let halvings = self.rtt.min().map_or(u64::MAX, |least| least.as_us() / HALVED_EACH_US);
        if halvings < 32 { LARGEST_PIECE >> halvings } else { 0 }
    }

    /// How many segments to hand over in one piece now; 0 to wait for more room (Linux `tcp_tso_should_defer`).
    #[inline]
    pub(super) fn burst(&self, now: Time, room: u64, window: u64, pacing: Option<Rate>, stack: &Stack) -> u64 {
        if pacing.is_none() && stack.profile.offload_segments <= 1 {
            return 1;
        }
        self.sized_burst(now, room, window, stack)
    }

    /// Whether pieces wait for nothing. Since Linux 4.1 they wait while marks reduce the window, when they would become single
    /// segments.
    fn sends_pieces_at_once(&self, stack: &Stack) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::EcnReduction => stack.profile.burst_sizing == BurstSizing::Linux40,
            Phase::Recovery | Phase::Loss => true,
        }
    }

    #[inline(never)]
    fn sized_burst(&self, now: Time, room: u64, window: u64, stack: &Stack) -> u64 {
        let goal = match self.controller.burst() {
            Some(burst) if self.controller.pacing().is_some() => {
                let least = burst.get().max(1);
                match stack.profile.burst_sizing {
                    BurstSizing::Linux40 | BurstSizing::Linux49 => least,
                    BurstSizing::Linux6 => self.offload_goal(least, stack),
                }
            }
            _ => self.offload_goal(MIN_PIECE, stack),
        };
        if goal <= 1 {
            return 1;
        }
        let left = self.offered.since(self.nxt).div_ceil(stack.mss());
        let burst = match stack.profile.burst_sizing {
            BurstSizing::Linux40 | BurstSizing::Linux49 => goal.min(room).min(left),
            // Two pieces at least share the window (Linux `tcp_cwnd_test`).
            BurstSizing::Linux6 => goal.min(room).min((window / 2).max(1)).min(left),
        };
        let head_is_young = |srtt: Span| {
            let sent_at = self.board.oldest_sent_at().unwrap_or(now);
            now.since(sent_at) < srtt.div(2)
        };
        let at_once = room >= goal
            || burst == left
            || room * OFFLOAD_WINDOW_DIVISOR >= window
            || self.sends_pieces_at_once(stack)
            || self.idle(now) > TICK
            // No acknowledgement is due soon: waiting would cost more than it brings.
            || self.rtt.smoothed().is_none_or(head_is_young)
            || self.board.in_flight() == 0;
        if at_once { burst } else { 0 }
    }
}
