//! Experiments in files, with the controllers that there are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use narrows_core::units::{Bytes, Span, Time};
use narrows_plan::{Link, NodeKind, Pattern, Plan};
use narrows_scenario::{Limits, Overrides, load, load_str};

fn experiment(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/experiments").join(name)
}

#[test]
fn files_beside_the_experiment_are_read() {
    let experiment = load(&experiment("files/experiment.toml"), &Overrides::default(), &Limits::default()).unwrap();
    assert_eq!(experiment.name, "files");
    assert_eq!(experiment.seeds, (1..=10).collect::<Vec<u64>>());
    let Pattern::Open(open) = &experiment.plans[0].traffic[0].pattern else { panic!() };
    assert_eq!((open.sizes.name.as_str(), open.sizes.mean()), ("small.cdf", 625.0));
    let Pattern::List(flows) = &experiment.plans[0].traffic[1].pattern else { panic!() };
    assert_eq!((flows[0].at, flows[0].size), (Time::ZERO + Span::from_ms(10), Some(Bytes::new(20_000))));
}

#[test]
fn an_experiment_without_a_file_cannot_name_files() {
    let text = std::fs::read_to_string(experiment("files/experiment.toml")).unwrap();
    let error = load_str(&text, &Overrides::default(), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("outside the experiment's folder"), "{error}");
    assert!(error.line_and_column().is_some());
}

/// Short and Fat's commercial workload: three TCPs, four ways to manage congestion, flow control off and on, two readings of
/// where packets count, as one sweep.
#[test]
fn a_matrix_of_controllers_congestion_management_and_flow_control_is_one_sweep() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments/cee/commercial/experiment.toml");
    let plans = load(&path, &Overrides::default(), &Limits::default()).unwrap().plans;
    let hashes: BTreeSet<String> = plans.iter().map(Plan::hash).collect();
    assert_eq!((plans.len(), hashes.len()), (4 * 2 * 3 * 2, 4 * 2 * 3 * 2), "no two are the same");
    for plan in &plans {
        let links = &plan.network.links;
        let paused =
            |link: &Link| link.ingress.is_some_and(|memory| memory.thresholds.is_some()) || link.pauses.is_some();
        assert_eq!(links.iter().any(paused), plan.arm.ends_with("pfc"));
        assert_eq!(links.iter().any(|link| link.congestion_point.is_some()), plan.arm.contains("qcn"));
        assert!(plan.traffic.iter().all(|traffic| traffic.controller.ecn == plan.arm.starts_with("red")));
        assert_eq!(plan.network.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 64);
    }
}
