//! One run on several cores: the parts of a network, and threads that run them.
//!
//! A part may run up to what its neighbours' clocks and the delays of the links from them allow; see
//! [`narrows_network::partition`]. Parts are tasks and belong to no thread: whoever is free takes one that may go on, if
//! it can the one that it ran last, runs it for a step, and hands over its mail. What a part does depends on its mail
//! alone, never on who ran it or when, so that the results are those of one core.
//!
//! A core may be taken away in the middle of a step, and the others would wait for it. A thread to which that happened
//! stands back for a while, longer each time, and leaves all parts to the others. So does one as soon
//! as threads together get no more done than one would.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use narrows_core::units::{Span, Time};
use narrows_network::Partition;
use narrows_plan::Plan;
use narrows_results::Results;

use crate::calibrate::thread_cpu_ns;
use crate::merge::merge;
use crate::simulation::{Mail, Progress, SimError, Simulation, deadline, next_horizon, survey};

/// The least delay of a link at which a network is cut: a step of a quarter of it must be worth its exchange.
const MIN_LOOK_AHEAD: Span = Span::from_us(100);
/// Steps within a look-ahead: so far a part may be ahead of another without making it wait.
const STEPS: u64 = 4;
/// Events between two looks of the observer at a run of one part: some tens of milliseconds.
const EVENTS_PER_LOOK: u64 = 200_000;
/// Wall time between two looks of the observer at a run of several parts.
const LOOK: Duration = Duration::from_millis(20);
/// How long a thread that finds nothing to do waits awake: a step of another part often ends within it.
const AWAKE: Duration = Duration::from_micros(20);
/// A step that took so much longer than its thread was on a processor has lost its core.
const LATE: Duration = Duration::from_micros(300);
/// Over so long, threads must have spent a twentieth more than it within steps. Else the others cost more than they bring: their
/// steps are too short for sleep and waking, one part has nearly all the work, or they share a core.
const TRIAL: Duration = Duration::from_millis(20);
/// How long such a thread stands back: first, as a thread begins on the core of the one that made it; growing by this
/// factor; and at most. It begins anew after this long without cause.
const STAND_BACK: Duration = Duration::from_millis(5);
const STAND_BACK_GROWTH: u32 = 4;
const STAND_BACK_MOST: Duration = Duration::from_secs(2);
const FORGET: Duration = Duration::from_secs(2);

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

/// Runs a plan on up to `threads` threads, this one included. The results do not depend on their number: a network of one
/// site, or one whose sites are less than 100 µs apart, is run by one whatever it is.
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
    let partition = match threads {
        0 | 1 => Partition::whole(&plan.network),
        _ => Partition::by_site(&plan.network, MIN_LOOK_AHEAD),
    };
    run_in_parts(plan, seed, &partition, threads, observer)
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
        let mut simulation = Simulation::new(plan, seed)?;
        while observer(simulation.progress()).is_continue() {
            if !simulation.advance(EVENTS_PER_LOOK) {
                let results = simulation.finish();
                return Ok(Some(Ran { results, cpu_ns: spent_since(cpu), threads: 1 }));
            }
        }
        return Ok(None);
    }
    let names = survey(plan, seed)?;
    let part = |part| Simulation::part(plan, seed, partition, part, names.clone());
    let parts = (0..partition.count()).map(part).collect::<Result<Vec<_>, SimError>>()?;
    let threads = threads.clamp(1, partition.count());
    let hall = Hall::new(plan, partition, parts, threads as usize);
    let others = thread::scope(|scope| {
        let hall = &hall;
        // A thread that cannot be had is one less: the others do its work.
        let spawn = |me| thread::Builder::new().spawn_scoped(scope, move || hall.work(me, None)).ok();
        let spawned: Vec<_> = (1..threads as usize).filter_map(spawn).collect();
        hall.lock().active -= threads as usize - 1 - spawned.len();
        hall.work(0, Some(&mut observer));
        let joined = spawned.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.sum::<Option<u64>>()
    });
    let board = hall.board.into_inner().expect("no thread panicked");
    if board.ended != Some(End::Done) {
        return Ok(None);
    }
    let notes = board.seats.into_iter().map(|seat| seat.part.expect("every part is back").notes()).collect();
    let results = merge(plan, &names, partition, notes);
    let cpu_ns = spent_since(cpu).zip(others).map(|(own, others)| own + others);
    Ok(Some(Ran { results, cpu_ns, threads }))
}

/// Processor time of this thread since it had spent so much.
fn spent_since(before: Option<u64>) -> Option<u64> {
    thread_cpu_ns().zip(before).map(|(now, before)| now - before)
}

type Observer<'o> = dyn FnMut(Progress) -> ControlFlow<()> + 'o;

/// A part between two steps, and what is known of it during one.
struct Seat<'a> {
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
struct Board<'a> {
    seats: Vec<Seat<'a>>,
    /// Where the run ends if all flows are done by then: all parts meet there.
    horizon: Time,
    ended: Option<End>,
    /// Threads that do not stand back.
    active: usize,
    /// Threads that wait for something to do.
    waiting: usize,
    /// Since when it is counted how long threads were within steps, and how long.
    tried: Instant,
    worked: Duration,
}

struct Hall<'a> {
    plan: &'a Plan,
    partition: &'a Partition,
    step: Span,
    /// The largest look-ahead: no part is further ahead of the slowest, or its mail would pile up.
    reach: Span,
    board: Mutex<Board<'a>>,
    /// Counts what is published, for those who wait awake.
    published: AtomicU64,
    news: Condvar,
    /// Wakes those who stand back, at the end.
    over: Condvar,
}

impl<'a> Hall<'a> {
    fn new(plan: &'a Plan, partition: &'a Partition, parts: Vec<Simulation<'a>>, threads: usize) -> Hall<'a> {
        let delays = || (0..partition.count()).flat_map(|part| partition.sources(part)).map(|&(_, delay)| delay);
        // Parts without a link between them need no exchange.
        let reach = delays().max().unwrap_or(Span::from_ms(100));
        let least = delays().min().unwrap_or(reach);
        let seats = (0..).zip(parts).map(|(place, part)| Seat {
            clock: Time::ZERO,
            unfinished: 0,
            packet_hops: 0,
            part: Some(Box::new(part)),
            inbox: Mail::default(),
            last: place % threads,
        });
        let board = Board {
            seats: seats.collect(),
            horizon: plan.schedule.end,
            ended: None,
            active: threads,
            waiting: 0,
            tried: Instant::now(),
            worked: Duration::ZERO,
        };
        Hall {
            plan,
            partition,
            step: least.div(STEPS).max(Span::from_ps(1)),
            reach,
            board: Mutex::new(board),
            published: AtomicU64::new(0),
            news: Condvar::new(),
            over: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Board<'a>> {
        self.board.lock().expect("no thread panics while it holds this")
    }

    /// How far the part in this seat may go now, if it may go a whole step or to the horizon.
    fn until(&self, board: &Board<'_>, place: usize) -> Option<Time> {
        let seat = &board.seats[place];
        seat.part.as_ref()?;
        let clock = |place: usize| board.seats[place].clock;
        let sources = self.partition.sources(u32::try_from(place).expect("few parts")).iter();
        let slowest = (0..board.seats.len()).map(clock).min().expect("there are parts");
        let allowed = sources.map(|&(from, delay)| clock(from as usize) + delay).min().unwrap_or(Time::NEVER);
        let most = allowed.min(slowest + self.reach).min(board.horizon);
        let until = board.horizon.min(seat.clock + self.step);
        // One thread alone gains nothing by small steps.
        (until > seat.clock && until <= most).then_some(if board.active == 1 { most } else { until })
    }

    /// What this thread does next: the part that it ran last, or else the one that is furthest behind.
    fn choose(&self, board: &Board<'_>, me: usize) -> Option<(usize, Time)> {
        let ready = (0..board.seats.len()).filter_map(|place| Some((place, self.until(board, place)?)));
        ready.min_by_key(|&(place, _)| (board.seats[place].last != me, board.seats[place].clock))
    }

    /// Runs parts until the run ends; the processor time of the thread then.
    fn work(&self, me: usize, mut observer: Option<&mut Observer<'_>>) -> Option<u64> {
        let _guard = Leaving(self);
        let mut hands = Hands::new(self.partition.count() as usize);
        let mut looked = None;
        let mut board = self.lock();
        while board.ended.is_none() {
            if let Some(observer) = &mut observer
                && looked.is_none_or(|at: Instant| at.elapsed() >= LOOK)
            {
                let progress = self.progress(&board);
                drop(board);
                let flow = observer(progress);
                board = self.lock();
                if flow.is_break() {
                    self.end(&mut board, End::Cancelled);
                    break;
                }
                looked = Some(Instant::now());
            }
            board = match self.choose(&board, me) {
                _ if hands.stands_back => self.stand_back(board, &mut hands),
                Some((place, until)) => self.step(board, me, place, until, &mut hands),
                None => self.wait(board),
            };
        }
        drop(board);
        thread_cpu_ns()
    }

    /// Runs one part for a step and hands over what it sent.
    fn step<'b>(
        &'b self,
        mut board: MutexGuard<'b, Board<'a>>,
        me: usize,
        place: usize,
        until: Time,
        hands: &mut Hands,
    ) -> MutexGuard<'b, Board<'a>> {
        let seat = &mut board.seats[place];
        let mut part = seat.part.take().expect("a part that may go on is in its seat");
        seat.last = me;
        std::mem::swap(&mut seat.inbox, &mut hands.mail);
        drop(board);

        let (start, spent) = (Instant::now(), thread_cpu_ns());
        part.receive(&mut hands.mail);
        part.run_until(until);
        part.send(&mut hands.boxes);
        let took = start.elapsed();
        let on_processor = spent_since(spent).map_or(took, Duration::from_nanos).min(took);
        hands.stands_back = took - on_processor > LATE;

        let mut board = self.lock();
        for (seat, sent) in board.seats.iter_mut().zip(&mut hands.boxes) {
            seat.inbox.append(sent);
        }
        let seat = &mut board.seats[place];
        seat.clock = until;
        seat.unfinished = part.unfinished();
        seat.packet_hops = part.progress().packet_hops;
        seat.part = Some(part);
        board.worked += on_processor;
        let tried = board.tried.elapsed();
        if tried >= TRIAL {
            hands.stands_back |= board.worked * 20 < tried * 21;
            (board.tried, board.worked) = (Instant::now(), Duration::ZERO);
        }
        self.agree(&mut board);
        self.published.fetch_add(1, Ordering::Release);
        if board.waiting > 0 {
            let mine = self.choose(&board, me).map(|(place, _)| place);
            if (0..board.seats.len()).any(|place| Some(place) != mine && self.until(&board, place).is_some()) {
                self.news.notify_one();
            }
        }
        board
    }

    /// Where all parts have come to the horizon, the run is over or the horizon moves on.
    fn agree(&self, board: &mut Board<'_>) {
        if board.seats.iter().any(|seat| seat.clock < board.horizon) {
            return;
        }
        let unfinished: i64 = board.seats.iter().map(|seat| seat.unfinished).sum();
        match next_horizon(self.plan, board.horizon).filter(|_| unfinished > 0) {
            Some(next) => board.horizon = next,
            None => self.end(board, End::Done),
        }
    }

    fn end(&self, board: &mut Board<'_>, end: End) {
        board.ended.get_or_insert(end);
        self.news.notify_all();
        self.over.notify_all();
    }

    /// Until something may have changed: awake at first, as sleep and waking cost more than a short step.
    fn wait<'b>(&'b self, board: MutexGuard<'b, Board<'a>>) -> MutexGuard<'b, Board<'a>> {
        let seen = self.published.load(Ordering::Acquire);
        drop(board);
        let start = Instant::now();
        while start.elapsed() < AWAKE {
            if self.published.load(Ordering::Acquire) != seen {
                return self.lock();
            }
            std::hint::spin_loop();
        }
        let mut board = self.lock();
        if self.published.load(Ordering::Acquire) == seen && board.ended.is_none() {
            board.waiting += 1;
            (board, _) = self.news.wait_timeout(board, LOOK).expect("no thread panics while it holds this");
            board.waiting -= 1;
        }
        board
    }

    /// Leaves the work to the others for a while, unless there are none; returns now and then for the observer's sake.
    fn stand_back<'b>(&'b self, mut board: MutexGuard<'b, Board<'a>>, hands: &mut Hands) -> MutexGuard<'b, Board<'a>> {
        let now = Instant::now();
        match hands.back_at {
            None if board.active == 1 => hands.stands_back = false,
            None => {
                board.active -= 1;
                // Whoever waits may take what this thread would have run next.
                self.news.notify_one();
                let again = now - hands.returned < FORGET;
                let patience = if again { hands.patience * STAND_BACK_GROWTH } else { STAND_BACK };
                hands.patience = patience.min(STAND_BACK_MOST);
                hands.back_at = Some(now + hands.patience);
            }
            Some(at) if at > now => {
                let wait = LOOK.min(at - now);
                (board, _) = self.over.wait_timeout(board, wait).expect("no thread panics while it holds this");
            }
            Some(_) => {
                board.active += 1;
                (hands.stands_back, hands.back_at, hands.returned) = (false, None, now);
                (board.tried, board.worked) = (now, Duration::ZERO);
            }
        }
        board
    }

    fn progress(&self, board: &Board<'_>) -> Progress {
        let now = board.seats.iter().map(|seat| seat.clock).min().expect("there are parts");
        let packet_hops = board.seats.iter().map(|seat| seat.packet_hops).sum();
        Progress { now, end: deadline(self.plan), packet_hops }
    }
}

/// What a thread has of its own.
struct Hands {
    mail: Mail,
    boxes: Vec<Mail>,
    /// Whether it is to stand back; until when, if it does; how long; and when it last came back.
    stands_back: bool,
    back_at: Option<Instant>,
    patience: Duration,
    returned: Instant,
}

impl Hands {
    fn new(parts: usize) -> Hands {
        Hands {
            mail: Mail::default(),
            boxes: vec![Mail::default(); parts],
            stands_back: false,
            back_at: None,
            patience: STAND_BACK / STAND_BACK_GROWTH,
            returned: Instant::now(),
        }
    }
}

/// Tells the others when a thread leaves in a panic.
struct Leaving<'h, 'a>(&'h Hall<'a>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking()
            && let Ok(mut board) = self.0.board.lock()
        {
            self.0.end(&mut board, End::Failed);
        }
    }
}
