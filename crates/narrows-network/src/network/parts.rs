//! A part of a network: what its ports accept for links into other parts, and what these have accepted for links into it. See
//! [`partition`](crate::partition).

use narrows_core::units::Time;
use narrows_plan::{Graph, NodeKind};

use super::{NONE, Network, Offered, Payload};
use crate::partition::Partition;
use crate::port::Arrived;
use crate::route::GraphError;

/// A packet on a link between two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<P> {
    /// The link.
    pub link: u32,
    /// When it arrives at the link's far end.
    pub at: Time,
    /// The packet.
    pub packet: P,
}

impl<P: Payload> Network<P> {
    /// One part of a network at rest: packets are offered to its own nodes' ports only.
    ///
    /// # Errors
    /// As for [`Network::new`]: the whole graph must be a network.
    pub fn part(graph: &Graph, seed: u64, partition: &Partition, part: u32) -> Result<Network<P>, GraphError> {
        let mut network = Network::new(graph, seed)?;
        if partition.count() > 1 {
            network.is_cut = true;
            network.detours.resize(graph.links.len(), NONE);
            for ((detour, link), is_served) in network.detours.iter_mut().zip(&graph.links).zip(graph.served()) {
                let (from, to) = (partition.part_of(link.from), partition.part_of(link.to));
                if from == part && to != part {
                    // What hosts send is not looked at in a plain network.
                    network.is_plain &= graph.nodes[link.from as usize].kind == NodeKind::Switch;
                    assert!(!is_served, "what a served port sends next is not known ahead");
                    assert!(link.bridge.is_none(), "what goes over a bridge its driver decides");
                    *detour = to;
                }
            }
            network.exports = (0..partition.count()).map(|_| Vec::new()).collect();
        }
        Ok(network)
    }

    /// What was accepted for links into this part and has not been taken out yet, in the order of acceptance: that of
    /// arrival for each link. The driver empties it.
    pub fn exports(&mut self, part: u32) -> &mut Vec<Carried<P>> {
        &mut self.exports[part as usize]
    }

    /// Takes what another part's port has accepted for a link into this part. Packets of one link come in their order.
    ///
    /// # Panics
    /// In debug builds, if the packet should have arrived already.
    #[inline(always)]
    pub fn import(&mut self, carried: &Carried<P>) {
        if let Some(first) = self.ports.import(carried.link, carried.at, &carried.packet) {
            self.agenda.arm_link(carried.link, first);
        }
    }

    #[inline(always)]
    pub(super) fn export(&mut self, now: Time, part: u32, link: u32, packet: &P, offered: Offered) {
        let Offered::Accepted { departure, marked } = offered else { return };
        let carried = Carried { link, at: departure + self.ports.delay(link), packet: *packet };
        let carried = self.exports[part as usize].push_mut(carried);
        if marked {
            carried.packet.mark();
        }
        self.ports.trim(now, link);
    }

    /// What has arrived in a plain network goes on over a link into another part.
    #[inline(always)]
    pub(super) fn forward_into(&mut self, now: Time, link: u32, part: u32, arrived: &Arrived) -> Offered {
        let packet = *self.ports.packet(arrived);
        let (offered, _) = self.ports.offer(now, link, packet);
        self.export(now, part, link, &packet, offered);
        self.follow(link, (offered, None))
    }
}
