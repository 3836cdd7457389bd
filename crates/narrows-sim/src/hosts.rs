//! What a traffic entry's hosts run: the stack of each, and how a controller is built.

use std::sync::Arc;

use narrows_c::Source;
use narrows_core::cc::external::Library;
use narrows_core::cc::{self, Context, Controller, EcnUse, Settings, Spec};
use narrows_core::packet::Mtu;
use narrows_core::rng::{SmallStream, mix};
use narrows_core::tcp::{EcnMode, Metrics, Stack, initial_path};
use narrows_core::units::Rate;
use narrows_plan::{ControllerChoice, Plan, Program, Traffic};

use crate::SimError;

/// The stacks of a run: one for each traffic entry and line rate in use.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    stacks: Vec<Stack>,
    /// By traffic entry, then position of the host's rate among `rates`.
    rates: Vec<Rate>,
    /// Of controllers in files, by traffic entry.
    libraries: Vec<Option<Arc<dyn Library>>>,
}

impl Stacks {
    pub(crate) fn new(plan: &Plan, host_rates: impl Iterator<Item = Rate>) -> Result<Stacks, SimError> {
        let mut rates: Vec<Rate> = host_rates.collect();
        rates.sort_unstable();
        rates.dedup();
        let mtu = plan.network.mtu;
        let mut libraries: Vec<Option<Arc<dyn Library>>> = Vec::with_capacity(plan.traffic.len());
        for (place, traffic) in plan.traffic.iter().enumerate() {
            // The variables of a file are the run's.
            let same = plan.traffic[..place].iter().position(|it| it.controller.program == traffic.controller.program);
            let found = same.map_or_else(|| library(&traffic.controller), |same| Ok(libraries[same].clone()))?;
            libraries.push(found);
        }
        let of_entry = |(traffic, library): (&Traffic, &Option<Arc<dyn Library>>)| {
            let spec = spec(traffic, library.as_deref());
            rates.iter().map(move |&rate| stack(traffic, spec, rate, mtu)).collect::<Vec<_>>()
        };
        let stacks = plan.traffic.iter().zip(&libraries).flat_map(of_entry).collect();
        Ok(Stacks { stacks, rates, libraries })
    }

    /// That of the entry's controller, if a file has it.
    pub(crate) fn library(&self, traffic: u32) -> Option<&Arc<dyn Library>> {
        self.libraries[traffic as usize].as_ref()
    }

    /// The stack's index for hosts of this rate under this entry.
    pub(crate) fn index(&self, traffic: u32, rate: Rate) -> u32 {
        let place = self.rates.binary_search(&rate).expect("every host's rate is listed");
        u32::try_from(traffic as usize * self.rates.len() + place).expect("few entries and rates")
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Stack {
        &self.stacks[index as usize]
    }
}

/// Loaded anew for each run, so that the file's variables begin alike.
fn library(choice: &ControllerChoice) -> Result<Option<Arc<dyn Library>>, SimError> {
    let Some(Program { file, controller, text, others, parameters, .. }) = &choice.program else { return Ok(None) };
    let (text, others, parameters) = (text.clone(), others.clone(), parameters.clone());
    let source = Source { name: file.clone(), text, others, parameters };
    Ok(Some(narrows_c::load(&source, Some(controller))?))
}

/// The entry's controller's; none of a transport without one.
fn spec(traffic: &Traffic, library: Option<&dyn Library>) -> Option<&'static Spec> {
    let registered = || cc::spec(&traffic.controller.name).expect("a plan names registered controllers only");
    traffic.transport.is_reliable().then(|| library.map_or_else(registered, <dyn Library>::spec))
}

fn stack(traffic: &Traffic, spec: Option<&'static Spec>, line_rate: Rate, mtu: Mtu) -> Stack {
    let Some(spec) = spec else {
        return Stack { profile: traffic.profile, ecn: EcnMode::Off, line_rate, delivery_rate: false, mtu };
    };
    let ecn = match (traffic.controller.ecn, spec.ecn) {
        (false, _) => EcnMode::Off,
        (true, EcnUse::Optional) => EcnMode::Classic,
        (true, EcnUse::Exact) => EcnMode::Exact,
        (true, EcnUse::L4s) => EcnMode::L4s,
    };
    Stack { profile: traffic.profile, ecn, line_rate, delivery_rate: spec.needs_delivery_rate, mtu }
}

/// The controller of one end, with what the host remembers of the peer. Its randomness depends on the run's seed and the
/// connection's number alone.
pub(crate) fn controller(
    (traffic, library): (&Traffic, Option<&Arc<dyn Library>>),
    stack: &Stack,
    remembered: Option<&Metrics>,
    run: u64,
    connection: u32,
    side: u32,
) -> Controller {
    let spec = spec(traffic, library.map(|library| &**library)).expect("its transport has controllers");
    let mut path = initial_path(stack);
    let remembered = remembered.zip(stack.profile.host_cache);
    if let Some((metrics, cache)) = &remembered {
        path.initial_window = metrics.initial_window(cache);
    }
    let random = SmallStream::new(mix(run ^ mix(u64::from(connection) << 1 | u64::from(side))));
    let context = Context { settings: Settings::new(spec.parameters, &traffic.controller.values), path: &path, random };
    let mut controller = match library {
        Some(library) => Arc::clone(library).build(&context, traffic.controller.ecn),
        None => Controller::build(spec.name, &context).expect("the spec is of a registered controller"),
    };
    if let Some(threshold) = remembered.and_then(|(metrics, _)| metrics.threshold) {
        controller.recall(threshold);
    }
    controller
}
