//! A process of arrivals becomes flows, in the order of time, from the seed and the traffic's name alone.
//!
//! Times, sizes and pairs come from three streams of their own, `traffic/<name>/arrivals`, `…/sizes` and `…/pairs`, so
//! that a change of the sizes does not move the arrivals; ON and OFF periods from `…/periods`. A pair is drawn anew, both
//! ends, while they are equal: uniform over ordered pairs.

use core::ops::Range;

use narrows_core::app::program::Stretch;
use narrows_core::app::timed::Timed;
use narrows_core::app::{App, Begins, Rounds, Run, Times};
use narrows_core::rng::{SmallStream, Stream, mix};
use narrows_core::units::{Bytes, Span, Time};

use super::arrivals::{LogNormal, exponential, uniform};
use super::on_off::Periods;
use crate::{FlowStart, Open, Pairs, Pattern, Schedule, Traffic};

/// What a flow is called, the same for all that know the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The plan's traffic entry.
    pub traffic: u32,
    /// How many flows of the entry come before it.
    pub sequence: u32,
}

/// The flows of a traffic entry; see [`Traffic::flows`].
pub type Arrivals<'a> = Box<dyn Iterator<Item = FlowStart> + Send + 'a>;

impl Traffic {
    /// The application, for the hosts that the driver `runs`. Of flows that begin by themselves it tells those to `keep`.
    pub fn application<'a>(
        &'a self,
        seed: u64,
        schedule: &Schedule,
        runs: impl Fn(u32) -> bool,
        keep: impl Fn(&FlowStart) -> bool + Send + 'a,
    ) -> App<'a> {
        match &self.pattern {
            Pattern::Open(_) | Pattern::List(_) => {
                let flows = (0..).zip(self.flows(seed, schedule));
                App::Timed(Timed::new(Box::new(flows.filter(move |(_, flow)| keep(flow)))))
            }
            Pattern::App(kind) => {
                let times = round_times(kind.rounds(), seed, &self.name, schedule);
                let random = Stream::named(seed, &format!("jitter/{}", self.name)).next_u64();
                let stretch = stretch(kind.rounds().sigma(), seed, &self.name);
                kind.rounds().machine(Run { times, random, stretch, end: schedule.end, runs: &runs })
            }
        }
    }

    /// How many flows begin; `opens` is told of hosts and how many connections they open for them, one for each.
    pub fn begins(&self, seed: u64, schedule: &Schedule, mut opens: impl FnMut(u32, u64)) -> Begins {
        match &self.pattern {
            Pattern::Open(_) | Pattern::List(_) => {
                Begins::Exactly(self.flows(seed, schedule).inspect(|flow| opens(flow.ends().0, 1)).count() as u64)
            }
            Pattern::App(kind) => {
                let (app, pairs) = (kind.rounds(), kind.rounds().pairs());
                let times = round_times(app, seed, &self.name, schedule).map(|times| times.count() as u64);
                let rounds = times.unwrap_or(app.repeats().into());
                pairs.iter().for_each(|&pair| opens(app.opener(pair), rounds));
                match times {
                    Some(times) => Begins::Exactly(times * pairs.len() as u64),
                    None => Begins::AtMost(app.numbers()),
                }
            }
        }
    }

    /// The flows that this entry begins by itself, all before the schedule's end, in the order of their starts: that of
    /// their names. A client that asks begins none.
    pub fn flows(&self, seed: u64, schedule: &Schedule) -> Arrivals<'_> {
        match &self.pattern {
            Pattern::Open(open) => Box::new(open.flows(seed, &self.name, schedule)),
            Pattern::List(list) => {
                let end = schedule.end;
                Box::new(started(list, seed, &self.name).into_iter().take_while(move |flow| flow.at < end))
            }
            Pattern::App(_) => Box::new(std::iter::empty()),
        }
    }
}

impl Pattern {
    /// The number of the request that waits for the flow with this number, though the flow is no answer to it.
    pub fn awaited_by(&self, sequence: u32) -> Option<u32> {
        let Pattern::App(kind) = self else { return None };
        kind.rounds().awaited_by(sequence)
    }

    /// Who may send to whom.
    pub fn pairs(&self) -> Vec<(u32, u32)> {
        match self {
            Pattern::Open(open) => match &open.pairs {
                Pairs::Listed(pairs) => pairs.clone(),
                Pairs::Between { sources, destinations } => {
                    let to = |&from| destinations.iter().map(move |&to| (from, to));
                    sources.iter().flat_map(to).filter(|(from, to)| from != to).collect()
                }
            },
            Pattern::List(flows) => flows.iter().map(|flow| (flow.source, flow.destination)).collect(),
            Pattern::App(kind) => kind.rounds().possible_pairs(),
        }
    }

    /// Hosts that may send, some more than once.
    pub fn sources(&self) -> Vec<u32> {
        match self {
            Pattern::Open(Open { pairs: Pairs::Between { sources, .. }, .. }) => sources.clone(),
            _ => self.pairs().into_iter().map(|(source, _)| source).collect(),
        }
    }
}

/// When rounds at random begin, in order, all before the schedule's end: from the stream `traffic/<name>/arrivals`. `None`
/// where one follows another.
pub fn round_times<'a>(app: &dyn Rounds, seed: u64, name: &str, schedule: &Schedule) -> Option<Times<'a>> {
    let (mean, end, mut clock) = (app.mean_interarrival()?, schedule.end, app.start());
    let mut arrivals = Stream::named(seed, &format!("traffic/{name}/arrivals"));
    Some(Box::new(std::iter::from_fn(move || {
        clock += exponential(mean, &mut arrivals);
        (clock < end).then_some(clock)
    })))
}

/// Computations whose times vary: by a log-normal factor of mean 1, which belongs to the computation's number, from the stream
/// `compute/<name>`. `None` where they do not.
fn stretch<'a>(sigma: u32, seed: u64, name: &str) -> Option<Stretch<'a>> {
    let key = Stream::named(seed, &format!("compute/{name}")).next_u64();
    let sigma = f64::from(sigma) / 65_536.0;
    (sigma > 0.0).then(|| -> Stretch<'a> {
        Box::new(move |operation, stated| {
            LogNormal::new(stated, sigma).draw(SmallStream::new(mix(key ^ u64::from(operation))))
        })
    })
}

impl Open {
    /// The flows of a run, in the order of time, all before the schedule's end.
    pub fn flows(&self, seed: u64, name: &str, schedule: &Schedule) -> Flows<'_> {
        let stream = |what: &str| Stream::named(seed, &format!("traffic/{name}/{what}"));
        let (mut arrivals, mut sizes) = (stream("arrivals"), stream("sizes"));
        let ready = self.exact.then(|| {
            let (chosen, window) = self.exact_sizes(&mut sizes, schedule.end.since(Time::ZERO));
            let times = uniform(chosen.len(), window, &mut arrivals);
            times.into_iter().zip(chosen).collect::<Vec<_>>().into_iter()
        });
        let times = match &self.on_off {
            Some(on_off) => Some(on_off.gaps()),
            None => self.sigma.map(|sigma| LogNormal::new(self.mean_interarrival, sigma)),
        };
        let (periods, on) = match &self.on_off {
            Some(on_off) => {
                let (periods, first) = Periods::begin(on_off, stream("periods"));
                (Some(periods), first)
            }
            None => (None, Time::ZERO..schedule.end),
        };
        let (end, pairs) = (schedule.end, stream("pairs"));
        Flows { open: self, end, clock: None, times, periods, on, arrivals, sizes, pairs, ready }
    }

    /// Stratified sizes for the flows expected until `end`, and the window over which they offer exactly the stated
    /// bytes per second: at most `end`, and short of it by a few mean times between flows.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts and sums are below 2^53; the product is positive and saturating"
    )]
    fn exact_sizes(&self, stream: &mut Stream, end: Span) -> (Vec<Bytes>, Span) {
        let between = self.mean_interarrival.as_ps() as f64;
        let expected = libm::round(end.as_ps() as f64 / between) as usize;
        let mut count = expected.max(1);
        loop {
            let sizes = self.sizes.stratified(count, &mut stream.clone());
            let offered: u128 = sizes.iter().map(|size| u128::from(size.get())).sum();
            let window = Span::from_ps(libm::round(offered as f64 / self.sizes.mean() * between) as u64);
            if window <= end || count == 1 {
                return (sizes, window.min(end));
            }
            count -= 1;
        }
    }

    fn pair(&self, stream: &mut Stream) -> (u32, u32) {
        let mut any = |length: usize| usize::try_from(stream.below(length as u64)).expect("below a usize");
        match &self.pairs {
            Pairs::Listed(pairs) => pairs[any(pairs.len())],
            Pairs::Between { sources, destinations } => loop {
                let pair = (sources[any(sources.len())], destinations[any(destinations.len())]);
                if pair.0 != pair.1 {
                    return pair;
                }
            },
        }
    }
}

/// Flows that are stated one by one, in the order of their starts: each begins within its spread, at a moment from the
/// stream `traffic/<name>/starts`.
fn started(list: &[FlowStart], seed: u64, name: &str) -> Vec<FlowStart> {
    let mut starts = Stream::named(seed, &format!("traffic/{name}/starts"));
    let begin = |flow: &FlowStart| {
        let later = Span::from_ps(starts.below(flow.spread.as_ps().saturating_add(1)));
        FlowStart { at: flow.at + later, spread: Span::ZERO, ..*flow }
    };
    let mut flows: Vec<FlowStart> = list.iter().map(begin).collect();
    flows.sort_by_key(|flow| flow.at);
    flows
}

/// See [`Open::flows`].
#[derive(Debug)]
pub struct Flows<'a> {
    open: &'a Open,
    end: Time,
    /// When the latest flow of this ON period arrived.
    clock: Option<Time>,
    /// Times between flows where they are not exponential.
    times: Option<LogNormal>,
    /// ON periods, where flows do not come at all times.
    periods: Option<Periods>,
    /// The present one, or all the run.
    on: Range<Time>,
    arrivals: Stream,
    sizes: Stream,
    pairs: Stream,
    /// Times and sizes, where they are drawn together.
    ready: Option<std::vec::IntoIter<(Time, Bytes)>>,
}

impl Flows<'_> {
    /// When the next flow arrives, before the end.
    fn arrival(&mut self) -> Option<Time> {
        while self.on.start < self.end {
            let wait = match (&self.times, self.clock) {
                (None, _) => exponential(self.open.mean_interarrival, &mut self.arrivals),
                (Some(times), None) => times.first(&mut self.arrivals),
                (Some(times), Some(_)) => times.sample(&mut self.arrivals),
            };
            let at = self.clock.unwrap_or(self.on.start) + wait;
            self.clock = Some(at);
            if at < self.on.end {
                return (at < self.end).then_some(at);
            }
            self.on = self.periods.as_mut()?.after(self.on.end);
            self.clock = None;
        }
        None
    }
}

impl Iterator for Flows<'_> {
    type Item = FlowStart;

    fn next(&mut self) -> Option<FlowStart> {
        let (at, size) = match &mut self.ready {
            Some(ready) => ready.next()?,
            None => (self.arrival()?, self.open.sizes.sample(&mut self.sizes)),
        };
        let (source, destination) = self.open.pair(&mut self.pairs);
        Some(FlowStart { request: self.open.request, ..FlowStart::new(at, source, destination, Some(size)) })
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::tcp::profile::Profile;

    use super::*;
    use crate::{Connections, ControllerChoice, SizeDistribution};

    const LONG_TAIL: [(u64, f64); 6] =
        [(0, 0.0), (50_000, 0.4), (200_000, 0.6), (2_000_000, 0.8), (10_000_000, 0.97), (30_000_000, 1.0)];

    fn open(exact: bool) -> Open {
        Open {
            mean_interarrival: Span::from_us(16_149),
            sigma: None,
            on_off: None,
            sizes: SizeDistribution { name: "long tail".into(), points: LONG_TAIL.to_vec() },
            pairs: Pairs::Between { sources: vec![0, 1, 2], destinations: vec![2, 3] },
            exact,
            request: None,
        }
    }

    fn schedule(seconds: u64) -> Schedule {
        Schedule { end: Time::ZERO + Span::from_secs(seconds), drain: Span::ZERO, warmup: Span::ZERO }
    }

    #[test]
    fn flows_come_in_order_before_the_end_and_never_to_their_own_host() {
        for exact in [false, true] {
            let (open, schedule) = (open(exact), schedule(100));
            let flows: Vec<FlowStart> = open.flows(1, "t", &schedule).collect();
            assert!(flows.windows(2).all(|pair| pair[0].at <= pair[1].at));
            assert!(flows.iter().all(|flow| flow.at < schedule.end && flow.source != flow.destination));
            assert_eq!(flows, open.flows(1, "t", &schedule).collect::<Vec<_>>());
            assert_ne!(flows, open.flows(2, "t", &schedule).collect::<Vec<_>>());
            assert_ne!(flows, open.flows(1, "u", &schedule).collect::<Vec<_>>());
            // Five ordered pairs, each a fifth of some 6192 flows.
            for pair in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                let count = flows.iter().filter(|flow| (flow.source, flow.destination) == pair).count();
                assert!((1_110..1_370).contains(&count), "{pair:?}: {count}");
            }
        }
    }

    #[test]
    fn poisson_counts_and_loads_stay_within_four_standard_errors() {
        let (open, schedule) = (open(false), schedule(1_000));
        let flows: Vec<FlowStart> = open.flows(5, "t", &schedule).collect();
        let expected = 1e9 / 16_149.0;
        assert!((flows.len() as f64 - expected).abs() < 4.0 * libm::sqrt(expected), "{}", flows.len());
        let bytes: f64 = flows.iter().map(|flow| flow.size.unwrap().get() as f64).sum();
        let mean = open.sizes.mean();
        let error = libm::sqrt(expected * (open.sizes.variance() + mean * mean));
        assert!((bytes - expected * mean).abs() < 4.0 * error);
    }

    #[test]
    fn log_normal_flows_come_in_bursts_at_the_same_rate() {
        let (poisson, schedule) = (open(false), schedule(1_000));
        let bursts = Open { sigma: Some(1.0), ..poisson.clone() };
        let flows: Vec<FlowStart> = bursts.flows(5, "t", &schedule).collect();
        assert!(flows.windows(2).all(|pair| pair[0].at <= pair[1].at));
        // The squared coefficient of variation is e − 1 here, and 1 for exponential times.
        let (expected, spread) = (1e9 / 16_149.0, std::f64::consts::E - 1.0);
        let error = libm::sqrt(expected * spread);
        assert!((flows.len() as f64 - expected).abs() < 4.0 * error, "{}", flows.len());
        let sizes = |open: &Open| open.flows(5, "t", &schedule).map(|flow| flow.size).take(100).collect::<Vec<_>>();
        assert_eq!(sizes(&bursts), sizes(&poisson), "arrivals do not move sizes");
    }

    #[test]
    fn exact_flows_offer_what_is_stated() {
        let (open, schedule) = (open(true), schedule(4));
        for seed in 0..20 {
            let (sizes, window) =
                open.exact_sizes(&mut Stream::named(seed, "traffic/t/sizes"), schedule.end.since(Time::ZERO));
            let bytes: u64 = sizes.iter().map(|size| size.get()).sum();
            let stated = open.sizes.mean() / open.mean_interarrival.as_ps() as f64;
            let offered = bytes as f64 / window.as_ps() as f64;
            assert!((offered / stated - 1.0).abs() < 1e-9, "{offered} {stated}");
            // The window falls short of four seconds by a few of the 248 mean times between flows.
            assert!(
                window <= Span::from_secs(4) && window + open.mean_interarrival * 8 >= Span::from_secs(4),
                "{window}"
            );
            assert_eq!(open.flows(seed, "t", &schedule).count(), sizes.len());
        }
    }

    #[test]
    fn stated_flows_begin_within_their_spread_in_the_order_of_time() {
        let flow = |ms, spread| FlowStart {
            spread: Span::from_ms(spread),
            ..FlowStart::new(Time::ZERO + Span::from_ms(ms), 0, 1, None)
        };
        let exact = vec![flow(3, 0), flow(1, 0)];
        assert_eq!(started(&exact, 1, "t"), [exact[1], exact[0]]);
        let loose = vec![flow(5, 10); 500];
        let begun = started(&loose, 1, "t");
        assert!(begun.is_sorted_by_key(|flow| flow.at));
        assert_ne!(begun, started(&loose, 2, "t"));
        let first = begun.iter().map(|flow| flow.at).min().unwrap();
        let last = begun.iter().map(|flow| flow.at).max().unwrap();
        let ms = |ms| Time::ZERO + Span::from_ms(ms);
        assert!(ms(5) <= first && first < ms(6) && ms(14) < last && last <= ms(15), "{first} {last}");
    }

    #[test]
    fn no_flow_begins_at_the_end_or_after_it() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let list = [7, 1_000, 3, 999].map(|ms| FlowStart::new(at(ms), 0, 1, None));
        let traffic = Traffic {
            name: "t".into(),
            controller: ControllerChoice { name: "cubic".into(), values: vec![], ecn: false, program: None },
            profile: Profile::LINUX_6,
            service_class: 0,
            transport: Default::default(),
            connections: Connections::Fresh,
            pattern: Pattern::List(list.into()),
        };
        let starts: Vec<Time> = traffic.flows(1, &schedule(1)).map(|flow| flow.at).collect();
        assert_eq!(starts, [3, 7, 999].map(at));
    }

    #[test]
    fn sizes_do_not_move_arrivals() {
        let (one, schedule) = (open(false), schedule(10));
        let other = Open { sizes: SizeDistribution::fixed(Bytes::new(1_000)), ..one.clone() };
        let times = |open: &Open| open.flows(1, "t", &schedule).map(|flow| (flow.at, flow.source)).collect::<Vec<_>>();
        assert_eq!(times(&one), times(&other));
    }
}
