//! One algorithm, two languages: the host's build of each `*.core.h` and the controller of `narrows-core` are told the same
//! facts, at random, and agree on all of their state, window and pacing rate among it, after every step.

#[path = "twins/core.rs"]
mod core;
#[path = "twins/facts.rs"]
mod facts;
#[path = "twins/operations.rs"]
mod operations;

use self::core::{Core, Twin};
use self::facts::Facts;
use self::operations::{Case, Operation};
use narrows_core::cc::{Cause, Context, Controller, Settings, Spec, Value};
use narrows_core::rng::SmallStream;
use narrows_core::units::Span;
use narrows_kernel::controllers::CONTROLLERS;
use narrows_kernel::parameters::encode;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Per controller. `TWIN_CASES` overrides it.
const CASES: u32 = 3_000;

/// Plays one case to both, comparing after every step.
fn play(spec: &'static Spec, twin: &'static Twin, case: &Case) -> Result<(), TestCaseError> {
    let mut facts = Facts::new(case);
    let path = facts.path();
    let settings = Settings::new(spec.parameters, &case.values);
    let context = Context { settings, path: &path, random: SmallStream::new(1) };
    let mut rust = Controller::build(spec.name, &context).expect("it is in the registry");
    let parameters: Vec<u64> = case.values.iter().map(|value| encode(*value)).collect();
    let mut c = Core::init(twin, &parameters, &facts.c_path());
    agree(&rust, &c, 0, None)?;
    for (step, operation) in case.operations.iter().enumerate() {
        facts.pass(operation, rust.window().get());
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
            Operation::Sent { start, .. } => {
                let sent = facts.sent(*start);
                rust.on_sent(facts.now(), &sent, &facts.path());
                c.on_sent(*start as u32, &facts.c_path());
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

fn agree(rust: &Controller, c: &Core, step: usize, operation: Option<&Operation>) -> Result<(), TestCaseError> {
    let rust = format!("{rust:?}");
    // The name of the variant and of the type stand before it, and a parenthesis behind it.
    let rust = rust.find('{').map_or("", |brace| rust[brace..].trim_end_matches(')'));
    let c = c.state();
    if rust == c {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("step {step}, {operation:?}\n rust {rust}\n    c {c}")))
}

/// The same sequences every time.
fn compare(spec: &'static Spec) {
    let twin = Twin::of(spec.name);
    let names: Vec<&str> = spec.parameters.iter().map(|parameter| parameter.name).collect();
    assert_eq!(twin.parameters(), names, "the core reads its parameters in the order of the Spec");
    let cases = std::env::var("TWIN_CASES").map_or(CASES, |text| text.parse().expect("TWIN_CASES is a number"));
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, seed);
    runner
        .run(&operations::case(spec), |case| play(spec, twin, &case))
        .unwrap_or_else(|error| panic!("{}: {error}", spec.name));
}

#[test]
fn every_controller_is_the_same_in_both_languages() {
    assert!(!CONTROLLERS.is_empty());
    std::thread::scope(|scope| {
        for controller in CONTROLLERS {
            scope.spawn(|| compare(controller.spec));
        }
    });
}

/// What the build script reads from the programs: a controller that is not here says nothing yet.
#[test]
fn the_programs_say_what_they_need_and_publish() {
    let facts = |name: &str| match name {
        "dctcp" => Some((true, true, false)),
        "gemini" => Some((true, true, true)),
        "newreno" => Some((true, false, false)),
        "vegas" => Some((false, false, false)),
        _ => None,
    };
    for controller in CONTROLLERS {
        let read = (controller.needs_ecn, controller.has_alpha, controller.has_scale);
        assert!(facts(controller.spec.name).is_none_or(|known| known == read), "{}: {read:?}", controller.spec.name);
    }
}

/// The table reads from a program's hooks who moves its window in recovery.
#[test]
fn the_same_one_moves_the_window_in_recovery() {
    for controller in CONTROLLERS {
        let case = operations::case(controller.spec);
        let case = case.new_tree(&mut TestRunner::deterministic()).expect("no filter refuses").current();
        let path = Facts::new(&case).path();
        let settings = Settings::new(controller.spec.parameters, &case.values);
        let built =
            Controller::build(controller.spec.name, &Context { settings, path: &path, random: SmallStream::new(1) });
        assert_eq!(built.expect("it is in the registry").recovery(), controller.recovery, "{}", controller.spec.name);
    }
}

#[test]
fn the_facts_have_the_same_size_in_both_languages() {
    core::check_sizes();
}

#[test]
fn what_is_left_to_the_controller_is_none_in_c() {
    assert_eq!(encode(Value::Auto), u64::MAX);
}
