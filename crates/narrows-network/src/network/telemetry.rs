//! Telemetry as drivers see it: taken out of packets, and sent back beside others.

use narrows_core::telemetry::Hop;
use narrows_plan::{Graph, RoutingConfig};

use super::{Network, Payload};
use crate::route::GraphError;

/// Refuses beside an edge pair telemetry, as a packet has room for what either puts beside it, not for both; and labels of paths, as
/// edges know a flow by what they are a part of.
pub(super) fn check(graph: &Graph) -> Result<(), GraphError> {
    let bridge = (0..).zip(&graph.links).find(|(_, link)| link.bridge.is_some());
    match bridge {
        Some((id, _)) if graph.links.iter().any(|link| link.telemetry) => Err(GraphError::BridgedTelemetry(id)),
        Some((id, _)) if matches!(graph.routing, Some(RoutingConfig::Rehash(_))) => Err(GraphError::BridgedLabels(id)),
        _ => Ok(()),
    }
}

impl<P: Payload> Network<P> {
    /// Takes out what ports have written into a packet, from its place: first what the packet held instead of the place.
    pub fn take_telemetry(&mut self, place: u32) -> (u32, Vec<Hop>) {
        self.ports.telemetry.take(place)
    }

    /// Puts such telemetry beside a packet, which carries it to wherever it goes. The packet has none yet.
    pub fn put_telemetry(&mut self, packet: &mut P, hops: Vec<Hop>) {
        let place = self.ports.telemetry.keep(hops);
        match packet.carry_telemetry(place) {
            Some(kept) => self.ports.telemetry.keep_beside(place, kept),
            None => drop(self.ports.telemetry.take(place)),
        }
    }

    /// What a packet held instead of this place, while it has telemetry and shortly after that was taken out.
    pub fn kept_beside_telemetry(&self, place: u32) -> u32 {
        self.ports.telemetry.kept(place)
    }

    /// Telemetry that was taken out has been read: its memory may be used again.
    pub fn give_back_telemetry(&mut self, hops: Vec<Hop>) {
        self.ports.telemetry.give_back(hops);
    }

    /// Packets whose telemetry has not been taken out.
    pub fn telemetry_records(&self) -> usize {
        self.ports.telemetry.len()
    }
}
