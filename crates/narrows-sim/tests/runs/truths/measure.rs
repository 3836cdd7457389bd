//! What the truths are stated in.

use narrows_core::units::Rate;
use narrows_plan::Plan;
use narrows_results::{PortRow, Quantity, Results};
use narrows_sim::Simulation;

use crate::plans::{Dumbbell, run};

/// Payload of a full segment over its length on the wire: 1448 of 1538 bytes.
pub(crate) const GOODPUT: f64 = 1448.0 / 1538.0;
/// The same of the IP packet: what BBR counts.
pub(crate) const IP: f64 = 1500.0 / 1538.0;

/// Full packets per second on a line.
pub(crate) fn packets_per_second(rate: Rate) -> f64 {
    rate.as_bps() as f64 / (1538.0 * 8.0)
}

/// The RTT of a full segment and its acknowledgement on the empty network, seconds.
pub(crate) fn base_round_trip(network: &Dumbbell) -> f64 {
    let per_byte = 8.0 * (2.0 / network.access.as_bps() as f64 + 1.0 / network.rate.as_bps() as f64);
    network.rtt.as_ns() as f64 / 1e9 + (1538.0 + 90.0) * per_byte
}

/// C·RTT in packets.
pub(crate) fn product(network: &Dumbbell) -> f64 {
    packets_per_second(network.rate) * base_round_trip(network)
}

/// The first scheme of an experiment on a dumbbell, run: its bottleneck, and everything.
pub(crate) fn bottleneck_of(experiment: &str) -> (PortRow, Results) {
    let experiment = narrows_scenario::load_str(experiment, &Default::default(), &Default::default());
    let plan = experiment.unwrap_or_else(|error| panic!("{error}")).plans.remove(0);
    let index = plan.network.links.iter().position(|link| link.name == "switch-left->switch-right");
    let results = run(&plan, 1);
    (results.ports[index.expect("the dumbbell's only link between switches")].clone(), results)
}

/// Mean backlog in packets of 1500 bytes, as ports count them.
pub(crate) fn queue_mean(port: &PortRow) -> f64 {
    port.queue_mean_bytes / 1500.0
}

/// Payload per second that each flow delivered after the warm-up, bit/s.
pub(crate) fn goodputs(results: &Results) -> Vec<f64> {
    let seconds = results.ports[0].measured_ns as f64 / 1e9;
    results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes as f64 * 8.0 / seconds).collect()
}

/// Samples of one quantity of one entity from `from` seconds on: time in seconds, value.
pub(crate) fn series(results: &Results, quantity: Quantity, entity: u32, from: f64) -> Vec<(f64, f64)> {
    let rows = results.series.iter().filter(|row| row.quantity == quantity && row.entity == entity);
    rows.map(|row| (row.time_ns as f64 / 1e9, row.value)).filter(|&(time, _)| time >= from).collect()
}

/// (Σx)²/(n·Σx²): 1 when all are equal, 1/n when one has all [Jain 1984].
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

/// Independent losses on the wire behind a port.
pub(crate) trait Loss {
    /// Each packet that leaves `port` is lost with this probability.
    fn lose(&mut self, port: usize, probability: f64);
}

impl Loss for Plan {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a probability below one")]
    fn lose(&mut self, port: usize, probability: f64) {
        self.network.links[port].loss = (probability * 4_294_967_296.0) as u32;
    }
}

/// The value that this share of the samples does not exceed.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// The value that half of the samples do not exceed.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&values.collect::<Vec<_>>(), 0.5)
}

/// The median of the sender's pacing rate after two seconds, in bit/s of IP bytes.
pub(crate) fn pacing(plan: &Plan) -> f64 {
    let mut simulation = Simulation::new(plan, 1).expect("the network is usable");
    let mut rates = Vec::new();
    while simulation.advance(500) {
        if simulation.progress().now.as_ns() > 2_000_000_000 {
            let rate = simulation.controller(0).and_then(|controller| controller.pacing());
            rates.extend(rate.map(|rate| rate.as_bps() as f64));
        }
    }
    median(rates.into_iter())
}
