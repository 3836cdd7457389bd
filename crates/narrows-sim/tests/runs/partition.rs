//! A run in parts is the run: the same rows for any partition and any number of threads.

use std::ops::ControlFlow;
use std::path::Path;

use narrows_core::app::all_to_all::AllToAll;
use narrows_core::app::two_tier::TwoTier;
use narrows_core::cc::SPECS;
use narrows_core::edge::dcib;
use narrows_core::link::{gilbert_elliott, reorder};
use narrows_core::packet::Mtu;
use narrows_core::queue::aqm::codel;
use narrows_core::queue::aqm::threshold::Config as Threshold;
use narrows_core::queue::pfc::Thresholds;
use narrows_core::queue::scheduler::{drr, fq_codel};
use narrows_core::queue::{AqmConfig, CongestionPointConfig, Limit, PoolConfig, SchedulerConfig};
use narrows_core::rng::Stream;
use narrows_core::routing::{flowlet, rehash, spray};
use narrows_core::tcp::near_source::ReactionPoint;
use narrows_core::tcp::profile::Profile;
use narrows_core::transport::datagram::{self, SendRate};
use narrows_core::transport::rdma;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::*;
use narrows_results::Results;
use narrows_scenario::Overrides;
use narrows_sim::{Partition, Simulation, run, run_in_parts};

const END: Span = Span::from_ms(60);

/// Draws of one scenario.
struct Dice(Stream);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.0.below(u64::from(bound))).expect("below a u32")
    }

    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    /// True once in so many times.
    fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(u32::try_from(all.len()).expect("a short list")) as usize]
    }
}

/// Two or three sites of one or two switches, every site joined to every other by one link or two equal ones, which may be
/// longer in one direction. WAN ports may draw on their switch's pool. Delays and rates are round, so that events
/// at one time are frequent.
fn graph(dice: &mut Dice) -> (Graph, u32) {
    let sites = dice.between(2, 3);
    let homes: Vec<u32> = (0..sites).flat_map(|site| vec![site; dice.between(1, 2) as usize]).collect();
    let hosts: Vec<usize> = (0..homes.len()).flat_map(|switch| vec![switch; dice.between(2, 4) as usize]).collect();
    let count = u32::try_from(hosts.len()).expect("few hosts");
    let node = |name: String, kind, home: usize, pool| {
        let site = u16::try_from(homes[home]).expect("few sites");
        Node { name, kind, site: 10 + 3 * site, rack: 0, pool }
    };
    let mut nodes: Vec<Node> =
        (0..).zip(&hosts).map(|(host, &home): (u32, _)| node(format!("h{host}"), NodeKind::Host, home, None)).collect();
    let pooled = dice.once_in(2);
    let pool = pooled.then_some(PoolConfig { size: Bytes::new(150_000), alpha: 1 << 15 });
    nodes.extend((0..homes.len()).map(|home| node(format!("s{home}"), NodeKind::Switch, home, pool)));

    let mark_at = dice.one_of(&[None, Some(10), Some(40)]);
    let sampling = CongestionPointConfig { set_point: Bytes::new(6_000), weight: 2, sample_base: Bytes::new(15_000) };
    let scope = dice.one_of(&[Scope::Tor, Scope::SourceDatacenter]);
    let point = dice.once_in(2).then_some(CongestionPoint { sampling, scope });
    let limit = dice.one_of(&[20, 60, 300]);
    let classes = dice.one_of(&[Role::Fabric, Role::Edge]);
    let classes = Some(classes).filter(|_| dice.once_in(2));
    let codel =
        codel::Config::checked(Span::from_us(50), Span::from_us(500), dice.once_in(2)).expect("they go together");
    let scheduler = if dice.once_in(2) {
        SchedulerConfig::Drr(drr::Config { weights: vec![3, 1] })
    } else {
        SchedulerConfig::FqCodel(fq_codel::Config { queues: 8, quantum: Bytes::new(1_500), codel })
    };
    // Served: the links of this role cannot be cut.
    let leaves = Some(dice.one_of(&[Role::Fabric, Role::Edge])).filter(|_| dice.once_in(3));
    // Of the memory for what hosts send: their switch's ports are then served, and none may be cut.
    let thresholds = Thresholds { xoff: Bytes::new(6_000), xon: Bytes::new(3_000), may_lose: true };
    let ingress = Ingress { limit: Limit::Bytes(Bytes::new(20_000)), thresholds: Some(thresholds) };
    let ingress = dice.once_in(4).then_some(ingress);
    let mut links = Vec::new();
    let is_border = |home: usize| home == 0 || homes[home - 1] != homes[home];
    let inner: Vec<u32> =
        (0..).take(homes.len()).filter(|&home| !is_border(home as usize)).map(|home| count + home).collect();
    let wan_pooled = pooled && dice.once_in(2);
    let jitter = dice.one_of(&[Span::ZERO, Span::from_us(12)]);
    let mut join = |one: u32, other: u32, role, rate, delays: [Span; 2], loss| {
        for ((from, to), delay) in [(one, other), (other, one)].into_iter().zip(delays) {
            let host = from < count;
            let role = if host { Role::Host } else { role };
            let plain = Link::new(format!("{from}->{to}#{}", links.len()), (from, to), role, rate, delay);
            links.push(match host {
                true => Link { loss, jitter, ingress: ingress.filter(|_| inner.contains(&to)), ..plain },
                false => Link {
                    limit: Limit::Packets(Packets::new(limit)),
                    pooled: pooled && (role != Role::Wan || wan_pooled),
                    aqm: if leaves == Some(role) { Some(AqmConfig::Codel(codel)) } else { mark_at.map(Threshold::at) },
                    congestion_point: point,
                    scheduler: classes.filter(|&of| of == role).map(|_| scheduler.clone()),
                    loss,
                    watched: true,
                    ..plain
                },
            });
        }
    };
    let fast = Rate::from_gbps(1);
    for (host, &home) in (0..).zip(&hosts) {
        join(host, count + u32::try_from(home).expect("few"), Role::Edge, fast, [Span::from_us(5); 2], 0);
    }
    let wan = (dice.one_of(&[Rate::from_mbps(300), Rate::from_gbps(1)]), dice.one_of(&[0, 1 << 22, 1 << 25]));
    let doubled = dice.once_in(3);
    let equal = dice.once_in(2);
    for one in 0..homes.len() {
        for other in one + 1..homes.len() {
            let switches = [one, other].map(|home| count + u32::try_from(home).expect("few"));
            if homes[one] == homes[other] {
                join(switches[0], switches[1], Role::Fabric, fast, [Span::from_us(5); 2], 0);
            } else if is_border(one) && is_border(other) {
                let there = Span::from_us(dice.one_of(&[200, 1_000, 3_000]));
                let back = if equal { there } else { Span::from_us(dice.one_of(&[200, 700, 5_000])) };
                join(switches[0], switches[1], Role::Wan, wan.0, [there, back], wan.1);
                if doubled {
                    join(switches[0], switches[1], Role::Wan, wan.0, [there, back], 0);
                }
            }
        }
    }
    // Where links are doubled there is a choice.
    let spray = RoutingConfig::Spray(spray::Config {});
    let flowlet = RoutingConfig::Flowlet(flowlet::Config { gap: Span::from_us(20), entries: 4 });
    let sensitive = rehash::Config { threshold: 1, rounds: 1, idle_rounds: 0, suspend: Span::from_ms(1) };
    let policies = [Some(spray), Some(flowlet), Some(RoutingConfig::Rehash(sensitive)), None];
    let routing = if doubled { dice.one_of(&policies) } else { None };
    (
        Graph { nodes, links, routing, mtu: Mtu::new(dice.one_of(&[1_500, 1_500, 4_096, 9_000])).expect("in range") },
        count,
    )
}

/// What goes on inside of a part, as nothing is cut at it: edge pairs between switches of a site, and switches whose ports pause
/// whoever fills them.
fn inside(dice: &mut Dice, network: &mut Graph) {
    if dice.once_in(2) {
        let served = network.served();
        for link in (0..network.links.len()).filter(|&link| !served[link] && !served[link ^ 1]) {
            let of = &mut network.links[link];
            if of.role == Role::Fabric {
                of.bridge = Some(dcib::Config::new(of.rate, dcib::Share::TENTH, of.delay * 2));
                (of.loss, of.loss_of) = (1 << 30, LossOf::Unprotected);
            }
        }
        return;
    }
    let borders: Vec<u32> = network.links.iter().filter(|link| link.role == Role::Wan).map(|link| link.from).collect();
    for link in network.links.iter_mut().filter(|link| link.role != Role::Host && !borders.contains(&link.from)) {
        link.pauses = Some(Thresholds { xoff: Bytes::new(6_000), xon: Bytes::new(3_000), may_lose: true });
    }
}

/// Has links lose packets in bursts, reorder them and change, wherever that goes with what they have.
fn vary(dice: &mut Dice, network: &mut Graph) {
    let half = 1 << 31;
    for link in 0..network.links.len() {
        let is_wan = network.links[link].role == Role::Wan;
        if !dice.once_in(if is_wan { 2 } else { 5 }) {
            continue;
        }
        let before = network.links[link].clone();
        let varied = &mut network.links[link];
        if dice.once_in(2) {
            let chain = gilbert_elliott::Config { p: half >> 7, r: half >> 1, loss_bad: half, loss_good: 0 };
            varied.functions.push(FunctionConfig::GilbertElliott(chain));
            varied.loss = 0;
        }
        if dice.once_in(2) {
            let delay = Span::from_us(dice.one_of(&[1, 300]));
            let late = reorder::Config { share: half >> 5, delay, delay_max: delay * 2 };
            varied.functions.push(FunctionConfig::Reorder(late));
        }
        for _ in 0..dice.below(4) {
            let change = match dice.below(2) {
                0 => Change::Rate(varied.rate.scaled(dice.one_of(&[1, 5, 40]), 10)),
                _ => Change::Delay(Span::from_ps(varied.delay.as_ps() / 4 * dice.one_of(&[1, 5, 9]))),
            };
            varied.events.push(Event { at: Time::ZERO + Span::from_ms(dice.below(60).into()), change });
        }
        if dice.once_in(2) {
            let down = Time::ZERO + Span::from_ms(dice.below(50).into());
            let up = down + Span::from_us(dice.one_of(&[100, 2_000, 15_000]));
            let outage = [(down, Change::Down), (up, Change::Up)];
            varied.events.extend(outage.map(|(at, change)| Event { at, change }));
        }
        varied.events.sort_by_key(|event| event.at);
        if network.excluded().is_some() {
            network.links[link] = before;
        }
    }
}

fn traffic(dice: &mut Dice, index: u32, hosts: u32) -> Traffic {
    let spec = SPECS[dice.below(u32::try_from(SPECS.len()).expect("few")) as usize];
    let ecn = spec.ecn.is_needed() || dice.once_in(2);
    let named = dice.below(u32::try_from(Profile::NAMED.len()).expect("few")) as usize;
    let datagrams = dice.once_in(4).then(|| {
        let rate = dice.one_of(&[SendRate::Share(1 << 15), SendRate::Fixed(Rate::from_mbps(100))]);
        Transport::Datagram(datagram::Config { rate })
    });
    let rdma = (datagrams.is_none() && !spec.needs_delivery_rate && dice.once_in(3)).then(|| {
        Transport::Rdma(rdma::Config {
            recovery: dice.one_of(&[rdma::Recovery::GoBackN, rdma::Recovery::SelectiveRepeat]),
            timeout: Span::from_ms(dice.one_of(&[1, 20])),
            ack_every: dice.one_of(&[1, 1, 5]),
            cnp_interval: dice.one_of(&[None, Some(Span::from_us(50))]),
        })
    });
    let connections = match dice.below(3) {
        _ if datagrams.is_some() => Connections::FreshEstablished,
        0 if rdma.is_some() => Connections::FreshEstablished,
        0 => Connections::Fresh,
        1 => Connections::FreshEstablished,
        _ => Connections::Persistent { pool: dice.between(1, 3) },
    };
    let pattern = match datagrams {
        Some(_) => unrequested(dice, hosts),
        None => pattern(dice, hosts),
    };
    let keeps = if let Pattern::App(kind) = &pattern { kind.rounds().keeps_connections() } else { true };
    let is_program = matches!(pattern, Pattern::App(Kind::Program(_)));
    let connections = if is_program && !dice.once_in(3) { Connections::InOrder } else { connections };
    let fresh = if rdma.is_some() { Connections::FreshEstablished } else { Connections::Fresh };
    Traffic {
        name: format!("t{index}"),
        controller: match datagrams {
            Some(_) => ControllerChoice::none(),
            None => ControllerChoice::new(spec.name, ecn),
        },
        transport: datagrams.or(rdma).unwrap_or_default(),
        service_class: u8::try_from(dice.below(2)).expect("0 or 1"),
        profile: Profile {
            min_rto: Span::from_ms(10),
            initial_rto: Span::from_ms(20),
            near_source: dice.one_of(&[None, Some(ReactionPoint::STANDARD), Some(ReactionPoint::SOFTWARE)]),
            nic_limiter: dice.one_of(&[None, None, Some(ReactionPoint::STANDARD)]),
            ..Profile::NAMED[named].1
        },
        connections: if keeps { connections } else { fresh },
        pattern,
    }
}

/// What datagrams go with: flows that nobody asks for.
fn unrequested(dice: &mut Dice, hosts: u32) -> Pattern {
    loop {
        match pattern(dice, hosts) {
            Pattern::App(_) => {}
            Pattern::Open(open) => return Pattern::Open(Open { request: None, ..open }),
            Pattern::List(flows) => {
                return Pattern::List(flows.into_iter().map(|flow| FlowStart { request: None, ..flow }).collect());
            }
        }
    }
}

fn pattern(dice: &mut Dice, hosts: u32) -> Pattern {
    let request = dice.once_in(2).then_some(Bytes::new(300));
    match dice.below(8) {
        0 => Pattern::Open(Open {
            mean_interarrival: Span::from_us(700),
            sigma: dice.once_in(2).then_some(1.5),
            on_off: None,
            sizes: SizeDistribution { name: "test".into(), points: vec![(100, 0.0), (4_000, 0.6), (150_000, 1.0)] },
            pairs: Pairs::Between { sources: (0..hosts).collect(), destinations: (0..hosts).collect() },
            exact: dice.once_in(2),
            request,
        }),
        1 => {
            let client = dice.below(hosts);
            let mean_interarrival = dice.once_in(2).then(|| Span::from_us(u64::from(dice.between(300, 5_000))));
            Pattern::App(Kind::Incast(Incast {
                client,
                servers: (0..hosts).filter(|&server| server != client).collect(),
                request: Bytes::new(200),
                response: Bytes::new(u64::from(dice.between(1_000, 15_000))),
                repeats: if mean_interarrival.is_some() { 0 } else { dice.one_of(&[3, 1_000]) },
                mean_interarrival,
                start: Time::ZERO + Span::from_ms(u64::from(dice.below(10))),
                jitter: dice.one_of(&[Span::ZERO, Span::from_us(200)]),
            }))
        }
        2 => Pattern::App(Kind::AllToAll(AllToAll {
            hosts: (0..hosts).collect(),
            size: Bytes::new(u64::from(dice.between(1, 15_000))),
            in_rounds: dice.once_in(2),
            repeats: dice.one_of(&[2, 1_000]),
            start: Time::ZERO + Span::from_ms(u64::from(dice.below(10))),
        })),
        5 => {
            let all: Vec<u32> = (0..hosts).collect();
            let racks: Vec<Vec<u32>> = all.chunks_exact(2).map(<[u32]>::to_vec).collect();
            Pattern::App(Kind::TwoTier(TwoTier {
                racks,
                request: Bytes::new(u64::from(dice.between(1, 3_000))),
                response: Bytes::new(u64::from(dice.between(1, 15_000))),
                mean_interarrival: Span::from_us(u64::from(dice.between(500, 8_000))),
                start: Time::ZERO + Span::from_ms(u64::from(dice.below(10))),
            }))
        }
        6 => {
            let off = Span::from_us(u64::from(dice.between(500, 4_000)));
            let on_off = OnOff { on: Span::from_ms(2), off, gap: Span::from_us(150), sigma: 1.0 };
            Pattern::Open(Open {
                mean_interarrival: on_off.mean_interarrival(),
                sigma: None,
                on_off: Some(on_off),
                sizes: SizeDistribution { name: "test".into(), points: vec![(100, 0.0), (40_000, 1.0)] },
                pairs: Pairs::Between { sources: (0..hosts).collect(), destinations: (0..hosts).collect() },
                exact: false,
                request,
            })
        }
        7 => {
            let ranks = dice.between(2, hosts);
            let start = Time::ZERO + Span::from_ms(u64::from(dice.below(10)));
            let sigma = dice.one_of(&[0, 20_000]);
            let text = crate::random_program::text(ranks, 30, |bound| dice.below(bound));
            Pattern::App(Kind::Program(crate::random_program::planned(&text, start, sigma)))
        }
        // Flows that begin and stop at round times, several at once.
        kind => {
            let long = kind == 3;
            let flow = |_| {
                let source = dice.below(hosts);
                let destination = (source + 1 + dice.below(hosts - 1)) % hosts;
                let at = Time::ZERO + Span::from_ms(u64::from(dice.below(8)) * 5);
                let stops = long && dice.once_in(2);
                FlowStart {
                    at,
                    spread: Span::from_ms(u64::from(dice.below(2))),
                    source,
                    destination,
                    size: (!long).then(|| Bytes::new(u64::from(dice.between(1, 200_000)))),
                    stop: stops.then(|| at + Span::from_ms(u64::from(dice.between(2, 20)))),
                    request,
                }
            };
            let mut flows: Vec<FlowStart> = (0..6).map(flow).collect();
            flows.sort_by_key(|flow| flow.at);
            Pattern::List(flows)
        }
    }
}

pub fn scenario(seed: u64) -> Plan {
    scenario_with(seed, inside)
}

/// The same with nothing that keeps racks of one site together: no port is served, no switch notifies.
fn of_racks(seed: u64) -> Plan {
    scenario_with(seed, |_, network| {
        for link in &mut network.links {
            (link.congestion_point, link.scheduler, link.ingress) = (None, None, None);
            link.aqm = link.aqm.filter(|aqm| !aqm.judges_departures());
        }
    })
}

/// And nothing but delays between ports, which the network has a loop of its own for.
fn of_plain_racks(seed: u64) -> Plan {
    let mut plan = of_racks(2 * seed);
    plan.network.routing = None;
    plan.network.links.iter_mut().for_each(|link| (link.loss, link.jitter) = (0, Span::ZERO));
    plan
}

fn scenario_with(seed: u64, inside: fn(&mut Dice, &mut Graph)) -> Plan {
    let mut dice = Dice(Stream::named(seed, "scenario"));
    let (mut network, hosts) = graph(&mut dice);
    inside(&mut Dice(Stream::named(seed, "inside")), &mut network);
    // Edge pairs know a flow by its label.
    if network.links.iter().any(|link| link.bridge.is_some()) {
        network.routing = network.routing.filter(|routing| !matches!(routing, RoutingConfig::Rehash(_)));
    }
    if seed % 2 == 1 {
        vary(&mut Dice(Stream::named(seed, "events")), &mut network);
    }
    let entries = dice.between(2, 5);
    Plan {
        experiment: "test".into(),
        arm: "test".into(),
        axes: vec![],
        declared: vec![],
        network,
        traffic: (0..entries).map(|index| traffic(&mut dice, index, hosts)).collect(),
        schedule: Schedule {
            end: Time::ZERO + END + Span::from_us(u64::from(dice.below(1_000))),
            drain: dice.one_of(&[Span::ZERO, Span::from_us(7_300), Span::from_ms(500)]),
            warmup: END.div(6),
        },
        sampling: Sampling {
            queues: Span::from_us(500),
            windows: Span::from_ms(1),
            goodput: Span::from_ms(5),
            throughput: Span::from_ms(2),
            flows: vec![SampledFlow::All(0), SampledFlow::One { traffic: entries - 1, sequence: 3 }],
        },
    }
}

pub fn on_one_core(plan: &Plan, seed: u64) -> Results {
    let mut simulation = Simulation::new(plan, seed).expect("a plan that can be run");
    while simulation.advance(1_000) {}
    simulation.finish()
}

fn go_on(_: narrows_sim::Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn parts_give_the_rows_of_the_whole_for_any_number_of_threads() {
    // What the scenarios have seen together, lest they be equal because nothing happens in them.
    let (mut crossing, mut lost, mut marked, mut stopped, mut answered, mut drained) = (0, 0, 0, 0, 0, 0);
    let (mut refused, mut unequal) = (0, 0);
    let (mut paused_by_input, mut paused_by_output, mut repaired) = (0, 0, 0);
    let (mut whole_datagrams, mut cut_datagrams) = (0, 0);
    // Each switch draws from a stream of its own, so that the division changes nothing.
    let mut chosen = 0;
    let (mut down, mut cut, mut late, mut met) = (0, 0, 0, 0);
    for seed in 0..40 {
        let plan = scenario(seed);
        let whole = on_one_core(&plan, seed);
        let partition = Partition::by_site(&plan.network);
        assert!(partition.count() > 1);
        for threads in 1..=3 {
            let parts = run_in_parts(&plan, seed, &partition, threads, go_on).expect("as before");
            let parts = parts.expect("not cancelled").results;
            let differing = whole.flows.iter().zip(&parts.flows).find(|(one, other)| one != other);
            assert!(whole == parts, "scenario {seed} on {threads} threads, flows {differing:?}");
            // Zeros have signs.
            assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
        }
        let datagrams =
            || whole.flows.iter().filter(|flow| !plan.traffic[flow.traffic as usize].transport.is_reliable());
        for flow in datagrams() {
            let dropped = flow.dropped_bytes.expect("known of a simulation");
            assert!(flow.fct_ns.is_none() || dropped == 0, "{flow:?}");
            // All that was sent has arrived or was dropped, if the run had the time.
            let in_time = whole.ended_ns < (plan.schedule.end + plan.schedule.drain).as_ns();
            let endless = flow.size_bytes == flow.received_bytes;
            let known = flow.received_bytes + dropped;
            assert!(endless || known == flow.size_bytes || !in_time && known < flow.size_bytes, "{flow:?}");
        }
        whole_datagrams += datagrams().filter(|flow| flow.fct_ns.is_some()).count();
        cut_datagrams += datagrams().filter(|flow| flow.dropped_packets > Some(0)).count();
        crossing += whole.flows.iter().filter(|flow| flow.inter && flow.fct_ns.is_some()).count();
        lost += whole.ports.iter().map(|port| port.dropped_impairment_packets).sum::<u64>();
        marked += whole.ports.iter().map(|port| port.marked_packets).sum::<u64>();
        let frames = whole.ports.iter().map(|port| port.pause_frames).sum::<u64>();
        let by_output = plan.network.links.iter().any(|link| link.pauses.is_some());
        *if by_output { &mut paused_by_output } else { &mut paused_by_input } += frames;
        repaired += whole.bridges.iter().map(|bridge| bridge.transmitted.repaired).sum::<u64>();
        let wans = || plan.network.links.iter().zip(&whole.ports).filter(|(link, _)| link.role == Role::Wan);
        chosen += usize::from(plan.network.routing.is_some());
        refused += wans().map(|(_, port)| port.dropped_pool_packets).sum::<u64>();
        let delays: Vec<Span> = wans().map(|(link, _)| link.delay).collect();
        unequal += usize::from(delays.chunks(2).any(|pair| pair[0] != pair[1]));
        down += wans().map(|(_, port)| port.dropped_outage_packets).sum::<u64>();
        cut += wans().map(|(_, port)| port.lost_in_outage_packets).sum::<u64>();
        late += wans().map(|(_, port)| port.late_packets).sum::<u64>();
        met += whole.flows.iter().filter(|flow| flow.events_met.is_some()).count();
        answered += whole.requests.iter().filter(|request| request.completion_ns.is_some()).count();
        let lists = plan.traffic.iter().filter_map(|traffic| match &traffic.pattern {
            Pattern::List(flows) => Some(flows),
            _ => None,
        });
        stopped += lists.flatten().filter(|flow| flow.stop.is_some()).count();
        drained += usize::from(whole.ended_ns > plan.schedule.end.as_ns());
    }
    let packets = [lost, marked, refused, down, cut, late, paused_by_input, paused_by_output, repaired]
        .map(|packets| usize::try_from(packets).unwrap());
    let seen = [crossing, stopped, answered, drained, unequal, met, whole_datagrams, cut_datagrams, chosen];
    let seen: Vec<usize> = seen.into_iter().chain(packets).collect();
    assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
}

#[test]
fn the_fast_path_gives_the_rows_of_the_full_path() {
    let mut delivered = 0;
    for plan in (0..60).map(scenario).chain((0..30).map(of_racks)).chain((0..30).map(of_plain_racks)) {
        let usual = on_one_core(&plan, 1);
        let mut full = Simulation::new(&plan, 1).expect("as before");
        full.take_full_path();
        while full.advance(1_000) {}
        let full = full.finish();
        let differing = usual.flows.iter().zip(&full.flows).find(|(one, other)| one != other);
        assert!(usual == full, "{plan:?}, flows {differing:?}");
        assert_eq!(format!("{usual:?}"), format!("{full:?}"));
        delivered += usual.flows.iter().map(|flow| flow.received_bytes).sum::<u64>();
    }
    assert!(delivered > 100_000_000, "{delivered}");
}

#[test]
fn parts_within_a_site_give_the_rows_of_the_whole() {
    assert!(compare_cut_by_racks(0..30, of_racks) > 3, "policies choose");
    compare_cut_by_racks(0..15, of_plain_racks);
}

/// Compares these scenarios with themselves on one core; of how many the network has a policy of routing.
fn compare_cut_by_racks(seeds: std::ops::Range<u64>, scenario: fn(u64) -> Plan) -> usize {
    let (mut within, mut crossing, mut dropped, mut marked, mut chosen) = (0, 0, 0, 0, 0);
    for seed in seeds {
        let plan = scenario(seed);
        let whole = on_one_core(&plan, seed);
        let partition = Partition::by_rack(&plan.network, 2 + u32::try_from(seed % 5).expect("below 5"));
        for threads in [1, 3] {
            let parts = run_in_parts(&plan, seed, &partition, threads, go_on).expect("as before");
            let parts = parts.expect("not cancelled").results;
            let differing = whole.flows.iter().zip(&parts.flows).find(|(one, other)| one != other);
            assert!(whole == parts, "scenario {seed} on {threads} threads, flows {differing:?}");
            assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
        }
        let is_cut = |link: &Link| partition.part_of(link.from) != partition.part_of(link.to);
        let cut = || plan.network.links.iter().zip(&whole.ports).filter(|(link, _)| is_cut(link));
        within += cut().filter(|(link, _)| !plan.network.crosses(link.from, link.to)).count();
        crossing += cut().map(|(_, port)| port.sent_packets).sum::<u64>();
        dropped += cut().map(|(_, port)| port.dropped_limit_packets).sum::<u64>();
        marked += cut().map(|(_, port)| port.marked_packets).sum::<u64>();
        chosen += usize::from(plan.network.routing.is_some());
    }
    let seen = [crossing, dropped, marked].map(|packets| usize::try_from(packets).expect("few"));
    assert!(seen.iter().chain(&[within]).all(|&count| count > 5), "{within} {seen:?}");
    chosen
}

#[test]
fn a_papers_plan_gives_the_same_rows_on_two_threads() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows-scenario/tests/experiments/gemini-fig13.toml");
    let overrides = Overrides { quick: true, ..Overrides::default() };
    let experiment = narrows_scenario::load(&file, &overrides, &Default::default()).expect("an experiment of ours");
    let mut plan = experiment.plans.last().expect("it has arms").clone();
    plan.schedule =
        Schedule { end: Time::ZERO + Span::from_ms(300), drain: Span::from_ms(200), warmup: Span::from_ms(50) };
    let whole = on_one_core(&plan, 1);
    assert!(whole.flows.iter().filter(|flow| flow.fct_ns.is_some()).count() > 10);
    let ran = run(&plan, 1, 2, go_on).expect("a plan that can be run").expect("not cancelled");
    assert_eq!(ran.threads, 2);
    assert!(ran.results == whole);
}

#[test]
fn a_run_in_parts_can_be_cancelled() {
    let plan = scenario(1);
    let partition = Partition::by_site(&plan.network);
    let results = run_in_parts(&plan, 1, &partition, 2, |_| ControlFlow::Break(())).expect("a plan that can be run");
    assert!(results.is_none());
}
