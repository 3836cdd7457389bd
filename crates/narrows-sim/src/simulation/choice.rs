//! Which flows with a size are sampled, by name: all that a part must know of the others' flows.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use narrows_plan::flows::Name;
use narrows_plan::{Plan, SampledFlow};

/// The flows that a plan chooses.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// By traffic entry: all of it.
    whole: BTreeSet<u32>,
    some: BTreeSet<Name>,
}

impl Choice {
    pub(super) fn of(plan: &Plan, seed: u64) -> Choice {
        let mut choice = Choice::default();
        let mut numbers = BTreeSet::new();
        for flow in &plan.sampling.flows {
            match *flow {
                SampledFlow::All(traffic) => _ = choice.whole.insert(traffic),
                SampledFlow::One { traffic, sequence } => _ = choice.some.insert(Name { traffic, sequence }),
                SampledFlow::Number(number) => _ = numbers.insert(number),
            }
        }
        choice.some.extend(numbered(plan, seed, &numbers));
        choice
    }

    pub(super) fn has(&self, name: Name) -> bool {
        self.whole.contains(&name.traffic) || self.some.contains(&name)
    }
}

/// The flows of these numbers: numbers go by start, and at one time by traffic entry.
fn numbered(plan: &Plan, seed: u64, numbers: &BTreeSet<u32>) -> Vec<Name> {
    let Some(&last) = numbers.last() else { return vec![] };
    let mut flows: Vec<_> = plan.traffic.iter().map(|traffic| traffic.flows(seed, &plan.schedule)).collect();
    let first = (0..).zip(&mut flows).filter_map(|(entry, flows)| Some(Reverse((flows.next()?.at, entry, 0))));
    let mut next: BinaryHeap<Reverse<_>> = first.collect();
    let mut names = vec![];
    for number in 0..=last {
        let Some(Reverse((_, traffic, sequence))) = next.pop() else { break };
        if numbers.contains(&number) {
            names.push(Name { traffic, sequence });
        }
        let entry: u32 = traffic;
        next.extend(flows[entry as usize].next().map(|flow| Reverse((flow.at, traffic, sequence + 1))));
    }
    names
}
