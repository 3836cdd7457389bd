//! What a traffic entry's hosts run: the stack of each, and how a controller is built.

use narrows_core::cc::{self, Context, Controller, EcnUse, Settings, Spec};
use narrows_core::packet::Mtu;
use narrows_core::rng::{SmallStream, mix};
use narrows_core::tcp::{EcnMode, Metrics, Stack, initial_path};
use narrows_core::units::Rate;
use narrows_plan::{Plan, Traffic};

/// The stacks of a run: one for each traffic entry and line rate in use.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    stacks: Vec<Stack>,
    /// By traffic entry, then position of the host's rate among `rates`.
    rates: Vec<Rate>,
}

impl Stacks {
    pub(crate) fn new(plan: &Plan, host_rates: impl Iterator<Item = Rate>) -> Stacks {
        let mut rates: Vec<Rate> = host_rates.collect();
        rates.sort_unstable();
        rates.dedup();
        let mtu = plan.network.mtu;
        let stacks =
            plan.traffic.iter().flat_map(|traffic| rates.iter().map(move |&rate| stack(traffic, rate, mtu))).collect();
        Stacks { stacks, rates }
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

fn spec(traffic: &Traffic) -> &'static Spec {
    cc::spec(&traffic.controller.name).expect("a plan names registered controllers only")
}

fn stack(traffic: &Traffic, line_rate: Rate, mtu: Mtu) -> Stack {
    if !traffic.transport.is_tcp() {
        return Stack { profile: traffic.profile, ecn: EcnMode::Off, line_rate, delivery_rate: false, mtu };
    }
    let spec = spec(traffic);
    let ecn = match (traffic.controller.ecn, spec.ecn) {
        (false, _) => EcnMode::Off,
        (true, EcnUse::Optional) => EcnMode::Classic,
        (true, EcnUse::Exact) => EcnMode::Exact,
    };
    Stack { profile: traffic.profile, ecn, line_rate, delivery_rate: spec.needs_delivery_rate, mtu }
}

/// The controller of one end, with what the host remembers of the peer. Its randomness depends on the run's seed and the
/// connection's number alone.
pub(crate) fn controller(
    traffic: &Traffic,
    stack: &Stack,
    remembered: Option<&Metrics>,
    run: u64,
    connection: u32,
    side: u32,
) -> Controller {
    let spec = spec(traffic);
    let mut path = initial_path(stack);
    let remembered = remembered.zip(stack.profile.host_cache);
    if let Some((metrics, cache)) = &remembered {
        path.initial_window = metrics.initial_window(cache);
    }
    let random = SmallStream::new(mix(run ^ mix(u64::from(connection) << 1 | u64::from(side))));
    let context = Context { settings: Settings::new(spec.parameters, &traffic.controller.values), path: &path, random };
    let mut controller = Controller::build(spec.name, &context).expect("the spec is of a registered controller");
    if let Some(threshold) = remembered.and_then(|(metrics, _)| metrics.threshold) {
        controller.recall(threshold);
    }
    controller
}
