//! One run on several cores: the parts of a network, and threads that run them.
//!
//! A part may run up to what its neighbours' clocks and the delays of the links from them allow; see
//! [`narrows_network::partition`]. Parts are tasks and belong to no thread: whoever is free takes one that may go on, if
//! it can the one that it ran last, runs it for a step, and hands over its mail. What a part does depends on its mail
//! alone, never on who ran it or when, so that the results are those of one core.
//!
//! A core may be taken away in the middle of a step, and the others wait for it. So a thread stands back for a while, and
//! leaves all parts to the others, as soon as threads together get hardly more done than one would.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use narrows_core::units::{Span, Time};
use narrows_network::{MAX_PARTS, Partition};
use narrows_plan::{Graph, Plan};
use narrows_results::Results;

use crate::calibrate::thread_cpu_ns;
use crate::merge::merge;
use crate::simulation::{Mail, Progress, SimError, Simulation, deadline, next_horizon, survey};
use crate::trace::Selection;

/// A network is cut where a part's links can send, and do send, so many packets within the look-ahead at least: of fewer a step is
/// not worth its exchange.
const MIN_PACKETS: u128 = 100;
/// What they do send is counted over the packet-hops between these, on one thread, which begins anew if the network is cut.
const PROBED_HOPS: (u64, u64) = (2_000, 20_000);
const EVENTS_OF_PROBE: u64 = 500;
/// How far parts without a link between them may be apart.
const MAX_REACH: Span = Span::from_ms(100);
/// Steps within a look-ahead: so far a part may be ahead of another without making it wait.
const STEPS: u64 = 4;
/// Events between two looks of the observer at a run of one part: some tens of milliseconds.
const EVENTS_PER_LOOK: u64 = 200_000;
/// Wall time between two looks of the observer at a run of several parts.
const LOOK: Duration = Duration::from_millis(20);
/// How long a thread that finds nothing to do waits awake: a step of another part often ends within it.
const AWAKE: Duration = Duration::from_micros(20);
/// How often a thread asks how long it was on a processor: the system takes as long to tell as a few packet-hops.
const ASK: Duration = Duration::from_micros(500);
/// Over so long, and over some steps, threads must have spent so much more than it within steps, in percent for each thread beyond
/// the first: steps on several cores cost more than on one. Else the others cost more than they bring: their steps are too short for sleep and waking, one part has nearly all the
/// work, or they share a core with each other or with another program.
const TRIAL: Duration = Duration::from_millis(10);
const TRIAL_STEPS: u32 = 4;
const MUST_BRING: u32 = 15;
/// How long such a thread stands back: first, as a thread begins on the core of the one that made it; growing by this
/// factor each time that its return brought nothing; and at most.
const STAND_BACK: Duration = Duration::from_millis(10);
const STAND_BACK_GROWTH: u32 = 4;
const STAND_BACK_MOST: Duration = Duration::from_secs(2);

/// A finished run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What it leaves behind: the same on any number of threads.
    pub results: Results,
    /// Nanoseconds that its threads have spent on a processor together; `None` where the system does not tell.
    pub cpu_ns: Option<u64>,
    /// Number of threads.
    pub threads: u32,
}

/// Runs a plan on up to `threads` threads, this one included. The results do not depend on their number: a network that
/// cannot be cut, or where that does not pay, is run by one whatever it is.
///
/// `observer` is called on this thread every few tens of milliseconds, and ends the run with [`ControlFlow::Break`]:
/// then there are no results.
///
/// # Errors
/// As for [`Simulation::new`].
///
/// # Panics
/// If the network lost track of a packet.
pub fn run(
    plan: &Plan,
    seed: u64,
    threads: u32,
    observer: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Ran>, SimError> {
    // The variables of a controller's file are one thread's at a time.
    let threads = if plan.traffic.iter().any(|traffic| traffic.controller.program.is_some()) { 1 } else { threads };
    let cpu = thread_cpu_ns();
    let mut simulation = Simulation::new(plan, seed)?;
    let partitions = if threads > 1 { partitions_for(&plan.network, threads) } else { vec![] };
    if !partitions.is_empty()
        && let Some((hops, elapsed)) = probe(&mut simulation)
    {
        let has_enough = |partition: &&Partition| {
            let within = u128::from(hops) * u128::from(partition.look_ahead().unwrap_or(MAX_REACH).as_ps());
            within >= MIN_PACKETS * u128::from(partition.count()) * u128::from(elapsed.as_ps())
        };
        if let Some(partition) = partitions.iter().find(has_enough) {
            drop(simulation);
            return run_in_parts(plan, seed, partition, threads, observer);
        }
    }
    run_alone(simulation, cpu, observer)
}

/// Runs the beginning, and says how many packet-hops it had in how much simulated time; `None` if there are too few.
fn probe(simulation: &mut Simulation<'_>) -> Option<(u64, Span)> {
    let (begin, last) = PROBED_HOPS;
    let mut begun = None;
    loop {
        let Progress { now, packet_hops, .. } = simulation.progress();
        if packet_hops >= begin {
            let (since, before) = *begun.get_or_insert((now, packet_hops));
            if packet_hops >= last {
                return Some((packet_hops - before, now.since(since)));
            }
        }
        if !simulation.advance(EVENTS_OF_PROBE) {
            return None;
        }
    }
}

/// Goes on with a run that is not cut.
fn run_alone(
    mut simulation: Simulation<'_>,
    cpu: Option<u64>,
    mut observer: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Ran>, SimError> {
    while observer(simulation.progress()).is_continue() {
        if !simulation.advance(EVENTS_PER_LOOK) {
            let results = simulation.finish();
            return Ok(Some(Ran { results, cpu_ns: spent_since(cpu), threads: 1 }));
        }
    }
    Ok(None)
}

/// How a network may be cut for so many threads, the best first: between its sites, and between racks, where the parts' links can
/// send enough.
pub fn partitions_for(graph: &Graph, threads: u32) -> Vec<Partition> {
    let may_pay = |partition: &Partition| {
        let look_ahead = partition.look_ahead().unwrap_or(MAX_REACH);
        let bps: u128 = graph.links.iter().map(|link| u128::from(link.rate.as_bps())).sum();
        let packet = 8 * u128::from(graph.mtu.packet().get());
        let packets = bps * u128::from(look_ahead.as_ps()) / (packet * u128::from(Span::from_secs(1).as_ps()));
        partition.count() > 1 && packets >= MIN_PACKETS * u128::from(partition.count())
    };
    // If so many parts have too little to do, fewer may have enough.
    let racks = (2..=threads.min(MAX_PARTS)).rev().map(|parts| Partition::by_rack(graph, parts));
    std::iter::once(Partition::by_site(graph)).chain(racks).filter(may_pay).collect()
}

/// Runs a plan on one core with a trace of these flows in its results, which are the same otherwise; as [`run`].
///
/// # Errors
/// As for [`Simulation::new`].
///
/// # Panics
/// If the network lost track of a packet.
pub fn run_traced(
    plan: &Plan,
    seed: u64,
    selection: Selection,
    mut observer: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Ran>, SimError> {
    let cpu = thread_cpu_ns();
    let mut simulation = Simulation::new(plan, seed)?;
    simulation.record(selection);
    while observer(simulation.progress()).is_continue() {
        if !simulation.advance(EVENTS_PER_LOOK) {
            let results = simulation.finish();
            return Ok(Some(Ran { results, cpu_ns: spent_since(cpu), threads: 1 }));
        }
    }
    Ok(None)
}

/// As [`run`], with the parts given.
///
/// # Errors
/// As for [`Simulation::new`].
///
/// # Panics
/// If the network lost track of a packet.
pub fn run_in_parts(
    plan: &Plan,
    seed: u64,
    partition: &Partition,
    threads: u32,
    mut observer: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Ran>, SimError> {
    let cpu = thread_cpu_ns();
    if partition.count() == 1 {
        return run_alone(Simulation::new(plan, seed)?, cpu, observer);
    }
    let survey = survey(plan, seed)?;
    let part = |part| Simulation::part(plan, seed, partition, part, survey.clone());
    let parts = (0..partition.count()).map(part).collect::<Result<Vec<_>, SimError>>()?;
    let threads = threads.clamp(1, partition.count());
    let scheduler = Scheduler::new(plan, partition, parts, threads as usize);
    let others = thread::scope(|scope| {
        let scheduler = &scheduler;
        // A thread that cannot be had is one less: the others do its work.
        let spawn = |me| thread::Builder::new().spawn_scoped(scope, move || scheduler.work(me, None)).ok();
        let spawned: Vec<_> = (1..threads as usize).filter_map(spawn).collect();
        scheduler.lock().active -= threads as usize - 1 - spawned.len();
        scheduler.work(0, Some(&mut observer));
        let joined = spawned.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.sum::<Option<u64>>()
    });
    let state = scheduler.state.into_inner().expect("no thread panicked");
    if state.ended != Some(End::Done) {
        return Ok(None);
    }
    let notes = state.slots.into_iter().map(|slot| slot.part.expect("every part is back").notes()).collect();
    let results = merge(plan, &survey, partition, notes);
    let cpu_ns = spent_since(cpu).zip(others).map(|(own, others)| own + others);
    Ok(Some(Ran { results, cpu_ns, threads }))
}

/// Processor time of this thread since it had spent so much.
fn spent_since(before: Option<u64>) -> Option<u64> {
    thread_cpu_ns().zip(before).map(|(now, before)| now - before)
}

type Observer<'o> = dyn FnMut(Progress) -> ControlFlow<()> + 'o;

/// A part between two steps, and what is known of it during one.
struct PartSlot<'a> {
    /// `None` while a thread runs it.
    part: Option<Box<Simulation<'a>>>,
    /// Up to here all is done and handed over.
    clock: Time,
    unfinished: i64,
    packet_hops: u64,
    inbox: Mail,
    /// The thread that ran it last.
    last: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Cancelled,
    /// A thread panicked: the others leave, and the panic goes on.
    Failed,
}

/// What threads share.
struct State<'a> {
    slots: Vec<PartSlot<'a>>,
    /// Where the run ends if all flows are done by then: all parts meet there.
    horizon: Time,
    ended: Option<End>,
    /// Threads that do not stand back.
    active: usize,
    /// Threads that wait for something to do.
    waiting: usize,
    /// Since when it is counted how long threads were on processors within steps, and how long.
    tried: Instant,
    worked: Duration,
    longest: Duration,
    /// Trials in which several threads brought more than one.
    paid: u64,
}

impl State<'_> {
    /// A thread was on a processor for so long within steps, the last of which took so long: whether threads bring more than one
    /// would, as far as that is known.
    fn judge_trial(&mut self, on_processor: Duration, last_step: Duration) -> bool {
        let tried = self.tried.elapsed();
        // What was before the trial is not of it.
        self.worked += on_processor.min(tried);
        self.longest = self.longest.max(last_step);
        if tried < TRIAL.max(TRIAL_STEPS * self.longest) {
            return true;
        }
        let more = MUST_BRING * u32::try_from(self.active.saturating_sub(1)).unwrap_or(u32::MAX).min(100);
        let pays = self.worked * 100 >= tried * (100 + more);
        self.paid += u64::from(pays && more > 0);
        self.begin_trial();
        pays
    }

    fn begin_trial(&mut self) {
        (self.tried, self.worked, self.longest) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    }
}

struct Scheduler<'a> {
    plan: &'a Plan,
    partition: &'a Partition,
    step: Span,
    /// The largest look-ahead: no part is further ahead of the slowest, or its mail would pile up.
    reach: Span,
    state: Mutex<State<'a>>,
    /// Counts what is published, for those who wait awake.
    published: AtomicU64,
    news: Condvar,
    /// Wakes those who stand back, at the end.
    over: Condvar,
}

impl<'a> Scheduler<'a> {
    fn new(plan: &'a Plan, partition: &'a Partition, parts: Vec<Simulation<'a>>, threads: usize) -> Scheduler<'a> {
        let delays = (0..partition.count()).flat_map(|part| partition.sources(part)).map(|&(_, delay)| delay);
        // Parts without a link between them need no exchange.
        let reach = delays.max().unwrap_or(MAX_REACH);
        let least = partition.look_ahead().unwrap_or(reach);
        let slots = (0..).zip(parts).map(|(place, part)| PartSlot {
            clock: Time::ZERO,
            unfinished: 0,
            packet_hops: 0,
            part: Some(Box::new(part)),
            inbox: Mail::default(),
            last: place % threads,
        });
        let state = State {
            slots: slots.collect(),
            horizon: plan.schedule.end,
            ended: None,
            active: threads,
            waiting: 0,
            tried: Instant::now(),
            worked: Duration::ZERO,
            longest: Duration::ZERO,
            paid: 0,
        };
        Scheduler {
            plan,
            partition,
            step: least.div(STEPS).max(Span::from_ps(1)),
            reach,
            state: Mutex::new(state),
            published: AtomicU64::new(0),
            news: Condvar::new(),
            over: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().expect("no thread panics while it holds this")
    }

    /// How far the part in this slot may go now, if it may go a whole step or to the horizon.
    fn until(&self, state: &State<'_>, place: usize) -> Option<Time> {
        let slot = &state.slots[place];
        slot.part.as_ref()?;
        let clock = |place: usize| state.slots[place].clock;
        let sources = self.partition.sources(u32::try_from(place).expect("few parts")).iter();
        let slowest = (0..state.slots.len()).map(clock).min().expect("there are parts");
        let allowed = sources.map(|&(from, delay)| clock(from as usize) + delay).min().unwrap_or(Time::NEVER);
        let most = allowed.min(slowest + self.reach).min(state.horizon);
        let until = state.horizon.min(slot.clock + self.step);
        // One thread alone gains nothing by small steps.
        (until > slot.clock && until <= most).then_some(if state.active == 1 { most } else { until })
    }

    /// What this thread does next: the part that it ran last, or else the one that is furthest behind.
    fn choose(&self, state: &State<'_>, me: usize) -> Option<(usize, Time)> {
        let ready = (0..state.slots.len()).filter_map(|place| Some((place, self.until(state, place)?)));
        ready.min_by_key(|&(place, _)| (state.slots[place].last != me, state.slots[place].clock))
    }

    /// Runs parts until the run ends; the processor time of the thread then.
    fn work(&self, me: usize, mut observer: Option<&mut Observer<'_>>) -> Option<u64> {
        let _guard = PanicGuard(self);
        let mut worker = Worker::new(self.partition.count() as usize);
        let mut looked = None;
        let mut state = self.lock();
        while state.ended.is_none() {
            if let Some(observer) = &mut observer
                && looked.is_none_or(|at: Instant| at.elapsed() >= LOOK)
            {
                let progress = self.progress(&state);
                drop(state);
                let flow = observer(progress);
                state = self.lock();
                if flow.is_break() {
                    self.end(&mut state, End::Cancelled);
                    break;
                }
                looked = Some(Instant::now());
            }
            state = match self.choose(&state, me) {
                _ if worker.stands_back => self.stand_back(state, &mut worker),
                Some((place, until)) => self.step(state, me, place, until, &mut worker),
                None => self.wait(state, &mut worker),
            };
        }
        drop(state);
        thread_cpu_ns()
    }

    /// Runs one part for a step and hands over what it sent.
    fn step<'b>(
        &'b self,
        mut state: MutexGuard<'b, State<'a>>,
        me: usize,
        place: usize,
        until: Time,
        worker: &mut Worker,
    ) -> MutexGuard<'b, State<'a>> {
        let slot = &mut state.slots[place];
        let mut part = slot.part.take().expect("a part that may go on is in its slot");
        slot.last = me;
        std::mem::swap(&mut slot.inbox, &mut worker.mail);
        drop(state);

        let start = Instant::now();
        part.receive(&mut worker.mail);
        part.run_until(until);
        part.send(&mut worker.boxes);
        let took = start.elapsed();
        worker.attendance.within_steps += took;
        let on_processor = worker.attendance.ask();

        let mut state = self.lock();
        for (slot, sent) in state.slots.iter_mut().zip(&mut worker.boxes) {
            slot.inbox.append(sent);
        }
        let slot = &mut state.slots[place];
        slot.clock = until;
        slot.unfinished = part.unfinished();
        slot.packet_hops = part.progress().packet_hops;
        slot.part = Some(part);
        if let Some(on_processor) = on_processor {
            worker.stands_back = !state.judge_trial(on_processor, took);
        }
        self.agree(&mut state);
        self.published.fetch_add(1, Ordering::Release);
        if state.waiting > 0 {
            let mine = self.choose(&state, me).map(|(place, _)| place);
            if (0..state.slots.len()).any(|place| Some(place) != mine && self.until(&state, place).is_some()) {
                self.news.notify_one();
            }
        }
        state
    }

    /// Where all parts have come to the horizon, the run is over or the horizon moves on.
    fn agree(&self, state: &mut State<'_>) {
        if state.slots.iter().any(|slot| slot.clock < state.horizon) {
            return;
        }
        let unfinished: i64 = state.slots.iter().map(|slot| slot.unfinished).sum();
        match next_horizon(self.plan, state.horizon).filter(|_| unfinished > 0) {
            Some(next) => state.horizon = next,
            None => self.end(state, End::Done),
        }
    }

    fn end(&self, state: &mut State<'_>, end: End) {
        state.ended.get_or_insert(end);
        self.news.notify_all();
        self.over.notify_all();
    }

    /// Until something may have changed: awake at first, as sleep and waking cost more than a short step.
    fn wait<'b>(&'b self, state: MutexGuard<'b, State<'a>>, worker: &mut Worker) -> MutexGuard<'b, State<'a>> {
        let seen = self.published.load(Ordering::Acquire);
        drop(state);
        let start = Instant::now();
        loop {
            let awake = start.elapsed();
            let is_over = self.published.load(Ordering::Acquire) != seen;
            if is_over || awake >= AWAKE {
                worker.attendance.awake += awake;
                if is_over {
                    return self.lock();
                }
                break;
            }
            std::hint::spin_loop();
        }
        let mut state = self.lock();
        if self.published.load(Ordering::Acquire) == seen && state.ended.is_none() {
            state.waiting += 1;
            (state, _) = self.news.wait_timeout(state, LOOK).expect("no thread panics while it holds this");
            state.waiting -= 1;
        }
        state
    }

    /// Leaves the work to the others for a while, unless there are none; returns now and then for the observer's sake.
    fn stand_back<'b>(
        &'b self,
        mut state: MutexGuard<'b, State<'a>>,
        worker: &mut Worker,
    ) -> MutexGuard<'b, State<'a>> {
        let now = Instant::now();
        match worker.back_at {
            None if state.active == 1 => worker.stands_back = false,
            None => {
                state.active -= 1;
                // Whoever waits may take what this thread would have run next.
                self.news.notify_one();
                let has_paid = state.paid > worker.paid_before;
                let patience = if has_paid { STAND_BACK } else { worker.patience * STAND_BACK_GROWTH };
                worker.patience = patience.min(STAND_BACK_MOST);
                worker.back_at = Some(now + worker.patience);
            }
            Some(at) if at > now => {
                let wait = LOOK.min(at - now);
                (state, _) = self.over.wait_timeout(state, wait).expect("no thread panics while it holds this");
            }
            Some(_) => {
                state.active += 1;
                (worker.stands_back, worker.back_at, worker.paid_before) = (false, None, state.paid);
                worker.attendance = Attendance::begin();
                state.begin_trial();
            }
        }
        state
    }

    fn progress(&self, state: &State<'_>) -> Progress {
        let now = state.slots.iter().map(|slot| slot.clock).min().expect("there are parts");
        let packet_hops = state.slots.iter().map(|slot| slot.packet_hops).sum();
        Progress { now, end: deadline(self.plan), packet_hops }
    }
}

/// What a thread has of its own.
struct Worker {
    mail: Mail,
    boxes: Vec<Mail>,
    attendance: Attendance,
    /// Whether it is to stand back; until when, if it does; how long; and how many trials had paid when it last came back.
    stands_back: bool,
    back_at: Option<Instant>,
    patience: Duration,
    paid_before: u64,
}

impl Worker {
    fn new(parts: usize) -> Worker {
        Worker {
            mail: Mail::default(),
            boxes: vec![Mail::default(); parts],
            attendance: Attendance::begin(),
            stands_back: false,
            back_at: None,
            patience: STAND_BACK / STAND_BACK_GROWTH,
            paid_before: 0,
        }
    }
}

/// How much of the time in which a thread wanted a processor it had one, since it was last asked.
struct Attendance {
    asked: Instant,
    spent: Option<u64>,
    /// Wall time within steps, and awake without one.
    within_steps: Duration,
    awake: Duration,
}

impl Attendance {
    fn begin() -> Attendance {
        let (within_steps, awake) = (Duration::ZERO, Duration::ZERO);
        Attendance { asked: Instant::now(), spent: thread_cpu_ns(), within_steps, awake }
    }

    /// Time on a processor within steps since it was last asked, if that is long ago: what it lacked is shared between steps and
    /// waiting as the time is.
    fn ask(&mut self) -> Option<Duration> {
        if self.asked.elapsed() < ASK {
            return None;
        }
        let wanted = self.within_steps + self.awake;
        let had = spent_since(self.spent).map_or(wanted, Duration::from_nanos).min(wanted);
        let within_steps = self.within_steps.mul_f64(had.as_secs_f64() / wanted.as_secs_f64().max(f64::MIN_POSITIVE));
        *self = Attendance::begin();
        Some(within_steps)
    }
}

/// Tells the others when a thread leaves in a panic.
struct PanicGuard<'h, 'a>(&'h Scheduler<'a>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking()
            && let Ok(mut state) = self.0.state.lock()
        {
            self.0.end(&mut state, End::Failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fat-tree of 10 Gbit/s and so many µs.
    fn fat_tree(k: u32, us: u32) -> Graph {
        let text = format!(
            "[topology.fat-tree]\nk = {k}\nfabric = {{ delay = \"{us}us\" }}\n[[traffic]]\nlong = {{}}\n\
             between = \"permutation\"\n[[arm]]\nname = \"A\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\n"
        );
        network_of(&text)
    }

    fn network_of(text: &str) -> Graph {
        let experiment = narrows_scenario::load_str(text, &Default::default(), &Default::default());
        experiment.unwrap_or_else(|error| panic!("{}", error.render())).plans.remove(0).network
    }

    #[test]
    fn a_network_is_cut_into_as_many_parts_as_have_enough_to_do() {
        // A link sends 0.83 packets in 1 µs; there are 96 links in the smallest tree, 324 and 768 in the others.
        let parts = |k, us, threads| partitions_for(&fat_tree(k, us), threads).first().map_or(1, Partition::count);
        assert_eq!([parts(4, 1, 2), parts(4, 3, 2)], [1, 2]);
        assert_eq!([parts(6, 1, 2), parts(6, 1, 3)], [2, 2]);
        assert_eq!([1, 2, 6, 8, 100].map(|threads| parts(8, 1, threads)), [1, 2, 6, 6, 6]);
    }

    #[test]
    fn sites_are_cut_before_racks() {
        let text = "[topology.two-datacenters]\nservers = 4\n[[traffic]]\nlong = {}\nbetween = \"all\"\n[[arm]]\n\
                    name = \"A\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\n";
        let graph = network_of(text);
        assert_eq!(partitions_for(&graph, 8)[0], Partition::by_site(&graph));
        assert_eq!(Partition::by_site(&graph).count(), 2);
    }

    /// Hosts of 1 Gbit/s could send 400 packets in a look-ahead of 1 ms; over a link of 50 Mbit/s they send 4.
    #[test]
    fn a_network_with_little_to_carry_is_run_by_one_thread() {
        for (mbps, threads) in [(50, 1), (1_000, 2)] {
            let text = format!(
                "[topology.dumbbell]\npairs = 2\nfabric = {{ rate = \"{mbps}Mbps\", delay = \"1ms\" }}\n\
                 edge = {{ rate = \"1Gbps\" }}\n[[traffic]]\nlong = {{}}\nfrom = \"left-*\"\nto = \"right-*\"\n[[arm]]\n\
                 name = \"A\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\n"
            );
            let experiment = narrows_scenario::load_str(&text, &Default::default(), &Default::default());
            let plan = experiment.unwrap_or_else(|error| panic!("{}", error.render())).plans.remove(0);
            let ran = run(&plan, 1, 2, |_| ControlFlow::Continue(())).expect("it can be run").expect("to its end");
            assert_eq!(ran.threads, threads, "{mbps} Mbit/s");
            let alone = run(&plan, 1, 1, |_| ControlFlow::Continue(())).expect("as before").expect("as before");
            assert!(ran.results == alone.results);
        }
    }
}
