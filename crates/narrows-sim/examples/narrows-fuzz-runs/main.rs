//! Draws experiments at random and runs each with every invariant on; what breaks one is made smaller and written down.
//!
//! `cargo run --release -p narrows-sim --example narrows-fuzz-runs -- --seconds 120`. Interrupted, it says what it has seen so
//! far.

mod choices;
mod experiment;
mod invariants;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGINT, SIGTERM};

use choices::{Choices, shrink};
use invariants::{Outcome, check};

/// Draw experiments at random, and run each with every invariant on
#[derive(Debug, Parser)]
struct Arguments {
    /// How long
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The first seed; left out, a new one each time, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// At most so many experiments
    #[arg(long, default_value_t = u64::MAX)]
    most: u64,
    /// Where experiments that break an invariant are written
    #[arg(long, default_value = "target/fuzz-runs")]
    out: PathBuf,
    /// Only print the experiment of the seed
    #[arg(long, requires = "seed")]
    print: bool,
    /// Only check this one, such as one that was written, with the seed
    #[arg(long, value_name = "FILE", requires = "seed")]
    experiment: Option<PathBuf>,
}

/// How long an experiment that breaks an invariant is made smaller.
const SHRINKING: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos());
    let first = arguments.seed.unwrap_or_else(|| u64::try_from(now % 1_000_000_000_000).unwrap_or(1) / 1_000 * 1_000);
    if arguments.print {
        print!("{}", experiment::text(&mut Choices::drawn(first)));
        return ExitCode::SUCCESS;
    }
    if let Some(file) = &arguments.experiment {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("error: {}: {error}", file.display());
                return ExitCode::from(2);
            }
        };
        let outcome = check(&text, first);
        println!("{outcome:?}");
        return if matches!(outcome, Outcome::Broken { .. }) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    println!("experiments from seed {first} on, for {} s", arguments.seconds);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one ends it at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .expect("a signal that has an action");
        signal_hook::flag::register(signal, Arc::clone(&stop)).expect("a signal that has an action");
    }
    let (begin, mut seen) = (Instant::now(), Seen::default());
    for seed in (first..).take(usize::try_from(arguments.most).unwrap_or(usize::MAX)) {
        if begin.elapsed() >= Duration::from_secs(arguments.seconds) || stop.load(Ordering::Relaxed) {
            break;
        }
        let mut drawn = Choices::drawn(seed);
        let outcome = check(&experiment::text(&mut drawn), seed);
        if let Outcome::Broken { invariant, how } = &outcome {
            report(seed, drawn.used(), (invariant, how), &arguments.out, &seen);
        }
        seen.add(&outcome);
    }
    println!("{}", seen.summary(begin.elapsed()));
    // Where hardly anything is accepted, nothing is searched.
    let drawn = seen.refused + seen.long + seen.held;
    if drawn > 50 && seen.held < drawn / 5 {
        println!("fewer than a fifth of the experiments are accepted and short: the search has lost its way");
        return ExitCode::FAILURE;
    }
    if seen.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Makes a broken experiment smaller, and writes it down; of one invariant a few.
fn report(seed: u64, choices: &[u64], (invariant, how): (&'static str, &str), out: &std::path::Path, seen: &Seen) {
    println!("seed {seed} breaks: {invariant}");
    if seen.broken.get(invariant).is_some_and(|&count| count >= 3) {
        return;
    }
    let text_of = |choices: &[u64]| experiment::text(&mut Choices::repeated(choices));
    let breaks = |choices: &[u64]| matches!(check(&text_of(choices), seed), Outcome::Broken { invariant: other, .. } if other == invariant);
    let small = text_of(&shrink(choices.to_vec(), SHRINKING, breaks));
    // A race may not come twice: then it is written as it was drawn.
    let (how, small) = match check(&small, seed) {
        Outcome::Broken { how, .. } => (how, small),
        _ => (format!("it does not always: {how}"), text_of(choices)),
    };
    let comment: String = how.lines().take(12).map(|line| format!("# {line}\n")).collect();
    let path = out.join(format!("{seed}.toml"));
    let written = std::fs::create_dir_all(out)
        .and_then(|()| std::fs::write(&path, format!("# Seed {seed} breaks: {invariant}.\n{comment}{small}")));
    println!("{how}\n{small}");
    match written {
        Ok(()) => println!("written to {}", path.display()),
        Err(error) => println!("{}: {error}", path.display()),
    }
}

/// A sentence without what differs from experiment to experiment: its place in the file, and names in it.
fn without_names(sentence: &str) -> String {
    let said = sentence.split_once(": ").map_or(sentence, |(_, said)| said);
    said.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "…" }).collect()
}

/// Processor time of this process so far.
fn processor_time() -> String {
    format!("{} s", clock_gettime(ClockId::ProcessCPUTime).tv_sec)
}

/// What became of all of them.
#[derive(Debug, Default)]
struct Seen {
    refused: u64,
    reasons: BTreeMap<String, u64>,
    long: u64,
    held: u64,
    flows: u64,
    hops: u64,
    broken: BTreeMap<&'static str, u64>,
}

impl Seen {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Refused(why) => {
                self.refused += 1;
                *self.reasons.entry(without_names(why)).or_default() += 1;
            }
            Outcome::Long => self.long += 1,
            Outcome::Holds { flows, hops } => {
                self.held += 1;
                self.flows += flows;
                self.hops += hops;
            }
            Outcome::Broken { invariant, .. } => *self.broken.entry(invariant).or_default() += 1,
        }
    }

    fn summary(&self, time: Duration) -> String {
        let broken: u64 = self.broken.values().sum();
        let mut text = format!(
            "{} experiments in {:.0} s ({} of processor time): {} hold every invariant ({} flows, {} packet-hops, each run five times), {} are refused, {} too long, {broken} broken",
            self.refused + self.long + self.held + broken,
            time.as_secs_f64(),
            processor_time(),
            self.held,
            self.flows,
            self.hops,
            self.refused,
            self.long,
        );
        let mut reasons: Vec<(&String, &u64)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (why, count) in reasons.iter().take(8) {
            text += &format!("\n  {count} × refused: {why}");
        }
        for (invariant, count) in &self.broken {
            text += &format!("\n  {count} × {invariant}");
        }
        text
    }
}
