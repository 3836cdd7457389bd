//! A run on this kernel, whoever's it is.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use narrows_kernel::from_file::Program;
use narrows_plan::Plan;
use narrows_testbed::near_source::Listener;
use narrows_testbed::{Options, Progress, TestbedError};

use super::{Backend, Job, Results, controllers, programs, results};
use crate::failure::Failure;
use crate::near_source::ThisKernel;

/// Runs the plan; `watch` is told how far it is, and says whether to go on. Until there is something to watch, `stop` says it.
pub(super) fn carry(
    plan: &Plan,
    job: &Job,
    programs: &[Program],
    backend: Backend,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Results, Failure> {
    let began = Instant::now();
    let names = controllers::names(plan, &job.controllers);
    let _loaded = (controllers::load(plan, &names, stop)?, programs::load(programs, &names, stop)?);
    let options = Options { controllers: names.clone(), ..Options::default() };
    let listener = ThisKernel::of(plan)?;
    let listener = listener.as_ref().map(|listener| listener as &dyn Listener);
    let outcome = narrows_testbed::run(plan, job.seed, &options, listener, watch).map_err(refused)?;
    results::of(plan, job.seed, (backend, &names), &outcome, began.elapsed())
}

fn refused(error: TestbedError) -> Failure {
    match &error {
        TestbedError::Machine(_) => Failure::environment(&error),
        TestbedError::TooManyHosts { .. } | TestbedError::TooFast { .. } => {
            Failure::input(&error).help("experiments/linux has experiments scaled to what a kernel carries")
        }
        TestbedError::Classes { .. }
        | TestbedError::Bridge { .. }
        | TestbedError::FlowControl { .. }
        | TestbedError::NicLimiter { .. }
        | TestbedError::Rehash
        | TestbedError::Transport { .. } => Failure::input(&error).help("run it in the simulator"),
        TestbedError::Agent { error: narrows_testbed::agent::AgentError::NoController { .. }, .. } => {
            Failure::environment(&error)
        }
        TestbedError::Stopped => Failure::interrupted(),
        _ => Failure::failed(&error),
    }
}
