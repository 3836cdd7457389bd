//! What is shorter than the RTTs of the paths that it is used on: timeouts of RDMA, and windows that are given as a time.

use std::collections::BTreeSet;

use narrows_core::cc::Spec;
use narrows_core::component::Value;
use narrows_core::transport::{Transport, rdma};
use narrows_core::units::Span;

use super::{Said, pairs};
use crate::route::Routes;
use narrows_plan::{Pairs, Plan, Traffic};

/// Of each traffic what its longest base RTT exceeds.
pub(super) fn of(plan: &Plan, routes: &Routes<'_>, controllers: &[&'static Spec]) -> Vec<Said> {
    let mut said = vec![];
    for traffic in &plan.traffic {
        let rdma = match &traffic.transport {
            Transport::Rdma(config) => Some(config),
            Transport::Tcp => None,
            Transport::Datagram(_) => continue,
        };
        let window = window(traffic, controllers);
        if rdma.is_some() && traffic.profile.near_source.is_some() {
            said.push((
                format!("`{}` does not listen to near-source switches: its transport is `rdma`", traffic.name),
                "take `near-source` away, or let the adapter take notifications, by `host.nic-limiter`".to_owned(),
            ));
        }
        if rdma.is_none() && window.is_none() {
            continue;
        }
        let Some(rtt) = longest_rtt(traffic, routes) else { continue };
        said.extend(rdma.filter(|config| config.timeout <= rtt).map(|config| hasty(traffic, config, rtt)));
        said.extend(window.filter(|window| *window < rtt).map(|window| narrow(traffic, window, rtt)));
    }
    said
}

/// RDMA whose timeout expires before an acknowledgement can come: then everything is sent twice.
fn hasty(traffic: &Traffic, config: &rdma::Config, rtt: Span) -> Said {
    (
        format!(
            "the timeout of `{}` is {}, and its longest base RTT {rtt}: what is on such a path is retransmitted before its \
             acknowledgement can come",
            traffic.name, config.timeout
        ),
        format!("set the transport's `timeout` well above {rtt}"),
    )
}

/// A controller of rates whose window, not its rate, is the limit.
fn narrow(traffic: &Traffic, window: Span, rtt: Span) -> Said {
    let controller = &traffic.controller.name;
    let share = 100 * window.as_ns() / rtt.as_ns();
    (
        format!(
            "`{controller}` of `{}` has at most what its line sends in {window} in flight, and its longest base RTT is \
             {rtt}: on such a path it gets at most {share} % of the line, whatever its rate",
            traffic.name
        ),
        format!("set `cc.{controller}.window` above {rtt} and the delay of full queues"),
    )
}

/// The time for which a controller's window suffices at the line's rate, where a parameter says it.
fn window(traffic: &Traffic, controllers: &[&'static Spec]) -> Option<Span> {
    let choice = &traffic.controller;
    let spec = controllers.iter().find(|spec| spec.name == choice.name && choice.program.is_none())?;
    let place = spec.parameters.iter().position(|parameter| parameter.name == "window")?;
    match choice.values.get(place) {
        Some(Value::Span(window)) => Some(*window),
        _ => None,
    }
}

fn longest_rtt(traffic: &Traffic, routes: &Routes<'_>) -> Option<Span> {
    let pairs: Vec<(u32, u32)> = match pairs(traffic) {
        Pairs::Listed(listed) => listed.to_vec(),
        Pairs::Between { sources, destinations } => {
            // A host of each switch stands for all of it: those of the others are as far.
            let (from, to) = (one_of_each(routes, &sources), one_of_each(routes, &destinations));
            let all = |source: &u32| to.iter().map(|to| (*source, *to)).collect::<Vec<_>>();
            from.iter().flat_map(all).filter(|(from, to)| from != to).collect()
        }
    };
    routes.base_rtts(&pairs).ok()?.into_iter().max()
}

/// The first host of each switch.
fn one_of_each(routes: &Routes<'_>, hosts: &[u32]) -> Vec<u32> {
    let mut seen = BTreeSet::new();
    hosts
        .iter()
        .copied()
        .filter(|host| seen.insert(routes.home_of(*host).map_or(*host, |(switch, ..)| switch)))
        .collect()
}
