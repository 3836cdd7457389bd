//! One algorithm, two languages: the host's build of each `*.core.h` and the controller of `narrows-core` are told the same
//! facts, at random, and agree on window, threshold, pacing rate and all of their state after every step.

#[path = "twins/core.rs"]
mod core;
#[path = "twins/facts.rs"]
mod facts;
#[path = "twins/operations.rs"]
mod operations;

use self::core::{Core, Dctcp, Gemini, NewReno, State, Vegas};
use self::facts::Facts;
use self::operations::{Case, Operation};
use narrows_core::cc::{Cause, CongestionControl, Context, Settings, Spec, Value};
use narrows_core::rng::SmallStream;
use narrows_core::units::Span;
use narrows_kernel::parameters::encode;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Per controller. `TWIN_CASES` overrides it.
const CASES: u32 = 3_000;

/// Plays one case to both, comparing after every step.
fn play<R, C>(spec: &'static Spec, new: fn(&Context<'_>) -> R, case: &Case) -> Result<(), TestCaseError>
where
    R: CongestionControl + std::fmt::Debug,
    C: State,
{
    let mut facts = Facts::new(case);
    let path = facts.path();
    let settings = Settings::new(spec.parameters, &case.values);
    let mut rust = new(&Context { settings, path: &path, random: SmallStream::new(1) });
    let parameters: Vec<u64> = case.values.iter().map(|value| encode(*value)).collect();
    let mut c = Core::<C>::init(&parameters, &facts.c_path());
    agree(&rust, &c, 0, None)?;
    for (step, operation) in case.operations.iter().enumerate() {
        facts.pass(operation, c.window());
        match operation {
            Operation::Ack(_) => {
                let ack = facts.ack();
                rust.on_ack(&ack, &facts.path());
                c.on_ack(&facts.c_ack(), &facts.c_path());
            }
            Operation::Congestion { cause, .. } => {
                rust.on_congestion(facts.now(), *cause, &facts.path());
                c.on_congestion(facts.now_ns, cause_number(*cause), &facts.c_path());
            }
            Operation::Timeout { repeated, .. } => {
                rust.on_timeout(facts.now(), *repeated, &facts.path());
                c.on_timeout(facts.now_ns, u32::from(*repeated), &facts.c_path());
            }
            Operation::Sent { idle, .. } => {
                let sent = facts.sent(*idle);
                rust.on_sent(facts.now(), &sent, &facts.path());
                c.on_sent(u32::from(*idle), &facts.c_path());
            }
            Operation::Idle { idle_ns } => {
                rust.on_idle_restart(facts.now(), Span::from_ns(*idle_ns), &facts.path());
                c.on_idle_restart(*idle_ns, &facts.c_path());
            }
            Operation::Undo => {
                rust.on_undo();
                c.on_undo();
            }
            // The same parameters once more: a live change that changes nothing.
            Operation::Configure => c.configure(&parameters, &facts.c_path()),
        }
        agree(&rust, &c, step + 1, Some(operation))?;
    }
    Ok(())
}

/// `enum cc_cause`.
fn cause_number(cause: Cause) -> u32 {
    match cause {
        Cause::Loss => 0,
        Cause::Ecn => 1,
    }
}

fn agree<R, C>(rust: &R, c: &Core<C>, step: usize, operation: Option<&Operation>) -> Result<(), TestCaseError>
where
    R: CongestionControl + std::fmt::Debug,
    C: State,
{
    let from_rust = (rust.window().get(), rust.slow_start_threshold().get(), rust.pacing().map(|rate| rate.as_bps()));
    let from_c = (c.window(), c.threshold(), c.pacing());
    let (inside_rust, inside_c) = (format!("{rust:?}"), c.state());
    if from_rust == from_c && inside_rust == inside_c {
        return Ok(());
    }
    Err(TestCaseError::fail(format!(
        "step {step}, {operation:?}\n rust {from_rust:?} {inside_rust}\n    c {from_c:?} {inside_c}"
    )))
}

/// The same sequences every time.
fn twins<R, C>(spec: &'static Spec, new: fn(&Context<'_>) -> R)
where
    R: CongestionControl + std::fmt::Debug,
    C: State,
{
    let names: Vec<&str> = spec.parameters.iter().map(|parameter| parameter.name).collect();
    assert_eq!(Core::<C>::names(), names, "the core reads its parameters in the order of the Spec");
    let cases = std::env::var("TWIN_CASES").map_or(CASES, |text| text.parse().expect("TWIN_CASES is a number"));
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, seed);
    runner
        .run(&operations::case(spec), |case| play::<R, C>(spec, new, &case))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn newreno_is_the_same_in_both_languages() {
    use narrows_core::cc::newreno;
    twins::<newreno::NewReno, NewReno>(&newreno::SPEC, newreno::NewReno::new);
}

#[test]
fn vegas_is_the_same_in_both_languages() {
    use narrows_core::cc::vegas;
    twins::<vegas::Vegas, Vegas>(&vegas::SPEC, vegas::Vegas::new);
}

#[test]
fn dctcp_is_the_same_in_both_languages() {
    use narrows_core::cc::dctcp;
    twins::<dctcp::Dctcp, Dctcp>(&dctcp::SPEC, dctcp::Dctcp::new);
}

#[test]
fn gemini_is_the_same_in_both_languages() {
    use narrows_core::cc::gemini;
    twins::<gemini::Gemini, Gemini>(&gemini::SPEC, gemini::Gemini::new);
}

#[test]
fn what_rust_mirrors_has_the_sizes_of_c() {
    core::check_sizes();
}

#[test]
fn what_is_left_to_the_controller_is_none_in_c() {
    assert_eq!(encode(Value::Auto), u64::MAX);
}
