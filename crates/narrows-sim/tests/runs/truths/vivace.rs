//! Vivace: the rate that it finds, what it charges for, and shares.

use narrows_core::cc::Value;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span};
use narrows_plan::{Pattern, Plan};

use super::measure::{GOODPUT, Loss, goodputs, jain, product, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

const LATENCY: Value = Value::Choice(0);
const LOSS: Value = Value::Choice(1);

fn network(mbps: u64, rtt: Span, pairs: u32, limit: u64) -> Dumbbell {
    Dumbbell { pairs, rate: Rate::from_mbps(mbps), rtt, limit, ..Dumbbell::default() }
}

/// Flows that begin `apart`, measured over the second half.
fn plan(network: &Dumbbell, utility: Value, apart: Span, end: Span) -> Plan {
    let n = network.pairs;
    let starts = (0..n).map(|pair| flow(apart * u64::from(pair), pair, n + pair, None));
    let mut plan = network.plan("vivace", false, end, Pattern::List(starts.collect()));
    plan.schedule.warmup = end.div(2);
    set(&mut plan, "utility", utility);
    plan
}

/// Of the link's goodput.
fn share(shares: &[f64], network: &Dumbbell) -> f64 {
    shares.iter().sum::<f64>() / (network.rate.as_bps() as f64 * GOODPUT)
}

/// It tries 5 % more for one interval in three or four, and steps back by 5 % when that makes a queue: the rate stays within 10 %
/// of the link's. What an interval leaves queued is 5 % of what the path holds; three packets are what is sent at all.
#[test]
fn alone_it_takes_nine_tenths_of_the_link_and_queues_next_to_nothing() {
    for (mbps, ms, limit) in [(10, 20, 100), (100, 20, 170), (100, 20, 2_000), (1_000, 10, 800)] {
        let network = network(mbps, Span::from_ms(ms), 1, limit);
        let end = Span::from_secs(if mbps > 100 { 20 } else { 40 });
        let results = run(&plan(&network, LATENCY, Span::ZERO, end), 1);
        let share = share(&goodputs(&results), &network);
        let queue = queue_mean(&results.ports[network.bottleneck()]);
        assert!(share > 0.9, "{mbps} Mbit/s: {share}");
        assert!(queue < 0.05 * product(&network) + 3.0, "{mbps} Mbit/s: {queue}");
    }
}

/// A piece leaves at the line's rate, so that the RTTs of its packets rise and all of it may have arrived before the next leaves:
/// neither a queue that grows nor an idle host.
#[test]
fn segmentation_offload_leaves_it_its_rate() {
    for (mbps, us, limit) in [(10_000, 100, 200), (1_000, 1_000, 100), (40, 1_800, 100), (10, 20_000, 100)] {
        let network = Dumbbell { profile: Profile::LINUX_6, ..network(mbps, Span::from_us(us), 1, limit) };
        let end = Span::from_secs(if mbps > 100 { 2 } else { 40 });
        let mut plan = plan(&network, LATENCY, Span::ZERO, end);
        let all = share(&goodputs(&run(&plan, 1)), &network);
        assert!(all > 0.9, "{mbps} Mbit/s: {all}");
        plan.lose(network.bottleneck(), 0.005);
        let lossy = share(&goodputs(&run(&plan, 1)), &network);
        assert!(lossy > 0.5, "{mbps} Mbit/s, with losses: {lossy}");
    }
}

/// Without a charge for the RTT the buffer's end is what tells: the link is full, and so is most of the buffer.
#[test]
fn the_loss_utility_fills_the_buffer() {
    for limit in [170, 1_000] {
        let network = network(100, Span::from_ms(20), 1, limit);
        let results = run(&plan(&network, LOSS, Span::ZERO, Span::from_secs(40)), 1);
        let share = share(&goodputs(&results), &network);
        let queue = queue_mean(&results.ports[network.bottleneck()]) / limit as f64;
        assert!(share > 0.97, "{limit}: {share}");
        assert!(queue > 0.5, "{limit}: {queue}");
    }
}

/// Where a share p is lost whatever the rate, u = x^0.9 - c·x·p, whose derivative 0.9·x^-0.1 - c·p is above zero while
/// p < 0.9/(c·x^0.1): 5.0 % at 100 Mbit/s, 4.0 % at 1 Gbit/s. Below, it fills the link but for the noise of shares of loss, which are
/// counted on some 800 packets an interval. Above, the rate falls towards (0.9/(c·p))^10, 1.6^-10 of the link, a hundredth; an interval
/// then has so few packets that many lose none, which drives it up again, so less than 0.3 is asked.
#[test]
fn random_losses_are_borne_up_to_the_bound_of_the_utility() {
    for (mbps, ms, seconds) in [(100, 100, 240), (1_000, 10, 60)] {
        let network = network(mbps, Span::from_ms(ms), 1, 850);
        let bound = 0.9 / (11.35 * (mbps as f64).powf(0.1));
        for part in [0.2, 0.6, 1.6] {
            let mut plan = plan(&network, LATENCY, Span::ZERO, Span::from_secs(seconds));
            plan.lose(network.bottleneck(), bound * part);
            let share = share(&goodputs(&run(&plan, 1)), &network) / (1.0 - bound * part);
            if part < 1.0 {
                assert!(share > 0.8, "{mbps} Mbit/s, {part} of the bound: {share}");
            } else {
                assert!(share < 0.3, "{mbps} Mbit/s, {part} of the bound: {share}");
            }
        }
    }
}

/// The one fixed point of equal utilities is an equal share [PCC Vivace], also where one had the link to itself for 10 s. With
/// the latency utility two flows keep a short queue.
#[test]
fn flows_come_to_equal_shares() {
    for (utility, pairs, limit) in [(LATENCY, 2, 1_000), (LATENCY, 4, 170), (LOSS, 2, 170), (LOSS, 4, 170)] {
        let network = network(100, Span::from_ms(20), pairs, limit);
        let results = run(&plan(&network, utility, Span::from_secs(10), Span::from_secs(120)), 1);
        let shares = goodputs(&results);
        let queue = queue_mean(&results.ports[network.bottleneck()]);
        assert!(jain(&shares) > 0.95, "{utility:?}, {pairs}: {shares:?}");
        assert!(share(&shares, &network) > 0.9, "{utility:?}, {pairs}: {shares:?}");
        assert!(utility != LATENCY || pairs > 2 || queue < 0.1 * product(&network), "{queue}");
    }
}

/// With a reward for a falling RTT, u = x^0.9 + b·x·(C - x)/C while a queue drains, which is greatest at half the link's rate: that is
/// where flows go each time that there is a queue, and a slow link stays partly empty.
#[test]
fn a_falling_rtt_is_worth_nothing_lest_the_link_stay_empty() {
    let share = |rewards: bool| {
        let network = network(10, Span::from_ms(20), 2, 100);
        let mut plan = plan(&network, LATENCY, Span::ZERO, Span::from_secs(60));
        set(&mut plan, "rewards-falling", Value::Switch(rewards));
        share(&goodputs(&run(&plan, 1)), &network)
    };
    let (without, with) = (share(false), share(true));
    assert!(without > 0.95, "{without}");
    assert!(with < 0.9, "{with}");
}
