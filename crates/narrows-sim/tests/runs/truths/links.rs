//! What link functions and events do to a flow, against closed forms.

use narrows_core::link::{gilbert_elliott, reorder};
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span};
use narrows_plan::{Change, Event, FunctionConfig, Pattern, Plan};
use narrows_results::{Quantity, Results};

use super::measure::{GOODPUT, series};
use crate::plans::{Dumbbell, at, flow, run, smooth};

const ONE: u64 = 1 << 32;

fn event(ms: u64, change: Change) -> Event {
    Event { at: at(Span::from_ms(ms)), change }
}

/// One long flow over a bottleneck of 100 Mbit/s and 10 ms that changes so.
fn changed(events: Vec<Event>, end: Span) -> (Plan, Results) {
    let network = Dumbbell { rate: Rate::from_mbps(100), limit: 100, ..Dumbbell::default() };
    let mut plan = network.long("cubic", false, end);
    plan.network.links[network.bottleneck()].events = events;
    let results = run(&plan, 1);
    (plan, results)
}

/// Goodput in bins that end in this range, Mbit/s.
fn goodput(results: &Results, from: f64, until: f64) -> f64 {
    let bins = series(results, Quantity::GoodputBps, 0, from + 0.1);
    let bins: Vec<f64> = bins.into_iter().filter(|(time, _)| *time <= until).map(|(_, value)| value / 1e6).collect();
    bins.iter().sum::<f64>() / bins.len() as f64
}

#[test]
fn a_flow_gets_the_rate_of_the_moment() {
    let events =
        vec![event(1_000, Change::Rate(Rate::from_mbps(20))), event(3_000, Change::Rate(Rate::from_mbps(100)))];
    let (plan, results) = changed(events, Span::from_secs(6));
    for (from, until, rate) in [(0.3, 1.0, 100.0), (1.5, 3.0, 20.0), (4.5, 6.0, 100.0)] {
        let share = goodput(&results, from, until) / (rate * GOODPUT);
        assert!((0.97..1.001).contains(&share), "{from}: {share}");
    }
    let port = results.ports.iter().find(|port| plan.network.links[port.port as usize].name == "2->3").unwrap();
    assert!((0.95..=1.0).contains(&port.utilisation), "of what the line had room for: {}", port.utilisation);
    assert_eq!(results.flows[0].events_met.as_deref(), Some("0,1"));
    let events: Vec<_> = results.events_at_links.iter().map(|row| (row.time_ns, row.until_ns, row.flows)).collect();
    assert_eq!(events, [(1_000_000_000, Some(3_000_000_000), 1), (3_000_000_000, None, 1)]);
}

#[test]
fn a_longer_delay_is_seen_in_the_round_trip_and_a_shorter_one_reorders_nothing() {
    let delay = |ms, to| event(ms, Change::Delay(Span::from_ms(to)));
    // No buffer overflows, so that a retransmission is one of a packet that came out of order.
    let network = Dumbbell { rate: Rate::from_mbps(100), limit: 1_000_000, ..Dumbbell::default() };
    let mut plan = network.long("cubic", false, Span::from_secs(3));
    plan.network.links[network.bottleneck()].events = vec![delay(1_000, 45), delay(2_000, 2)];
    let results = run(&plan, 1);
    let flow = &results.flows[0];
    assert_eq!((flow.timeouts, flow.retransmitted_bytes, flow.dropped_bytes), (0, 0, Some(0)));
    assert!(flow.rtt_mean_ns.unwrap() > 12_000_000, "{flow:?}");
}

#[test]
fn a_message_is_later_by_just_the_outage_that_it_waits_for_its_timer_in() {
    // A flow of one packet is sent into an outage; its timer of 1 s expires once, and then it goes through.
    let network = Dumbbell { rate: Rate::from_mbps(100), ..Dumbbell::default() };
    let one = flow(Span::from_ms(500), 0, 1, Some(1_000));
    let mut plan = network.plan("cubic", false, Span::from_secs(1), Pattern::List(vec![one]));
    let undisturbed = run(&plan, 1);
    plan.network.links[network.bottleneck()].events = vec![event(490, Change::Down), event(1_400, Change::Up)];
    let late = run(&plan, 1);
    let timeout = plan.traffic[0].profile.initial_rto.as_ns();
    assert_eq!(late.flows[0].fct_ns, undisturbed.flows[0].fct_ns.map(|fct| fct + timeout));
    let port = &late.ports[network.bottleneck()];
    assert_eq!((port.dropped_outage_packets, port.sent_packets), (1, 0));
    assert_eq!((late.flows[0].events_met.as_deref(), undisturbed.flows[0].events_met.as_deref()), (Some("0"), None));
}

#[test]
fn an_outage_loses_what_waits_and_what_is_under_way_and_the_flow_goes_on_after() {
    let (_, results) = changed(vec![event(2_000, Change::Down), event(2_300, Change::Up)], Span::from_secs(5));
    let port = &results.ports[4];
    // 5 ms on the wire hold 40 packets of 1,538 bytes; CUBIC keeps it full. What waits, and what comes after, is what is left
    // of its window: 82 packets of C·RTT and 100 places at most.
    assert!((38..=42).contains(&port.lost_in_outage_packets), "{port:?}");
    assert!((40..=182 - 38).contains(&port.dropped_outage_packets), "{port:?}");
    assert!(results.flows[0].timeouts >= 1);
    assert_eq!(goodput(&results, 2.1, 2.3), 0.0);
    assert!(goodput(&results, 3.5, 5.0) > 0.9 * 100.0 * GOODPUT);
}

#[test]
fn bursts_of_a_whole_run_have_the_mean_of_the_chain() {
    let network = Dumbbell { rate: Rate::from_mbps(100), ..Dumbbell::default() };
    let mut plan = network.long("bbr", false, Span::from_secs(20));
    let chain = gilbert_elliott::Config { p: ONE / 400, r: ONE / 4, loss_bad: ONE, loss_good: 0 };
    plan.network.links[network.bottleneck()].functions = vec![FunctionConfig::GilbertElliott(chain)];
    let results = run(&plan, 1);
    let port = &results.ports[network.bottleneck()];
    let (lost, sent) = (port.dropped_impairment_packets as f64, port.sent_packets as f64);
    let mean = 1.0 / 101.0;
    // Losses of a chain that remembers vary (2 − p − r) / (p + r) times as much as independent ones.
    let sigma = (mean * (1.0 - mean) * (2.0 - 0.2525) / 0.2525 / sent).sqrt();
    assert!(sent > 50_000.0 && (lost / sent - mean).abs() < 4.5 * sigma, "{} {sigma}", lost / sent);
}

/// Once RACK has seen reordering, it waits a quarter of the minimum RTT at least before it calls a packet lost
/// [RFC 8985 §6.2 step 4]: what is late by less costs nothing from then on.
#[test]
fn rack_tolerates_reordering_within_its_window_and_no_further() {
    let run_with = |profile: Profile, delay: Span| {
        let limit = 1_000_000;
        let network = Dumbbell { rate: Rate::from_mbps(100), profile: smooth(profile), limit, ..Dumbbell::default() };
        let one = flow(Span::from_ms(1), 0, 1, Some(20_000_000));
        let mut plan = network.plan("newreno", false, Span::from_secs(1), Pattern::List(vec![one]));
        let late = reorder::Config { share: ONE / 100, delay, delay_max: delay };
        plan.network.links[network.bottleneck()].functions = vec![FunctionConfig::Reorder(late)];
        let results = run(&plan, 1);
        let port = &results.ports[network.bottleneck()];
        assert!(port.late_packets > 5, "{port:?}");
        (results.flows[0].retransmitted_bytes, results.flows[0].fct_ns.unwrap_or(u64::MAX))
    };
    // 10 ms of RTT: the window is 2.5 ms. 2 ms hold 16 packets.
    let (retransmitted, time) = run_with(Profile::LINUX_6, Span::from_ms(2));
    assert!(retransmitted <= 10 * 1_448, "{retransmitted}");
    let line = 20_000_000.0 * 8.0 / (100e6 * GOODPUT) * 1e9;
    assert!((time as f64) < 1.1 * line, "{time} {line}");
    // Late by more than that: it costs.
    let (retransmitted, time) = run_with(Profile::LINUX_6, Span::from_ms(300));
    assert!(retransmitted > 30 * 1_448 && time as f64 > 1.5 * line, "{retransmitted} {time}");
}
