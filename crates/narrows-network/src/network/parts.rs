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

    /// Appends to `mail` what was accepted for links into `part` since the last call, in the order of acceptance: that of
    /// arrival for each link. `now` is the time up to which this part has come.
    pub fn hand_over(&mut self, now: Time, part: u32, mail: &mut Vec<Carried<P>>) {
        let exports = &mut self.exports[part as usize];
        mail.extend(exports.iter().map(|&(link, position)| {
            let (at, packet) = self.ports.on_the_way(position);
            Carried { link, at, packet }
        }));
        let mut trimmed = NONE;
        for (link, _) in exports.drain(..) {
            if link != trimmed {
                self.ports.trim(now, link);
                trimmed = link;
            }
        }
    }

    /// Takes packets that another part's port has accepted for one link into this part, in their order. None may have arrived
    /// already.
    ///
    /// # Panics
    /// In debug builds, if they are of several links or not in the order of arrival.
    #[inline(always)]
    pub fn import(&mut self, carried: &[Carried<P>]) {
        let Some(&Carried { link, at, .. }) = carried.first() else { return };
        debug_assert!(carried.iter().all(|one| one.link == link) && carried.is_sorted_by_key(|one| one.at));
        if let Some(first) = self.ports.import(link, at, carried.iter().map(|carried| (carried.at, carried.packet))) {
            self.agenda.arm_link::<true>(link, first);
        }
    }

    /// Offers a packet that came from elsewhere to the port of a link into another part.
    #[inline(always)]
    pub(super) fn offer_into(&mut self, now: Time, link: u32, part: u32, packet: P) -> Offered {
        let place = self.ports.next_place(link);
        let (offered, _) = self.ports.offer(now, link, packet);
        self.export(link, part, place, offered)
    }

    /// What has arrived in a plain network goes on over a link into another part.
    #[inline(always)]
    pub(super) fn forward_into(&mut self, now: Time, link: u32, part: u32, arrived: &Arrived) -> Offered {
        let place = self.ports.next_place(link);
        let (offered, _) = self.ports.forward(now, link, arrived);
        self.export(link, part, place, offered)
    }

    /// What was accepted stays where the port has written it, and is handed over from there. The link has no entry in the
    /// agenda: nothing arrives at its far end here.
    #[inline(always)]
    fn export(&mut self, link: u32, part: u32, place: Option<u32>, offered: Offered) -> Offered {
        if let Offered::Accepted { .. } = offered {
            let position = place.unwrap_or_else(|| self.ports.front(link));
            self.exports[part as usize].push((link, position));
        }
        self.follow(link, (offered, None))
    }
}
