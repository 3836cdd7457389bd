//! `narrowsd bridge`: joins two interfaces at the border of a site as a wire would, and repairs with the far edge what the WAN loses
//! (DCIB, docs/reference/algorithms/dcib.md).
//!
//! | part | what it does |
//! |---|---|
//! | `parameters` | what the pair may be told, as options |
//! | `device` | what is set on the interfaces, and how it was before |
//! | `frame` | a TCP packet, and what the machine asks of it |
//! | `wrap` | headers around what the edges tell each other (docs/reference/wire.md) |
//! | `clamp`, `limit` | nothing is longer than the WAN takes |
//! | `router` | what becomes of each frame: without interfaces and clock |
//! | `port`, `work` | the loop around it |
//! | `state`, `status` | what is left in `/run/narrows`, and told |

mod checksum;
mod clamp;
mod device;
mod frame;
mod limit;
mod parameters;
mod port;
mod router;
#[cfg(test)]
mod sample;
mod state;
mod status;
mod work;
mod wrap;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Subcommand, ValueEnum};
use narrows_core::units::{Bytes, Time};
use narrows_kernel::bridge::{self as kernel, Joined, Settings};
use narrows_scenario::units;
use narrows_wire::Keys;
use narrows_wire::tunnel::{Names, PORT};

use crate::failure::Failure;
use crate::lock::Lock;
use crate::metrics::replace;
use crate::{key, refused, service};
use device::{Device, Link};
use parameters::Parameters;
use port::Port;
use router::RouterConfig;
use state::{Before, Place};
use work::{EventLoop, Parts, unix_ns};

/// An edge router, or what to do with one.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: Option<Run>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the state of this host's edge routers, in all network namespaces, as JSON
    Status(Status),
    /// Remove an edge router without a process, and restore the host's settings
    Remove(Ends),
}

/// The interfaces of an edge router.
#[derive(Debug, clap::Args)]
struct Ends {
    /// The interface to its own site
    #[arg(long, value_name = "INTERFACE", value_parser = name)]
    inside: String,
    /// The interface to the WAN
    #[arg(long, value_name = "INTERFACE", value_parser = name)]
    outside: String,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// Only one edge router: its interface to its own site
    #[arg(long, value_name = "INTERFACE", requires = "outside")]
    inside: Option<String>,
    /// And that to the WAN
    #[arg(long, value_name = "INTERFACE", requires = "inside")]
    outside: Option<String>,
    /// In the text format of Prometheus; with the label `netns`, as it is of all network namespaces
    #[arg(long)]
    prometheus: bool,
}

// The group by which it is known to be there: of a struct with flattened options, clap derives an empty one.
#[derive(Debug, clap::Args)]
#[group(args = ["inside", "outside"])]
struct Run {
    /// The interface to its own site
    #[arg(long, value_name = "INTERFACE", value_parser = name)]
    inside: String,
    /// The interface to the WAN
    #[arg(long, value_name = "INTERFACE", value_parser = name)]
    outside: String,
    /// What the far edge calls itself (its `--name`)
    #[arg(long, value_name = "NAME")]
    peer: String,
    /// What this edge calls itself; left out, this host's name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The file with the secret that both share: docs/reference/wire.md
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Another secret by which the far edge is believed too, while both change theirs: docs/how-to/deploy.md
    #[arg(long, value_name = "FILE")]
    other_key: Option<PathBuf>,
    /// The tunnel's number, where several go the same way
    #[arg(long, default_value_t = 0)]
    tunnel: u16,
    /// The UDP port of what the edges tell each other
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    parameters: Parameters,
    /// Bytes of the ring that the kernel hands packets over in: a power of two from 64KiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = ring)]
    ring: u32,
    /// The DSCP, 1 to 63, that both edges know disguised packets of hosts without ECN by; left out, they are not disguised
    #[arg(long, value_name = "DSCP", value_parser = dscp)]
    sign: Option<u8>,
    /// What the kernel does with packets of the far edge that no process of this one authenticates: it is gone, or too slow
    #[arg(long, value_enum, default_value_t = Unseen::Unwrap)]
    without_process: Unseen,
    /// Write metrics in the text format of Prometheus to this file, which is replaced at once
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// How often they are written
    #[arg(long, value_name = "SECONDS", requires = "metrics", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    every: u32,
}

/// What is done with marked packets that no process sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unseen {
    /// They reach their host, whoever sent them.
    Unwrap,
    /// They are lost, as if the WAN had dropped them.
    Drop,
}

fn name(text: &str) -> Result<String, String> {
    if device::is_name(text) { Ok(text.to_owned()) } else { Err("an interface has no such name".to_owned()) }
}

fn size(text: &str) -> Result<Bytes, String> {
    units::parse(text).map_err(|error| error.to_string())
}

fn dscp(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|number| (1..64).contains(number));
    number.ok_or_else(|| "it is a number from 1 to 63".to_owned())
}

fn ring(text: &str) -> Result<u32, String> {
    let bytes = size(text)?.get();
    let fits = bytes.is_power_of_two() && (1 << 16..=1 << 30).contains(&bytes);
    u32::try_from(bytes).ok().filter(|_| fits).ok_or_else(|| "it is a power of two from 64KiB to 1GiB".to_owned())
}

/// Performs the command.
pub(crate) fn perform(arguments: Arguments) -> Result<(), Failure> {
    match (arguments.verb, arguments.run) {
        (Some(Verb::Status(status)), _) => print_status(&status),
        (Some(Verb::Remove(ends)), _) => remove(&Place::here(&ends.inside, &ends.outside)?),
        (None, Some(run)) => bridge(run),
        (None, None) => Err(Failure::input("nothing is said of what is to be joined")
            .help("narrowsd bridge --inside eth1 --outside eth0 --peer NAME --key FILE --rate 1Gbps")),
    }
}

/// Whether an edge router could be started so: the secrets, the names and the interfaces, in this order.
///
/// # Errors
/// As starting it: code 2 for what no interface mends.
pub(crate) fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Some(run) = &arguments.run else { return Ok(()) };
    given(run)?;
    Pair::of(&Place::here(&run.inside, &run.outside)?).map(|_| ())
}

/// The secrets and the names.
fn given(run: &Run) -> Result<(Keys, Names), Failure> {
    let keys = Keys::new(key::read(&run.key)?, run.other_key.as_deref().map(key::read).transpose()?);
    let near = run.name.clone().unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let names = Names::new(&near, &run.peer, run.tunnel)
        .map_err(|error| Failure::input(error).help("--name and --peer are the same two, in turn, at both edges"))?;
    Ok((keys, names))
}

fn print_status(status: &Status) -> Result<(), Failure> {
    let places = match (&status.inside, &status.outside) {
        (Some(inside), Some(outside)) => {
            let place = Place::here(inside, outside)?;
            if place.before()?.is_none() {
                return Err(no_bridge(&place));
            }
            vec![place]
        }
        _ => Place::all(),
    };
    let all = places.iter().map(status::read).collect::<Result<Vec<_>, _>>()?;
    if status.prometheus {
        say(&status::metrics(&all));
    } else {
        say(&format!("{}\n", serde_json::to_string_pretty(&all).expect("numbers and names")));
    }
    Ok(())
}

/// Of all edge routers of this host.
///
/// # Errors
/// If the state of one cannot be read.
pub(crate) fn metrics() -> Result<String, Failure> {
    let all = Place::all().iter().map(status::read).collect::<Result<Vec<_>, _>>()?;
    Ok(status::metrics(&all))
}

fn remove(place: &Place) -> Result<(), Failure> {
    // Where there is none, no file is left by who asks to remove it.
    if place.before()?.is_none() && !place.is_alive()? {
        return Err(no_bridge(place));
    }
    let Some(_lock) = acquire_lock(place)? else {
        return Err(Failure::failed("a process works on this bridge").help("end it first: systemctl stop, or kill"));
    };
    let before = place.before()?.ok_or_else(|| no_bridge(place))?;
    let pinned = kernel::passed(&place.pins()).map_err(refused::by_kernel)?.is_some();
    if !pinned && before.interfaces.iter().any(|was| kernel::is_attached(was.index)) {
        let sentence = "the bridge is there, and its pins cannot be seen from here";
        return Err(Failure::environment(sentence).help(refused::OTHER_MOUNTS));
    }
    for was in &before.interfaces {
        let attached = kernel::Attached { index: was.index, made_qdisc: was.made_qdisc };
        kernel::detach(attached).map_err(refused::by_kernel)?;
        // An interface that is gone needs nothing.
        if let Ok(device) = Device::of(&was.name) {
            device.restore(was).map_err(|error| Failure::failed(format!("{}: {error}", was.name)))?;
        }
    }
    kernel::unpin(&place.pins()).map_err(refused::by_kernel)?;
    place.forget();
    say(&format!("{} and {} are as they were before\n", place.inside, place.outside));
    Ok(())
}

/// There is none of these names here.
fn no_bridge(place: &Place) -> Failure {
    let sentence = format!("there is no bridge of {} and {}", place.inside, place.outside);
    let elsewhere = Place::all().iter().any(|other| (&other.inside, &other.outside) == (&place.inside, &place.outside));
    Failure::failed(sentence).help(match elsewhere {
        true => "one of these names is in another network namespace; enter it: nsenter --net=/run/netns/NAME",
        false => "`narrowsd bridge status` lists those that there are",
    })
}

/// Both interfaces, which are of one kind.
struct Pair {
    devices: [Device; 2],
    interfaces: [kernel::Interface; 2],
    link: Link,
}

impl Pair {
    fn of(place: &Place) -> Result<Pair, Failure> {
        if place.inside == place.outside {
            return Err(Failure::input("an interface cannot be joined with itself")
                .help("--inside is that to this site, --outside that to the other"));
        }
        let one = |name: &String| {
            let lacks = |error: std::io::Error| match error.raw_os_error() {
                // It may come: whoever started this may start it again.
                Some(libc::ENODEV) => Failure::failed(format!("there is no interface {name} here"))
                    .help("`ip link` lists those that there are"),
                _ => Failure::failed(format!("{name}: {error}")),
            };
            let device = Device::of(name).map_err(lacks)?;
            if !device.is_up().map_err(lacks)? {
                return Err(Failure::failed(format!("{name} is down")).help(format!("ip link set {name} up")));
            }
            let known = device.interface().map_err(lacks)?;
            let (interface, link) = known.ok_or_else(|| {
                Failure::input(format!("{name} is neither an Ethernet interface nor one of bare IP packets"))
                    .help("a network card, a veth, a VLAN's interface or a TUN can be joined")
            })?;
            Ok((device, interface, link))
        };
        let (inside, outside) = (one(&place.inside)?, one(&place.outside)?);
        if inside.2 != outside.2 {
            return Err(Failure::input("one interface is Ethernet, and one of bare IP packets: they cannot be joined"));
        }
        Ok(Pair { devices: [inside.0, outside.0], interfaces: [inside.1, outside.1], link: inside.2 })
    }
}

fn bridge(run: Run) -> Result<(), Failure> {
    let place = Place::here(&run.inside, &run.outside)?;
    let (keys, names) = given(&run)?;
    let pair = Pair::of(&place)?;
    let Some(_lock) = acquire_lock(&place)? else {
        return Err(Failure::failed("another process works on this bridge").help("`narrowsd bridge status` says which"));
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::failed)?;
    }
    let ethernet = pair.link == Link::Ethernet;
    let own = pair.devices.iter().flat_map(Device::addresses).take(kernel::MAX_OWN).collect();
    let joined = Joined::load(&Settings {
        interfaces: pair.interfaces,
        ethernet,
        port: run.port,
        tunnel: run.tunnel,
        sign: run.sign,
        drop_unseen: run.without_process == Unseen::Drop,
        ring_bytes: run.ring,
        own,
    })
    .map_err(refused::by_kernel)?;
    let open = |side: usize| {
        Port::open(pair.interfaces[side].index)
            .map_err(|error| Failure::failed(format!("a socket for frames: {error}")))
    };
    let ports = [open(0)?, open(1)?];
    join(&place, &pair, &joined)?;
    let longest = pair.devices[1].longest().map_err(|error| Failure::failed(format!("{}: {error}", place.outside)))?;
    let given = RouterConfig {
        config: run.parameters.config(),
        keys,
        names,
        port: run.port,
        sign: run.sign,
        link: if ethernet { 14 } else { 0 },
        longest,
        clock: unix_ns(),
        draw,
    };
    let mut work = EventLoop::new(Parts { given, joined, ports }).map_err(refused::by_kernel)?;
    if let Some(path) = &run.metrics {
        let help = "create its folder, or name another file";
        let state = status::read(&place)?;
        replace(path, &status::metrics(&[state])).map_err(|failure| Failure::input(failure).help(help))?;
    }
    say(&format!("{} and {} are joined; the far edge is {}\n", place.inside, place.outside, run.peer));
    if run.sign.is_none() {
        eprintln!(
            "warning: without --sign packets of hosts without ECN are sent as they came: a WAN that drops those first drops all of them, and not only what can be repaired"
        );
    }
    if let Err(error) = service::ready() {
        eprintln!("warning: the service manager was not told: {error}");
    }
    let worked = at_work(&mut work, &stop, &place, &pair, &run);
    let finished = work.finish();
    if let Some(path) = &run.metrics {
        // The last word: nobody works here any more.
        let last = status::read(&place).map(|mut state| {
            state["alive"] = false.into();
            state["connected"] = false.into();
            state
        });
        if let Err(failure) = last.and_then(|state| replace(path, &status::metrics(&[state]))) {
            eprintln!("warning: {failure}");
        }
    }
    worked.and(finished.map_err(Failure::failed))?;
    say(&format!(
        "{} and {} stay joined by the kernel; narrowsd bridge remove --inside {} --outside {} ends that\n",
        place.inside, place.outside, place.inside, place.outside
    ));
    Ok(())
}

/// The right to be its process. Who asks for its state has that for a moment.
fn acquire_lock(place: &Place) -> Result<Option<Lock>, Failure> {
    for _ in 0..10 {
        if let Some(lock) = place.lock()? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}

/// Looks, once a second, whether the far edge answers.
#[derive(Default)]
struct Silence {
    /// Packets that were not marked for it, when it was looked at last.
    unmarked: u64,
    /// Seconds of silence, one after another.
    seconds: u32,
}

impl Silence {
    /// Whether it has not answered for ten seconds in which it was asked; once.
    fn is_long(&mut self, (connected, unmarked): (bool, u64)) -> bool {
        let asked = unmarked > std::mem::replace(&mut self.unmarked, unmarked);
        if connected {
            self.seconds = 0;
        } else if asked {
            self.seconds += 1;
        }
        asked && !connected && self.seconds == 10
    }
}

/// Works, and tells every second how.
fn at_work(work: &mut EventLoop, stop: &AtomicBool, place: &Place, pair: &Pair, run: &Run) -> Result<(), Failure> {
    let began = Time::ZERO;
    let (mut told, mut written): (Option<Instant>, Option<Instant>) = (None, None);
    let mut silence = Silence::default();
    let mut warned_sign = None;
    let mut longest = work.with_router(|router, _| router.interface_longest());
    warn_of_other_inside(place, pair, longest);
    let due = |last: Option<Instant>, period| last.is_none_or(|last| last.elapsed() >= period);
    let warn = |outcome: Result<(), Failure>| {
        // A disk that is full now may not be later.
        if let Err(failure) = outcome {
            eprintln!("warning: {failure}");
        }
    };
    let mut lost = None;
    let worked = work.run(stop, |work| {
        if due(told, Duration::from_secs(1)) {
            told = Some(Instant::now());
            // Without its programs nothing comes, and nothing goes: who started it is to start it again.
            lost = lost_interface(place, pair);
            if let Some(lost) = &lost {
                return Err(lost.to_string());
            }
            warn(place.tell(&status::of(work, began)));
            // An interface may be given another MTU; one that is gone ends the process above.
            if let Ok(now) = pair.devices[1].longest()
                && now != longest
            {
                eprintln!("{} takes packets of {now} bytes now, {longest} before", place.outside);
                longest = now;
                work.set_longest(now);
                warn_of_other_inside(place, pair, now);
            }
            let far_sign = work.with_router(|router, _| router.far_sign().filter(|_| router.is_sign_another()));
            if is_news(&mut warned_sign, far_sign) {
                eprintln!("warning: {}", signs_differ(&run.peer, far_sign, run.sign));
            }
            let unheard =
                work.with_router(|router, now| (router.edge().is_connected(now), router.edge().transmitted().far_silent));
            if silence.is_long(unheard) {
                eprintln!(
                    "warning: {} does not answer: is its process there, with the same key, --tunnel and --port, and these names in turn?",
                    run.peer
                );
            }
        }
        if let Some(path) = &run.metrics
            && due(written, Duration::from_secs(run.every.into()))
        {
            written = Some(Instant::now());
            warn(status::read(place).and_then(|state| replace(path, &status::metrics(&[state]))));
        }
        Ok(())
    });
    worked.map_err(|said| lost.unwrap_or_else(|| Failure::failed(said)))
}

/// The first interface that was removed, or that another program took the edge router's from, if there is one.
fn lost_interface(place: &Place, pair: &Pair) -> Option<Failure> {
    let mut sides = [&place.inside, &place.outside].into_iter().zip(pair.interfaces);
    let (name, interface) = sides.find(|(_, interface)| !kernel::is_attached(interface.index))?;
    let is_there = Device::of(name).and_then(|device| device.interface());
    let is_there = is_there.is_ok_and(|found| found.is_some_and(|(found, _)| found.index == interface.index));
    let restores = format!(
        "`narrowsd bridge remove --inside {} --outside {}` restores the other one",
        place.inside, place.outside
    );
    Some(if is_there {
        Failure::failed(format!("another program has removed the edge router's programs from {name}"))
            .help("start it again, and it joins the interfaces anew")
    } else {
        Failure::failed(format!("the interface {name} is gone, and nothing is forwarded"))
            .help(format!("start it again when {name} is back; {restores}"))
    })
}

/// Whether another sign of the far edge is to be warned of: once, and again after the signs were the same.
fn is_news(warned: &mut Option<u8>, other: Option<u8>) -> bool {
    let before = std::mem::replace(warned, other);
    other.is_some() && other != before
}

/// Said at both ends, each of the other.
fn signs_differ(peer: &str, far: Option<u8>, near: Option<u8>) -> String {
    let sign =
        |sign: Option<u8>| sign.filter(|sign| *sign > 0).map_or("none".to_owned(), |sign| format!("--sign {sign}"));
    format!(
        "{peer} has {}, this edge has {} and disguises no packet of a host without ECN until both have the same",
        sign(far),
        sign(near)
    )
}

/// The box lowers the segments of new connections to what the outer interface takes, and tells nobody else of a difference.
fn warn_of_other_inside(place: &Place, pair: &Pair, outside: u16) {
    if let Ok(inside) = pair.devices[0].longest()
        && inside != outside
    {
        eprintln!(
            "warning: {} takes packets of {inside} bytes and {} of {outside}: longer ones are lost on their way, but for those of TCP connections that begin now where the outer one takes less",
            place.inside, place.outside
        );
    }
}

/// Notes how the interfaces were, sets them up, and puts the programs there. What another process of this edge router noted before counts.
fn join(place: &Place, pair: &Pair, joined: &Joined) -> Result<(), Failure> {
    let failed = |device: &str| {
        let device = device.to_owned();
        move |error: std::io::Error| Failure::failed(format!("{device}: {error}"))
    };
    let known = place.before()?;
    let mut interfaces = vec![];
    for (device, interface) in pair.devices.iter().zip(pair.interfaces) {
        let was = known.iter().flat_map(|known| &known.interfaces);
        // Another interface may have its name by now. What was noted counts though the process did not come to attach its program.
        let noted = was.into_iter().find(|was| was.index == interface.index);
        interfaces.push(match noted {
            Some(was) => was.clone(),
            None => device.was().map_err(failed("an interface"))?,
        });
    }
    for other in Place::all().iter().filter(|other| *other != place && other.is_here()) {
        let theirs = other.before()?;
        for was in theirs.iter().flat_map(|before| &before.interfaces) {
            let is_shared = pair.interfaces.iter().any(|interface| interface.index == was.index);
            if is_shared && kernel::is_attached(was.index) {
                let sentence = format!("{} is of the bridge of {} and {}", was.name, other.inside, other.outside);
                let help = format!("narrowsd bridge remove --inside {} --outside {}", other.inside, other.outside);
                return Err(Failure::input(sentence).help(help));
            }
        }
    }
    let interfaces: [device::Was; 2] = interfaces.try_into().expect("there are two");
    let mut before = Before { namespace: place.noted(), interfaces };
    place.note(&before)?;
    for (device, was) in pair.devices.iter().zip(&before.interfaces) {
        device.listen().map_err(failed(&was.name))?;
    }
    let mut noted = Ok(());
    joined
        .attach(&place.pins(), |side, attached| {
            before.interfaces[side as usize].made_qdisc |= attached.made_qdisc;
            noted = place.note(&before);
        })
        .map_err(refused::by_kernel)?;
    noted
}

/// Fills bytes with the system's randomness.
fn draw(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        // It fails before the system has gathered randomness, and where it is interrupted.
        if let Ok(count) = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            filled += count;
        }
    }
}

fn say(text: &str) {
    // Nobody may be listening.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn without_a_verb_an_edge_router_is_started_with_its_parameters() {
        let written = |text: &str| clap::Parser::try_parse_from(text.split(' ')).map(|Command { arguments }| arguments);
        let started = written("bridge --inside a --outside b --peer far --key secret --rate 1Gbps").unwrap();
        assert_eq!(started.run.unwrap().parameters.config().rate, narrows_core::units::Rate::from_gbps(1));
        assert!(written("bridge --inside a --outside b --peer far --key secret").is_err(), "it has no rate");
        let removed = written("bridge remove --inside a --outside b").unwrap();
        assert!(removed.run.is_none() && matches!(removed.verb, Some(Verb::Remove(_))));
    }

    #[test]
    fn another_sign_is_warned_of_once_until_signs_are_the_same() {
        let mut warned = None;
        let seen = [None, Some(45), Some(45), Some(0), Some(45), None, None, Some(45), Some(45)];
        let warns = seen.map(|other| is_news(&mut warned, other));
        assert_eq!(warns, [false, true, false, true, true, false, false, true, false]);
    }

    #[test]
    fn rings_are_powers_of_two() {
        assert_eq!(ring("8MiB"), Ok(1 << 23));
        assert!(ring("8MB").is_err() && ring("32KiB").is_err());
    }
}
