//! Traced runs: the run is the same, and where the time of its flows went adds up.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use narrows_plan::Plan;
use narrows_results::Results;
use narrows_results::trace::{TimeRow, Trace};
use narrows_sim::{Selection, run_traced};

use crate::partition::{on_one_core, scenario};

fn traced(plan: &Plan, seed: u64, selection: Selection) -> Results {
    run_traced(plan, seed, selection, |_| ControlFlow::Continue(())).expect("a run").expect("not cancelled").results
}

fn by_flow(trace: &Trace) -> BTreeMap<u32, Vec<TimeRow>> {
    let mut flows: BTreeMap<u32, Vec<TimeRow>> = BTreeMap::new();
    trace.times.iter().for_each(|row| flows.entry(row.flow).or_default().push(*row));
    flows
}

#[test]
fn a_traced_run_is_the_run_and_the_time_of_each_flow_is_explained_to_the_nanosecond() {
    let cases = std::env::var("CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let mut reasons: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for seed in 0..cases {
        let plan = scenario(seed);
        let mut found = traced(&plan, seed, Selection::All);
        let trace = std::mem::take(&mut found.trace);
        assert!(found == on_one_core(&plan, seed), "scenario {seed}");
        let times = by_flow(&trace);
        for flow in &found.flows {
            let Some(fct_ns) = flow.fct_ns else {
                assert!(!times.contains_key(&flow.flow), "scenario {seed}: {flow:?}");
                continue;
            };
            let rows = times.get(&flow.flow).map_or(&[][..], Vec::as_slice);
            let mut until = 0;
            for row in rows {
                assert_eq!(row.from_ns, until, "scenario {seed}: {flow:?}: {rows:#?}");
                until = row.until_ns;
                let sum = reasons.entry((row.reason, row.place)).or_default();
                sum.0 += row.until_ns - row.from_ns;
                sum.1 += 1;
                if row.reason == "unknown" && std::env::var("SHOW").is_ok() {
                    println!("{seed} {:?} {:?} {:?}", row, flow, plan.traffic[flow.traffic as usize].connections);
                }
            }
            assert_eq!(until, fct_ns, "scenario {seed}: {flow:?}");
        }
    }
    println!("{reasons:#?}");
}

#[test]
fn tmp_diff() {
    let seed = std::env::var("ONE").unwrap().parse().unwrap();
    let plan = scenario(seed);
    let mut found = traced(&plan, seed, Selection::All);
    found.trace = Trace::default();
    let other = on_one_core(&plan, seed);
    println!("{} {} {} {}", found.packet_hops, other.packet_hops, found.events, other.events);
    for (a, b) in found.flows.iter().zip(&other.flows).filter(|(a, b)| a != b).take(2) {
        println!("{a:?}\n{b:?}");
    }
    println!("{}", found.flows.len() == other.flows.len());
    for (a, b) in found.ports.iter().zip(&other.ports).filter(|(a, b)| a != b).take(2) {
        println!("{a:?}\n{b:?}\n{:?}", plan.network.links[a.port as usize]);
    }
    for (a, b) in found.series.iter().zip(&other.series).filter(|(a, b)| a != b).take(2) {
        println!("{a:?}\n{b:?}");
    }
    println!("{} {}", found.requests == other.requests, found.ranks == other.ranks);
}
