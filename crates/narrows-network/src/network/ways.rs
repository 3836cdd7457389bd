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

    /// The switch that a host hangs on, as an index, and the link from there to it; `None` of one that hangs on a host.
    pub fn home_of(&self, host: u32) -> Option<(u32, u32)> {
        self.routes.home_of(host)
    }

    /// One of each kind of the equally short paths from one host to another, as links in order: paths are of one kind if `of`
    /// says the same of their links. Of very many kinds the first 1,024.
    pub fn kinds_of_paths<K: Ord>(&self, from: u32, to: u32, of: impl Fn(u32) -> K) -> Vec<Vec<u32>> {
        // Each beginning of a path: where it came from, and its last link. Of what kind it is follows from the kind of the
        // beginning without that link.
        let mut steps = vec![(NONE, self.host_link(from))];
        let mut kinds: BTreeMap<(u32, K), u32> = BTreeMap::new();
        let mut open = vec![(0, 0)];
        loop {
            let mut longer: Vec<(u32, u32, u32)> = vec![];
            for &(kind, step) in &open {
                let FarEnd::Switch(switch) = self.ports.far_end(steps[step as usize].1) else {
                    // All are equally long: they arrive together.
                    return open.iter().map(|&(_, step)| links(&steps, step)).collect();
                };
                let entry = self.routes.entry(switch, to);
                for &link in self.routes.ways(&entry) {
                    let far = match self.ports.far_end(link) {
                        FarEnd::Switch(switch) => switch,
                        FarEnd::Host(_) => NONE,
                    };
                    let next = u32::try_from(kinds.len() + 1).expect("kinds are bounded");
                    let kind = *kinds.entry((kind, of(link))).or_insert(next);
                    longer.push((far, kind, u32::try_from(steps.len()).expect("as above")));
                    steps.push((step, link));
                }
            }
            longer.sort_unstable();
            longer.dedup_by_key(|&mut (far, kind, _)| (far, kind));
            open = longer.into_iter().take(MAX_KINDS).map(|(_, kind, step)| (kind, step)).collect();
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
            Some(policy) => self
                .routes
                .selected_link(switch, destination, || policy.select(now, packet.flow_key(), || packet.flow_hash())),
            None => self.routes.next_link(switch, destination, || packet.flow_hash()),
        }
    }
}

/// The links of a path that ends with this step.
fn links(steps: &[(u32, u32)], last: u32) -> Vec<u32> {
    let mut links: Vec<u32> =
        std::iter::successors(Some(last), |&step| Some(steps[step as usize].0).filter(|&it| it != NONE))
            .map(|step| steps[step as usize].1)
            .collect();
    links.reverse();
    links
}

/// By switch, the routing policy of a whole network; nothing where it has none, or nothing to choose from.
pub(super) fn policies(graph: &Graph, seed: u64, routes: &Routes) -> Vec<Routing> {
    let Some(config) = graph.routing.filter(|_| routes.has_choice()) else { return Vec::new() };
    let switches = graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
    let policy = |name: &str, salt: u64| {
        let stream = Stream::named(seed, &format!("routing/{name}")).small();
        Routing::new(&config, Context { stream, salt })
    };
    switches.zip(routes.salts()).map(|(node, &salt)| policy(&node.name, salt)).collect()
}
