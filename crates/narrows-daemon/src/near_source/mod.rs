//! `narrowsd near-source`: takes the notifications of near-source switches and holds this host's connections to the rates that
//! they ask for, whatever their controllers. It ends as it began: every connection is let go.

mod borrowed;
mod kernel;
mod left;
mod listen;
mod receive;
mod senders;
mod table;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use narrows_core::tcp::near_source::ReactionPoint;
use narrows_core::units::{Rate, Span};
use narrows_scenario::units;
use narrows_testbed::clock::Clock;
use narrows_testbed::lateness::Histogram;
use narrows_wire::notification::PORT;
use narrows_wire::{Admission, Pair, Sender, Tally};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::metrics::{Metric, Metrics, replace};
use crate::{refused, service};
pub(crate) use listen::ThisKernel;
use table::Table;
use work::{Given, Loop};

/// How connections of this host listen to near-source switches.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which congestion points are believed, with their addresses, this host's and keys: docs/how-to/deploy.md
    #[arg(long, value_name = "FILE")]
    senders: PathBuf,
    /// The address that notifications come to; left out, any
    #[arg(long)]
    address: Option<IpAddr>,
    /// Time scales of the limit
    #[arg(long, value_enum, default_value_t = Profile::Software)]
    profile: Profile,
    /// The rate of this host's link; left out, that of the fastest device that is up
    #[arg(long, value_name = "RATE", value_parser = rate)]
    line_rate: Option<Rate>,
    /// How far a switch's clock may be from this host's
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = span)]
    tolerance: Span,
    /// Write metrics in the text format of Prometheus to this file, which is replaced at once
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// How often they are written
    #[arg(long, value_name = "SECONDS", requires = "metrics", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    every: u32,
}

/// Sets of parameters: docs/reference/algorithms/annulus.md has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// On the time scale of a datacenter, for a host's software.
    Software,
    /// As the standard sets it for adapters.
    Standard,
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = units::parse(text).map_err(|error| error.to_string())?;
    if rate >= Rate::from_mbps(1) { Ok(rate) } else { Err("a link has 1Mbps at least".to_owned()) }
}

fn span(text: &str) -> Result<Span, String> {
    let span: Span = units::parse(text).map_err(|error| error.to_string())?;
    let allowed = Span::from_ms(1)..=Span::from_secs(60);
    if allowed.contains(&span) { Ok(span) } else { Err("it is from 1ms to 60s".to_owned()) }
}

/// Whether the file of senders and their keys can be used.
///
/// # Errors
/// As starting it.
pub(crate) fn check(arguments: &Arguments) -> Result<(), Failure> {
    senders::read(&arguments.senders).map(|_| ())
}

/// Performs the command.
pub(crate) fn perform(arguments: &Arguments) -> Result<(), Failure> {
    let senders = senders::read(&arguments.senders)?;
    let line = arguments.line_rate.or_else(narrows_kernel::parameters::line_rate).ok_or_else(|| {
        Failure::failed("no network device of this host states its rate").help("give it: --line-rate 10Gbps")
    })?;
    let point = match arguments.profile {
        Profile::Software => ReactionPoint::SOFTWARE,
        Profile::Standard => ReactionPoint::STANDARD,
    };
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for (signal, flag) in [(SIGINT, &stop), (SIGTERM, &stop), (SIGHUP, &reload)] {
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(Failure::failed)?;
    }
    let table = Arc::new(Table::new().map_err(refused::by_kernel)?);
    let admission = |senders| Admission::new(senders, arguments.tolerance.as_ns());
    let given = |address| Given {
        address,
        admission: admission(senders.clone()),
        table: Arc::clone(&table),
        line,
        seed: u64::from(std::process::id()),
        clock: Clock::start(),
    };
    let mut work = match arguments.address {
        Some(address) => Loop::new(given(address)),
        None => Loop::new(given(Ipv6Addr::UNSPECIFIED.into())).or_else(|error| {
            // A host without IPv6 has no address of it to listen on.
            let lacks = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(|errno| errno.raw_os_error());
            let has_none = error.raw_os_error().is_some_and(|code| lacks.contains(&code));
            if has_none { Loop::new(given(Ipv4Addr::UNSPECIFIED.into())) } else { Err(error) }
        }),
    }
    .map_err(|error| no_port(&error))?;
    warn_of_strangers(&senders);
    if let Some(path) = &arguments.metrics {
        let help = "create its folder, or name another file";
        replace(path, &metrics(&work)).map_err(|failure| Failure::input(failure).help(help))?;
    }
    let freed = work.keep_record().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::failed("another near-source loop runs in this network namespace"),
        _ => Failure::failed(format!("what is held cannot be noted: {error}")).help("run it as root of the host"),
    })?;
    if freed > 0 {
        say(&format!("{freed} connections that a killed process held are let go\n"));
    }
    say_whom(&senders);
    if let Err(error) = service::ready() {
        eprintln!("warning: the service manager was not told: {error}");
    }
    let mut written: Option<Instant> = None;
    let period = Duration::from_secs(arguments.every.into());
    let worked = work.run(
        |_| Some(point),
        &stop,
        |_| {},
        |work| {
            if reload.swap(false, Ordering::Relaxed) {
                read_anew(work, &arguments.senders);
            }
            let Some(path) = &arguments.metrics else { return };
            if written.is_none_or(|written| written.elapsed() >= period) {
                written = Some(Instant::now());
                // A disk that is full now may not be later.
                if let Err(failure) = replace(path, &metrics(work)) {
                    eprintln!("warning: {failure}");
                }
            }
        },
    );
    let (tally, reaction) = work.finish();
    say(&summary(&tally, &reaction));
    worked.map_err(Failure::failed)
}

/// The file of senders has changed; if it cannot be used, those before are believed.
fn read_anew(work: &mut Loop, path: &Path) {
    match senders::read(path) {
        Ok(senders) => {
            warn_of_strangers(&senders);
            say_whom(&senders);
            work.believe(senders);
        }
        Err(failure) => eprintln!("error: {failure}\nwarning: nothing was changed"),
    }
}

fn say_whom(senders: &BTreeMap<Pair, Sender>) {
    let count = senders.keys().map(|(identity, _)| identity).collect::<BTreeSet<_>>().len();
    say(&format!("listens to {count} congestion point{}\n", if count == 1 { "" } else { "s" }));
}

fn warn_of_strangers(senders: &BTreeMap<Pair, Sender>) {
    for address in strangers(senders) {
        eprintln!("warning: {address} is no address of this host: who tells it of congestion is not heard here");
    }
}

/// Why the port could not be had, and what to do.
fn no_port(error: &std::io::Error) -> Failure {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let sentence = format!("the port for notifications, {PORT}, cannot be had: {error}");
    if is(Errno::ADDRINUSE) {
        Failure::failed(sentence).help("another near-source loop has it, or another program: `ss -ulnp` says which")
    } else if is(Errno::ADDRNOTAVAIL) {
        Failure::failed(sentence).help("--address is one of this host's: `ip address` lists them")
    } else {
        Failure::failed(sentence)
    }
}

/// Addresses that senders are said to tell and that are not this host's now.
fn strangers(senders: &BTreeMap<Pair, Sender>) -> BTreeSet<IpAddr> {
    let told: BTreeSet<IpAddr> = senders.keys().map(|(_, host)| *host).collect();
    // Who can listen on an address has it.
    told.into_iter()
        .filter(|address| {
            let bound = UdpSocket::bind((*address, 0));
            bound.is_err_and(|error| error.raw_os_error() == Some(Errno::ADDRNOTAVAIL.raw_os_error()))
        })
        .collect()
}

const NOTIFICATIONS: Metric =
    Metric("narrows_near_source_notifications_total", "counter", "Notifications by what became of them.");
const HELD: Metric = Metric("narrows_near_source_held_flows", "gauge", "Connections that are held now.");
const RATES: Metric =
    Metric("narrows_near_source_rate_bits_per_second", "gauge", "Rates of those that are held now, summed.");
const REACTION: Metric = Metric(
    "narrows_near_source_reaction_seconds",
    "gauge",
    "From a datagram's arrival to the connection's new rate, over all so far.",
);

fn metrics(work: &Loop) -> String {
    let mut metrics = Metrics::default();
    for (outcome, count) in outcomes(work.tally()) {
        metrics.add(&NOTIFICATIONS, &[("outcome", outcome.to_owned())], real(count));
    }
    let (held, rates) = work.held().fold((0, 0), |(count, sum), (_, rate)| (count + 1, sum + rate.as_bps()));
    metrics.add(&HELD, &[], real(held));
    metrics.add(&RATES, &[], real(rates));
    // Of nothing there are no quantiles.
    let known = work.reaction().count() > 0;
    for (quantile, thousandths) in [("0.5", 500), ("0.99", 990), ("1", 1_000)].into_iter().filter(|_| known) {
        let seconds = real(work.reaction().percentile(thousandths).as_ns()) / 1e9;
        metrics.add(&REACTION, &[("quantile", quantile.to_owned())], seconds);
    }
    metrics.text()
}

/// What became of notifications: `taken`, and the reasons of refusals.
fn outcomes(tally: &Tally) -> impl Iterator<Item = (&'static str, u64)> {
    let refused = tally.by_reason().map(|(refusal, count)| (refusal.name(), count));
    std::iter::once(("taken", tally.taken)).chain(refused.collect::<Vec<_>>())
}

fn summary(tally: &Tally, reaction: &Histogram) -> String {
    let mut text = String::from("notifications\n");
    for (outcome, count) in outcomes(tally) {
        text += &format!("  {outcome:<16} {count:>12}\n");
    }
    if reaction.count() > 0 {
        let at = |thousandths| reaction.percentile(thousandths).as_us();
        text += &format!("reaction: p50 {} us, p99 {} us, most {} us\n", at(500), at(990), reaction.most().as_us());
    }
    text
}

#[allow(clippy::cast_precision_loss, reason = "counts stay below 2⁵³")]
fn real(value: u64) -> f64 {
    value as f64
}

fn say(text: &str) {
    // Nobody may be listening.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
