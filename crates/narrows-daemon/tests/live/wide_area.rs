//! The experiment `dcib/live` over this kernel, beside the simulation of the same file; and a large file.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use narrows_core::edge::dcib::{Config, Share};
use narrows_core::queue::Limit;
use narrows_core::rng::SmallStream;
use narrows_core::units::{Span, Time};
use narrows_plan::{Link, LossOf, Plan, Role};
use narrows_scenario::{Limits, Overrides};
use narrows_sim::Simulation;
use sha2::{Digest, Sha256};

use crate::Outcome;
use crate::site::{Bridge, RIGHT_V4, Site};
use crate::world::within;

/// What the simulator runs, too.
const EXPERIMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/dcib/live/experiment.toml");
const GIGABYTE: u64 = 1_000_000_000;

impl Site {
    /// One flow from the left host to the right, of a controller of this kernel: what came after `warm_up`, Mbit/s, until `end`.
    pub(crate) fn flow(&self, controller: &str, warm_up: Duration, end: Duration) -> f64 {
        let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
        let listener = within(self.host(1), || TcpListener::bind((RIGHT_V4, 0)).expect("a port is free"));
        let address = listener.local_addr().expect("it is bound");
        let mut sender = within(self.host(0), || {
            let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).expect("it listens");
            rustix::net::sockopt::set_tcp_congestion(&stream, controller).expect("as root");
            stream
        });
        let (mut receiver, _) = listener.accept().expect("it was connected");
        for stream in [&sender, &receiver] {
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time");
            stream.set_write_timeout(Some(Duration::from_secs(30))).expect("a time");
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let chunk = vec![7; 1 << 16];
                // It waits for room: the flow's controller says when there is some.
                while !stop.load(Ordering::Relaxed) {
                    if sender.write_all(&chunk).is_err() {
                        break;
                    }
                }
                let _ = sender.shutdown(std::net::Shutdown::Both);
            });
            scope.spawn(|| {
                let mut chunk = vec![0; 1 << 16];
                while let Ok(size) = receiver.read(&mut chunk)
                    && size > 0
                {
                    taken.fetch_add(size as u64, Ordering::Relaxed);
                }
            });
            std::thread::sleep(warm_up);
            let (before, begin) = (taken.load(Ordering::Relaxed), Instant::now());
            std::thread::sleep(end - warm_up);
            let (bytes, time) = (taken.load(Ordering::Relaxed) - before, begin.elapsed());
            stop.store(true, Ordering::Relaxed);
            bytes as f64 * 8e-6 / time.as_secs_f64()
        })
    }

    /// A byte to the right host and back, so often: how long each took, the shortest first.
    pub(crate) fn echoes(&self, count: usize) -> Vec<Duration> {
        let listener = within(self.host(1), || TcpListener::bind((RIGHT_V4, 0)).expect("a port is free"));
        let address = listener.local_addr().expect("it is bound");
        let mut near =
            within(self.host(0), || TcpStream::connect_timeout(&address, Duration::from_secs(10)).expect("it listens"));
        let (mut far, _) = listener.accept().expect("it was connected");
        for stream in [&near, &far] {
            stream.set_nodelay(true).expect("it is open");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
        }
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut byte = [0];
                while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
            });
            let mut times: Vec<Duration> = (0..count)
                .map(|_| {
                    let (begin, mut byte) = (Instant::now(), [1]);
                    near.write_all(&byte).and_then(|()| near.read_exact(&mut byte)).expect("it comes back");
                    begin.elapsed()
                })
                .collect();
            drop(near);
            times.sort_unstable();
            times
        })
    }

    /// A file from the left host to the right, as a file there: how long that took.
    pub(crate) fn copy(&self, controller: &str, from: &Path, to: &Path) -> Duration {
        let listener = within(self.host(1), || TcpListener::bind((RIGHT_V4, 0)).expect("a port is free"));
        let address = listener.local_addr().expect("it is bound");
        std::thread::scope(|scope| {
            let begin = Instant::now();
            scope.spawn(move || {
                let mut stream = within(self.host(0), || {
                    TcpStream::connect_timeout(&address, Duration::from_secs(10)).expect("it listens")
                });
                rustix::net::sockopt::set_tcp_congestion(&stream, controller).expect("as root");
                let mut file = File::open(from).expect("it is there");
                std::io::copy(&mut file, &mut stream).expect("the other end reads");
            });
            let (mut stream, _) = listener.accept().expect("it is connected");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
            let mut file = File::create(to).expect("there is room");
            std::io::copy(&mut stream, &mut file).expect("the other end writes");
            begin.elapsed()
        })
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_ns())
}

fn wan(plan: &Plan) -> &Link {
    plan.network.links.iter().find(|link| link.role == Role::Wan).expect("there is one")
}

/// Parts in a thousand of a plan's 2⁻³².
fn per_mille(loss: u32) -> u32 {
    u32::try_from((u64::from(loss) * 1_000 + (1 << 31)) >> 32).expect("below 1000")
}

/// The WAN of the plan, and its bridges. Without them the kernel joins the interfaces, as it does where a process ended.
fn site_of(plan: &Plan) -> (Site, Vec<Bridge>) {
    let (site, link) = (Site::new(false), wan(plan));
    let faults = &site.faults;
    faults.delay_us.store(link.delay.as_ns() / 1_000, Ordering::Relaxed);
    faults.rate_bps.store(link.rate.as_bps(), Ordering::Relaxed);
    let Limit::Packets(room) = link.limit else { panic!("a number of packets") };
    faults.room.store(u32::try_from(room.get()).expect("few"), Ordering::Relaxed);
    let config = link.bridge.as_ref();
    // What the process makes of a rate and an RTT by itself.
    let usual = |config: &Config| Config::new(link.rate, Share::TENTH, config.round_trip);
    assert!(config.is_none_or(|config| *config == usual(config)), "no other options are passed on");
    let round_trip = config.map_or(link.delay.saturating_mul(2), |config| config.round_trip);
    let options = format!("--rate {} --round-trip {}us", link.rate, round_trip.as_ns() / 1_000);
    let mut bridges: Vec<Bridge> = (0..2).map(|edge| site.bridge_with(edge, &options)).collect();
    if config.is_none() {
        bridges.clear();
        std::thread::sleep(Duration::from_millis(100));
    }
    // They meet before anything is lost, as in the simulator's warm-up.
    site.echoes(20);
    let loss = match link.loss_of {
        LossOf::Data => &faults.loss,
        LossOf::Unprotected => &faults.loss_not_ect,
        LossOf::All => panic!("acknowledgements are lost, too"),
    };
    loss.store(per_mille(link.loss), Ordering::Relaxed);
    (site, bridges)
}

/// What the simulator says of the plan's one flow, Mbit/s.
fn simulated(plan: &Plan, seed: u64) -> f64 {
    let mut simulation = Simulation::new(plan, seed).expect("a plan is simulated");
    while simulation.advance(1 << 20) {}
    let results = simulation.finish();
    let flow = &results.flows[0];
    let measured = plan.schedule.end.since(Time::ZERO + plan.schedule.warmup);
    flow.delivered_after_warmup_bytes as f64 * 8e-6 / duration(measured).as_secs_f64()
}

pub(crate) fn goodput_is_that_of_the_simulation_of_the_same_file() -> Outcome {
    let path = Path::new(EXPERIMENT);
    let experiment = narrows_scenario::load(path, &Overrides::default(), &Limits::default()).expect("it is right");
    let mut live = Vec::new();
    println!(
        "  {:<22} {:>15} {:>18}  one flow, Mbit/s after {}",
        "arm", "Linux", "simulated", experiment.plans[0].schedule.warmup
    );
    for plan in &experiment.plans {
        let (site, bridges) = site_of(plan);
        let schedule = &plan.schedule;
        let end = duration(schedule.end.since(Time::ZERO));
        let mbps = site.flow(&plan.traffic[0].controller.name, duration(schedule.warmup), end);
        let modelled: Vec<f64> = experiment.seeds.iter().map(|&seed| simulated(plan, seed)).collect();
        let mean = modelled.iter().sum::<f64>() / modelled.len() as f64;
        let [least, most] = [f64::min, f64::max].map(|of| modelled.iter().copied().reduce(of).expect("some"));
        println!("  {:<22} {mbps:>15.1} {mean:>7.1} ({least:.1}–{most:.1})", plan.arm);
        if !bridges.is_empty() {
            println!("    {}", site.status_soon(0)["transmitted"]);
        }
        live.push((plan.arm.clone(), mbps, mean));
    }
    let of = |arm: &str| live.iter().find(|(name, ..)| name == arm).map(|(_, mbps, _)| *mbps).expect("it was run");
    let gains = ["cubic", "bbr"].map(|name| of(&format!("dcib+{name}")) / of(name));
    println!("  gain, with loss: CUBIC {:.1}, BBR {:.2}", gains[0], gains[1]);
    assert!(gains[0] > 4.0, "{gains:?}");
    for name in ["cubic", "bbr"] {
        let kept = of(&format!("dcib+{name}, no loss")) / of(&format!("{name}, no loss"));
        println!("  without loss, with the pair for without: {name} {kept:.3}");
        assert!(kept > 0.95, "{name} keeps {kept}");
    }
    for (arm, live, simulated) in &live {
        // A flow of a few Mbit/s, for 10 s, is a matter of few losses.
        let most = if *simulated < 10.0 { 2.0 } else { 1.25 };
        let apart = (live / simulated).max(simulated / live);
        assert!(apart < most, "{arm}: {live} on Linux, {simulated} simulated");
    }
    Ok(())
}

pub(crate) fn without_loss_a_round_trip_is_what_it_was() -> Outcome {
    let path = Path::new(EXPERIMENT);
    let experiment = narrows_scenario::load(path, &Overrides::default(), &Limits::default()).expect("it is right");
    let times = ["cubic, no loss", "dcib+cubic, no loss"].map(|arm| {
        let plan = experiment.plans.iter().find(|plan| plan.arm == arm).expect("it is there");
        let (site, _bridges) = site_of(plan);
        let times = site.echoes(400);
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        println!("  {arm}: a byte there and back, p50 {:.3?}, p99 {:.3?}", at(50), at(99));
        at(50)
    });
    let more = times[1].as_secs_f64() / times[0].as_secs_f64();
    assert!(more < 1.05, "{more}");
    Ok(())
}

fn digest(path: &Path) -> Vec<u8> {
    let (mut hash, mut file, mut chunk) = (Sha256::new(), File::open(path).expect("it is there"), vec![0; 1 << 20]);
    loop {
        match file.read(&mut chunk).expect("it is read") {
            0 => return hash.finalize().to_vec(),
            size => hash.update(&chunk[..size]),
        }
    }
}

/// A file of random bytes.
fn write_file(path: &Path, bytes: u64) {
    let (mut random, mut file) = (SmallStream::new(bytes), File::create(path).expect("there is room"));
    let mut chunk = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        chunk.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&random.next_u64().to_be_bytes()));
        let size = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&chunk[..size]).expect("there is room");
        left -= size as u64;
    }
}

/// Over a WAN of 1 Gbit/s and 10 ms that loses a twentieth. Without the pair it takes half an hour, so that a fiftieth is sent, unless
/// `NARROWS_WHOLE_FILE` is set.
pub(crate) fn a_file_of_a_gigabyte_arrives_as_it_was() -> Outcome {
    let folder = std::env::temp_dir().join(format!("narrowsd-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (sent, came) = (folder.join("sent"), folder.join("came"));
    let whole = std::env::var_os("NARROWS_WHOLE_FILE").is_some();
    let outcome = std::panic::catch_unwind(|| {
        for with in [true, false] {
            let bytes = if with || whole { GIGABYTE } else { GIGABYTE / 50 };
            write_file(&sent, bytes);
            let site = Site::new(false);
            let mut bridges = vec![site.bridge(0, ""), site.bridge(1, "")];
            if !with {
                bridges.clear();
                std::thread::sleep(Duration::from_millis(100));
            }
            site.echoes(20);
            let loss = if with { (&site.faults.loss_not_ect, 500) } else { (&site.faults.loss, 50) };
            loss.0.store(loss.1, Ordering::Relaxed);
            let time = site.copy("cubic", &sent, &came);
            let [before, after] = [&sent, &came].map(|path| digest(path));
            let hex: String = after.iter().map(|byte| format!("{byte:02x}")).collect();
            let mbps = bytes as f64 * 8e-6 / time.as_secs_f64();
            let how = if with { "with the pair" } else { "without" };
            let dropped = site.seen.dropped.load(Ordering::Relaxed);
            println!("  {how}: {bytes} bytes in {time:.1?}, {mbps:.1} Mbit/s, {dropped} packets lost; SHA-256 {hex}");
            if with {
                println!("    {}", site.status_soon(0)["transmitted"]);
            } else if !whole {
                println!("    1 GB would take {:.0?}", time * 50);
            }
            assert_eq!(before, after, "what came is not what was sent");
        }
    });
    let _ = std::fs::remove_dir_all(&folder);
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(())
}
