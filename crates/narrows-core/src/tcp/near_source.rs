//! The near-source loop's sender: QCN's reaction point as a limiter beside the pacer, one for each connection
//! [802.1Qau; Annulus].
//!
//! A switch close to the sender says how congested its queue is. Each such notification takes the limiter's rate down at
//! once. Between notifications the rate recovers: in five cycles of fast recovery half of what is left towards the rate
//! before the cut, then in steps beyond it, small ones and after five more cycles growing ones. A cycle is a number of bytes
//! sent or a time, each with a count of its own. The limiter is gone when its rate has come to the line rate.
//!
//! It only ever limits: the connection sends at the lower of the controller's rate and this one's.
//!
//! Inside a modelled host the sender drives it, packet by packet. Beside a real one it is driven from outside, by whoever reads
//! what the kernel's connection has sent and sets its rate.

use crate::queue::congestion_point::MAX_FEEDBACK;
use crate::rng::SmallStream;
use crate::units::{Bytes, Rate, Span, Time};

/// A notification cuts by its feedback times 1/128: the largest by almost a half.
const GAIN_SHIFT: u32 = 7;
/// Cycles of fast recovery, and of small steps after it.
const THRESHOLD: u32 = 5;
/// Both cycles vary within so many percent.
const JITTER_PERCENT: u64 = 15;
/// A target so many times above the rate in the first cycle after a cut comes down to an eighth: it is out of date.
const FAR_ABOVE: u64 = 10;

/// A rate: as it is, or as a part of the host's line rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Step {
    /// This rate.
    Fixed(Rate),
    /// The line rate divided by this, at least 1.
    LineOver(u32),
}

impl Step {
    fn of(self, line: Rate) -> Rate {
        match self {
            Step::Fixed(rate) => rate,
            Step::LineOver(parts) => line.scaled(1, u64::from(parts.max(1))),
        }
    }
}

/// What the rate is when the first notification arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Start {
    /// The line rate [802.1Qau].
    LineRate,
    /// What the connection sent recently, over once to twice this span: then the first cut bites.
    Recent(Span),
}

/// Parameters of a reaction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct ReactionPoint {
    /// The cycle in bytes sent, at least 1.
    pub byte_cycle: Bytes,
    /// The cycle in time, above zero.
    pub timer: Span,
    /// What the target rises by in a cycle once fast recovery is over, `R_AI`.
    pub active: Step,
    /// What it rises by further on, times the number of the cycle, `R_HAI`.
    pub hyper_active: Step,
    /// The rate never falls below this, `R_MIN`.
    pub floor: Step,
    /// What the limiter begins at.
    pub start: Start,
    /// The limiter is forgotten after so long without a notification and without anything sent.
    pub forget: Span,
}

impl ReactionPoint {
    /// As the standard sets it for adapters that do it in hardware, at 10 Gbit/s [802.1Qau].
    pub const STANDARD: ReactionPoint = ReactionPoint {
        byte_cycle: Bytes::new(150_000),
        timer: Span::from_ms(15),
        active: Step::Fixed(Rate::from_mbps(5)),
        hyper_active: Step::Fixed(Rate::from_mbps(50)),
        floor: Step::Fixed(Rate::from_mbps(5)),
        start: Start::LineRate,
        forget: Span::from_ms(100),
    };

    /// For a host's software, on the time scale of a datacenter: docs/reference/algorithms/annulus.md says why.
    pub const SOFTWARE: ReactionPoint = ReactionPoint {
        byte_cycle: Bytes::new(150_000),
        timer: Span::from_us(500),
        active: Step::LineOver(2_000),
        hyper_active: Step::LineOver(200),
        floor: Step::LineOver(1_000),
        start: Start::Recent(Span::from_us(30)),
        forget: Span::from_ms(100),
    };
}

/// Why a notification was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// This connection does not listen.
    Off,
    /// The byte that it quotes is not in flight: it is old, was forged, or is about an acknowledgement that no data followed.
    NotInFlight,
    /// It says that there is no congestion, or more than there can be.
    Feedback,
}

/// The limit in force, and how it recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limiter {
    /// `CR`.
    rate: Rate,
    /// `TR`: where it recovers to.
    target: Rate,
    /// When the next packet may leave.
    next: Time,
    bytes_left: u64,
    byte_stage: u32,
    timer_at: Time,
    timer_stage: u32,
    heard: Time,
}

/// What was sent recently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Recent {
    /// When the span before the present one began, and what was sent in it.
    before: (Time, u64),
    /// The same of the present one.
    present: (Time, u64),
}

/// One connection's reaction point. Calls come in the order of time.
#[derive(Clone, Debug)]
pub struct NearSource {
    limiter: Option<Limiter>,
    recent: Recent,
    last_sent: Time,
    stream: SmallStream,
    /// Notifications that were taken.
    pub cuts: u32,
}

impl NearSource {
    /// Without a limit. The stream jitters its cycles.
    pub fn new(stream: SmallStream) -> NearSource {
        NearSource { limiter: None, recent: Recent::default(), last_sent: Time::ZERO, stream, cuts: 0 }
    }

    /// The limit in force, if there is one.
    #[inline]
    pub fn rate(&self) -> Option<Rate> {
        self.limiter.map(|limiter| limiter.rate)
    }

    /// When it lets the next packet go; in the past without a limit.
    #[inline]
    pub fn next(&self) -> Time {
        self.limiter.map_or(Time::ZERO, |limiter| limiter.next)
    }

    /// When its timer expires; [`Time::NEVER`] without a limit.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.limiter.map_or(Time::NEVER, |limiter| limiter.timer_at)
    }

    /// A notification with this feedback, 1 to 63. `line` is the rate of the host's own link.
    pub fn notify(&mut self, now: Time, feedback: u8, line: Rate, point: &ReactionPoint) {
        self.notify_sending(now, feedback, self.recent.rate(now), line, point);
    }

    /// The same, of a connection that is known to send at `recent` recently.
    pub fn notify_sending(&mut self, now: Time, feedback: u8, recent: Rate, line: Rate, point: &ReactionPoint) {
        self.cuts += 1;
        let floor = point.floor.of(line).min(line);
        let mut limiter = self.limiter.unwrap_or_else(|| {
            let rate = match point.start {
                Start::LineRate => line,
                Start::Recent(_) => recent.clamp(floor, line),
            };
            Limiter {
                rate,
                target: rate,
                next: now,
                bytes_left: 0,
                byte_stage: 0,
                timer_at: now,
                timer_stage: 0,
                heard: now,
            }
        });
        // A burst of notifications is one reason to remember one rate: that before the first cut.
        if limiter.byte_stage != 0 || limiter.timer_stage != 0 {
            limiter.target = limiter.rate;
        }
        (limiter.byte_stage, limiter.timer_stage) = (0, 0);
        limiter.bytes_left = self.byte_cycle(0, point);
        limiter.timer_at = now + self.timer(0, point);
        limiter.heard = now;
        let whole = 1 << GAIN_SHIFT;
        limiter.rate = limiter.rate.scaled(whole - u64::from(feedback.min(MAX_FEEDBACK)), whole).max(floor);
        self.limiter = Some(limiter);
    }

    /// The connection sent a packet of `size` IP bytes.
    #[inline]
    pub fn on_sent(&mut self, now: Time, size: Bytes, line: Rate, point: &ReactionPoint) {
        if let Start::Recent(span) = point.start {
            self.recent.note(now, size.get(), span);
        }
        self.last_sent = now;
        if self.limiter.is_some() {
            self.count(now, size, line, point);
        }
    }

    #[inline(never)]
    fn count(&mut self, now: Time, size: Bytes, line: Rate, point: &ReactionPoint) {
        let Some(mut limiter) = self.limiter else { return };
        limiter.next = limiter.next.max(now) + limiter.rate.time_for(size);
        limiter.bytes_left = limiter.bytes_left.saturating_sub(size.get());
        if limiter.bytes_left == 0 {
            limiter.byte_stage = limiter.byte_stage.saturating_add(1);
            limiter.bytes_left = self.byte_cycle(limiter.byte_stage, point);
            limiter.increase(now, line, point);
        }
        self.keep(limiter, line);
    }

    /// What its timer did up to `now`. Nobody need call it in between, unless a packet waits: as the rate rises it may go
    /// sooner.
    #[inline]
    pub fn catch_up(&mut self, now: Time, line: Rate, point: &ReactionPoint) {
        while let Some(limiter) = self.limiter.filter(|limiter| limiter.timer_at <= now) {
            self.expire(limiter, line, point);
        }
    }

    #[inline(never)]
    fn expire(&mut self, mut limiter: Limiter, line: Rate, point: &ReactionPoint) {
        let now = limiter.timer_at;
        if now.since(limiter.heard.max(self.last_sent)) >= point.forget {
            self.limiter = None;
            return;
        }
        limiter.timer_stage = limiter.timer_stage.saturating_add(1);
        limiter.timer_at = now + self.timer(limiter.timer_stage, point);
        limiter.increase(now, line, point);
        self.keep(limiter, line);
    }

    /// A limit at the line rate limits nothing.
    fn keep(&mut self, limiter: Limiter, line: Rate) {
        self.limiter = (limiter.rate < line).then_some(limiter);
    }

    fn byte_cycle(&mut self, stage: u32, point: &ReactionPoint) -> u64 {
        self.jittered(halved_late(point.byte_cycle.get(), stage)).max(1)
    }

    fn timer(&mut self, stage: u32, point: &ReactionPoint) -> Span {
        Span::from_ps(self.jittered(halved_late(point.timer.as_ps(), stage)).max(1))
    }

    /// Uniform around `mean`.
    fn jittered(&mut self, mean: u64) -> u64 {
        let least = mean / 100 * (100 - JITTER_PERCENT);
        least + self.stream.below(mean / 100 * 2 * JITTER_PERCENT + 1)
    }
}

/// Cycles are half as long once fast recovery is over.
fn halved_late(cycle: u64, stage: u32) -> u64 {
    if stage >= THRESHOLD { cycle / 2 } else { cycle }
}

impl Limiter {
    /// A cycle is over, the stages count it already. What is left to wait for the next packet shortens as the rate rises.
    fn increase(&mut self, now: Time, line: Rate, point: &ReactionPoint) {
        let before = self.rate;
        let (bytes, timer) = (self.byte_stage, self.timer_stage);
        let step = if bytes > THRESHOLD && timer > THRESHOLD {
            point.hyper_active.of(line).scaled(u64::from(bytes.min(timer) - THRESHOLD), 1)
        } else if bytes > THRESHOLD || timer > THRESHOLD {
            point.active.of(line)
        } else {
            Rate::default()
        };
        let is_first = bytes == 1 || timer == 1;
        if is_first && self.target.as_bps() > self.rate.as_bps().saturating_mul(FAR_ABOVE) {
            self.target = self.target.scaled(1, 8);
        } else {
            self.target = Rate::from_bps(self.target.as_bps().saturating_add(step.as_bps()));
        }
        self.target = self.target.min(line);
        // Rounded up, or a rate just below the line would never come to it.
        self.rate = Rate::from_bps((self.rate.as_bps() + self.target.as_bps()).div_ceil(2)).min(line).max(before);
        if self.next > now {
            let left = u128::from(self.next.since(now).as_ps()) * u128::from(before.as_bps());
            let left = left.div_ceil(u128::from(self.rate.as_bps().max(1)));
            self.next = now + Span::from_ps(u64::try_from(left).unwrap_or(u64::MAX));
        }
    }
}

impl Recent {
    #[inline]
    fn note(&mut self, now: Time, size: u64, span: Span) {
        let age = now.since(self.present.0);
        if age >= span {
            // After a pause nothing was sent recently. A connection that sends less than a packet in a span counts for one.
            let paused = age >= span * 2;
            self.before =
                if paused { (Time::from_ps(now.as_ps().saturating_sub(span.as_ps())), 0) } else { self.present };
            self.present = (now, 0);
        }
        self.present.1 += size;
    }

    /// Over what is remembered, up to `now`.
    fn rate(&self, now: Time) -> Rate {
        let ((since, before), (_, present)) = (self.before, self.present);
        let span = now.since(since);
        if span == Span::ZERO { Rate::default() } else { Rate::of(Bytes::new(before + present), span) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: Rate = Rate::from_gbps(10);
    const PACKET: Bytes = Bytes::new(1_500);

    fn fresh() -> NearSource {
        NearSource::new(SmallStream::new(7))
    }

    fn limiter(near: &NearSource) -> Limiter {
        near.limiter.expect("it limits")
    }

    /// Lets timers expire, `cycles` times, without anything sent in between.
    fn expire(near: &mut NearSource, cycles: u32, point: &ReactionPoint) -> Time {
        let mut now = Time::ZERO;
        for _ in 0..cycles {
            now = near.deadline();
            near.last_sent = now;
            near.catch_up(now, LINE, point);
        }
        now
    }

    #[test]
    fn the_largest_feedback_cuts_by_63_of_128() {
        let mut near = fresh();
        near.notify(Time::ZERO, 63, LINE, &ReactionPoint::STANDARD);
        assert_eq!(near.rate(), Some(LINE.scaled(65, 128)));
        assert_eq!(limiter(&near).target, LINE);
    }

    #[test]
    fn five_cycles_of_fast_recovery_leave_a_thirty_second_of_the_gap() {
        let mut near = fresh();
        near.notify(Time::ZERO, 63, LINE, &ReactionPoint::STANDARD);
        let cut = near.rate().unwrap();
        expire(&mut near, 5, &ReactionPoint::STANDARD);
        let gap = LINE.as_bps() - cut.as_bps();
        let left = LINE.as_bps() - near.rate().unwrap().as_bps();
        assert!(left.abs_diff(gap / 32) <= 5, "{left} of {gap}");
    }

    #[test]
    fn a_burst_of_notifications_does_not_lower_the_target() {
        let mut near = fresh();
        for _ in 0..20 {
            near.notify(Time::ZERO, 40, LINE, &ReactionPoint::STANDARD);
        }
        assert_eq!(limiter(&near).target, LINE);
        // Once a cycle is over, the rate before the cut is what it recovers to.
        expire(&mut near, 1, &ReactionPoint::STANDARD);
        let before = near.rate().unwrap();
        near.notify(Time::from_ps(1), 40, LINE, &ReactionPoint::STANDARD);
        assert_eq!(limiter(&near).target, before);
    }

    #[test]
    fn steps_are_none_then_small_then_growing() {
        let point = ReactionPoint::STANDARD;
        let mut limiter = Limiter {
            rate: Rate::from_gbps(1),
            target: Rate::from_gbps(1),
            next: Time::ZERO,
            bytes_left: 0,
            byte_stage: 0,
            timer_at: Time::ZERO,
            timer_stage: 0,
            heard: Time::ZERO,
        };
        let mut step = |bytes, timer| {
            (limiter.byte_stage, limiter.timer_stage) = (bytes, timer);
            let before = limiter.target.as_bps();
            limiter.increase(Time::ZERO, LINE, &point);
            (limiter.target.as_bps() - before) / 1_000_000
        };
        assert_eq!([step(5, 5), step(6, 5), step(2, 6), step(6, 6), step(9, 7)], [0, 5, 5, 50, 100]);
    }

    #[test]
    fn a_target_that_is_out_of_date_comes_down() {
        let mut near = fresh();
        for _ in 0..40 {
            near.notify(Time::ZERO, 63, LINE, &ReactionPoint::SOFTWARE.starting_at_line_rate());
        }
        let point = ReactionPoint::SOFTWARE.starting_at_line_rate();
        assert_eq!(near.rate(), Some(Rate::from_mbps(10)), "a thousandth of the line is the floor");
        expire(&mut near, 1, &point);
        assert_eq!(limiter(&near).target, LINE.scaled(1, 8));
    }

    impl ReactionPoint {
        const fn starting_at_line_rate(self) -> ReactionPoint {
            ReactionPoint { start: Start::LineRate, ..self }
        }
    }

    #[test]
    fn the_first_cut_is_of_what_was_sent_of_late() {
        let (mut near, point) = (fresh(), ReactionPoint::SOFTWARE);
        let rate = Rate::from_gbps(2);
        let mut now = Time::ZERO + Span::from_ms(3);
        for _ in 0..500 {
            near.on_sent(now, PACKET, LINE, &point);
            now += rate.time_for(PACKET);
        }
        near.notify(now, 32, LINE, &point);
        let cut = near.rate().unwrap().as_bps() as f64 / rate.as_bps() as f64;
        assert!((cut - 0.75).abs() < 0.08, "{cut}");
        assert!((limiter(&near).target.as_bps() as f64 / 2e9 - 1.0).abs() < 0.1);
    }

    #[test]
    fn a_wait_shortens_as_the_rate_rises() {
        let (mut near, point) = (fresh(), ReactionPoint::SOFTWARE.starting_at_line_rate());
        (0..40).for_each(|_| near.notify(Time::ZERO, 63, LINE, &point));
        near.on_sent(Time::ZERO, PACKET, LINE, &point);
        assert_eq!(near.next(), Time::ZERO + Span::from_us(1_200), "a packet at a thousandth of the line");
        let first = near.deadline();
        near.catch_up(first, LINE, &point);
        let (rate, left) = (near.rate().unwrap(), near.next().since(first));
        let sent = 1_500.0 * first.as_ns() as f64 / 1_200_000.0;
        let exact = (1_500.0 - sent) * 8e9 / rate.as_bps() as f64;
        assert!((left.as_ns() as f64 - exact).abs() < 2.0, "{left} left, and exactly {exact} ns");
    }

    #[test]
    fn a_limit_that_nobody_needs_is_forgotten() {
        let (mut near, point) = (fresh(), ReactionPoint::STANDARD);
        (0..20).for_each(|_| near.notify(Time::ZERO, 63, LINE, &point));
        while near.deadline() != Time::NEVER {
            let now = near.deadline();
            assert!(now < Time::ZERO + point.forget + Span::from_ms(20));
            near.catch_up(now, LINE, &point);
        }
        assert_eq!(near.rate(), None);
    }

    proptest! {
        /// Whoever looks at each expiry of the timer finds what one finds who looks when a packet goes or a notification comes.
        #[test]
        fn looking_seldom_changes_nothing(standard: bool, ops in prop::collection::vec((any::<bool>(), 1u8..=63, 1u64..5_000), 1..200)) {
            let point = if standard { ReactionPoint::STANDARD } else { ReactionPoint::SOFTWARE };
            let (mut often, mut seldom, mut now) = (fresh(), fresh(), Time::ZERO);
            for (told, feedback, us) in ops {
                now += Span::from_us(us);
                while often.deadline() <= now {
                    let expiry = often.deadline();
                    often.catch_up(expiry, LINE, &point);
                }
                for near in [&mut often, &mut seldom] {
                    near.catch_up(now, LINE, &point);
                    if told { near.notify(now, feedback, LINE, &point) } else { near.on_sent(now, PACKET, LINE, &point) }
                }
                prop_assert_eq!(often.limiter, seldom.limiter);
            }
        }

        /// Floor and line rate hold, nothing but a notification lowers the rate, and a rate that is left alone comes back.
        #[test]
        fn the_rate_stays_within_its_bounds(standard: bool, ops in prop::collection::vec((0u8..3, 1u8..=63, 1u64..200), 1..400)) {
            let point = if standard { ReactionPoint::STANDARD } else { ReactionPoint::SOFTWARE };
            let floor = point.floor.of(LINE);
            let (mut near, mut now) = (fresh(), Time::ZERO);
            for (op, feedback, us) in ops {
                now += Span::from_us(us);
                let before = near.rate();
                match op {
                    0 => near.notify(now, feedback, LINE, &point),
                    1 => near.on_sent(now, PACKET, LINE, &point),
                    _ => near.catch_up(now, LINE, &point),
                }
                if let Some(rate) = near.rate() {
                    prop_assert!(floor <= rate && rate < LINE);
                    prop_assert!(op == 0 || before.is_some_and(|before| before <= rate));
                    prop_assert!(near.deadline() != Time::NEVER);
                }
            }
            let mut cycles = 0;
            while near.rate().is_some() {
                now = now.max(near.deadline());
                near.on_sent(now, PACKET, LINE, &point);
                near.catch_up(now, LINE, &point);
                cycles += 1;
                prop_assert!(cycles < 20_000);
            }
        }
    }
}
