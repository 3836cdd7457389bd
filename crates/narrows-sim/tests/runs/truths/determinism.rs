//! The same bytes out.

use narrows_core::units::Span;

use crate::plans::{Dumbbell, run};

#[test]
fn a_plan_and_a_seed_are_one_run() {
    for controller in narrows_core::cc::SPECS.iter().map(|spec| spec.name) {
        let network = Dumbbell { pairs: 3, limit: 300, mark_at: Some(60), ..Dumbbell::default() };
        let mut plan = network.long(controller, true, Span::from_ms(500));
        plan.network.links[network.bottleneck()].loss = 1 << 20;
        let first = run(&plan, 3);
        assert_eq!(first, run(&plan, 3), "{controller}");
        assert_ne!(first, run(&plan, 4), "{controller}");
    }
}
