//! What a plan offers to each link.

use std::borrow::Cow;

use narrows_core::app::{Load, Rounds};
use narrows_core::units::Time;

use crate::route::{NoPath, Routes};
use narrows_plan::arrivals::{goodput_over_wire, per_second};
use narrows_plan::{Graph, Open, Pairs, Pattern, Plan, Traffic, Transport};

/// Flows per second of a process.
pub(crate) fn flows_per_second(open: &Open) -> f64 {
    per_second(open.mean_interarrival)
}

/// Rounds of an application until `end`: as many as it wants, or as are expected at random.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn rounds(app: &dyn Rounds, end: Time) -> f64 {
    match app.mean_interarrival() {
        None => f64::from(app.repeats()),
        Some(_) if end <= app.start() => 0.0,
        Some(mean) => end.since(app.start()).as_ps() as f64 / mean.as_ps().max(1) as f64,
    }
}

/// The most flows of a traffic, where that does not depend on chance.
pub(crate) fn most_flows(traffic: &Traffic) -> Option<u64> {
    match &traffic.pattern {
        Pattern::Open(_) => None,
        Pattern::List(list) => Some(list.len() as u64),
        Pattern::App(kind) => {
            let app = kind.rounds();
            app.mean_interarrival().is_none().then(|| u64::from(app.repeats()) * app.pairs().len() as u64)
        }
    }
}

/// Flows of a traffic until `end`: as many as it has, or as are expected at random.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn expected_flows(traffic: &Traffic, end: Time) -> f64 {
    match &traffic.pattern {
        Pattern::Open(open) => flows_per_second(open) * end.as_ps() as f64 / 1e12,
        Pattern::List(list) => list.len() as f64,
        Pattern::App(kind) => rounds(kind.rounds(), end) * kind.rounds().pairs().len() as f64,
    }
}

/// For every link, the share of its rate that flows and responses to requests at random times take, in wire bits of
/// full packets, over shortest paths and even splits. Acknowledgements, requests (but for those of two tiers, which are
/// as large as answers), long-lived flows and closed loops are not counted: the first two are small, the others take
/// what is left.
///
/// # Errors
/// If the plan's traffic has no path; a plan made by this crate has.
pub fn offered_load(plan: &Plan) -> Result<Vec<f64>, NoPath> {
    of(plan, &Routes::new(&plan.network))
}

/// The same, over known routes.
pub(crate) fn of(plan: &Plan, routes: &Routes<'_>) -> Result<Vec<f64>, NoPath> {
    let mtu = plan.network.mtu;
    let tcp = goodput_over_wire(mtu, &Transport::Tcp);
    // Of datagrams as many of TCP's bytes as take the same of the wire.
    let as_tcp = |traffic: &Traffic, bytes: f64| match traffic.transport {
        Transport::Tcp => bytes,
        Transport::Datagram(_) | Transport::Rdma(_) => bytes * tcp / goodput_over_wire(mtu, &traffic.transport),
    };
    let at_random = plan.traffic.iter().flat_map(|traffic| {
        at_random(&traffic.pattern).into_iter().map(move |(pairs, bytes)| (pairs, as_tcp(traffic, bytes)))
    });
    let bytes: Vec<(Cow<'_, Pairs>, f64)> = at_random.collect();
    let bytes: Vec<(&Pairs, f64)> = bytes.iter().map(|(pairs, bytes)| (&**pairs, *bytes)).collect();
    Ok(shares_of_rates(&plan.network, &routes.carried(&bytes)?, tcp))
}

/// For every link, how long the unfinished work of what comes at random is correlated, seconds: λ·E\[S²\]/(1 − ρ)² with the
/// arrivals λ, the time S that a flow takes there alone, and the load ρ. `None` where nothing comes at random, or as much
/// as the link carries.
///
/// It is the integral of the correlation of the reflected Brownian motion that the work of an M/G/1 queue is close to in
/// heavy traffic, whatever the order of service \[Whitt 2006\]. Networks take longer: controllers leave capacity unused,
/// acknowledgements take some, and flows may come in bursts. `load` is that of [`of`].
///
/// # Errors
/// If the plan's traffic has no path; a plan made by this crate has.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn correlations(plan: &Plan, routes: &Routes<'_>, load: &[f64]) -> Result<Vec<Option<f64>>, NoPath> {
    let graph = &plan.network;
    // Squares of bytes that come at once, per second; those of a round come together.
    let mut squares = vec![0.0; graph.links.len()];
    for traffic in &plan.traffic {
        let payload = goodput_over_wire(graph.mtu, &traffic.transport);
        let added = match &traffic.pattern {
            Pattern::Open(open) => {
                let square = open.sizes.variance() + open.sizes.mean().powi(2);
                routes.carried(&[(&open.pairs, flows_per_second(open) * square)])?
            }
            Pattern::App(kind) => {
                let Some(mean) = kind.rounds().mean_interarrival() else { continue };
                let mut all = vec![0.0; graph.links.len()];
                for Load { pairs, bytes, at_once } in kind.rounds().loads() {
                    let round = routes.carried(&[(&Pairs::Listed(pairs), bytes as f64)])?;
                    let squares = round.iter().map(|bytes| bytes * at_once.map_or(*bytes, |at_once| at_once as f64));
                    all.iter_mut().zip(squares).for_each(|(all, own)| *all += own * per_second(mean));
                }
                all
            }
            Pattern::List(_) => continue,
        };
        squares.iter_mut().zip(added).for_each(|(all, own)| *all += own / (payload * payload));
    }
    let of_link = |((link, squares), &load): ((&narrows_plan::Link, f64), &f64)| {
        let seconds_per_byte = 8.0 / rate(link);
        (squares > 0.0 && load < 1.0).then(|| squares * seconds_per_byte.powi(2) / (1.0 - load).powi(2))
    };
    Ok(graph.links.iter().zip(squares).zip(load).map(of_link).collect())
}

/// What comes at random whatever the network does: pairs, and bytes per second over all of them.
#[expect(clippy::cast_precision_loss, reason = "a mean time is known to 53 bits")]
fn at_random(pattern: &Pattern) -> Vec<(Cow<'_, Pairs>, f64)> {
    match pattern {
        Pattern::Open(open) => vec![(Cow::Borrowed(&open.pairs), flows_per_second(open) * open.sizes.mean())],
        Pattern::App(kind) => {
            let app = kind.rounds();
            let Some(mean) = app.mean_interarrival() else { return vec![] };
            let per_second = |load: Load| {
                let bytes = load.bytes as f64 * 1e12 / mean.as_ps().max(1) as f64;
                (Cow::Owned(Pairs::Listed(load.pairs)), bytes)
            };
            app.loads().into_iter().map(per_second).collect()
        }
        Pattern::List(_) => vec![],
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
fn rate(link: &narrows_plan::Link) -> f64 {
    link.rate.as_bps() as f64
}

/// Application bytes per second as shares of the links' rates.
fn shares_of_rates(graph: &Graph, bytes_per_second: &[f64], efficiency: f64) -> Vec<f64> {
    let share = |(link, bytes): (&narrows_plan::Link, &f64)| bytes * 8.0 / (rate(link) * efficiency);
    graph.links.iter().zip(bytes_per_second).map(share).collect()
}
