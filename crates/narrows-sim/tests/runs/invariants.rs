//! What must hold in every run, whatever the plan.

use crate::plans::{Dumbbell, at, run};
use narrows_core::cc::SPECS;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Connections, FlowStart, Pattern};
use proptest::prelude::*;

const PAIRS: u32 = 4;

fn any_flow() -> impl Strategy<Value = FlowStart> {
    let ends = (0..2 * PAIRS, 0..2 * PAIRS).prop_filter("two hosts", |(source, destination)| source != destination);
    (0u64..400, ends, 1u64..400_000, prop::option::of(1u64..3_000)).prop_map(
        |(ms, (source, destination), size, request)| FlowStart {
            request: request.map(Bytes::new),
            ..FlowStart::new(at(Span::from_ms(ms)), source, destination, Some(Bytes::new(size)))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_flow_arrives_and_none_beats_the_empty_network(
        flows in prop::collection::vec(any_flow(), 1..40),
        spec in 0..SPECS.len(),
        profile in 0..Profile::NAMED.len(),
        connections in 0..3usize,
        limit in 2u64..200,
        mark_at in prop::option::of(1u64..100),
        loss_per_mille in prop_oneof![3 => Just(0u32), 1 => 0u32..80],
        rtt_us in 20u64..20_000,
        seed in any::<u64>(),
    ) {
        let network = Dumbbell {
            pairs: PAIRS,
            access: Rate::from_gbps(1),
            rate: Rate::from_mbps(200),
            rtt: Span::from_us(rtt_us),
            limit,
            mark_at,
            profile: Profile::NAMED[profile].1,
        };
        let spec = SPECS[spec];
        let ecn = spec.ecn.is_needed() || mark_at.is_some();
        let mut plan = network.plan(spec.name, ecn, Span::from_ms(400), Pattern::List(flows.clone()));
        plan.traffic[0].connections =
            [Connections::Fresh, Connections::FreshEstablished, Connections::Persistent { pool: 1 }][connections];
        // A small window that loses its last packets again and again backs off for minutes.
        plan.schedule.drain = Span::from_secs(100_000);
        let bottleneck = network.bottleneck();
        plan.network.links[bottleneck].loss = loss_per_mille * (u32::MAX / 1000);
        let results = run(&plan, seed);

        prop_assert_eq!(results.flows.len(), flows.len());
        for flow in &results.flows {
            let fct = flow.fct_ns;
            prop_assert!(fct.is_some(), "{} left {flow:?} unfinished", spec.name);
            prop_assert!(fct >= Some(flow.ideal_fct_ns), "{flow:?} is faster than the empty network");
            prop_assert!(loss_per_mille > 0 || flow.marked_bytes == 0 || mark_at.is_some());
        }
        for port in &results.ports {
            prop_assert!(port.utilisation <= 1.0 + 1e-9, "{port:?}");
        }
        let port = &results.ports[bottleneck];
        prop_assert!(port.queue_max_bytes <= limit * 1500);
        // The same again, to the last row.
        prop_assert_eq!(run(&plan, seed), results);
    }
}
