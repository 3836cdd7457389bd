//! Which way packets go where there are several: by a routing policy, which each switch has its own of, or by the hash of a flow.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::rng::Stream;
use narrows_core::routing::Context;

use super::*;

/// Kinds of paths that are told apart.
const MAX_KINDS: usize = 1_024;

impl<P: Payload> Network<P> {
    /// The links that a packet of a flow takes from one host to another, in order; where a routing policy selects ways, those
    /// that it would take without.
    pub fn path(&self, from: u32, to: u32, flow_hash: u32) -> Vec<u32> {
        let mut link = self.host_link(from);
        let mut links = vec![link];
        while let FarEnd::Switch(switch) = self.ports.far_end(link) {
            link = self.routes.next_link(switch, to, || flow_hash);
            links.push(link);
        }
        links
    }

    /// One of each kind of the equally short paths from one host to another, as links in order: paths are of one kind if `of`
    /// says the same of their links. Of very many kinds [`MAX_KINDS`].
    pub fn kinds_of_paths<K: Ord + Clone>(&self, from: u32, to: u32, of: impl Fn(u32) -> K) -> Vec<Vec<u32>> {
        let first = self.host_link(from);
        let mut open = vec![(vec![of(first)], vec![first])];
        loop {
            // All are equally long: they arrive together.
            let mut longer: BTreeMap<(u32, Vec<K>), Vec<u32>> = BTreeMap::new();
            for (kinds, links) in &open {
                let last = *links.last().expect("it begins with one");
                let FarEnd::Switch(switch) = self.ports.far_end(last) else {
                    return open.into_iter().map(|(_, links)| links).collect();
                };
                for link in self.routes.all_ways(switch, to) {
                    let kinds = kinds.iter().cloned().chain([of(link)]).collect();
                    let far = match self.ports.far_end(link) {
                        FarEnd::Switch(switch) => switch,
                        FarEnd::Host(_) => NONE,
                    };
                    longer.entry((far, kinds)).or_insert_with(|| links.iter().copied().chain([link]).collect());
                }
            }
            open = longer.into_iter().map(|((_, kinds), links)| (kinds, links)).take(MAX_KINDS).collect();
        }
    }

    /// The links that packets of a flow take from one host to another, or may take where a routing policy selects ways.
    pub fn possible_links(&self, from: u32, to: u32, flow_hash: u32) -> BTreeSet<u32> {
        if self.policies.is_empty() {
            return self.path(from, to, flow_hash).into_iter().collect();
        }
        let first = self.host_link(from);
        let far_switch = |link| match self.ports.far_end(link) {
            FarEnd::Switch(switch) => Some(switch),
            FarEnd::Host(_) => None,
        };
        let mut links =
            far_switch(first).map_or_else(BTreeSet::new, |switch| self.routes.all_links(switch, to, far_switch));
        links.insert(first);
        links
    }

    /// The link that a packet takes which has come to a switch, where a routing policy chooses.
    #[inline(never)]
    pub(super) fn chosen(&mut self, now: Time, switch: u32, arrived: &Arrived) -> u32 {
        let packet = *self.ports.packet(arrived);
        let onward = self.way(now, switch, &packet);
        // If its port drops it, its flow does not tell which port that is.
        self.note(now, onward, Happened::Offered(packet));
        onward
    }

    /// The link that a packet takes which is at the switch with this index.
    #[inline(never)]
    pub(super) fn way(&mut self, now: Time, switch: u32, packet: &P) -> u32 {
        let destination = packet.destination();
        match self.policies.get_mut(switch as usize) {
            Some(policy) => self.routes.selected_link(switch, destination, || policy.select(now, packet.flow_key())),
            None => self.routes.next_link(switch, destination, || packet.flow_hash()),
        }
    }
}

/// By switch, the routing policy of a whole network; nothing where it has none, or nothing to choose from.
pub(super) fn policies(graph: &Graph, seed: u64, routes: &Routes) -> Vec<Routing> {
    let Some(config) = graph.routing.filter(|_| routes.has_choice()) else { return Vec::new() };
    let switches = graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
    let policy = |name: &str| {
        let stream = Stream::named(seed, &format!("routing/{name}")).small();
        Routing::new(&config, Context { stream })
    };
    switches.map(|node| policy(&node.name)).collect()
}
