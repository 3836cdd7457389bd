//! Bridges in a network: what they repair, what they cost, and that they lose and invent nothing.

use crate::plans::{Dumbbell, flow, run};
use narrows_core::edge::dcib::{Config, Hiding, Share};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{LossOf, Pattern, Plan};
use narrows_results::Results;
use proptest::prelude::*;

const HALF: u32 = 1 << 31;

fn net(pairs: u32) -> Dumbbell {
    Dumbbell { pairs, limit: 2_000, ..Dumbbell::default() }
}

/// The plan with a bridge between the two switches, one tenth of the packets marked, and this wire.
fn bridged(net: &Dumbbell, mut plan: Plan, hiding: Option<Hiding>, loss: u32, loss_of: LossOf) -> Plan {
    let usual = Config::new(net.rate, Share::TENTH, net.rtt);
    for link in net.bottleneck()..net.bottleneck() + 2 {
        let link = &mut plan.network.links[link];
        link.bridge = hiding.map(|hiding| Config { hiding, ..usual });
        (link.loss, link.loss_of) = (loss, loss_of);
    }
    plan
}

fn goodput(plan: &Plan, results: &Results) -> f64 {
    let bytes: u64 = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes).sum();
    let measured = plan.schedule.end.since(narrows_core::units::Time::ZERO + plan.schedule.warmup);
    bytes as f64 * 8e12 / measured.as_ps() as f64
}

/// A cooperative WAN drops a twentieth of the packets, and the hosts keep the link full.
#[test]
fn losses_among_the_marked_cost_nothing_that_matters() {
    for controller in ["newreno", "cubic", "bbr"] {
        let net = net(2);
        let plan = net.long(controller, false, Span::from_secs(8));
        let with = bridged(&net, plan.clone(), Some(Hiding::Resequence), HALF, LossOf::Unprotected);
        let results = run(&with, 1);
        let near = &results.bridges[0];
        let marked = near.transmitted.marked_packets as f64 / near.transmitted.data_packets as f64;
        assert!((0.08..0.101).contains(&marked), "{controller}: {marked} {near:?} {:?}", results.bridges[1]);
        let lost = results.ports[net.bottleneck()].dropped_impairment_packets as f64;
        let lost = lost / results.ports[net.bottleneck()].sent_packets as f64;
        assert!((0.04..0.06).contains(&lost), "{controller}: {lost}");
        // A twentieth of all packets for the hosts alone: what protection they may have had is off.
        let alone = bridged(&net, plan, None, HALF / 10, LossOf::Data);
        let alone = goodput(&alone, &run(&alone, 1));
        let gain = goodput(&with, &results) / alone;
        // BBR hardly minds a twentieth of losses, but that all comes an RTT later: a hole is nearly always open.
        let (least, most) = if controller == "bbr" { (0.4, 1.1) } else { (10.0, f64::INFINITY) };
        assert!((least..most).contains(&gain), "{controller}: {gain}");
    }
}

/// With no loss, the pair costs less than a hundredth of goodput and of completion time.
#[test]
fn without_loss_it_costs_next_to_nothing() {
    for controller in ["newreno", "cubic", "bbr", "dctcp"] {
        for hiding in [Hiding::Resequence, Hiding::ResequenceRepairable, Hiding::Snoop, Hiding::Nothing] {
            let net = Dumbbell { mark_at: (controller == "dctcp").then_some(200), ..net(2) };
            let plan = net.long(controller, controller == "dctcp", Span::from_secs(4));
            let plain = goodput(&plan, &run(&plan, 1));
            let with = bridged(&net, plan, Some(hiding), 0, LossOf::All);
            let results = run(&with, 1);
            let ratio = goodput(&with, &results) / plain;
            assert!(ratio > 0.99, "{controller}, {hiding:?}: {ratio}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let net = net(3);
    let plan = net.long("cubic", false, Span::from_secs(1));
    let plan = bridged(&net, plan, Some(Hiding::Resequence), HALF / 10, LossOf::Data);
    assert_eq!(run(&plan, 7), run(&plan, 7));
    assert_ne!(run(&plan, 7).bridges, run(&plan, 8).bridges);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is lost, every flow arrives whole, every packet is accounted for, and no bridge keeps anything.
    #[test]
    fn every_flow_arrives_whole(
        seed in 0_u64..1 << 32,
        loss in 0_u32..1 << 30,
        loss_of in prop::sample::select(&[LossOf::All, LossOf::Data, LossOf::Unprotected][..]),
        hiding in prop::sample::select(
            &[Hiding::Resequence, Hiding::ResequenceRepairable, Hiding::Snoop, Hiding::Nothing][..]
        ),
        share in 1_u64..=1 << 32,
        controller in prop::sample::select(&["newreno", "cubic", "bbr", "dctcp", "gemini"][..]),
        ecn in prop::bool::ANY,
        sizes in prop::collection::vec(1_u64..300_000, 1..12),
        limit in 20_u64..300,
        room in 2_000_u64..1_000_000,
    ) {
        let net = Dumbbell { pairs: 2, limit, rate: Rate::from_mbps(100), ..Dumbbell::default() };
        let flows: Vec<_> = (0..).zip(&sizes).map(|(index, &size)| {
            let (from, to) = if index % 3 == 2 { (2 + index % 2, index % 2) } else { (index % 2, 2 + index % 2) };
            flow(Span::from_ms(u64::from(index) * 7), from, to, Some(size))
        }).collect();
        let mut plan = net.plan(controller, ecn, Span::from_ms(200), Pattern::List(flows));
        plan.schedule.drain = Span::from_secs(600);
        let mut plan = bridged(&net, plan, Some(hiding), loss / if loss_of == LossOf::All { 4 } else { 1 }, loss_of);
        for link in &mut plan.network.links {
            if let Some(config) = &mut link.bridge {
                *config = Config {
                    share: Share::from_q32(share),
                    store: Bytes::new(room),
                    held: Bytes::new(room),
                    ..*config
                };
            }
        }
        let results = run(&plan, seed);
        prop_assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some()), "{:?}", results.flows);
        for bridge in &results.bridges {
            prop_assert!(bridge.transmitted.store_max.get() <= room && bridge.received.held_max.get() <= room);
        }
    }
}

/// Two flows without ECN and two with it in a WAN that marks whom it can, and drops the others. Without a pair they share it.
/// A pair that takes marks off has those without ECN notice nothing, and starves the others; one that drops the packets does not.
#[test]
fn marks_that_are_dropped_leave_others_their_share() {
    let share_without_ecn = |bridge: &str| {
        let text = format!(
            r#"
            [topology.two-datacenters]
            servers = 4
            fabric = {{ rate = "1Gbps", delay = "5us", limit = "1000pkt" }}
            [topology.two-datacenters.wan]
            rate = "100Mbps"
            delay = "5ms"
            limit = "300pkt"
            aqm = {{ red = {{ min = "30pkt", max = "90pkt", max-probability = 0.1 }} }}
            bridge = {bridge}
            [topology.two-datacenters.host]
            profile = "linux-6"
            stack-delay = {{ tx = "5us", rx = "5us", jitter = "12us" }}
            [[traffic]]
            name = "plain"
            from = "a*-1"
            to = "b*-1"
            long = {{ flows = 2, spread = "100ms" }}
            [[traffic]]
            name = "ecn"
            ecn = true
            from = "a*-2"
            to = "b*-2"
            long = {{ flows = 2, spread = "100ms" }}
            [[arm]]
            name = "cubic"
            cc = "cubic"
            [run]
            end = "12s"
            warmup = "2s"
            "#
        );
        let experiment = narrows_scenario::load_str(&text, &Default::default(), &Default::default()).unwrap();
        let results = run(&experiment.plans[0], 1);
        let of = |traffic: u32| -> f64 {
            let flows = results.flows.iter().filter(|flow| flow.traffic == traffic);
            flows.map(|flow| flow.delivered_after_warmup_bytes as f64).sum()
        };
        let received = results.bridges.iter().fold([0, 0], |[cleared, dropped], bridge| {
            [cleared + bridge.received.cleared_marks, dropped + bridge.received.dropped_marks]
        });
        (of(0) / (of(0) + of(1)), received)
    };
    let (without, _) = share_without_ecn("\"none\"");
    let (cleared, [marks, _]) = share_without_ecn("\"dcib\"");
    let (dropped, [none, losses]) = share_without_ecn("{ dcib = { marks = \"drop\" } }");
    assert!((0.4..0.6).contains(&without), "{without}");
    assert!(cleared > 0.95 && marks > 10_000, "{cleared}, {marks} marks");
    assert!((0.35..0.65).contains(&dropped) && none == 0 && losses > 50, "{dropped}, {losses} losses");
}

/// Each pair has its own routers, and a flow's packets go over the one that its hash selects, there and back.
#[test]
fn parallel_links_have_pairs_of_their_own() {
    let text = r#"
        [topology.graph]
        switches = [{ name = "s1" }, { name = "s2", site = 1 }]
        hosts = [{ name = "a", switch = "s1", count = 8 }, { name = "b", switch = "s2", count = 8 }]
        wan = { rate = "100Mbps", delay = "1ms", bridge = "dcib" }
        links = [{ ends = ["s1", "s2"] }, { ends = ["s1", "s2"] }]
        [[traffic]]
        flows = { list = [
            { from = "a-1", to = "b-1", size = "1MB" }, { from = "a-2", to = "b-2", size = "1MB" },
            { from = "a-3", to = "b-3", size = "1MB" }, { from = "a-4", to = "b-4", size = "1MB" },
            { from = "a-5", to = "b-5", size = "1MB" }, { from = "a-6", to = "b-6", size = "1MB" },
        ] }
        [[arm]]
        name = "A"
        cc = "cubic"
        [run]
        end = "2s"
    "#;
    let plan = narrows_scenario::load_str(text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}", error.render()))
        .plans
        .remove(0);
    let results = crate::plans::run(&plan, 1);
    assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some()), "{:?}", results.flows);
    // Both pairs have carried data.
    let carried = results.bridges.iter().filter(|bridge| bridge.transmitted.data_packets > 600).count();
    assert_eq!(carried, 2, "{:#?}", results.bridges);
}
