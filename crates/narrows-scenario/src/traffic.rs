//! Traffic as written becomes traffic that a driver can generate: pairs of hosts, times, sizes, stacks, controllers.

use std::ops::Range;
use std::path::Path;

use narrows_core::cc::Spec;
use narrows_core::queue::scheduler::MAX_CLASSES;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Span, Time};
use narrows_plan::arrivals;

use crate::controller;
use crate::error::{Judged, Problem};
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::quantity::{Fraction, Quantity};
use crate::experiment::selector::Controller;
use crate::experiment::traffic::{Arrivals, Connections as Written, Poisson, Sizes, Traffic as WrittenTraffic};
use crate::files;
use crate::route::Routes;
use crate::select;
use crate::stack;
use crate::topology::Named;
use narrows_plan::{
    Connections, ControllerChoice, Graph, Kind, Open, Pairs, Pattern, SizeDistribution, Traffic, Transport,
};

mod bursts;
pub mod listed;
mod long;
pub(crate) mod opened;
mod pairs;
pub mod sizes;
pub(crate) mod transport;

pub(crate) use pairs::Group;

/// Most flows of one traffic, expected or listed.
pub const MAX_FLOWS: u64 = 100_000_000;
/// Most expected flows of a traffic that is `exact`: they are drawn together.
pub const MAX_EXACT_FLOWS: u64 = 10_000_000;
/// Largest flow.
const LARGEST_FLOW: Bytes = Bytes::new(10_000_000_000_000);

/// The applications that go in rounds, each in a module that has its text and makes it a plan's.
macro_rules! apps {
    (machines: $($machine:ident :: $app:ident),*; $($(#[$doc:meta])* $key:literal: $module:ident :: $kind:ident;)*) => {
        $(pub mod $module;)*

        /// What says when an entry's flows come.
        const KEYS: &[&str] = &["arrivals", "long", $($key,)* "flows"];

        const WITH_NAMED_HOSTS: &str = concat!("with ", $("`", $key, "` or ",)* "`flows`, which name their hosts themselves");

        /// Which applications an entry writes.
        fn apps(written: &WrittenTraffic) -> impl Iterator<Item = bool> {
            [$(written.$module.is_some()),*].into_iter()
        }

        /// The application that an entry writes, if it is one: several of it where each client has its own.
        fn app(name: &str, written: &WrittenTraffic, scene: &Scene<'_>) -> Judged<Option<Vec<(String, Kind)>>> {
            $(if let Some(at) = &written.$module {
                return $module::resolve(name, at, scene).map(Some);
            })*
            Ok(None)
        }
    };
}

narrows_core::applications!(apps);

/// What traffic is judged against.
pub(crate) struct Scene<'a> {
    pub(crate) graph: &'a Graph,
    /// The file's own names of links.
    pub(crate) named: &'a Named,
    pub(crate) routes: &'a Routes<'a>,
    /// The topology's hosts, and their stack.
    pub(crate) host: &'a Host,
    pub(crate) profile: Profile,
    /// The controller of traffic that names none.
    pub(crate) cc: Option<&'a Located<Controller>>,
    pub(crate) ecn: Option<&'a Located<bool>>,
    pub(crate) controllers: &'static [&'static Spec],
    /// Where files are looked for; nowhere for an experiment without a folder.
    pub(crate) folder: Option<&'a Path>,
    /// Programs that other plans of the experiment have, too.
    pub(crate) programs: &'a program::Programs,
    pub(crate) end: Time,
    /// Where the arm stands, for what it lacks.
    pub(crate) arm: &'a Range<usize>,
}

impl Scene<'_> {
    pub(crate) fn name(&self, node: u32) -> &str {
        &self.graph.nodes[node as usize].name
    }
}

/// The kinds of traffic that one entry makes: one, or one per direction or client.
pub(crate) fn resolve(name: &str, written: &Located<WrittenTraffic>, scene: &Scene<'_>) -> Judged<Vec<Traffic>> {
    let kinds = [written.arrivals.is_some(), written.long.is_some(), written.flows.is_some()];
    if kinds.into_iter().chain(apps(written)).filter(|kind| *kind).count() != 1 {
        return Err(Problem::one_of("a [[traffic]]", KEYS).at(&written.span));
    }
    const OF_TOPOLOGY: &str = "in a [[traffic]]: it is the topology's host's";
    if let Some(delay) = &written.host.stack_delay {
        return Err(Problem::not_here("stack-delay", OF_TOPOLOGY).at(&delay.span));
    }
    if let Some(mtu) = &written.host.mtu {
        return Err(Problem::not_here("mtu", OF_TOPOLOGY).at(&mtu.span));
    }
    if let Some(port) = &written.host.port {
        return Err(Problem::not_here("port", OF_TOPOLOGY).at(&port.span));
    }
    if let Some(spread) = &written.host.clock_spread {
        return Err(Problem::not_here("clock-spread", OF_TOPOLOGY).at(&spread.span));
    }
    let profile = stack::resolve(&written.host, scene.profile)?;
    let transport = transport::resolve(written, profile, scene)?;
    let controller = if transport.is_reliable() { choose(name, written, scene)? } else { ControllerChoice::none() };
    transport::judge_controller(transport, &controller, written, scene)?;
    let service_class = service_class(written, scene)?;
    let make = |name: String, connections, pattern| Traffic {
        name,
        controller: controller.clone(),
        profile,
        service_class,
        transport,
        connections: match connections {
            Connections::Fresh if !transport.is_tcp() => Connections::FreshEstablished,
            connections => connections,
        },
        pattern,
    };
    let made = flows(name, written, scene, transport, make)?;
    transport::fits(&made, written, scene)?;
    Ok(made)
}

/// The kinds of traffic of an entry, each made by `make` of its name, its connections and what says when its flows come.
fn flows(
    name: &str,
    written: &Located<WrittenTraffic>,
    scene: &Scene<'_>,
    transport: Transport,
    make: impl Fn(String, Connections, Pattern) -> Traffic,
) -> Judged<Vec<Traffic>> {
    if let Some(arrivals) = &written.arrivals {
        let connections = connections(written, Connections::Fresh)?;
        let groups = pairs::groups(name, written, scene)?;
        let (groups, opens) = match &arrivals.value {
            Arrivals::Poisson(poisson) => {
                let opens = open(written, poisson, transport, &arrivals.span, &groups, scene)?;
                (groups, opens)
            }
            Arrivals::LogNormal(times) => {
                let senders = pairs::by_sender(groups, scene);
                let opens = bursts::log_normal(written, times, &arrivals.span, &senders, scene)?;
                (senders, opens)
            }
            Arrivals::OnOff(lengths) => {
                let senders = pairs::by_sender(groups, scene);
                let opens = bursts::on_off(written, lengths, &arrivals.span, &senders, scene)?;
                (senders, opens)
            }
        };
        return Ok(groups
            .into_iter()
            .zip(opens)
            .map(|(g, open)| make(g.name, connections, Pattern::Open(open)))
            .collect());
    }
    for (key, present) in
        [("size", written.size.as_ref().map(|at| &at.span)), ("exact", written.exact.as_ref().map(|at| &at.span))]
    {
        if let Some(span) = present {
            return Err(Problem::not_here(key, "without `arrivals`").at(span));
        }
    }
    if let Some(long) = &written.long {
        let connections = connections(written, Connections::Fresh)?;
        let groups = pairs::groups(name, written, scene)?;
        let request = written.request.as_ref().map(positive("a request")).transpose()?;
        let flows = long::resolve(long, &groups, request, scene)?;
        return Ok(vec![make(name.to_owned(), connections, Pattern::List(flows))]);
    }
    let stray = [
        ("between", written.between.as_ref().map(|at| &at.span)),
        ("from", written.from.as_ref().map(|at| &at.span)),
        ("to", written.to.as_ref().map(|at| &at.span)),
        ("active", written.active.as_ref().map(|at| &at.span)),
        ("request", written.request.as_ref().map(|at| &at.span)),
    ];
    if let Some((key, Some(span))) = stray.into_iter().find(|(_, span)| span.is_some()) {
        return Err(Problem::not_here(key, WITH_NAMED_HOSTS).at(span));
    }
    if let Some(kinds) = app(name, written, scene)? {
        let keeps = kinds.iter().all(|(_, kind)| kind.rounds().keeps_connections());
        let usual = match (keeps, &written.program) {
            (_, Some(_)) => Connections::InOrder,
            (true, None) => Connections::Persistent { pool: 1 },
            (false, None) => Connections::Fresh,
        };
        let connections = connections(written, usual)?;
        if let (false, Connections::Persistent { .. }, Some(said)) = (keeps, connections, &written.connections) {
            return Err(Problem::not_here("persistent", "in a traffic whose pairs are drawn").at(&said.span));
        }
        return Ok(kinds.into_iter().map(|(name, kind)| make(name, connections, Pattern::App(kind))).collect());
    }
    let flows = written.flows.as_ref().expect("one of the four kinds is there");
    let connections = connections(written, Connections::Fresh)?;
    Ok(vec![make(name.to_owned(), connections, Pattern::List(listed::resolve(flows, scene)?))])
}

fn choose(name: &str, written: &WrittenTraffic, scene: &Scene<'_>) -> Judged<ControllerChoice> {
    let of_profile = stack::named(&written.host, scene.host).map_or(&[][..], Profile::controllers);
    let resolve = |cc, ecn| controller::resolve(cc, ecn, of_profile, scene.controllers, scene.folder);
    match (&written.cc, scene.cc) {
        (Some(own), _) => resolve(own, written.ecn.as_ref()),
        (None, Some(default)) => resolve(default, written.ecn.as_ref().or(scene.ecn)),
        (None, None) => {
            let sentence = format!("no controller is named for the traffic `{name}`");
            Err(Problem::new(sentence, "give the scheme (`[[arm]]`), the traffic or the whole file a `cc`")
                .at(scene.arm))
        }
    }
}

/// A class that every port with classes has, whether this traffic comes there or not.
fn service_class(written: &WrittenTraffic, scene: &Scene<'_>) -> Judged<u8> {
    let Some(class) = &written.service_class else { return Ok(0) };
    for link in &scene.graph.links {
        let classes = link.classes();
        if classes > 1 && usize::from(class.value) >= classes {
            let sentence =
                format!("class {} has no queue at `{}`, which serves {classes} classes", class.value, link.name);
            let help = format!("classes count from 0: choose one up to {}, or give `scheduler` more", classes - 1);
            return Err(Problem::new(sentence, help).at(&class.span));
        }
    }
    if usize::from(class.value) >= MAX_CLASSES {
        return Err(Problem::out_of_range("service-class", class.value, "0", MAX_CLASSES - 1).at(&class.span));
    }
    Ok(class.value)
}

fn connections(written: &WrittenTraffic, default: Connections) -> Judged<Connections> {
    let Some(said) = &written.connections else { return Ok(default) };
    Ok(match said.value {
        Written::Fresh => Connections::Fresh,
        Written::FreshEstablished => Connections::FreshEstablished,
        Written::InOrder if written.program.is_none() => {
            return Err(Problem::not_here("in-order", "without `program`").at(&said.span));
        }
        Written::InOrder => Connections::InOrder,
        Written::Persistent(persistent) if persistent.pool > 1_000 => {
            return Err(Problem::too_many("connections of a pair", persistent.pool.into(), 1_000).at(&said.span));
        }
        Written::Persistent(persistent) => Connections::Persistent { pool: persistent.pool },
    })
}

/// When a loop begins: before the run's end.
fn start(written: Option<&Located<Quantity<Time>>>, scene: &Scene<'_>) -> Judged<Time> {
    match written {
        None => Ok(Time::ZERO),
        Some(at) if at.value.0 >= scene.end => {
            Err(Problem::ends_before_start("the run", at.value.0, scene.end).at(&at.span))
        }
        Some(at) => Ok(at.value.0),
    }
}

/// A size above zero and within reason.
fn positive(what: &'static str) -> impl Fn(&Located<Quantity<Bytes>>) -> Judged<Bytes> {
    move |size| match size.value.0 {
        Bytes::ZERO => Err(Problem::zero(what).at(&size.span)),
        bytes if bytes > LARGEST_FLOW => Err(Problem::out_of_range(what, bytes, "1B", LARGEST_FLOW).at(&size.span)),
        bytes => Ok(bytes),
    }
}

fn sizes(written: &WrittenTraffic, at: &Located<WrittenTraffic>, scene: &Scene<'_>) -> Judged<SizeDistribution> {
    let Some(size) = &written.size else {
        return Err(Problem::missing("size", "size = { cdf = \"web-search\" }").at(&at.span));
    };
    match &size.value {
        Sizes::Cdf(name) => sizes::built_in(&name.value)
            .ok_or_else(|| Problem::unknown_name("distribution", name, sizes::built_in_names()).at(&name.span)),
        Sizes::File(path) => {
            let text = files::beside(scene.folder, path)?;
            sizes::parse(&path.value, &text).map_err(|problem| problem.at(&path.span))
        }
        Sizes::Fixed(size) => Ok(SizeDistribution::fixed(positive("a size")(size)?)),
    }
}

/// One process for each group of pairs; together they offer what is stated.
fn open(
    written: &Located<WrittenTraffic>,
    poisson: &Poisson,
    transport: Transport,
    at: &Range<usize>,
    groups: &[Group],
    scene: &Scene<'_>,
) -> Judged<Vec<Open>> {
    let sizes = sizes(written, written, scene)?;
    let request = written.request.as_ref().map(positive("a request")).transpose()?;
    let exact = written.exact.as_ref().is_some_and(|exact| exact.value);
    let weighted: Vec<(&Pairs, f64)> = groups.iter().map(|group| (&group.pairs, group.weight)).collect();
    let shares = scene.routes.carried(&weighted).expect("hosts of a topology have paths");
    let (total, intervals): (f64, Vec<Span>) = match (&poisson.load, &poisson.rate) {
        (Some(load), None) => {
            let Some(of) = &poisson.of else {
                return Err(Problem::missing("of", "poisson = { load = 0.9, of = \"wan\" }").at(at));
            };
            let part = poisson.part.as_ref().map_or(Ok(1.0), |part| proportion("the part of a load", part))?;
            let load = proportion("the load", load)? * part;
            let total = at_load(load, of, transport, &sizes, &shares, scene)?;
            (total, groups.iter().map(|group| arrivals::interval(total * group.weight)).collect())
        }
        (None, Some(rate)) => {
            let of = poisson.of.as_ref().map(|of| ("of", &of.span));
            let part = poisson.part.as_ref().map(|part| ("part", &part.span));
            if let Some((key, span)) = of.or(part) {
                return Err(Problem::not_here(key, "with `rate`").at(span));
            }
            let Some(interval) = rate.value.0.interval() else {
                return Err(Problem::zero("the rate of arrivals").at(&rate.span));
            };
            let total = rate.value.0.per_second();
            let part =
                |group: &Group| if groups.len() == 1 { interval } else { arrivals::interval(total * group.weight) };
            (total, groups.iter().map(part).collect())
        }
        _ => return Err(Problem::one_of("poisson", &["load", "rate"]).at(at)),
    };
    few_enough("flows", total, if exact { MAX_EXACT_FLOWS } else { MAX_FLOWS }, at, scene)?;
    Ok(groups
        .iter()
        .zip(intervals)
        .map(|(group, mean_interarrival)| Open {
            mean_interarrival,
            sigma: None,
            on_off: None,
            sizes: sizes.clone(),
            pairs: group.pairs.clone(),
            exact,
            request,
        })
        .collect())
}

/// Refuses more of what a traffic may have, such as flows, expected at so many per second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, positive"
)]
fn few_enough(what: &str, per_second: f64, most: u64, at: &Range<usize>, scene: &Scene<'_>) -> Judged<()> {
    let expected = per_second * (scene.end.as_ps() as f64 / 1e12);
    if expected > most as f64 {
        return Err(Problem::too_many(what, expected as u64, most).at(at));
    }
    Ok(())
}

/// Above 0, and at most 1.
fn proportion(what: &'static str, written: &Located<Fraction>) -> Judged<f64> {
    if written.0 == 0.0 {
        return Err(Problem::zero(what).at(&written.span));
    }
    if written.0 > 1.0 {
        return Err(Problem::out_of_range(what, written.0, "0", "1").at(&written.span));
    }
    Ok(written.0)
}

/// Flows per second that bring the busiest of the links `of` to this load, if these shares of them cross each link.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
fn at_load(
    load: f64,
    of: &Located<String>,
    transport: Transport,
    sizes: &SizeDistribution,
    shares: &[f64],
    scene: &Scene<'_>,
) -> Judged<f64> {
    let links = select::links(scene.graph, scene.named, of)?;
    let busiest = links
        .into_iter()
        .map(|link| (shares[link], scene.graph.links[link].rate))
        .max_by(|a, b| (a.0 / a.1.as_bps() as f64).total_cmp(&(b.0 / b.1.as_bps() as f64)));
    match busiest {
        Some((share, rate)) if share > 0.0 => {
            let efficiency = arrivals::goodput_over_wire(scene.graph.mtu, &transport);
            Ok(arrivals::flows_per_second(load, rate, efficiency, sizes.mean(), share))
        }
        _ => {
            let sentence = format!("no flow of this traffic crosses `{}`", of.value);
            Err(Problem::new(sentence, "name links that its flows cross").at(&of.span))
        }
    }
}
