//! A run of a plan on this machine's kernel, from its hosts to its rows.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use narrows_core::units::{Rate, Span, Time};
use narrows_network::Network;
use narrows_plan::{Connections, Link, NodeKind, Pattern, Plan, Role, RoutingConfig, Traffic};
use narrows_results::{PortRow, Results};
use narrows_wire::Key;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::address::MAX_HOSTS;
use crate::agent::{Agent, AgentError, Notes, Run, Shared};
use crate::clock::Clock;
use crate::collect::{Times, collect};
use crate::doctor::{self, Missing};
use crate::emulator::{self, Control, Counts, Emulator, EmulatorError, Observed};
use crate::host::{self, Parameters};
use crate::lateness::{Budget, Histogram, Invalid, Record};
use crate::namespace::{Claim, Namespace, sweep};
use crate::near_source::{self, Heard, Listener};
use crate::packet::Packet;
use crate::priority::{self, RealTime};

/// From the last host's readiness to the plan's beginning, and a few RTTs more: connections are opened in it.
const PREPARATION: Span = Span::from_ms(300);
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(1);
/// How often it is said how far a run is.
const TELL: Span = Span::from_ms(100);

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The plan's clock.
    pub now: Time,
    /// Where it will stand when no more flows begin.
    pub end: Time,
    /// Packets that ports have accepted.
    pub packet_hops: u64,
}

/// How plans are run live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The emulator's.
    pub emulator: emulator::Options,
    /// What the kernel calls a plan's controllers, where that is not their own name.
    pub controllers: BTreeMap<String, String>,
    /// The place in the real-time class that the hosts' applications ask for, behind the emulator's; `None` asks for none.
    pub agents_real_time: Option<RealTime>,
    /// The place that near-source loops ask for, behind both: to find a new connection they walk all open files.
    pub listeners_real_time: Option<RealTime>,
    /// How late deliveries may be.
    pub budget: Budget,
    /// Most hosts.
    pub most_hosts: u32,
    /// The fastest path that a flow may have.
    pub most_rate: Rate,
}

impl Default for Options {
    /// The kernel's own controllers; what two processors carry faithfully.
    fn default() -> Options {
        Options {
            emulator: emulator::Options::default(),
            controllers: BTreeMap::from([("newreno".to_owned(), "reno".to_owned())]),
            agents_real_time: Some(RealTime(5)),
            listeners_real_time: Some(RealTime(4)),
            budget: Budget::USUAL,
            most_hosts: 64,
            most_rate: Rate::from_mbps(200),
        }
    }
}

/// Why a plan was not run.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The machine lacks something.
    #[error(transparent)]
    Machine(#[from] Missing),
    /// The plan has more hosts than are allowed.
    #[error("the plan has {hosts} hosts; a live run may have {most}")]
    TooManyHosts {
        /// The plan's.
        hosts: usize,
        /// Allowed.
        most: u32,
    },
    /// The plan samples flows with a size.
    #[error("live runs sample flows without a size only: take `sample.flows` out")]
    SampledFlows,
    /// An application's connections would be established before its messages are known.
    #[error(
        "traffic {traffic} opens its connections as it goes in live runs: `fresh-established` is for arrivals and lists"
    )]
    EstablishedAhead {
        /// Its name.
        traffic: String,
    },
    /// The plan has a faster path than is carried faithfully.
    #[error(
        "flows from {source_host} to {destination} could go at {} Mbps; live runs carry {} Mbps: scale the plan down",
        rate.as_bps() / 1_000_000,
        most.as_bps() / 1_000_000
    )]
    TooFast {
        /// The path's beginning.
        source_host: String,
        /// The path's end.
        destination: String,
        /// Its narrowest link's.
        rate: Rate,
        /// Allowed.
        most: Rate,
    },
    /// The plan's hosts listen to near-source switches, and the driver of the run brought nobody along who can limit connections.
    #[error("host {host} listens to notifications, and nothing here can limit its connections")]
    NobodyListens {
        /// The first one's name.
        host: String,
    },
    /// A host's near-source loop failed.
    #[error("host {host} cannot listen to notifications: {reason}")]
    Listener {
        /// Its name.
        host: String,
        /// What failed.
        reason: String,
    },
    /// The plan's ports serve several classes, which real packets do not say yet.
    #[error("port {port} has a scheduler, and live runs have one class only as yet")]
    Classes {
        /// Of the first one.
        port: String,
    },
    /// The plan's switches count by ingress or pause links, which the emulated network does not: the kernel's queues would have to
    /// stop.
    #[error("link {link} has `buffering = \"input\"` or `pfc`, which live runs do not have as yet")]
    FlowControl {
        /// Of the first one.
        link: String,
    },
    /// The plan's hosts choose their packets' paths, as real ones do by IPv6's flow label, and the emulated network has IPv4.
    #[error("hosts choose paths (`routing = \"rehash\"`), and those of live runs do not as yet")]
    Rehash,
    /// The plan has traffic that its hosts' applications do not send.
    #[error("traffic {traffic} is sent over `{transport}`, and live runs have TCP alone")]
    Transport {
        /// The first one's name.
        traffic: String,
        /// What its flows run over.
        transport: &'static str,
    },
    /// The plan's adapters have rate limiters, which real ones of a network namespace do not have.
    #[error("traffic {traffic} has hosts with `nic-limiter`, which live runs do not have as yet")]
    NicLimiter {
        /// The first one's name.
        traffic: String,
    },
    /// The plan joins routers by a bridge, which the emulated network has not.
    #[error("link {link} has an edge pair (`bridge`), and live runs have none as yet")]
    Bridge {
        /// Of the first one.
        link: String,
    },
    /// A host cannot be made.
    #[error("host {host} cannot be made: {error}")]
    Host {
        /// Its name.
        host: String,
        /// What the kernel says.
        error: Errno,
    },
    /// Names and locks cannot be written.
    #[error("a run cannot be begun: {0}")]
    Claim(Errno),
    /// It was told to stop.
    #[error("the run was stopped")]
    Stopped,
    /// The emulator failed.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// A host's applications failed.
    #[error("host {host}: {error}")]
    Agent {
        /// Its name.
        host: String,
        /// What failed.
        error: AgentError,
    },
}

/// A run that went to its end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its rows, as a simulated run's.
    pub results: Results,
    /// Whether they may count.
    pub validity: Result<(), Invalid>,
    /// What became of packets.
    pub counts: Counts,
    /// What hosts heard of near-source switches, by host; of those that listened.
    pub heard: BTreeMap<u32, Heard>,
    /// What they were judged by.
    pub record: Record,
    /// Whether the emulator ran in the real-time class.
    pub real_time: bool,
}

impl Outcome {
    /// A table of the results, with the columns of a simulated run's; `None` if there is none of this name.
    pub fn table(&self, name: &str, plan: &Plan) -> Option<RecordBatch> {
        narrows_results::tables::table(name, plan, &self.results)
    }
}

/// Runs a plan, in real time: as long as the plan, and a moment more. What killed runs left behind is removed first, and
/// everything of this one at its end. `listener` is who limits connections where hosts listen to near-source switches. `watch` is told ten times a second
/// how far the run is, and says whether to go on.
///
/// # Errors
/// If the machine or the plan does not allow it, or something fails on the way.
///
/// # Panics
/// If a thread of the run does, or a packet was lost track of.
pub fn run(
    plan: &Plan,
    seed: u64,
    options: &Options,
    listener: Option<&dyn Listener>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, TestbedError> {
    doctor::examine()?;
    check(plan, seed, options)?;
    sweep().map_err(|error| TestbedError::Claim(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    // Each connection has two ends, and each host a few files.
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    let claim = Claim::new().map_err(TestbedError::Claim)?;
    let names: Vec<&str> = hosts(plan).collect();
    let (mut namespaces, mut devices) = (Vec::new(), Vec::new());
    for (number, name) in (0..).zip(&names) {
        let parameters = plan.traffic.first().map_or_else(Parameters::default, |entry| Parameters::of(&entry.profile));
        let made = host::make(&claim, (number, name), plan.network.mtu.get(), &parameters);
        let (namespace, device) = made.map_err(|error| TestbedError::Host { host: (*name).to_owned(), error })?;
        namespaces.push(namespace);
        devices.push(device);
    }
    // A kernel's first connection takes milliseconds: it draws what it chooses ports by.
    if let Some(namespace) = namespaces.first() {
        let _ = namespace.enter(|| Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, 9)).is_ok()));
    }
    let Seen { notes, observed, heard, ended, plan_begins } =
        perform(plan, seed, options, &namespaces, devices, listener, watch)?;
    let cuts = Times::of_cuts(heard.values(), plan_begins);
    let results = collect(plan, seed, &notes, &observed, &cuts, ended);
    let lost: u64 = notes.iter().map(|notes| notes.dropped_by_device).sum();
    let sent = notes.iter().flat_map(|notes| &notes.flows).filter_map(|(name, flow)| Some((name, flow.sent?)));
    let wants = |traffic: u32| plan.traffic[traffic as usize].controller.ecn;
    let mut record = Record {
        deliveries: observed.lateness,
        agents: Histogram::default(),
        ran_dry: notes.iter().map(|notes| notes.ran_dry).sum(),
        lost_outside: observed.counts.lost_outside() + lost,
        failed: notes.iter().map(|notes| notes.failures).sum(),
        without_ecn: sent.filter(|(name, sent)| wants(name.traffic) && !sent.ecn).count() as u64,
        own_port: busiest_own_port(plan, &results),
    };
    notes.iter().for_each(|notes| record.agents.merge(&notes.lateness));
    Ok(Outcome {
        results,
        validity: options.budget.judge(&record),
        counts: observed.counts,
        heard,
        record,
        real_time: observed.real_time,
    })
}

/// The host whose own port was the busiest, and how busy, percent. A device of ours takes packets at once, so that the kernel's
/// small queues never push back, as they do behind a real adapter.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
fn busiest_own_port(plan: &Plan, results: &Results) -> Option<(String, u64)> {
    let of_host = |row: &&PortRow| plan.network.links[row.port as usize].role == Role::Host;
    let busiest =
        results.ports.iter().filter(of_host).max_by(|one, other| one.utilisation.total_cmp(&other.utilisation))?;
    let host = plan.network.links[busiest.port as usize].from;
    Some((plan.network.nodes[host as usize].name.clone(), (busiest.utilisation * 100.0) as u64))
}

fn hosts(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.network.nodes.iter().filter(|node| node.kind == NodeKind::Host).map(|node| node.name.as_str())
}

/// Refuses plans that this machine does not carry.
fn check(plan: &Plan, seed: u64, options: &Options) -> Result<(), TestbedError> {
    let (hosts, most) = (hosts(plan).count(), options.most_hosts.min(MAX_HOSTS));
    if hosts > most as usize {
        return Err(TestbedError::TooManyHosts { hosts, most });
    }
    if let Some(link) = plan.network.links.iter().find(|link| link.scheduler.is_some()) {
        return Err(TestbedError::Classes { port: link.name.clone() });
    }
    if let Some(link) = plan.network.links.iter().find(|link| link.ingress.is_some() || link.pauses.is_some()) {
        return Err(TestbedError::FlowControl { link: link.name.clone() });
    }
    if let Some(link) = plan.network.links.iter().find(|link| link.bridge.is_some()) {
        return Err(TestbedError::Bridge { link: link.name.clone() });
    }
    if matches!(plan.network.routing, Some(RoutingConfig::Rehash(_))) {
        return Err(TestbedError::Rehash);
    }
    if let Some(traffic) = plan.traffic.iter().find(|traffic| !traffic.transport.is_tcp()) {
        let transport = traffic.transport.spec().name;
        return Err(TestbedError::Transport { traffic: traffic.name.clone(), transport });
    }
    if let Some(traffic) = plan.traffic.iter().find(|traffic| traffic.profile.nic_limiter.is_some()) {
        return Err(TestbedError::NicLimiter { traffic: traffic.name.clone() });
    }
    if !plan.sampling.flows.is_empty() {
        return Err(TestbedError::SampledFlows);
    }
    let ahead = |traffic: &&Traffic| {
        matches!(traffic.connections, Connections::FreshEstablished) && matches!(traffic.pattern, Pattern::App(_))
    };
    if let Some(traffic) = plan.traffic.iter().find(ahead) {
        return Err(TestbedError::EstablishedAhead { traffic: traffic.name.clone() });
    }
    let network: Network<Packet> = Network::new(&plan.network, seed).map_err(EmulatorError::from)?;
    let narrowest = |from: u32, to: u32| {
        let path = network.path(from, to, 0);
        path.iter().map(|&link| plan.network.links[link as usize].rate).min().unwrap_or_default()
    };
    for (from, to) in plan.traffic.iter().flat_map(|traffic| traffic.pattern.pairs()) {
        let rate = narrowest(from, to);
        if rate > options.most_rate {
            let name = |node: u32| plan.network.nodes[node as usize].name.clone();
            let most = options.most_rate;
            return Err(TestbedError::TooFast { source_host: name(from), destination: name(to), rate, most });
        }
    }
    Ok(())
}

/// What the threads of a run have seen.
struct Seen {
    /// By host.
    notes: Vec<Notes>,
    observed: Observed,
    /// By host, of those that listened.
    heard: BTreeMap<u32, Heard>,
    ended: Time,
    /// On the run's clock, when the plan began.
    plan_begins: Span,
}

/// The run itself: the emulator's thread, one for each host, another for each that listens, and this one, which waits.
fn perform(
    plan: &Plan,
    seed: u64,
    options: &Options,
    namespaces: &[Namespace],
    devices: Vec<crate::tun::Tun>,
    listener: Option<&dyn Listener>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Seen, TestbedError> {
    let controllers: Vec<String> = (plan.traffic.iter())
        .map(|traffic| &traffic.controller.name)
        .map(|name| options.controllers.get(name).unwrap_or(name).clone())
        .collect();
    let slowest: Span = plan.network.links.iter().map(Link::greatest_delay).max().unwrap_or_default();
    let plan_begins = PREPARATION + slowest * 16;
    let clock = Clock::start();
    let key = Key::new(drawn()?);
    let name = |host: u32| plan.network.nodes[host as usize].name.clone();
    let listening = near_source::hosts(plan, &key, seed, clock);
    if let (Some((host, _)), None) = (listening.first_key_value(), listener) {
        return Err(TestbedError::NobodyListens { host: name(*host) });
    }
    let emulator = Emulator::new(
        &plan.network,
        seed,
        devices,
        (&plan.schedule, &plan.sampling),
        (clock, plan_begins),
        options.emulator,
        key,
    )
    .map_err(EmulatorError::from)?;
    let run = Run { plan, seed, controllers: &controllers, clock, plan_begins, real_time: options.agents_real_time };
    let (shared, control) = (Shared::default(), Control::default());
    let deadline = plan.schedule.end + plan.schedule.drain + plan_begins;
    thread::scope(|scope| {
        // Whatever happens to this thread, the others end.
        let _stops = (StopAtEnd(&control.stop), StopAtEnd(&shared.stop));
        let emulating = scope.spawn(|| emulator.run(deadline, &control));
        let agents: Vec<_> = (0..)
            .zip(namespaces)
            .map(|(number, namespace)| {
                let shared = &shared;
                scope.spawn(move || {
                    // A thread that ends too soon is seen by the one that waits.
                    namespace.move_in().map_err(AgentError::from)?;
                    Agent::new(run, number, shared)?.run()
                })
            })
            .collect();
        let listeners: Vec<_> = listening
            .iter()
            .zip(std::iter::repeat(listener))
            .filter_map(|((host, given), listener)| {
                let (namespace, shared, listener) = (&namespaces[*host as usize], &shared, listener?);
                let real_time = options.listeners_real_time;
                let listens = scope.spawn(move || {
                    priority::ask(real_time);
                    namespace.move_in().map_err(|error| error.to_string())?;
                    listener.listen(given, &shared.stop)
                });
                Some((*host, listens))
            })
            .collect();
        let end = plan.schedule.end + plan_begins;
        let mut tell_at = Time::ZERO;
        let ended = loop {
            thread::sleep(LOOK);
            let now = clock.now();
            if now >= tell_at {
                tell_at = now + TELL;
                let packet_hops = control.packet_hops.load(Ordering::Relaxed);
                let plan_time = Time::ZERO + now.max(Time::ZERO + plan_begins).since(Time::ZERO + plan_begins);
                if !watch(Progress { now: plan_time, end: plan.schedule.end, packet_hops }) {
                    return Err(TestbedError::Stopped);
                }
            }
            let all_done = now >= end && shared.unfinished.load(Ordering::Relaxed) <= 0;
            let gone = emulating.is_finished()
                || agents.iter().any(|agent| agent.is_finished())
                || listeners.iter().any(|(_, listens)| listens.is_finished());
            if all_done || now >= deadline || gone {
                break now.min(deadline);
            }
        };
        shared.stop.store(true, Ordering::Relaxed);
        let mut notes = Vec::new();
        for (agent, name) in agents.into_iter().zip(hosts(plan)) {
            let noted = agent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            notes.push(noted.map_err(|error| TestbedError::Agent { host: name.to_owned(), error })?);
        }
        let mut heard = BTreeMap::new();
        for (host, listens) in listeners {
            let outcome = listens.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let of_host = outcome.map_err(|reason| TestbedError::Listener { host: name(host), reason })?;
            heard.insert(host, of_host);
        }
        control.stop.store(true, Ordering::Relaxed);
        let observed = emulating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let ended = Time::ZERO + ended.since(Time::ZERO + plan_begins);
        Ok(Seen { notes, observed, heard, ended, plan_begins })
    })
}

/// Random bytes.
fn drawn() -> Result<[u8; 32], TestbedError> {
    let mut bytes = [0; 32];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(32) => Ok(bytes),
        outcome => Err(TestbedError::Claim(outcome.err().unwrap_or(Errno::IO))),
    }
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
