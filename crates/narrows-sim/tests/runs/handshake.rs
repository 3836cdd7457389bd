//! What a flow waits for before its first byte, and for retransmission timers, against closed forms.

use crate::plans::{Dumbbell, flow, run, smooth};
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Span};
use narrows_plan::{Connections, Pattern, Plan};
use narrows_results::FlowRow;

const RTT: u64 = 10_000_000;
/// A SYN and its answer of 98 bytes each over a bottleneck of 1 Gbit/s and two ports of 10 Gbit/s.
const SERIALISATION: u64 = 2 * (784 + 2 * 78);
const INITIAL_RTO: u64 = 1_000_000_000;

/// Hosts without tail probes: one retransmission timer at a time. Flows of `size` bytes, every second one asked for; no two
/// meet, though some wait for seconds. `loss` is of packets towards the second host, in units of 2⁻³².
fn plan(size: u64, loss: u32) -> Plan {
    let network = Dumbbell { profile: smooth(Profile::DCTCP_2010), ..Dumbbell::default() };
    let flows = (0..200).map(|number| {
        let mut flow = flow(Span::from_us(504_300 * number), 0, 1, Some(size));
        flow.request = (number % 2 == 1).then_some(Bytes::new(100));
        (flow.source, flow.destination) = if flow.request.is_some() { (1, 0) } else { (0, 1) };
        flow
    });
    let mut plan = network.plan("newreno", false, Span::from_secs(110), Pattern::List(flows.collect()));
    plan.schedule.drain = Span::from_secs(1_000);
    let bottleneck = &mut plan.network.links[network.bottleneck()];
    bottleneck.loss = loss;
    plan
}

fn handshake(row: &FlowRow) -> u64 {
    row.handshake_ns.expect("its connection was opened for it")
}

#[test]
fn without_loss_a_handshake_is_a_round_trip() {
    for row in run(&plan(100_000, 0), 1).flows {
        assert!(handshake(&row).abs_diff(RTT + SERIALISATION) <= 10, "{row:?}");
        assert_eq!((row.syn_retransmits, row.rto_wait_ns), (Some(0), Some(0)));
        // Half an RTT and a full segment's serialisation; before that, the request's way.
        let legs = if row.flow % 2 == 0 { 1 } else { 2 };
        let first = row.first_byte_ns.expect("it finished") - handshake(&row);
        assert!((legs * RTT / 2..legs * RTT / 2 + 20_000).contains(&first), "{row:?}");
    }
}

#[test]
fn a_lost_syn_costs_the_initial_timeout_and_each_further_one_twice_as_much() {
    let mut most = 0;
    for row in run(&plan(1_000, u32::MAX / 5 * 2), 1).flows {
        let lost = row.syn_retransmits.expect("the simulator knows");
        let waited = INITIAL_RTO * ((1 << lost) - 1);
        assert!(handshake(&row).abs_diff(RTT + SERIALISATION + waited) <= 10, "{row:?}");
        // The rest is the ideal transfer, and what the sender's or the request's timer waited. Acknowledgements of what was
        // asked for are lost too, and a timer may expire for one of them.
        let (fct, wait) = (row.fct_ns.expect("it finished"), row.rto_wait_ns.expect("the simulator knows"));
        if row.flow % 2 == 0 || row.timeouts == 0 {
            // A repeated SYN-ACK, or its acknowledgement, may be ahead in a port.
            assert!((fct - handshake(&row)).abs_diff(row.ideal_fct_ns + wait - waited) < 2_000, "{row:?}");
        }
        assert_eq!(row.first_byte_ns, row.fct_ns, "one segment");
        most = most.max(lost);
    }
    assert!(most >= 3, "{most}");
}

#[test]
fn a_connection_that_is_open_has_no_handshake() {
    for connections in [Connections::FreshEstablished, Connections::Persistent { pool: 2 }] {
        let mut plan = plan(1_000, 0);
        plan.traffic[0].connections = connections;
        for row in run(&plan, 1).flows {
            assert_eq!((row.handshake_ns, row.syn_retransmits), (None, Some(0)));
            assert_eq!(row.first_byte_ns, row.fct_ns);
        }
    }
}
