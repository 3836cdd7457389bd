//! Small plans, built by hand.

use narrows_core::cc::{Value, spec};
use narrows_core::queue::Limit;
use narrows_core::queue::aqm::threshold::Config;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::*;
use narrows_results::Results;
use narrows_sim::Simulation;

pub fn at(span: Span) -> Time {
    Time::ZERO + span
}

/// Senders 0..n, receivers n..2n, and a bottleneck between their two switches.
pub struct Dumbbell {
    pub pairs: u32,
    pub access: Rate,
    pub rate: Rate,
    /// Without queueing and serialisation.
    pub rtt: Span,
    pub limit: u64,
    pub mark_at: Option<u64>,
    pub profile: Profile,
}

impl Default for Dumbbell {
    fn default() -> Dumbbell {
        Dumbbell {
            pairs: 1,
            access: Rate::from_gbps(10),
            rate: Rate::from_gbps(1),
            rtt: Span::from_ms(10),
            limit: 1000,
            mark_at: None,
            profile: smooth(Profile::LINUX_4_9),
        }
    }
}

/// Neither offload nor delayed acknowledgements: what closed forms assume.
pub fn smooth(profile: Profile) -> Profile {
    Profile { offload_segments: 1, receive_offload: None, ack_every: 1, ..profile }
}

impl Dumbbell {
    pub fn graph(&self) -> Graph {
        let n = self.pairs;
        let mut nodes: Vec<Node> = (0..2 * n).map(|host| Node::new(format!("h{host}"), NodeKind::Host)).collect();
        nodes.extend(["left", "right"].map(|name| Node::new(name, NodeKind::Switch)));
        let mut links = Vec::new();
        let plain =
            |from: u32, to: u32, role, rate, delay| Link::new(format!("{from}->{to}"), (from, to), role, rate, delay);
        for host in 0..2 * n {
            let switch = 2 * n + u32::from(host >= n);
            links.push(plain(host, switch, Role::Host, self.access, Span::ZERO));
            links.push(plain(switch, host, Role::Edge, self.access, Span::ZERO));
        }
        for (from, to) in [(2 * n, 2 * n + 1), (2 * n + 1, 2 * n)] {
            let plain = plain(from, to, Role::Fabric, self.rate, self.rtt.div(2));
            let (limit, aqm) = (Limit::Packets(Packets::new(self.limit)), self.mark_at.map(Config::at));
            links.push(Link { limit, aqm, watched: true, ..plain });
        }
        Graph { nodes, links, ..Graph::default() }
    }

    /// The port that is the bottleneck for data.
    pub fn bottleneck(&self) -> usize {
        4 * self.pairs as usize
    }

    /// A long flow for each pair, all from the start.
    pub fn long(&self, controller: &str, ecn: bool, end: Span) -> Plan {
        let flows =
            (0..self.pairs).map(|pair| flow(Span::from_us(u64::from(pair) * 137), pair, self.pairs + pair, None));
        self.plan(controller, ecn, end, Pattern::List(flows.collect()))
    }

    pub fn plan(&self, controller: &str, ecn: bool, end: Span, pattern: Pattern) -> Plan {
        Plan {
            experiment: "test".into(),
            arm: controller.into(),
            axes: vec![],
            declared: vec![],
            network: self.graph(),
            traffic: vec![Traffic {
                name: "test".into(),
                controller: ControllerChoice::new(controller, ecn),
                profile: self.profile,
                service_class: 0,
                transport: Transport::Tcp,
                connections: Connections::Fresh,
                pattern,
            }],
            schedule: Schedule { end: at(end), drain: Span::from_secs(5), warmup: end.div(4) },
            sampling: Sampling {
                queues: Span::from_us(500),
                windows: Span::from_ms(1),
                goodput: Span::from_ms(100),
                ..Sampling::default()
            },
        }
    }
}

/// Sets a parameter of the plan's only controller.
pub fn set(plan: &mut Plan, name: &str, value: Value) {
    let controller = &mut plan.traffic[0].controller;
    let parameters = spec(&controller.name).expect("plans name registered controllers").parameters;
    let index = parameters.iter().position(|parameter| parameter.name == name).expect("a parameter of the controller");
    controller.values[index] = value;
}

pub fn flow(start: Span, source: u32, destination: u32, size: Option<u64>) -> FlowStart {
    FlowStart::new(at(start), source, destination, size.map(Bytes::new))
}

pub fn run(plan: &Plan, seed: u64) -> Results {
    let mut simulation = Simulation::new(plan, seed).expect("a plan that can be run");
    while simulation.advance(1 << 20) {}
    simulation.finish()
}
