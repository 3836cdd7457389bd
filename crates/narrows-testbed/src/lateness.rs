//! How late things happened, as a histogram, and whether a run may count.
//!
//! A delivery that is late has not changed anything that the network computes, but the receiving host answers that much
//! later than it would have: an RTT longer than the plan's.

use narrows_core::units::Span;

/// Bits below a value's leading one that tell buckets apart: buckets are at most 1/64 of their value wide.
const FINE_BITS: u32 = 6;
const FINE: usize = 1 << FINE_BITS;
/// Values from here on, nanoseconds, share the last bucket: 18 minutes.
const LARGEST_NS: u64 = 1 << 40;
const BUCKETS: usize = (40 - FINE_BITS as usize + 1) * FINE;

/// A histogram of spans, exact up to 64 ns and to 1.6 % beyond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    most: Span,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, sum_ns: 0, most: Span::ZERO }
    }
}

impl Histogram {
    /// Takes note of one span, in whole nanoseconds.
    pub fn record(&mut self, span: Span) {
        self.counts[bucket(span.as_ns())] += 1;
        self.count += 1;
        self.sum_ns += u128::from(span.as_ns());
        self.most = self.most.max(span);
    }

    /// Takes in another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += others;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.most = self.most.max(other.most);
    }

    /// Number of spans.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest, exactly.
    pub const fn most(&self) -> Span {
        self.most
    }

    /// Their mean, rounded down; zero if there are none.
    pub fn mean(&self) -> Span {
        let mean = self.sum_ns / u128::from(self.count.max(1));
        Span::from_ns(u64::try_from(mean).unwrap_or(u64::MAX / 1_000))
    }

    /// The nearest-rank percentile, in 1/1000 of all: 990 for the 99th. Rounded up to the end of its bucket, at most the
    /// longest; zero if there are none.
    pub fn percentile(&self, thousandths: u64) -> Span {
        let rank = u64::try_from((u128::from(self.count) * u128::from(thousandths)).div_ceil(1_000));
        let rank = rank.unwrap_or(u64::MAX).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Span::from_ns(last_of(bucket)).min(self.most);
            }
        }
        Span::ZERO
    }
}

/// The bucket of a value.
#[allow(clippy::cast_possible_truncation, reason = "below the number of buckets")]
fn bucket(ns: u64) -> usize {
    let ns = ns.min(LARGEST_NS - 1);
    let octave = (64 - ns.leading_zeros()).saturating_sub(FINE_BITS + 1);
    octave as usize * FINE + (ns >> octave) as usize
}

/// The largest value of a bucket, the inverse of [`bucket`].
fn last_of(bucket: usize) -> u64 {
    let octave = (bucket / FINE).saturating_sub(1);
    let first = (bucket - octave * FINE) as u64;
    ((first + 1) << octave) - 1
}

/// How much lateness a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of 99 of 100 deliveries.
    pub p99: Span,
    /// Of any delivery.
    pub most: Span,
    /// Of 99 of 100 things that a host's application does.
    pub agents_p99: Span,
    /// How often a sender may have had nothing to send because its application was not served in time.
    pub ran_dry: u64,
}

impl Budget {
    /// For paths of milliseconds, on a machine that is not overloaded: a tick of a busy scheduler at the most, and seldom.
    pub const USUAL: Budget =
        Budget { p99: Span::from_us(500), most: Span::from_ms(20), agents_p99: Span::from_ms(1), ran_dry: 0 };
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Too many deliveries were late.
    #[error("99 of 100 packets were delivered up to {} us late, over the budget of {} us", was.as_us(), may_be.as_us())]
    OftenLate {
        /// The 99th percentile.
        was: Span,
        /// The budget's.
        may_be: Span,
    },
    /// A delivery was very late.
    #[error("a packet was delivered {} us late, over the budget of {} us", was.as_us(), may_be.as_us())]
    VeryLate {
        /// The longest lateness.
        was: Span,
        /// The budget's.
        may_be: Span,
    },
    /// Applications were late.
    #[error("hosts did 99 of 100 things up to {} us late, over the budget of {} us", was.as_us(), may_be.as_us())]
    AgentsLate {
        /// The 99th percentile.
        was: Span,
        /// The budget's.
        may_be: Span,
    },
    /// Senders were held up by this machine.
    #[error("senders waited {times} times for a processor, with nothing left to send")]
    RanDry {
        /// How often.
        times: u64,
    },
    /// Connections could not be opened, or broke.
    #[error("{connections} connections failed")]
    Failed {
        /// How many.
        connections: u64,
    },
    /// Ends did not agree on ECN.
    #[error(
        "{flows} flow{} had no ECN although the controller needs it: an end refused it; both ends need a controller that asks for ECN",
        if *flows == 1 { "" } else { "s" }
    )]
    WithoutEcn {
        /// How many.
        flows: u64,
    },
    /// A host's own port was the bottleneck.
    #[error(
        "{host}'s own port was busy {percent} % of the time, and a live host does not feel its own port: it queues there \
         what a real one holds back; let `edge` be faster than what follows"
    )]
    OwnPort {
        /// Whose.
        host: String,
        /// How busy.
        percent: u64,
    },
    /// Packets were lost between the hosts and the emulator, which the plan did not ask for.
    #[error("{packets} packets were lost outside the emulated network")]
    Lost {
        /// How many.
        packets: u64,
    },
}

/// What is judged of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// How late deliveries were.
    pub deliveries: Histogram,
    /// How late the hosts' applications did what was due.
    pub agents: Histogram,
    /// How often a sender had nothing to send because its application was not served in time.
    pub ran_dry: u64,
    /// Packets lost on the way into the network or out of it.
    pub lost_outside: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Flows whose ends did not agree on ECN although the plan says so.
    pub without_ecn: u64,
    /// The host whose own port was the busiest, and how busy it was, percent.
    pub own_port: Option<(String, u64)>,
}

/// From here on a host's own port is the bottleneck, percent of the time.
const OWN_PORT_BUSY: u64 = 90;

impl Budget {
    /// Judges a run.
    ///
    /// # Errors
    /// If it must not count: the first of the reasons.
    pub fn judge(&self, record: &Record) -> Result<(), Invalid> {
        let (p99, agents) = (record.deliveries.percentile(990), record.agents.percentile(990));
        if record.failed > 0 {
            Err(Invalid::Failed { connections: record.failed })
        } else if record.without_ecn > 0 {
            Err(Invalid::WithoutEcn { flows: record.without_ecn })
        } else if let Some((host, percent)) = record.own_port.clone().filter(|&(_, percent)| percent >= OWN_PORT_BUSY) {
            Err(Invalid::OwnPort { host, percent })
        } else if record.lost_outside > 0 {
            Err(Invalid::Lost { packets: record.lost_outside })
        } else if p99 > self.p99 {
            Err(Invalid::OftenLate { was: p99, may_be: self.p99 })
        } else if record.deliveries.most() > self.most {
            Err(Invalid::VeryLate { was: record.deliveries.most(), may_be: self.most })
        } else if agents > self.agents_p99 {
            Err(Invalid::AgentsLate { was: agents, may_be: self.agents_p99 })
        } else if record.ran_dry > self.ran_dry {
            Err(Invalid::RanDry { times: record.ran_dry })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(spans: &[Span]) -> Histogram {
        let mut histogram = Histogram::default();
        spans.iter().for_each(|&span| histogram.record(span));
        histogram
    }

    proptest! {
        #[test]
        fn percentiles_are_nearest_ranks_within_a_bucket(mut ns in prop::collection::vec(
            prop_oneof![0u64..100, 0u64..100_000, 0u64..LARGEST_NS], 1..300), thousandths in 0u64..=1_000)
        {
            let histogram = of(&ns.iter().map(|&ns| Span::from_ns(ns)).collect::<Vec<_>>());
            ns.sort_unstable();
            let rank = (ns.len() as u64 * thousandths).div_ceil(1_000).max(1);
            let exact = ns[usize::try_from(rank).unwrap() - 1];
            let given = histogram.percentile(thousandths).as_ns();
            prop_assert!(given >= exact && given <= exact + exact / 32, "{} for {}", given, exact);
            prop_assert_eq!(histogram.most().as_ns(), *ns.last().unwrap());
        }

        #[test]
        fn buckets_are_ascending_and_without_gaps(ns in 0u64..LARGEST_NS) {
            prop_assert!(bucket(ns) < BUCKETS);
            prop_assert!(last_of(bucket(ns)) >= ns);
            prop_assert!(bucket(ns) == 0 || last_of(bucket(ns) - 1) < ns);
        }
    }

    #[test]
    fn merged_histograms_are_those_of_all_spans() {
        let (early, late) = ([1, 70, 900].map(Span::from_us), [5, 6].map(Span::from_ms));
        let mut merged = of(&early);
        merged.merge(&of(&late));
        assert_eq!(merged, of(&[early.as_slice(), &late].concat()));
        assert_eq!(merged.mean(), Span::from_ns((971_000 + 11_000_000) / 5));
        assert_eq!((Histogram::default().percentile(990), Histogram::default().mean()), (Span::ZERO, Span::ZERO));
        assert_eq!(of(&[Span::from_secs(100_000)]).percentile(500), Span::from_ns(LARGEST_NS - 1));
    }

    #[test]
    fn a_run_over_its_budget_does_not_count() {
        let budget =
            Budget { p99: Span::from_us(100), most: Span::from_ms(1), agents_p99: Span::from_us(200), ran_dry: 1 };
        let prompt = vec![Span::from_us(50); 990];
        let with = |late: &[Span]| Record { deliveries: of(&[prompt.as_slice(), late].concat()), ..Record::default() };
        assert_eq!(budget.judge(&with(&[])), Ok(()));
        assert_eq!(budget.judge(&with(&[Span::from_us(900); 9])), Ok(()));
        let often = budget.judge(&with(&[Span::from_us(900); 11])).unwrap_err();
        assert!(matches!(often, Invalid::OftenLate { may_be, .. } if may_be == Span::from_us(100)));
        let very = budget.judge(&with(&[Span::from_us(1_500)])).unwrap_err();
        assert_eq!(very.to_string(), "a packet was delivered 1500 us late, over the budget of 1000 us");
        assert_eq!(budget.judge(&Record { lost_outside: 3, ..with(&[]) }), Err(Invalid::Lost { packets: 3 }));
        assert_eq!(budget.judge(&Record { failed: 1, ..with(&[]) }), Err(Invalid::Failed { connections: 1 }));
        assert_eq!(budget.judge(&Record { without_ecn: 2, ..with(&[]) }), Err(Invalid::WithoutEcn { flows: 2 }));
        let busy = |percent| budget.judge(&Record { own_port: Some(("a".into(), percent)), ..with(&[]) });
        assert_eq!(busy(89), Ok(()));
        assert_eq!(busy(90), Err(Invalid::OwnPort { host: "a".into(), percent: 90 }));
        assert_eq!(budget.judge(&Record { ran_dry: 1, ..with(&[]) }), Ok(()));
        assert_eq!(budget.judge(&Record { ran_dry: 2, ..with(&[]) }), Err(Invalid::RanDry { times: 2 }));
        let agents = budget.judge(&Record { agents: of(&[Span::from_us(300)]), ..with(&[]) }).unwrap_err();
        assert_eq!(agents.to_string(), "hosts did 99 of 100 things up to 300 us late, over the budget of 200 us");
    }
}
