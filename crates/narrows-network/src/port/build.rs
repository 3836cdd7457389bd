//! The ports of a network, from what its plan says of links and switches.

use narrows_core::queue::SchedulerConfig;
use narrows_core::queue::scheduler::{Aqms, Queues};

use super::*;

impl<P: Payload> Ports<P> {
    pub(crate) fn new(graph: &Graph, seed: u64) -> Result<Ports<P>, GraphError> {
        let mut pools = Vec::new();
        let pool_of: Vec<Option<u32>> = (graph.nodes.iter())
            .map(|node| {
                let config = node.pool?;
                pools.push(SharedPool { pool: Pool::new(config), links: Vec::new() });
                Some(index(pools.len() - 1))
            })
            .collect();
        let switches = switch_indices(graph);
        let served = graph.served();
        let can_be_paused = graph.can_be_paused();
        let has_bridges = graph.links.iter().any(|link| link.bridge.is_some());
        let has_points = graph.links.iter().any(|link| link.congestion_point.is_some());
        let mut ports = Ports {
            ports: Vec::new(),
            rules: Vec::new(),
            pools,
            served: Vec::new(),
            counted: Vec::new(),
            ingress: Memories::new(graph, &served),
            wires: Vec::new(),
            store: Store::new(),
            telemetry: Telemetry::default(),
            links: index(graph.links.len()),
            urgent_queues: Vec::new(),
            beside: Vec::new(),
            told: None,
            frames: VecDeque::new(),
            wakes: VecDeque::new(),
            firsts: VecDeque::new(),
            left: VecDeque::new(),
            dropped: VecDeque::new(),
            recalled: Vec::new(),
            looks_at_all: false,
        };
        for (id, link) in graph.links.iter().enumerate() {
            let id = index(id);
            if link.rate == Rate::from_bps(0) {
                return Err(GraphError::ZeroRate(id));
            }
            let link = &*link.clocked(seed);
            let of_host = switches[link.from as usize] == NONE;
            if link.congestion_point.is_some() && of_host {
                return Err(GraphError::HostSamples(id));
            }
            let judges_departures = link.aqm.is_some_and(|aqm| aqm.judges_departures());
            let has_only_flows =
                |scheduler: &SchedulerConfig| scheduler.queues() == Queues::Flows && scheduler.aqm() == Aqms::None;
            let has_classes = link.scheduler.as_ref().is_some_and(|scheduler| !has_only_flows(scheduler));
            // What waits in a host's queues is ready: its stack's time is the wire's.
            let waits = link.jitter > Span::ZERO || can_be_paused[id as usize];
            if (has_classes || judges_departures || link.scheduler.is_some() && waits) && of_host {
                return Err(GraphError::HostClasses(id));
            }
            let pool = match (link.pooled, pool_of[link.from as usize]) {
                (false, _) => None,
                (true, None) => return Err(GraphError::NoPool(id)),
                (true, Some(pool)) => {
                    ports.pools[pool as usize].links.push(id);
                    Some(pool)
                }
            };
            if link.bridge.is_some() && (of_host || switches[link.to as usize] == NONE) {
                return Err(GraphError::HostBridges(id));
            }
            let is_served = served[id as usize];
            if is_served && link.bridge.is_some() {
                return Err(GraphError::ServedBridge(id));
            }
            let far_end = match switches[link.to as usize] {
                NONE => FarEnd::Host(link.to),
                switch => FarEnd::Switch(switch),
            };
            let queues = is_served.then(|| Served::new(link, of_host, is_inside(graph, link), seed));
            ports.add(link, (of_host, far_end), pool.unwrap_or(NONE), queues, seed);
        }
        if has_points || has_bridges || ports.ingress.is_some() {
            ports.add_urgent_queues(graph, &served, has_points, seed);
        }
        Ok(ports)
    }

    pub(super) fn add(
        &mut self,
        link: &Link,
        (of_host, far_end): (bool, FarEnd),
        pool: u32,
        served: Option<Served>,
        seed: u64,
    ) {
        let small = |purpose: &str| Stream::named(seed, &format!("{purpose}/{}", link.name)).small();
        let aqm = link.aqm.map(|config| Aqm::new(&config, &aqm::Context { rate: link.rate, stream: small("aqm") }));
        let is_served = served.is_some();
        let stack = if is_served && of_host && link.scheduler.is_none() { link.stack } else { Span::ZERO };
        let wire = Wire::new(link, stack, small);
        let (changes, goes_down) = wire.as_ref().map_or((false, false), |wire| (wire.changes(), wire.goes_down()));
        let line = Line { ps_per_byte: PS_PER_BYTE_AT_1_BPS / link.rate.as_bps(), rate: link.rate.as_bps() };
        let ps_per_byte = u32::try_from(line.ps_per_byte).ok().filter(|_| line.rest() == 0 && !changes);
        // While it may be down it is to be asked of each packet.
        let fast_path = if goes_down { Backlog::EMPTY } else { fast_path_backlog(link.limit, aqm.as_ref()) };
        let is_computed = served.as_ref().is_some_and(|served| served.can_be_computed);
        let served = served.map_or(NONE, |served| {
            self.served.push(served);
            self.counted.push(Counted {
                origins: VecDeque::new(),
                by_origin: self.ingress.is_some() && !of_host,
                pauses: link.pauses.is_some(),
                stack,
            });
            index(self.served.len() - 1)
        });
        let to_u32 = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let point = link.congestion_point.map(|point| CongestionPoint::new(point.sampling, small("congestion-point")));
        self.ports.push(Port {
            ring: Ring::EMPTY,
            held_bytes: 0,
            held_packets: 0,
            ps_per_byte: ps_per_byte.unwrap_or(0),
            free_at: Time::ZERO,
            delay: link.least_delay().saturating_sub(stack),
            free_bytes: to_u32(fast_path.bytes.get()),
            free_packets: if pool == NONE && ps_per_byte.is_some() {
                to_u32(fast_path.packets.get().saturating_add(1))
            } else {
                0
            },
            far_end: match far_end {
                FarEnd::Host(node) => node,
                FarEnd::Switch(switch) => switch | SWITCH,
            },
            special: wire.is_some() || link.bridge.is_some() || is_served && !is_computed,
            kind: match (is_served, pool) {
                (true, _) if is_computed => Kind::Pausable,
                (true, _) => Kind::Served,
                (false, NONE) => Kind::Fifo,
                (false, _) => Kind::PooledFifo,
            },
            jittery: link.jitter > Span::ZERO,
            quiet: served == NONE && ps_per_byte.is_some() && point.is_none(),
            queue_integral: 0,
            queue_max: Bytes::ZERO,
            accepted: Backlog::EMPTY,
            quiet_below: 0,
            largest: 0,
            pool,
            served,
        });
        let wire = self.add_wire(wire);
        self.rules.push(Rules {
            fast_path,
            limit: link.limit,
            aqm,
            line,
            carried: Backlog::EMPTY,
            sent_before: Bytes::ZERO,
            begun_before: Span::ZERO,
            refused: Backlog::EMPTY,
            withdrawn: Backlog::EMPTY,
            dropped: [Packets::ZERO; DropReason::COUNT],
            marked: Packets::ZERO,
            sample_beyond: point.as_ref().map_or(u64::MAX, CongestionPoint::interval),
            congestion_point: point,
            samples: Packets::ZERO,
            pause_frames: Packets::ZERO,
            since: Time::ZERO,
            late: Packets::ZERO,
            wire,
            jitter: link.jitter,
            waits: small("jitter"),
        });
    }
}
