//! How long a transfer takes on an empty network: store-and-forward at every hop, framing and the request included.

use std::collections::BTreeMap;

use narrows_core::packet::{HEADER_BYTES, SYN_BYTES, wire_bytes};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_network::{Network, Payload};
use narrows_plan::{FlowStart, Graph, NodeKind, Transport};

/// How a transfer is cut into packets, and what its sender waits after each.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Payload of a full packet, bytes.
    full: u64,
    /// IP and transport headers, bytes.
    headers: u64,
    /// Of a sender with a rate of its own; at once, one behind the other, without.
    rate: Option<Rate>,
}

impl Cut {
    fn wire(&self, payload: u64) -> Bytes {
        wire_bytes(Bytes::new(payload + self.headers))
    }
}

/// The hops of one path.
#[derive(Clone, Debug)]
struct Hops {
    rates: Vec<Rate>,
    delay: Span,
}

/// Ideal completion times over one network: over that of the equally short paths on which they are least.
#[derive(Clone, Debug, Default)]
pub struct Ideal {
    /// By pair of hosts, one path of each kind.
    paths: BTreeMap<(u32, u32), Vec<Hops>>,
    /// By their switches, the links between these: pairs of hosts are many.
    between: BTreeMap<(u32, u32), Vec<Vec<u32>>>,
    /// Whether all links between switches are alike: then one path of a pair is as good as any. Found out once.
    alike: Option<bool>,
}

impl Ideal {
    /// The time from the offer of a flow's bytes (or of its request) to their last at the destination; of a flow without a
    /// size, to its first. `network` is one of `graph`, and always the same.
    pub fn completion<P: Payload>(
        &mut self,
        graph: &Graph,
        network: &Network<P>,
        transport: &Transport,
        flow: &FlowStart,
    ) -> Span {
        let FlowStart { source, destination, size, request, .. } = *flow;
        let mut leg = |from, to, size| self.leg(graph, network, transport, (from, to), size);
        let there = request.map_or(Span::ZERO, |request| leg(destination, source, request));
        there + leg(source, destination, size.unwrap_or(Bytes::new(1)))
    }

    /// A handshake's RTT: a SYN there, its answer back, over the paths of a flow with these hashes, one for each way.
    pub fn handshake<P: Payload>(
        &mut self,
        graph: &Graph,
        network: &Network<P>,
        (opener, peer): (u32, u32),
        hashes: (u32, u32),
    ) -> Span {
        let cut = Cut { full: Transport::Tcp.payload(graph.mtu).into(), headers: Transport::Tcp.headers(), rate: None };
        let options = Bytes::new(SYN_BYTES - HEADER_BYTES);
        let mut leg = |from, to, hash| match self.paths(graph, network, (from, to)) {
            [only] => only.transfer(options, &cut),
            _ => Hops::of(graph, &network.path(from, to, hash)).transfer(options, &cut),
        };
        leg(opener, peer, hashes.0) + leg(peer, opener, hashes.1)
    }

    /// The equally short paths of a pair, one of each kind.
    fn paths<P: Payload>(&mut self, graph: &Graph, network: &Network<P>, (from, to): (u32, u32)) -> &[Hops] {
        let Ideal { paths, between, alike } = self;
        paths.entry((from, to)).or_insert_with(|| {
            let of = |link: u32| (graph.links[link as usize].rate, graph.links[link as usize].delay);
            let alike = *alike.get_or_insert_with(|| are_alike(graph));
            let kinds = || match alike {
                true => vec![network.path(from, to, 0)],
                false => network.kinds_of_paths(from, to, of),
            };
            let (Some((near, _)), Some((far, down))) = (network.home_of(from), network.home_of(to)) else {
                return kinds().iter().map(|links| Hops::of(graph, links)).collect();
            };
            let between = between
                .entry((near, far))
                .or_insert_with(|| kinds().into_iter().map(|links| links[1..links.len() - 1].to_vec()).collect());
            let whole = |links: &Vec<u32>| [&[network.host_link(from)], links.as_slice(), &[down]].concat();
            between.iter().map(|links| Hops::of(graph, &whole(links))).collect()
        })
    }

    fn leg<P: Payload>(
        &mut self,
        graph: &Graph,
        network: &Network<P>,
        transport: &Transport,
        (from, to): (u32, u32),
        size: Bytes,
    ) -> Span {
        let paths = self.paths(graph, network, (from, to));
        let over = |hops: &Hops| {
            let rate = match transport {
                Transport::Tcp | Transport::Rdma(_) => None,
                Transport::Datagram(config) => hops.rates.first().map(|&line| config.rate(line)),
            };
            let cut = Cut { full: transport.payload(graph.mtu).into(), headers: transport.headers(), rate };
            hops.transfer(size, &cut)
        };
        paths.iter().map(over).min().expect("a plan's hosts have paths")
    }
}

/// Whether all links between switches have one rate and one delay.
fn are_alike(graph: &Graph) -> bool {
    let is_switch = |node: u32| graph.nodes[node as usize].kind == NodeKind::Switch;
    let mut between = graph.links.iter().filter(|link| is_switch(link.from) && is_switch(link.to));
    let first = between.next().map(|link| (link.rate, link.delay));
    between.all(|link| Some((link.rate, link.delay)) == first)
}

impl Hops {
    fn of(graph: &Graph, links: &[u32]) -> Hops {
        let links = || links.iter().map(|&link| &graph.links[link as usize]);
        Hops { rates: links().map(|link| link.rate).collect(), delay: links().map(|link| link.delay).sum() }
    }

    /// A train of full segments and a last one, offered back to back, or at the sender's rate.
    fn transfer(&self, size: Bytes, cut: &Cut) -> Span {
        let full = cut.full;
        let full_segments = size.get().saturating_sub(1) / full;
        let last = size.get() - full_segments * full;
        let mut first_leaves = Span::ZERO;
        let mut slowest = cut.rate.map_or(Span::ZERO, |rate| rate.time_for(cut.wire(full)));
        let mut last_leaves = slowest * full_segments;
        for rate in &self.rates {
            if full_segments > 0 {
                // The last full segment follows the first at the pace of the slowest hop so far.
                let each = rate.time_for(cut.wire(full));
                first_leaves += each;
                slowest = slowest.max(each);
                last_leaves = last_leaves.max(first_leaves + slowest * (full_segments - 1));
            }
            last_leaves += rate.time_for(cut.wire(last));
        }
        last_leaves + self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Cut = Cut { full: 1_448, headers: HEADER_BYTES, rate: None };

    fn hops(gbps: &[u64], delay: Span) -> Hops {
        Hops { rates: gbps.iter().map(|&rate| Rate::from_gbps(rate)).collect(), delay }
    }

    #[test]
    fn one_small_packet_is_serialised_at_each_hop() {
        // 100 B + 52 + 38 = 190 B: 1.52 us at 1 Gbps, three times, and 200 us of delay.
        assert_eq!(hops(&[1, 1, 1], Span::from_us(200)).transfer(Bytes::new(100), &TCP), Span::from_ns(204_560));
    }

    #[test]
    fn a_long_train_takes_the_bottlenecks_time_and_one_packet_per_other_hop() {
        // 1,000 full segments over 10, 1 and 10 Gbps: 1,000 × 12.304 us at the bottleneck, 1.2304 us before and after.
        let time = hops(&[10, 1, 10], Span::ZERO).transfer(Bytes::new(1_448_000), &TCP);
        assert_eq!(time, Span::from_ps(1_000 * 12_304_000 + 2 * 1_230_400));
    }

    #[test]
    fn a_short_last_segment_waits_behind_the_full_one() {
        // Two hops at 1 Gbps: the full segment leaves at 24.608 us, then 90 + 10 B take 0.8 us.
        let time = hops(&[1, 1], Span::ZERO).transfer(Bytes::new(1_458), &TCP);
        assert_eq!(time, Span::from_ns(24_608 + 800));
    }

    #[test]
    fn jumbo_packets_take_their_own_bytes() {
        // 1,000 full segments of 9,000 B: 9,038 B at 1 Gbps are 72.304 us.
        let cut = Cut { full: 8_948, ..TCP };
        let time = hops(&[10, 1, 10], Span::ZERO).transfer(Bytes::new(8_948_000), &cut);
        assert_eq!(time, Span::from_ps(1_000 * 72_304_000 + 2 * 7_230_400));
    }

    #[test]
    fn datagrams_leave_at_their_senders_rate_or_at_the_bottlenecks() {
        let cut = |gbps| Cut { full: 1_472, headers: 28, rate: Some(Rate::from_gbps(gbps)) };
        let transfer = |rates: &[u64], gbps| hops(rates, Span::ZERO).transfer(Bytes::new(1_472_000), &cut(gbps));
        // The last of 1,000 is released after 999 times 2.4608 us at 5 Gbps, and serialised three times at 10 Gbps.
        assert_eq!(transfer(&[10, 10, 10], 5), Span::from_ps(999 * 2_460_800 + 3 * 1_230_400));
        assert_eq!(transfer(&[10, 1, 10], 5), Span::from_ps(1_000 * 12_304_000 + 2 * 1_230_400));
    }
}
