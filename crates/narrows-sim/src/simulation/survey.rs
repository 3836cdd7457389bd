//! What a run will begin, counted before it begins: what its connections and flows are numbered by.

use narrows_plan::{Connections as Mode, MAX_HOSTS, NodeKind, Plan, RoutingConfig};

use super::SimError;
use crate::connections::Numbering;
use crate::flows::{MAX_FLOWS, Names};

/// What is known of a run before it begins.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) names: Names,
    pub(crate) numbering: Numbering,
}

/// Counts what the plan will begin: connections of each host, and flows of each traffic entry, which is what they are named by.
/// Of connections that are kept a host has a pool for each peer, and a few more where flows overlap: as many again leave room.
pub(crate) fn survey(plan: &Plan, seed: u64) -> Result<Survey, SimError> {
    let graph = &plan.network;
    let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
    let Some(numbered) = u32::try_from(hosts).ok().filter(|&hosts| hosts <= MAX_HOSTS) else {
        return Err(SimError::TooManyHosts { hosts, most: MAX_HOSTS });
    };
    let (mut opened, mut kept) = (vec![0_u64; graph.nodes.len()], 0);
    // If every flow opened a connection.
    let mut begun = vec![0_u64; graph.nodes.len()];
    let mut flows = Vec::with_capacity(plan.traffic.len());
    for traffic in &plan.traffic {
        let fresh = u64::from(!traffic.connections.are_kept());
        let opens = |host: u32, connections: u64| {
            opened[host as usize] += fresh * connections;
            begun[host as usize] += connections;
        };
        flows.push(traffic.begins(seed, &plan.schedule, opens));
        let pool = match traffic.connections {
            Mode::Fresh | Mode::FreshEstablished => 0,
            Mode::Persistent { pool } => u64::from(pool),
            Mode::InOrder => 1,
        };
        kept += pool * u64::from(numbered);
    }
    let most = |of: &[u64]| of.iter().copied().max().unwrap_or(0) + 2 * kept;
    let choose_paths = matches!(graph.routing, Some(RoutingConfig::Rehash(_)));
    let numbering = match choose_paths {
        true => Numbering::labelled(numbered, most(&begun)),
        false => Numbering::of(numbered, most(&opened)),
    };
    match opened.iter().position(|&connections| connections > u64::from(numbering.per_host())) {
        None => {
            let names = Names::new(&flows).ok_or(SimError::TooManyFlows { most: MAX_FLOWS })?;
            Ok(Survey { names, numbering })
        }
        Some(host) => Err(SimError::TooManyConnections {
            host: graph.nodes[host].name.clone(),
            connections: opened[host],
            most: numbering.per_host(),
        }),
    }
}
