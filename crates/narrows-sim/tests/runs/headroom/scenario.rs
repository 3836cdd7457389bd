//! Random networks with flow control, as experiments, and what is sent over them.

use std::collections::BTreeMap;

use narrows_core::cc::SPECS;
use narrows_core::queue::Limit;
use narrows_core::queue::pfc::headroom;
use narrows_core::rng::Stream;
use narrows_core::units::{Bytes, Span};
use narrows_plan::{Graph, Ingress, Link, NodeKind, Plan, Role};

/// When all traffic is long over.
pub(crate) const QUIET: Span = Span::from_secs(20);

/// Links of one class, or one link of a graph.
#[derive(Clone, Debug)]
struct Class {
    rate_mbps: u64,
    delay_ns: u64,
    xoff: u64,
    xon: u64,
    has_classes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Star,
    LeafSpine {
        leaves: u64,
        spines: u64,
    },
    TwoDatacenters {
        racks: u64,
    },
    /// By switch but the first, the one that it hangs on.
    Tree {
        above: [u64; 3],
        switches: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    shape: Shape,
    /// On each switch.
    hosts: u64,
    by_input: bool,
    classes: u64,
    /// What all switches' ports have beside; and their scheduler, where they have one.
    ports: String,
    scheduler: String,
    host: String,
    mtu: u64,
    /// By the name of the class or link.
    links: BTreeMap<String, Class>,
    traffic: String,
    end_ns: u64,
}

struct Dice(Stream);

impl Dice {
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.0.below(all.len() as u64)).expect("a short list")]
    }

    /// Each power of ten as probable as the others.
    fn magnitude(&mut self, least: u64, tenfold: u64) -> u64 {
        let power = self.between(0, tenfold - 1);
        let unit = least * 10u64.pow(u32::try_from(power).expect("a few"));
        self.between(unit, 10 * unit)
    }
}

impl Scenario {
    pub(crate) fn draw(seed: u64) -> Scenario {
        let dice = &mut Dice(Stream::named(seed, "headroom"));
        let shape = match dice.between(0, 3) {
            0 => Shape::Star,
            1 => Shape::LeafSpine { leaves: dice.between(2, 3), spines: dice.between(1, 3) },
            2 => Shape::TwoDatacenters { racks: dice.between(1, 2) },
            _ => {
                let switches = dice.between(2, 4);
                Shape::Tree { above: [1, dice.between(1, 2), dice.between(1, 3)], switches }
            }
        };
        let hosts = if shape == Shape::Star { dice.between(2, 8) } else { dice.between(1, 3) };
        let any = dice.between(576, 9_216);
        let mtu = dice.one_of(&[576, 1_500, 1_500, 4_096, 9_000, 9_216, any]);
        let classes = dice.one_of(&[1, 1, 2, 3, 4]);
        let mut scenario = Scenario {
            shape,
            hosts,
            by_input: dice.once_in(2),
            classes,
            ports: String::new(),
            scheduler: String::new(),
            host: String::new(),
            mtu,
            links: BTreeMap::new(),
            traffic: String::new(),
            end_ns: 0,
        };
        // Several networks have round rates and delays, so that frames fit just into them.
        let round = dice.once_in(3);
        let far = dice.between(1, 3);
        for name in scenario.link_names() {
            let rate_mbps = if round { dice.one_of(&[1, 10, 25, 40, 100]) * 1_000 } else { dice.magnitude(1_000, 2) };
            let delay_ns = if round { 100 * dice.between(1, 30) } else { dice.magnitude(100, far) };
            let xoff = mtu.max(1_500) + dice.between(0, 20 * mtu);
            let has_classes = classes > 1 && !dice.once_in(5);
            let xon = xoff * dice.one_of(&[0, 50, 90, 100]) / 100;
            scenario.links.insert(name, Class { rate_mbps, delay_ns, xoff, xon, has_classes });
        }
        // Else all classes share one queue everywhere, and memory that is for one: `check` warns of that.
        scenario.links.values_mut().next().expect("there are links").has_classes = classes > 1;
        let weights: Vec<String> = (0..classes).map(|_| dice.between(1, 5).to_string()).collect();
        scenario.scheduler = match dice.once_in(2) {
            true => format!(", scheduler = {{ strict-priority = {{ classes = {classes} }} }}"),
            false => format!(", scheduler = {{ drr = {{ weights = [{}] }} }}", weights.join(", ")),
        };
        scenario.ports += dice.one_of(&["", ", aqm = { threshold = { mark-at = \"20pkt\" } }"]);
        let profile = dice.one_of(&["linux-4.9", "linux-6", "dctcp-2010", "freebsd-cee"]);
        scenario.host = format!("profile = \"{profile}\", mtu = {mtu}");
        if dice.once_in(4) {
            scenario.ports += ", congestion-point = { qcn = { set-point = \"2KB\", sample-base = \"10KB\" } }";
            scenario.host += ", near-source = \"software\"";
        }
        if profile != "freebsd-cee" || dice.once_in(2) {
            let stack =
                if dice.once_in(2) { [0; 3] } else { [10_000, 20_000, 3_000].map(|most| dice.between(0, most)) };
            let [tx, rx, jitter] = stack;
            scenario.host +=
                &format!(", stack-delay = {{ tx = \"{tx}ns\", rx = \"{rx}ns\", jitter = \"{jitter}ns\" }}");
        }
        scenario.draw_traffic(dice);
        scenario
    }

    fn link_names(&self) -> Vec<String> {
        let names: &[&str] = match self.shape {
            Shape::Star => &["fabric"],
            Shape::LeafSpine { .. } => &["fabric", "edge"],
            Shape::TwoDatacenters { .. } => &["fabric", "edge", "wan"],
            Shape::Tree { .. } => {
                let both = |(below, above)| [format!("s{above}->s{below}"), format!("s{below}->s{above}")];
                return self.host_names().into_iter().chain(self.tree().flat_map(both)).collect();
            }
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// Switches, and those that they hang on.
    fn tree(&self) -> impl Iterator<Item = (u64, u64)> {
        let Shape::Tree { above, switches } = self.shape else { panic!("a tree") };
        (2..=switches).zip(above)
    }

    fn host_names(&self) -> Vec<String> {
        let groups: Vec<String> = match self.shape {
            Shape::Star => vec!["h".to_owned()],
            Shape::LeafSpine { leaves, .. } => (1..=leaves).map(|leaf| format!("l{leaf}-")).collect(),
            Shape::TwoDatacenters { racks } => {
                ["a", "b"].iter().flat_map(|site| (1..=racks).map(move |rack| format!("{site}{rack}-"))).collect()
            }
            Shape::Tree { switches, .. } => (1..=switches).map(|switch| format!("t{switch}-")).collect(),
        };
        groups.iter().flat_map(|group| (1..=self.hosts).map(move |host| format!("{group}{host}"))).collect()
    }

    /// The class or link that is written of a link.
    fn name_of(&self, graph: &Graph, link: &Link) -> String {
        let [from, to] = [link.from, link.to].map(|node| &graph.nodes[node as usize]);
        match (self.shape, link.role) {
            (Shape::Tree { .. }, _) => match (from.kind, to.kind) {
                (NodeKind::Host, _) => from.name.clone(),
                (_, NodeKind::Host) => to.name.clone(),
                _ => format!("{}->{}", from.name, to.name),
            },
            (Shape::Star, _) | (_, Role::Fabric) => "fabric".to_owned(),
            (_, Role::Wan) => "wan".to_owned(),
            (_, Role::Edge | Role::Host) => "edge".to_owned(),
        }
    }

    fn draw_traffic(&mut self, dice: &mut Dice) {
        let names = self.host_names();
        let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
        let fastest = self.links.values().map(|class| class.rate_mbps).max().expect("there are links");
        let furthest = self.links.values().map(|class| class.delay_ns).max().expect("there are links");
        // What a host sends fills the links there and back, and some memory; but is bounded.
        let under_way = fastest * furthest / 8_000 / self.mtu;
        let packets = (4 * under_way).clamp(60, 1_500);
        let size = packets * self.mtu;
        self.end_ns = (packets * self.mtu * 8_000 / fastest).max(10 * furthest).min(5_000_000);
        let mut text = String::new();
        for entry in 0..dice.between(1, 4) {
            let client = dice.one_of(&hosts);
            let senders: Vec<&str> = hosts.iter().copied().filter(|&host| host != client).collect();
            let (count, senders) = (senders.len(), format!("{senders:?}"));
            let spread = dice.between(0, self.end_ns / 4);
            let class = dice.between(0, self.classes - 1);
            // Hosts delay acknowledgements: who takes that for a queue's delay sends a packet a second at last.
            let fit: Vec<_> = SPECS.iter().filter(|spec| !spec.needs_every_ack).collect();
            let cc = dice.one_of(&fit).name;
            text += &format!("[[traffic]]\nname = \"t{entry}\"\nservice-class = {class}\n");
            text += &match dice.between(0, 4) {
                0 => format!(
                    "cc = \"{cc}\"\nincast = {{ clients = \"{client}\", servers = {senders}, response = \"{}B\", \
                     repeats = {} }}\n",
                    size / 2,
                    dice.between(1, 3),
                ),
                1 => format!(
                    "cc = \"{cc}\"\nfrom = {senders}\nto = \"{client}\"\n\
                     long = {{ spread = \"{spread}ns\", stop = \"{}ns\" }}\n",
                    self.end_ns
                ),
                2 => {
                    // Poisson arrivals.
                    let mut at = 0.0;
                    let flow = |_| {
                        let uniform = dice.between(1, 1_000_000) as f64 / 1e6;
                        at -= uniform.ln() * self.end_ns as f64 / 20.0;
                        let from = dice.one_of(&hosts);
                        let others: Vec<&str> = hosts.iter().copied().filter(|&host| host != from).collect();
                        let (to, size) = (dice.one_of(&others), dice.between(1, size / 4));
                        format!("{{ from = \"{from}\", to = \"{to}\", at = \"{at:.0}ns\", size = \"{size}B\" }}")
                    };
                    let flows: Vec<String> = (0..30).map(flow).collect();
                    format!("cc = \"{cc}\"\nflows = {{ list = [\n{}] }}\n", flows.join(",\n"))
                }
                _ => format!(
                    "transport = {{ datagram = {{ rate = \"{}%\" }} }}\nfrom = {senders}\nto = \"{client}\"\n\
                     long = {{ flows = {count}, spread = \"{spread}ns\", size = \"{size}B\" }}\n",
                    dice.one_of(&[100, 100, 50]),
                ),
            };
        }
        self.traffic = text;
    }

    fn text(&self, limits: &BTreeMap<String, u64>) -> String {
        let buffering = if self.by_input { "input" } else { "output" };
        let class = |name: &str| {
            let Class { rate_mbps, delay_ns, xoff, xon, has_classes } = self.links[name];
            let scheduler = if has_classes { self.scheduler.as_str() } else { ", scheduler = \"fifo\"" };
            format!(
                "{{ rate = \"{rate_mbps}Mbps\", delay = \"{delay_ns}ns\", limit = \"{}B\", buffering = \"{buffering}\", \
                 flow-control = {{ pfc = {{ xoff = \"{xoff}B\", xon = \"{xon}B\" }} }}{}{scheduler} }}",
                limits[name], self.ports,
            )
        };
        let mut text = match self.shape {
            Shape::Star => format!("[topology.star]\nhosts = {}\n", self.hosts),
            Shape::LeafSpine { leaves, spines } => format!(
                "[topology.leaf-spine]\nleaves = {leaves}\nspines = {spines}\nhosts-per-leaf = {}\n",
                self.hosts
            ),
            Shape::TwoDatacenters { racks } => {
                format!("[topology.two-datacenters]\nservers = {}\nracks = {racks}\n", self.hosts)
            }
            Shape::Tree { switches, .. } => {
                let names: Vec<String> = (1..=switches).map(|switch| format!("{{ name = \"s{switch}\" }}")).collect();
                let hosts = self.host_names();
                let host = |(place, name): (u64, &String)| {
                    let switch = place / self.hosts + 1;
                    format!("{{ name = \"{name}\", switch = \"s{switch}\", link = {} }}", class(name))
                };
                let hosts: Vec<String> = (0..).zip(&hosts).map(host).collect();
                let link = |(below, above)| {
                    let [down, up] = [format!("s{above}->s{below}"), format!("s{below}->s{above}")];
                    let ends = format!("ends = [\"s{above}\", \"s{below}\"]");
                    format!("{{ {ends}, forward = {}, backward = {} }}", class(&down), class(&up))
                };
                let links: Vec<String> = self.tree().map(link).collect();
                format!(
                    "[topology.graph]\nswitches = [{}]\nhosts = [{}]\nlinks = [{}]\n",
                    names.join(", "),
                    hosts.join(",\n"),
                    links.join(",\n")
                )
            }
        };
        if !matches!(self.shape, Shape::Tree { .. }) {
            for name in self.links.keys() {
                text += &format!("{name} = {}\n", class(name));
            }
        }
        text += &format!("host = {{ {} }}\n{}", self.host, self.traffic);
        let end = QUIET.as_ns();
        text + &format!(
            "[[arm]]\nname = \"A\"\ncc = \"cubic\"\n[run]\nend = \"{end}ns\"\nwarmup = \"0s\"\ndrain = \"0s\"\n"
        )
    }

    fn load(&self, limits: &BTreeMap<String, u64>) -> Result<Plan, String> {
        let text = self.text(limits);
        let experiment = narrows_scenario::load_str(&text, &Default::default(), &Default::default());
        experiment
            .map(|mut experiment| experiment.plans.remove(0))
            .map_err(|error| format!("{}\n{text}", error.render()))
    }

    /// By link, if it has memory: what pauses whoever fills it, and what may come then, for each class.
    fn memory_by_link(graph: &Graph) -> Vec<Option<(u64, [u64; 2])>> {
        let line = |link: &Link| (link.rate, link.delay.saturating_sub(link.stack));
        let after: Vec<u64> = (graph.links.iter().zip(graph.reverses()))
            .map(|(link, back)| {
                let back = &graph.links[back.expect("links go both ways") as usize];
                headroom(line(link), line(back), graph.mtu.packet()).get()
            })
            .collect();
        let classes_of = |link: &Link| link.classes() as u64;
        let most = graph.links.iter().map(classes_of).max().expect("there are links");
        let memory = |(link, own): (&Link, &u64)| {
            if let Some(Ingress { thresholds: Some(at), .. }) = link.ingress {
                return Some((most, [at.xoff.get(), *own]));
            }
            let classes = classes_of(link);
            let into = graph.links.iter().zip(&after).filter(|(other, _)| other.to == link.from);
            // A queue for all classes is filled by each that a link serves apart, and pauses it by itself.
            let needed = into.map(|(other, after)| if classes == 1 { after * classes_of(other) } else { *after }).sum();
            link.pauses.map(|at| (classes, [at.xoff.get(), needed]))
        };
        graph.links.iter().zip(&after).map(memory).collect()
    }

    /// The plan in which each link has just the least memory that is accepted; one byte less is refused.
    pub(crate) fn tight_plan(&self) -> Plan {
        let ample: BTreeMap<String, u64> = self.links.keys().map(|name| (name.clone(), 1_000_000_000_000)).collect();
        let mut limits = BTreeMap::<String, u64>::new();
        let plan = self.load(&ample).unwrap_or_else(|error| panic!("{error}"));
        for (link, memory) in plan.network.links.iter().zip(Self::memory_by_link(&plan.network)) {
            let Some((classes, [xoff, needed])) = memory else { continue };
            let limit = limits.entry(self.name_of(&plan.network, link)).or_default();
            *limit = (classes * (xoff + needed)).max(*limit);
        }
        let plan = self.load(&limits).unwrap_or_else(|error| panic!("{error}"));
        for name in self.links.keys() {
            let mut less = limits.clone();
            less.entry(name.clone()).and_modify(|limit| *limit -= 1);
            let refused = self.load(&less).expect_err("one byte less is refused");
            assert!(refused.contains("may come after a pause"), "{name}: {refused}");
        }
        // In a class some links need less than others.
        Self::with_headroom(plan, 100)
    }

    /// The same, of which each link has only so much of the headroom, in per cent.
    pub(crate) fn with_headroom(mut plan: Plan, percent: u64) -> Plan {
        let memory = Self::memory_by_link(&plan.network);
        for (link, memory) in plan.network.links.iter_mut().zip(memory) {
            let Some((classes, [xoff, needed])) = memory else { continue };
            let limit = match &mut link.ingress {
                Some(Ingress { limit, .. }) => limit,
                None => &mut link.limit,
            };
            *limit = Limit::Bytes(Bytes::new(classes * (xoff + needed * percent / 100)));
        }
        plan
    }
}
