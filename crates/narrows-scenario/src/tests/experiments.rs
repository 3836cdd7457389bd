//! The papers' set-ups, expanded.

use super::*;
use crate::load::offered_load;
use crate::plan::{Pattern, Plan, Role};

const FIG13: &str = include_str!("../../tests/experiments/gemini-fig13.toml");

fn max_load(plan: &Plan, role: Role) -> f64 {
    let load = offered_load(plan).unwrap();
    plan.network.links.iter().zip(load).filter(|(link, _)| link.role == role).map(|(_, load)| load).fold(0.0, f64::max)
}

#[test]
fn pattern_one_loads_the_wan_ninety_percent_each_way() {
    let plans = plans(FIG13);
    for plan in &plans {
        assert_eq!(plan.traffic.len(), 2);
        for traffic in &plan.traffic {
            let Pattern::Open(open) = &traffic.pattern else { panic!("{traffic:?}") };
            let per_second = 1e12 / open.mean_interarrival.as_ps() as f64;
            assert!((61.85..61.95).contains(&per_second), "{per_second}");
        }
        assert!((max_load(plan, Role::Wan) - 0.9).abs() < 1e-9);
        assert!((max_load(plan, Role::Fabric) - 0.45).abs() < 1e-9);
        assert!((max_load(plan, Role::Host) - 0.1125).abs() < 1e-9);
        assert!((max_load(plan, Role::Edge) - 0.1125).abs() < 1e-9);
    }
}
