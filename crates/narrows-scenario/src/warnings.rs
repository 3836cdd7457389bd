//! What an experiment may not mean: accepted and run, but told. Judged from plans alone.

mod rtts;

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::cc::{EcnUse, Spec};
use narrows_core::link::Key;
use narrows_core::queue::aqm::{Onset, Size};
use narrows_core::queue::scheduler::{Aqms, Queues};
use narrows_core::queue::{Limit, SchedulerConfig};
use narrows_core::transport::Transport;
use narrows_core::units::{Bytes, Rate, Span};
use serde::Serialize;

use crate::controller::ECMP;
use crate::offered;
use crate::outages;
use crate::route::Routes;
use crate::summary::Settling;
use crate::topology::{flow_control, hot_share};
use narrows_plan::{FlowStart, Link, Pairs, Pattern, Plan, Role, RoutingConfig, SampledFlow, Traffic};

/// A sentence, what to do about it, and the plans that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What may not be meant: one sentence.
    pub text: String,
    /// What to do about it.
    pub help: String,
    /// Positions among the experiment's plans.
    pub plans: Vec<usize>,
}

/// All that there is to say of these plans, each thing once.
pub(crate) fn of(plans: &[Plan], controllers: &[&'static Spec]) -> Vec<Warning> {
    let mut found: Vec<Warning> = vec![];
    let mut places = BTreeMap::new();
    for (index, plan) in plans.iter().enumerate() {
        let routes = Routes::new(&plan.network);
        let mut said = unmarked(plan, &routes, controllers);
        said.extend(mixed(plan, &routes, controllers));
        said.extend(delayed(plan, controllers));
        said.extend(rtts::of(plan, &routes, controllers));
        said.extend(phases(plan, &routes));
        said.extend(lossless(plan));
        said.extend(idle(plan));
        said.extend(late(plan));
        said.extend(unsampled(plan));
        said.extend(outages::doubts(plan));
        said.extend(unsettled(plan, &routes));
        said.extend(unrouted(plan, &routes));
        said.extend(unmoved(plan, &routes));
        said.extend(unweighed(plan, &routes));
        for (text, help) in said {
            let place = *places.entry(text.clone()).or_insert(found.len());
            if place == found.len() {
                found.push(Warning { text, help, plans: vec![] });
            }
            found[place].plans.push(index);
        }
    }
    found
}

type Said = (String, String);

/// Whether a port marks packets instead of dropping them.
fn marks(link: &Link) -> bool {
    match link.scheduler.as_ref().map_or(Aqms::OfPort, SchedulerConfig::aqm) {
        Aqms::OfPort => link.aqm.is_some_and(|aqm| aqm.marks()),
        Aqms::None => false,
        Aqms::Each(aqm) => aqm.marks(),
        Aqms::Own(_) => true,
    }
}

/// Whether a port has a queue for each flow.
fn by_flow(link: &Link) -> bool {
    link.scheduler.as_ref().is_some_and(|scheduler| scheduler.queues() == Queues::Flows)
}

/// A routing policy that has nothing to choose from.
fn unrouted(plan: &Plan, routes: &Routes<'_>) -> Option<Said> {
    let routing = plan.network.routing.filter(|_| !routes.has_choice())?;
    Some((
        format!("`routing = \"{}\"` changes nothing: no switch has several equally short paths", routing.spec().name),
        "take `routing` away, or choose a topology with several equally short paths, such as `leaf-spine`".to_owned(),
    ))
}

/// Flows that are to leave congested paths, and are told of no congestion but by timeouts.
fn unmoved(plan: &Plan, routes: &Routes<'_>) -> Option<Said> {
    if !matches!(plan.network.routing, Some(RoutingConfig::Rehash(_))) || !routes.has_choice() {
        return None;
    }
    if !plan.traffic.iter().any(|traffic| traffic.transport.is_tcp()) {
        return Some((
            "`routing = \"rehash\"` changes nothing: there is no traffic over TCP".to_owned(),
            "take `routing` away, or choose another routing policy".to_owned(),
        ));
    }
    let hears = |traffic: &Traffic| traffic.transport.is_tcp() && traffic.controller.ecn;
    let missing = if !plan.traffic.iter().any(hears) {
        "no traffic over TCP uses ECN"
    } else if !plan.network.links.iter().any(marks) {
        "no port marks packets"
    } else {
        return None;
    };
    Some((
        format!("`routing = \"rehash\"` changes paths after timeouts alone: {missing}"),
        "use a controller with ECN and an AQM that marks, or expect the paths of ECMP".to_owned(),
    ))
}

/// Equally short paths that begin on links of unlike rates: each gets as much, and the slowest fills first.
fn unweighed(plan: &Plan, routes: &Routes<'_>) -> Option<Said> {
    let links = &plan.network.links;
    // By switch, to tell quickly that there is nothing to look for.
    let mut rates: BTreeMap<u32, BTreeSet<Rate>> = BTreeMap::new();
    for link in links.iter().filter(|link| matches!(link.role, Role::Fabric | Role::Wan)) {
        rates.entry(link.from).or_default().insert(link.rate);
    }
    if rates.values().all(|rates| rates.len() == 1) {
        return None;
    }
    let rate = |link: &u32| links[*link as usize].rate;
    let unlike = |choice: &Vec<u32>| choice.iter().any(|link| rate(link) != rate(&choice[0]));
    let found: BTreeSet<u32> = routes.choices().filter(unlike).flatten().collect();
    let mut by_rate: BTreeMap<Rate, Vec<&str>> = BTreeMap::new();
    found.iter().for_each(|link| by_rate.entry(rate(link)).or_default().push(&links[*link as usize].name));
    let told: Vec<String> = by_rate.iter().map(|(rate, names)| format!("{rate} ({})", listed(names))).collect();
    let policy = plan.network.routing.as_ref().map_or(ECMP, |routing| routing.spec().name);
    (!found.is_empty()).then(|| {
        (
            format!(
                "equally short paths begin at links of {}: `{policy}` sends as much over each, whatever its rate",
                told.join(" and ")
            ),
            "give these links one `rate`, or expect the slow ones to be the busiest".to_owned(),
        )
    })
}

/// What flow control does not keep from being lost.
fn lossless(plan: &Plan) -> Vec<Said> {
    let graph = &plan.network;
    let thresholds = |link: &Link| link.pauses.or(link.ingress.and_then(|memory| memory.thresholds));
    if !graph.links.iter().filter_map(thresholds).any(|thresholds| !thresholds.may_lose) {
        return vec![];
    }
    let mut said = vec![];
    let loses = |link: &Link| link.all_functions().iter().any(|function| function.key() == Key::Loss);
    let lossy = graph.links.iter().zip(graph.can_be_paused()).filter(|(link, paused)| *paused && loses(link));
    let lossy: Vec<&str> = lossy.map(|(link, _)| link.name.as_str()).collect();
    if !lossy.is_empty() {
        said.push((
            format!("the wire of {} loses packets, whatever flow control keeps from being dropped", listed(&lossy)),
            "take `loss` away there, or say that packets may be lost: `may-lose = true`".to_owned(),
        ));
    }
    let classes: BTreeSet<u8> = plan.traffic.iter().map(|traffic| traffic.service_class).collect();
    if classes.len() > 1 && flow_control::may_overflow(graph, classes.len()) {
        said.push((
            format!(
                "{} service classes share the memory for what comes over a link, whose headroom is for fewer",
                classes.len()
            ),
            "make `limit` larger or `xoff` smaller; or accept loss: `may-lose = true`".to_owned(),
        ));
    }
    said
}

/// Hosts that send and receive the traffic's data.
fn pairs(traffic: &Traffic) -> Pairs {
    match &traffic.pattern {
        Pattern::Open(open) => open.pairs.clone(),
        Pattern::List(_) | Pattern::App(_) => Pairs::Listed(traffic.pattern.pairs()),
    }
}

/// AQMs that act beyond a queue that their port cannot hold.
fn idle(plan: &Plan) -> Vec<Said> {
    let graph = &plan.network;
    let full = graph.mtu.packet();
    // By AQM and what it needs and has, the ports.
    let mut found: BTreeMap<(&str, String, String), Vec<&str>> = BTreeMap::new();
    for link in &graph.links {
        let (aqm, onset) =
            match (link.scheduler.as_ref().map(|scheduler| (scheduler.spec().name, scheduler.aqm())), link.aqm) {
                (None | Some((_, Aqms::OfPort)), Some(aqm)) | (Some((_, Aqms::Each(aqm))), _) => {
                    (aqm.spec().name, aqm.onset())
                }
                (Some((name, Aqms::Own(onset))), _) => (name, onset),
                _ => continue,
            };
        let classes = link.classes() as u64;
        let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
        let of_pool = pool.map(|pool| u64::try_from(hot_share(pool, classes)).unwrap_or(u64::MAX));
        let own = match link.limit.share(classes) {
            Limit::Unlimited => None,
            Limit::Packets(packets) => Some(packets.bytes(full).get()),
            Limit::Bytes(bytes) => Some(bytes.get()),
        };
        let Some(room) = own.into_iter().chain(of_pool).min().map(Bytes::new) else { continue };
        let (needs, has) = match onset {
            Onset::Queue(Size::Bytes(size)) if size >= room => (size.to_string(), room.to_string()),
            Onset::Queue(Size::Packets(size)) if size.bytes(full) >= room => {
                (format!("{size}"), format!("{room}, or {} full packets", room.get() / full.get()))
            }
            Onset::Delay(target) if link.rate.time_for(room) <= target => {
                (target.to_string(), format!("{room}, or {}", rounded(link.rate.time_for(room))))
            }
            Onset::Queue(_) | Onset::Delay(_) => continue,
        };
        found.entry((aqm, needs, has)).or_default().push(&link.name);
    }
    let say = |((aqm, needs, has), ports): ((&str, String, String), Vec<&str>)| {
        (
            format!("`{aqm}` acts beyond {needs} and so hardly ever at {}, whose buffer holds {has}", listed(&ports)),
            "give the port a larger buffer (`limit`, `pool`), or the AQM a smaller target".to_owned(),
        )
    };
    found.into_iter().map(say).collect()
}

/// A time in whole microseconds.
fn rounded(span: Span) -> Span {
    Span::from_us(span.as_ps() / 1_000_000)
}

/// Controllers that need marks where no port on any path of their traffic marks.
fn unmarked(plan: &Plan, routes: &Routes<'_>, controllers: &[&'static Spec]) -> Vec<Said> {
    let needs = |traffic: &&Traffic| {
        let spec = controllers.iter().find(|spec| spec.name == traffic.controller.name);
        spec.is_some_and(|spec| spec.ecn.is_needed())
    };
    let without = |traffic: &&Traffic| {
        let crossed = routes.crossing(&pairs(traffic)).unwrap_or_default();
        !plan.network.links.iter().zip(crossed).any(|(link, share)| share > 0.0 && marks(link))
    };
    let found = plan.traffic.iter().filter(needs).filter(without);
    let mut by_controller: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    found.for_each(|traffic| by_controller.entry(&traffic.controller.name).or_default().push(&traffic.name));
    let say = |(controller, traffic): (&str, Vec<&str>)| {
        let is_l4s = controllers.iter().any(|spec| spec.name == controller && spec.ecn == EcnUse::L4s);
        let has_flow_queues = plan.network.links.iter().any(|link| link.role != Role::Host && by_flow(link));
        let marks = match (is_l4s, has_flow_queues) {
            (true, _) => "fabric.scheduler = \"dual-pi2\"",
            (_, true) => "fabric.scheduler = \"fq-codel\"",
            _ => "fabric.aqm.threshold.mark-at = \"20pkt\"",
        };
        (
            format!("`{controller}` needs ECN marks, and no port on the paths of {} marks", listed(&traffic)),
            format!("give ports on its paths an AQM or a scheduler that marks, such as `{marks}`"),
        )
    };
    by_controller.into_iter().map(say).collect()
}

/// Marking queues in which controllers that follow the share of marks meet others: these reduce by more on the first mark, or see
/// none and fill the buffer, so that the two do not share evenly [RFC 8257 §5] [RFC 9331 §4.3].
fn mixed(plan: &Plan, routes: &Routes<'_>, controllers: &[&'static Spec]) -> Vec<Said> {
    // By controller and service class, all that it serves over TCP. Controllers in files are not known.
    let mut groups: BTreeMap<(&str, u8), (EcnUse, Vec<Pairs>)> = BTreeMap::new();
    for traffic in plan.traffic.iter().filter(|traffic| traffic.transport.is_reliable()) {
        let name = traffic.controller.name.as_str();
        let Some(spec) = controllers.iter().find(|spec| spec.name == name) else { continue };
        groups.entry((name, traffic.service_class)).or_insert((spec.ecn, vec![])).1.push(pairs(traffic));
    }
    if !groups.values().any(|(ecn, _)| ecn.is_needed()) || groups.values().all(|(ecn, _)| ecn.is_needed()) {
        return vec![];
    }
    let carried = groups.iter().filter_map(|(&(name, class), (ecn, all))| {
        let amounts: Vec<(&Pairs, f64)> = all.iter().map(|pairs| (pairs, 1.0)).collect();
        Some((name, class, *ecn, routes.carried(&amounts).ok()?))
    });
    let carried: Vec<(&str, u8, EcnUse, Vec<f64>)> = carried.collect();
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (index, link) in plan.network.links.iter().enumerate().filter(|(_, link)| marks(link)) {
        let queues = link.scheduler.as_ref().map_or(Queues::Classes(1), SchedulerConfig::queues);
        let here: Vec<_> = carried.iter().filter(|(.., carried)| carried[index] > 0.0).collect();
        let mut pairs = BTreeSet::new();
        for (exact, class, ecn, _) in here.iter().filter(|(.., ecn, _)| ecn.is_needed()) {
            let meets = |other: u8| match queues {
                Queues::Classes(classes) => classes == 1 || *class == other,
                Queues::Flows => false,
                // Those of L4S have their own.
                Queues::Kinds => *ecn == EcnUse::Exact,
            };
            let others = here.iter().filter(|(_, other, ecn, _)| !ecn.is_needed() && meets(*other));
            pairs.extend(others.map(|(other, ..)| (*exact, *other)));
        }
        pairs.into_iter().for_each(|pair| found.entry(pair).or_default().push(&link.name));
    }
    let say = |((exact, other), ports): ((&str, &str), Vec<&str>)| {
        (
            format!(
                "`{exact}` and `{other}` share the marking {} of {}: only one of them follows the share of marks, so that \
                 they may not share the link evenly",
                if ports.len() == 1 { "queue" } else { "queues" },
                listed(&ports)
            ),
            "give each a queue of its own: by `service-class` and a `scheduler` with classes, or by `scheduler = \"fq-codel\"` \
             without an `aqm`"
                .to_owned(),
        )
    };
    found.into_iter().map(say).collect()
}

/// Controllers that need each packet acknowledged at once, where hosts delay acknowledgements or merge packets before.
fn delayed(plan: &Plan, controllers: &[&'static Spec]) -> Vec<Said> {
    let mut by_controller: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for traffic in &plan.traffic {
        let name = traffic.controller.name.as_str();
        let needs = controllers.iter().any(|spec| spec.name == name && spec.needs_every_ack);
        let (delays, help) = match &traffic.transport {
            Transport::Tcp => (
                traffic.profile.ack_every > 1 || traffic.profile.receive_offload.is_some(),
                "set `host = { ack-every = 1, receive-offload = \"off\" }`",
            ),
            Transport::Rdma(config) => (config.ack_every > 1, "set the transport's `ack-every` to 1"),
            Transport::Datagram(_) => continue,
        };
        if needs && delays {
            by_controller.entry((name, help)).or_default().push(&traffic.name);
        }
    }
    let say = |((controller, help), traffic): ((&str, &str), Vec<&str>)| {
        (
            format!(
                "`{controller}` needs each packet acknowledged at once, and hosts of {} delay acknowledgements",
                listed(&traffic)
            ),
            help.to_owned(),
        )
    };
    by_controller.into_iter().map(say).collect()
}

/// Drop-tail ports where long-lived flows meet whose senders' ports are exactly as fast, on a network without randomness:
/// arrivals keep their phase, so that the same flows find the queue full [Floyd 1991, "On Traffic Phase Effects in
/// Packet-Switched Gateways"].
fn phases(plan: &Plan, routes: &Routes<'_>) -> Option<Said> {
    let graph = &plan.network;
    let mut own: Vec<Option<&Link>> = vec![None; graph.nodes.len()];
    graph.links.iter().filter(|link| link.role == Role::Host).for_each(|link| own[link.from as usize] = Some(link));
    // Senders without jitter, by the rate of their port.
    let mut senders: BTreeMap<Rate, Vec<(u32, u32)>> = BTreeMap::new();
    let (mut random, mut lasting): (Vec<Pairs>, Vec<&FlowStart>) = (vec![], vec![]);
    for traffic in &plan.traffic {
        match &traffic.pattern {
            Pattern::List(list) => lasting.extend(list.iter().filter(|flow| flow.size.is_none())),
            Pattern::Open(_) => random.push(pairs(traffic)),
            Pattern::App(kind) if kind.rounds().mean_interarrival().is_some() => random.push(pairs(traffic)),
            Pattern::App(_) => {}
        }
    }
    for flow in lasting {
        if let Some(link) = own[flow.source as usize].filter(|link| link.jitter == Span::ZERO) {
            senders.entry(link.rate).or_default().push((flow.source, flow.destination));
        }
    }
    let amounts: Vec<(&Pairs, f64)> = random.iter().map(|pairs| (pairs, 1.0)).collect();
    let disturbed = routes.carried(&amounts).ok()?;
    let mut ports: Vec<&str> = vec![];
    let mut slowest = None;
    for (rate, mut pairs) in senders {
        pairs.sort_unstable();
        pairs.dedup_by_key(|(sender, _)| *sender);
        #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
        let count = pairs.len() as f64;
        let carried = routes.carried(&[(&Pairs::Listed(pairs), count)]).ok()?;
        let busy = |link: usize| carried[link] > 0.5;
        let mut inputs = vec![0_u32; graph.nodes.len()];
        (0..carried.len()).filter(|link| busy(*link)).for_each(|link| inputs[graph.links[link].to as usize] += 1);
        let meets = |link: &usize| {
            let port = &graph.links[*link];
            let drops = port.limit != Limit::Unlimited || port.pooled;
            let tail = port.role != Role::Host
                && drops
                && port.aqm.is_none()
                && !by_flow(port)
                && !marks(port)
                && port.rate == rate
                && port.all_functions().is_empty();
            tail && carried[*link] > 1.5 && inputs[port.from as usize] > 1 && disturbed[*link] == 0.0
        };
        let found: Vec<&str> = (0..carried.len()).filter(meets).map(|link| graph.links[link].name.as_str()).collect();
        if !found.is_empty() {
            slowest = slowest.or(Some(rate));
        }
        ports.extend(found);
    }
    let packet = slowest?.time_for(Bytes::new(1_538));
    Some((
        format!(
            "flows may lock each other out at the drop-tail {} {}, exactly as fast as the senders' ports: without \
             randomness the same flows lose, whatever their controller",
            if ports.len() == 1 { "port" } else { "ports" },
            listed(&ports)
        ),
        format!(
            "set `host.stack-delay.jitter`, up to a packet's time there of {packet}, or make the senders' ports faster"
        ),
    ))
}

/// Flows of a list that begin when the run is over.
fn late(plan: &Plan) -> Vec<Said> {
    let of = |traffic: &Traffic| {
        let Pattern::List(list) = &traffic.pattern else { return None };
        let late = list.iter().filter(|flow| flow.at >= plan.schedule.end).count();
        (late > 0).then(|| {
            let (all, name, end) = (list.len(), &traffic.name, plan.schedule.end);
            let begin = if late == 1 { "begins" } else { "begin" };
            (
                format!(
                    "{late} of the {all} flows of `{name}` {begin} at or after the run's end at {end}, and are left out"
                ),
                "move `run.end` after their start, or take them out".to_owned(),
            )
        })
    };
    plan.traffic.iter().filter_map(of).collect()
}

/// Sampled flows whose number is far beyond that of the flows expected at random.
fn unsampled(plan: &Plan) -> Vec<Said> {
    let end = plan.schedule.end;
    let say = |name: String, expected: f64, of: &str| {
        (
            format!("`sample.flows` names {name}, and about {expected:.0} flows{of} are expected"),
            "name one of the first, or move `run.end`".to_owned(),
        )
    };
    let of = |flow: &SampledFlow| match *flow {
        SampledFlow::All(_) => None,
        SampledFlow::One { traffic, sequence } => {
            let entry = &plan.traffic[traffic as usize];
            let expected = offered::expected_flows(entry, end);
            let random = offered::most_flows(entry).is_none();
            let name = &entry.name;
            (random && far_beyond(sequence, expected))
                .then(|| say(format!("`{name}/{sequence}`"), expected, &format!(" of `{name}`")))
        }
        SampledFlow::Number(number) => {
            let expected = plan.traffic.iter().map(|entry| offered::expected_flows(entry, end)).sum();
            far_beyond(number, expected).then(|| say(format!("flow {number}"), expected, ""))
        }
    };
    plan.sampling.flows.iter().filter_map(of).collect()
}

/// Traffic whose unfinished work does not settle. That a warm-up is short stands in the summary: short runs are common.
fn unsettled(plan: &Plan, routes: &Routes<'_>) -> Option<Said> {
    let found = Settling::of(plan, routes, &offered::of(plan, routes).ok()?)?;
    found.correlation_seconds.is_none().then(|| {
        (
            format!(
                "`{}` is offered {:.0} % of what it carries: unfinished work grows as long as flows arrive",
                found.link,
                100.0 * found.load
            ),
            "offer less; if this is meant, compare no means of runs that end at different times".to_owned(),
        )
    })
}

/// Whether a count from 0 is beyond what chance gives: twice what is expected, and 20 more.
fn far_beyond(number: u32, expected: f64) -> bool {
    f64::from(number) > 2.0 * expected + 20.0
}

/// The first few names.
pub(crate) fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let quoted: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0..=SHOWN => quoted.join(", "),
        all => format!("{} and {} more", quoted.join(", "), all - SHOWN),
    }
}
