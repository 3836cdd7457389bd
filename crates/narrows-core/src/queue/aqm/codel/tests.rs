//! CoDel against the RFC's pseudocode, and against its control law in closed form.
#![allow(clippy::float_arithmetic, reason = "the control law, as a reference")]

use super::*;
use crate::units::Packets;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::vec::Vec;

const MS: u64 = 1_000_000_000;

fn config(target_us: u64, interval_us: u64, ecn: bool) -> Config {
    Config::checked(Span::from_us(target_us), Span::from_us(interval_us), ecn).unwrap()
}

/// What became of a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Sent(usize),
    Marked(usize),
    Dropped(usize),
}

/// A packet that waits: its number, when it came, its size, whether it is ECN-capable.
type Waiting = (usize, u64, u64, bool);

/// RFC 8289 §5, line by line, with the name of each of its variables. Times are in ps; 0 is no time. ECN as Linux has it.
#[allow(non_snake_case, reason = "the RFC's names")]
struct Pseudocode {
    queue: VecDeque<Waiting>,
    TARGET: u64,
    INTERVAL: u64,
    MAXPACKET: u64,
    ecn: bool,
    first_above_time_: u64,
    drop_next_: u64,
    count_: u32,
    lastcount_: u32,
    dropping_: bool,
    fates: Vec<Fate>,
}

struct DodequeueResult {
    p: Option<Waiting>,
    ok_to_drop: bool,
}

impl Pseudocode {
    fn new(config: Config) -> Pseudocode {
        Pseudocode {
            queue: VecDeque::new(),
            TARGET: config.target.as_ps(),
            INTERVAL: config.interval.as_ps(),
            MAXPACKET: 1_500,
            ecn: config.ecn,
            first_above_time_: 0,
            drop_next_: 0,
            count_: 0,
            lastcount_: 0,
            dropping_: false,
            fates: Vec::new(),
        }
    }

    fn bytes(&self) -> u64 {
        self.queue.iter().map(|&(_, _, size, _)| size).sum()
    }

    fn control_law(&self, t: u64, count: u32) -> u64 {
        // interval / sqrt(count), in integers: the largest gap whose square, times the count, is within the interval's.
        let (interval, count) = (u128::from(self.INTERVAL), u128::from(count));
        let (mut low, mut high) = (0u128, interval);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if middle * middle * count <= interval * interval { low = middle } else { high = middle - 1 }
        }
        t + u64::try_from(low).unwrap()
    }

    fn dodequeue(&mut self, now: u64) -> DodequeueResult {
        let mut r = DodequeueResult { ok_to_drop: false, p: self.queue.pop_front() };
        let Some((_, tstamp, ..)) = r.p else {
            self.first_above_time_ = 0;
            return r;
        };
        let sojourn_time = now - tstamp;
        if sojourn_time < self.TARGET || self.bytes() <= self.MAXPACKET {
            self.first_above_time_ = 0;
        } else if self.first_above_time_ == 0 {
            self.first_above_time_ = now + self.INTERVAL;
        } else if now >= self.first_above_time_ {
            r.ok_to_drop = true;
        }
        r
    }

    fn drop(&mut self, p: Option<Waiting>) {
        self.fates.push(Fate::Dropped(p.unwrap().0));
    }

    fn may_mark(&self, p: Option<Waiting>) -> bool {
        self.ecn && p.is_some_and(|(.., capable)| capable)
    }

    fn dequeue(&mut self, now: u64) -> Option<Waiting> {
        let mut r = self.dodequeue(now);
        let mut marked = false;
        if self.dropping_ {
            if !r.ok_to_drop {
                self.dropping_ = false;
            }
            while now >= self.drop_next_ && self.dropping_ {
                self.count_ += 1;
                if self.may_mark(r.p) {
                    marked = true;
                    self.drop_next_ = self.control_law(self.drop_next_, self.count_);
                    break;
                }
                self.drop(r.p);
                r = self.dodequeue(now);
                if r.ok_to_drop {
                    self.drop_next_ = self.control_law(self.drop_next_, self.count_);
                } else {
                    self.dropping_ = false;
                }
            }
        } else if r.ok_to_drop {
            if self.may_mark(r.p) {
                marked = true;
            } else {
                self.drop(r.p);
                r = self.dodequeue(now);
            }
            self.dropping_ = true;
            let delta = self.count_ - self.lastcount_;
            self.count_ = 1;
            if delta > 1 && now.wrapping_sub(self.drop_next_).cast_signed() < (16 * self.INTERVAL).cast_signed() {
                self.count_ = delta;
            }
            self.drop_next_ = self.control_law(now, self.count_);
            self.lastcount_ = self.count_;
        }
        if let Some((number, ..)) = r.p {
            self.fates.push(if marked { Fate::Marked(number) } else { Fate::Sent(number) });
        }
        r.p
    }
}

/// CoDel at a queue that its driver keeps.
struct Driven {
    queue: VecDeque<Waiting>,
    aqm: Codel,
    fates: Vec<Fate>,
}

impl Driven {
    fn dequeue(&mut self, now: u64) {
        while let Some((number, came, _, ecn_capable)) = self.queue.pop_front() {
            let bytes = Bytes::new(self.queue.iter().map(|&(_, _, size, _)| size).sum());
            let backlog = Backlog { bytes, packets: Packets::new(self.queue.len() as u64) };
            let sojourn = Span::from_ps(now - came);
            match self.aqm.leaves(&Departure {
                now: Time::from_ps(now),
                sojourn,
                size: Bytes::new(1_500),
                backlog,
                ecn_capable,
            }) {
                Verdict::Drop => self.fates.push(Fate::Dropped(number)),
                Verdict::Mark => return self.fates.push(Fate::Marked(number)),
                Verdict::Pass => return self.fates.push(Fate::Sent(number)),
            }
        }
    }
}

/// A packet, or a dequeue, so long after what came before.
#[derive(Clone, Copy, Debug)]
enum Step {
    Packet(u64, u64, bool),
    Dequeue(u64),
}

fn play(config: Config, steps: &[Step]) -> [Vec<Fate>; 2] {
    let mut model = Pseudocode::new(config);
    let mut driven = Driven { queue: VecDeque::new(), aqm: Codel::new(config), fates: Vec::new() };
    // The pseudocode takes 0 for no time.
    let mut now = 1;
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Packet(after, size, capable) => {
                now += after;
                model.queue.push_back((number, now, size, capable));
                driven.queue.push_back((number, now, size, capable));
            }
            Step::Dequeue(after) => {
                now += after;
                model.dequeue(now);
                driven.dequeue(now);
            }
        }
    }
    [model.fates, driven.fates]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn it_does_what_the_rfc_says(
        (target, interval, ecn) in (1u64..3_000, 0u64..5_000, any::<bool>()),
        phases in prop::collection::vec((0u64..1_000, 1u64..3 * MS, 1usize..300, any::<u64>()), 1..8),
    ) {
        let mut steps = Vec::new();
        for (load, longest, number, seed) in phases {
            let mut stream = crate::rng::SmallStream::new(seed);
            for _ in 0..number {
                let after = stream.below(longest);
                let size = [40, 576, 1_500][usize::try_from(stream.below(3)).unwrap()];
                let arrives = stream.below(1_000) < load;
                let capable = stream.below(2) == 0;
                steps.push(if arrives { Step::Packet(after, size, capable) } else { Step::Dequeue(after) });
            }
        }
        let [model, driven] = play(config(target, target + interval, ecn), &steps);
        prop_assert_eq!(model, driven);
    }
}

/// A queue that never ends: each packet that leaves has waited 20 ms.
fn overload(aqm: &mut Codel, until_ms: u64, ecn_capable: bool) -> Vec<u64> {
    let mut chosen = Vec::new();
    let backlog = Backlog { bytes: Bytes::new(150_000), packets: Packets::new(100) };
    let mut now = 0;
    while now < until_ms * MS {
        let departure = Departure {
            now: Time::from_ps(now),
            sojourn: Span::from_ms(20),
            size: Bytes::new(1_500),
            backlog,
            ecn_capable,
        };
        let verdict = aqm.leaves(&departure);
        if verdict != Verdict::Pass {
            chosen.push(now);
        }
        if verdict != Verdict::Drop {
            now += MS / 1_000;
        }
    }
    chosen
}

/// The known answer: the first drop an interval after packets waited too long, and from the nth to the next 100 ms/√n.
#[test]
fn under_a_constant_overload_drops_follow_the_square_root_law() {
    for capable in [false, true] {
        let chosen = overload(&mut Codel::new(Config::default()), 2_000, capable);
        let mut expected = 100.0;
        for (number, &at) in (1..).zip(&chosen) {
            let at_ms = at as f64 / MS as f64;
            assert!((at_ms - expected).abs() < 0.0011, "{number}: {at_ms}, not {expected}");
            expected += 100.0 / f64::from(number).sqrt();
        }
        assert!(chosen.len() > 100 && expected > 1_999.9, "none is missing at the end: {expected}");
    }
}

#[test]
fn a_short_queue_and_a_short_wait_are_good() {
    let mut aqm = Codel::new(Config::default());
    let mut at = |now_ms: u64, sojourn_ms: u64, bytes: u64| {
        let backlog = Backlog { bytes: Bytes::new(bytes), packets: Packets::new(9) };
        let (now, sojourn) = (Time::from_ps(now_ms * MS), Span::from_ms(sojourn_ms));
        aqm.leaves(&Departure { now, sojourn, size: Bytes::new(1_500), backlog, ecn_capable: false })
    };
    assert_eq!([at(0, 20, 9_000), at(99, 20, 9_000), at(99, 4, 9_000)], [Verdict::Pass; 3]);
    assert_eq!([at(100, 20, 9_000), at(199, 20, 9_000)], [Verdict::Pass; 2], "the interval begins anew");
    assert_eq!([at(199, 99, 1_500), at(299, 99, 1_501)], [Verdict::Pass; 2], "and where a packet is behind");
    assert_eq!(at(399, 5, 1_501), Verdict::Drop);
}

/// What the RFC resumes from: a state that begins soon after the last one goes on at its rate.
#[test]
fn a_dropping_state_that_begins_again_soon_goes_on_at_the_former_rate() {
    let gaps = |pause_ms: u64| {
        let mut aqm = Codel::new(Config::default());
        overload(&mut aqm, 1_000, false);
        let (former, backlog) = (aqm.count, Backlog { bytes: Bytes::new(9_000), packets: Packets::new(6) });
        let mut at = |now_ms: u64, sojourn_ms: u64| {
            let (now, sojourn) = (Time::from_ps(now_ms * MS), Span::from_ms(sojourn_ms));
            aqm.leaves(&Departure { now, sojourn, size: Bytes::new(1_500), backlog, ecn_capable: false })
        };
        at(1_001, 1);
        at(1_002 + pause_ms, 20);
        assert_eq!(at(1_102 + pause_ms, 20), Verdict::Drop);
        assert_eq!(at(1_102 + pause_ms, 20), Verdict::Pass);
        (former, aqm.count)
    };
    let (former, count) = gaps(0);
    assert!(former > 20 && count == former - 1, "{former}, {count}");
    assert_eq!(gaps(2_000).1, 1);
}
