//! What must hold in every run, whatever the experiment.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use narrows_core::link::schedule::Change;
use narrows_core::queue::Limit;
use narrows_core::units::Bytes;
use narrows_plan::{Graph, Kind, Link, NodeKind, Pattern, Plan};
use narrows_results::trace::{TimeRow, Trace};
use narrows_results::{FlowRow, PortRow, Results};
use narrows_sim::{Partition, Selection, Simulation, run_in_parts, run_traced};

/// More than any experiment of ours takes.
const MAX_EVENTS: u64 = 400_000;
/// Entries between two looks, of the run that is paused and resumed.
const SLICE: u64 = 997;

/// What became of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is not accepted, with an error for people.
    Refused(String),
    /// It would take too long.
    Long,
    /// Everything holds: flows that ended, packet-hops.
    Holds { flows: u64, hops: u64 },
    /// This does not.
    Broken { invariant: &'static str, how: String },
}

type Check = Result<(), (&'static str, String)>;

macro_rules! must {
    ($invariant:literal, $holds:expr, $($how:tt)*) => {
        let holds: bool = $holds;
        if !holds {
            return Err(($invariant, format!($($how)*)));
        }
    };
}

/// Runs an experiment with every check on.
pub(crate) fn check(text: &str, seed: u64) -> Outcome {
    // What panics is told by whoever reports it, once it is small.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let checked = catch_unwind(AssertUnwindSafe(|| checked(text, seed)));
    std::panic::set_hook(hook);
    match checked {
        Ok(Ok(outcome)) => outcome,
        Ok(Err((invariant, how))) => Outcome::Broken { invariant, how },
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Outcome::Broken { invariant: "nothing panics", how: said.unwrap_or_default() }
        }
    }
}

fn checked(text: &str, seed: u64) -> Result<Outcome, (&'static str, String)> {
    let experiment = match narrows_scenario::load_str(text, &Default::default(), &Default::default()) {
        Ok(experiment) => experiment,
        Err(error) => {
            must!("errors say where and what", error.render().contains("experiment.toml:"), "{}", error.render());
            let sentence = error.render().lines().next().unwrap_or_default().to_owned();
            return Ok(Outcome::Refused(sentence));
        }
    };
    let plan = &experiment.plans[0];
    let Some(whole) = whole(plan, seed)? else { return Ok(Outcome::Long) };
    parts(plan, seed, &whole)?;
    on_full_path(plan, seed, &whole)?;
    explained(plan, seed, &whole)?;
    of_results(plan, &whole)?;
    let flows = whole.flows.iter().filter(|flow| flow.fct_ns.is_some()).count() as u64;
    Ok(Outcome::Holds { flows, hops: whole.packet_hops })
}

/// What the rows of a run must fulfil.
fn of_results(plan: &Plan, results: &Results) -> Check {
    numbers(results)?;
    results.ports.iter().zip(&plan.network.links).try_for_each(|(port, link)| of_port(port, link, plan))?;
    results.flows.iter().try_for_each(|flow| of_flow(flow, plan, results))?;
    into_hosts(plan, results)?;
    of_switches(plan, results)
}

/// The run, paused again and again; nothing if it is long.
fn whole(plan: &Plan, seed: u64) -> Result<Option<Results>, (&'static str, String)> {
    let mut simulation =
        Simulation::new(plan, seed).map_err(|error| ("what is accepted can be run", error.to_string()))?;
    let mut slices = 0;
    while simulation.advance(SLICE) {
        slices += 1;
        if slices * SLICE > MAX_EVENTS {
            return Ok(None);
        }
    }
    Ok(Some(simulation.finish()))
}

/// In parts on two threads, or without a pause, it is the same run to the last bit.
fn parts(plan: &Plan, seed: u64, whole: &Results) -> Check {
    for partition in [Partition::by_site(&plan.network), Partition::by_rack(&plan.network, 3)] {
        in_parts(plan, seed, &partition, whole)?;
    }
    Ok(())
}

/// Where no packet takes the fast path of hosts it is the same run.
fn on_full_path(plan: &Plan, seed: u64, whole: &Results) -> Check {
    let mut simulation = Simulation::new(plan, seed).expect("it has been run");
    simulation.take_full_path();
    while simulation.advance(MAX_EVENTS) {}
    same("the fast path changes nothing", whole, &simulation.finish())
}

fn in_parts(plan: &Plan, seed: u64, partition: &Partition, whole: &Results) -> Check {
    let ran = run_in_parts(plan, seed, partition, 2, |_| ControlFlow::Continue(()));
    let parts = ran.map_err(|error| ("parallel is serial", error.to_string()))?.expect("not cancelled").results;
    same("parallel is serial", whole, &parts)
}

fn same(invariant: &'static str, whole: &Results, other: &Results) -> Check {
    let flow = whole.flows.iter().zip(&other.flows).find(|(one, other)| one != other);
    let port = whole.ports.iter().zip(&other.ports).find(|(one, other)| one != other);
    let series = whole.series.iter().zip(&other.series).find(|(one, other)| one != other);
    // Zeros have signs, and what is no number equals nothing.
    if *whole == *other || format!("{whole:?}") == format!("{other:?}") {
        return Ok(());
    }
    Err((invariant, format!("flow {flow:?}\nport {port:?}\nseries {series:?}")))
}

/// Traced it is the same run, and the parts of each flow's time add up to its completion time.
fn explained(plan: &Plan, seed: u64, whole: &Results) -> Check {
    let ran = run_traced(plan, seed, Selection::All, |_| ControlFlow::Continue(()));
    let mut traced =
        ran.map_err(|error| ("tracing changes nothing", error.to_string()))?.expect("not cancelled").results;
    let trace: Trace = std::mem::take(&mut traced.trace);
    must!("tracing changes nothing", traced == *whole || format!("{traced:?}") == format!("{whole:?}"), "another run");
    let mut by_flow: BTreeMap<u32, Vec<&TimeRow>> = BTreeMap::new();
    trace.times.iter().for_each(|row| by_flow.entry(row.flow).or_default().push(row));
    for flow in whole.flows.iter().filter(|flow| flow.fct_ns.is_some()) {
        let rows = by_flow.get(&flow.flow).map_or(&[][..], Vec::as_slice);
        let mut until = 0;
        for row in rows {
            must!("time is explained without a gap", row.from_ns == until, "{flow:?}\n{rows:#?}");
            must!("time is explained by a known reason", row.reason != "unknown", "{flow:?}\n{rows:#?}");
            until = row.until_ns;
        }
        must!("explained time is the completion time", Some(until) == flow.fct_ns, "{until} {flow:?}\n{rows:#?}");
    }
    Ok(())
}

fn numbers(results: &Results) -> Check {
    let ports = results.ports.iter().flat_map(|port| [port.utilisation, port.queue_mean_bytes]);
    let series = results.series.iter().map(|row| row.value);
    must!("every number is one", ports.chain(series).all(f64::is_finite), "infinite, or no number");
    Ok(())
}

fn changes_rate(link: &Link) -> bool {
    link.events.iter().any(|event| matches!(event.change, Change::Rate(_)))
}

fn of_port(port: &PortRow, link: &Link, plan: &Plan) -> Check {
    let name = &link.name;
    must!("utilisation is a share", (0.0..=1.0 + 1e-9).contains(&port.utilisation), "{name}: {port:?}");
    must!(
        "the mean queue is at most the largest",
        port.queue_mean_bytes <= port.queue_max_bytes as f64 + 1e-6,
        "{name}: {port:?}"
    );
    must!("percentiles are in order", port.queue_p50_bytes <= port.queue_p99_bytes, "{name}: {port:?}");
    must!(
        "percentiles are at most the largest",
        port.queue_p99_bytes <= Some(port.queue_max_bytes) || port.queue_p99_bytes.is_none(),
        "{name}: {port:?}"
    );
    must!(
        "pauses are at most the time",
        port.longest_pause_ns <= port.paused_ns && port.paused_ns <= port.measured_ns + 1,
        "{name}: {port:?}"
    );
    let mtu = plan.network.mtu.packet().get();
    let most = match link.limit {
        Limit::Packets(packets) => Some(packets.get().saturating_mul(mtu)),
        Limit::Bytes(bytes) => Some(bytes.get()),
        Limit::Unlimited => None,
    };
    // Notifications and what edges say go first, whatever the limit; packets of a paused input are elsewhere.
    if let Some(most) = most.filter(|_| link.ingress.is_none() && link.bridge.is_none() && link.pauses.is_none()) {
        must!(
            "no queue is beyond its limit",
            port.queue_max_bytes <= most,
            "{name}: {} of {most}: {port:?}",
            port.queue_max_bytes
        );
    }
    must!("what has no pool drops nothing for one", link.pooled || port.dropped_pool_packets == 0, "{name}: {port:?}");
    let marks = link.aqm.is_some() || link.scheduler.is_some();
    must!("what has no AQM marks nothing", marks || port.marked_packets == 0, "{name}: {port:?}");
    must!("what has no AQM drops for none", marks || port.dropped_aqm_packets == 0, "{name}: {port:?}");
    let loses = link.loss > 0 || !link.functions.is_empty() || !link.events.is_empty();
    must!("a wire that loses nothing loses nothing", loses || port.dropped_impairment_packets == 0, "{name}: {port:?}");
    must!(
        "without outages nothing is lost in them",
        !link.events.is_empty() || port.lost_in_outage_packets + port.dropped_outage_packets == 0,
        "{name}: {port:?}"
    );
    let bits = port.sent_bytes as f64 * 8.0;
    let room = link.rate.as_bps() as f64 * (port.measured_ns as f64 / 1e9) + 2.0 * 8.0 * mtu as f64;
    must!(
        "no line carries more than its rate",
        changes_rate(link) || bits <= room * (1.0 + 1e-9),
        "{name}: {bits} of {room} bits: {port:?}"
    );
    Ok(())
}

/// Whether an event may make a way shorter or faster than it was at the beginning, for which the ideal is.
fn may_become_faster(graph: &Graph) -> bool {
    graph
        .links
        .iter()
        .any(|link| link.events.iter().any(|event| matches!(event.change, Change::Rate(_) | Change::Delay(_))))
}

/// Where packets of a flow take several of equal paths, by how much the last, if it is short, may be earlier than behind the one before
/// it, nanoseconds.
fn not_behind_another(network: &Graph) -> u64 {
    let slowest = network.links.iter().map(|link| link.rate).min();
    network.routing.and(slowest).map_or(0, |rate| rate.time_for(network.mtu.packet() + Bytes::new(38)).as_ns() + 1)
}

fn of_flow(flow: &FlowRow, plan: &Plan, results: &Results) -> Check {
    let traffic = &plan.traffic[flow.traffic as usize];
    if let Some(fct) = flow.fct_ns {
        must!("a finished flow has all its bytes", flow.received_bytes == flow.size_bytes, "{flow:?}");
        must!(
            "none is faster than the empty network",
            may_become_faster(&plan.network) || fct + not_behind_another(&plan.network) >= flow.ideal_fct_ns,
            "{flow:?}"
        );
        must!("none ends after the run", flow.start_ns + fct <= results.ended_ns, "{} {flow:?}", results.ended_ns);
        must!("the first byte is not after the last", flow.first_byte_ns.is_some_and(|first| first <= fct), "{flow:?}");
    }
    must!("none has more bytes than it has", flow.received_bytes <= flow.size_bytes, "{flow:?}");
    // Of a flow without a size those bytes are counted that came in order; what waits behind a hole has come, too.
    let is_sized = flow.fct_ns.is_some() || matches!(traffic.pattern, Pattern::Open(_));
    must!(
        "what came after the warm-up came",
        !is_sized || flow.delivered_after_warmup_bytes <= flow.size_bytes,
        "{flow:?}"
    );
    must!(
        "none begins after the end",
        flow.start_ns < plan.schedule.end.as_ns() || matches!(traffic.pattern, Pattern::App(_)),
        "{flow:?}"
    );
    must!(
        "datagrams are not retransmitted",
        traffic.transport.is_reliable() || flow.retransmitted_bytes == 0 && flow.timeouts == 0,
        "{flow:?}"
    );
    must!(
        "who takes no marks has none",
        flow.marked_bytes == 0 || plan.network.links.iter().any(|link| link.aqm.is_some() || link.scheduler.is_some()),
        "{flow:?}"
    );
    Ok(())
}

/// No host is given more than its link carries. A program's message that follows another on its connection counts from where that
/// is whole, so that what came of it before the warm-up's end may count after it.
fn into_hosts(plan: &Plan, results: &Results) -> Check {
    let schedule = &plan.schedule;
    let seconds = schedule.end.as_ns().saturating_sub(schedule.warmup.as_ns()) as f64 / 1e9;
    for (host, node) in plan.network.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Host) {
        let last: Vec<&Link> = plan.network.links.iter().filter(|link| link.to as usize == host).collect();
        let [link] = last[..] else { continue };
        let may_have_come_before = |flow: &FlowRow| {
            let pattern = &plan.traffic[flow.traffic as usize].pattern;
            matches!(pattern, Pattern::App(Kind::Program(_))) && flow.start_ns < schedule.warmup.as_ns()
        };
        let came: u64 = (results.flows.iter())
            .filter(|flow| flow.destination as usize == host && !may_have_come_before(flow))
            .map(|flow| flow.delivered_after_warmup_bytes)
            .sum();
        let room = link.rate.as_bps() as f64 / 8.0 * seconds + 2.0 * plan.network.mtu.packet().get() as f64;
        must!(
            "no host is given more than its link carries",
            changes_rate(link) || came as f64 <= room,
            "{}: {came} of {room}",
            node.name
        );
    }
    Ok(())
}

/// A switch sends and drops no more packets than came to it.
fn of_switches(plan: &Plan, results: &Results) -> Check {
    let graph = &plan.network;
    let invents = graph.links.iter().any(|link| link.bridge.is_some() || link.congestion_point.is_some());
    if invents || plan.schedule.warmup.as_ns() > 0 {
        return Ok(());
    }
    let mut came = vec![0_i64; graph.nodes.len()];
    let mut went = came.clone();
    for (link, port) in graph.links.iter().zip(&results.ports) {
        let lost = port.dropped_impairment_packets + port.lost_in_outage_packets;
        came[link.to as usize] += i64::try_from(port.sent_packets - lost).expect("few packets");
        let dropped = port.dropped_limit_packets
            + port.dropped_pool_packets
            + port.dropped_aqm_packets
            + port.dropped_outage_packets;
        went[link.from as usize] += i64::try_from(port.sent_packets + dropped).expect("few packets");
    }
    for (at, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Switch) {
        must!(
            "a switch sends what came to it",
            came[at] >= went[at],
            "{}: {} came, {} went",
            node.name,
            came[at],
            went[at]
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = r#"
        [topology.dumbbell]
        pairs = 2
        fabric = { rate = "100Mbps", limit = "20KB", aqm = "none" }
        [[traffic]]
        name = "web"
        from = "left-*"
        to = "right-*"
        arrivals = { poisson = { rate = "500/s" } }
        size = { fixed = "20KB" }
        [[arm]]
        name = "a"
        cc = "newreno"
        [run]
        end = "50ms"
        [sample]
        queues = "1ms"
    "#;

    /// A row that is changed, and the invariant that notices.
    type Fault = (&'static str, fn(&mut Results, usize));

    #[test]
    fn a_sound_run_holds_and_invariants_of_rows_notice_faults() {
        assert!(matches!(check(PLAIN, 1), Outcome::Holds { flows: 10.., .. }));
        let experiment = narrows_scenario::load_str(PLAIN, &Default::default(), &Default::default()).unwrap();
        let plan = &experiment.plans[0];
        let sound = whole(plan, 1).unwrap().unwrap();
        assert_eq!(of_results(plan, &sound), Ok(()));
        let bottleneck =
            plan.network.links.iter().position(|link| link.limit != Limit::Unlimited && link.watched).unwrap();
        let faults: [Fault; 14] = [
            ("every number is one", |results, _| results.series[0].value = f64::NAN),
            ("utilisation is a share", |results, at| results.ports[at].utilisation = 1.01),
            ("the mean queue is at most the largest", |results, at| results.ports[at].queue_mean_bytes = 1e6),
            ("no queue is beyond its limit", |results, at| results.ports[at].queue_max_bytes = 20_001),
            ("what has no pool drops nothing for one", |results, at| results.ports[at].dropped_pool_packets = 1),
            ("what has no AQM marks nothing", |results, at| results.ports[at].marked_packets = 1),
            ("a wire that loses nothing loses nothing", |results, at| results.ports[at].dropped_impairment_packets = 1),
            ("no line carries more than its rate", |results, at| results.ports[at].sent_bytes *= 100),
            ("a finished flow has all its bytes", |results, _| results.flows[0].received_bytes -= 1),
            ("none is faster than the empty network", |results, _| {
                results.flows[0].fct_ns = Some(results.flows[0].ideal_fct_ns - 1);
            }),
            ("none ends after the run", |results, _| results.ended_ns = results.flows[0].start_ns),
            ("who takes no marks has none", |results, _| results.flows[0].marked_bytes = 1),
            ("no host is given more than its link carries", |results, _| {
                for flow in &mut results.flows {
                    (flow.size_bytes, flow.received_bytes) = (100_000_000, 100_000_000);
                    flow.delivered_after_warmup_bytes = 100_000_000;
                }
            }),
            ("a switch sends what came to it", |results, at| results.ports[at].sent_packets += 1_000),
        ];
        for (invariant, fault) in faults {
            let mut faulty = sound.clone();
            fault(&mut faulty, bottleneck);
            let noticed = of_results(plan, &faulty).expect_err(invariant);
            assert_eq!(noticed.0, invariant, "{}", noticed.1);
        }
    }

    #[test]
    fn what_is_refused_says_where() {
        let outcome = check(&PLAIN.replace("pairs = 2", "pairs = 0"), 1);
        assert!(
            matches!(&outcome, Outcome::Refused(sentence) if sentence.contains("experiment.toml:3")),
            "{outcome:?}"
        );
    }
}
