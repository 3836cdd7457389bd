//! The loop: frames from the ring through the router to the ports, and timers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narrows_core::units::{Span, Time};
use narrows_kernel::bridge::{Frames, Joined, Side};
use narrows_testbed::clock::Clock;
use narrows_testbed::lateness::Histogram;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rustix::time::{ClockId, clock_gettime};

use super::frame::Departing;
use super::port::Port;
use super::router::{Router, RouterConfig};

/// Frames that are taken before others are sent and timers are looked at.
const BATCH: usize = 64;
/// The heartbeat is not written more often.
const BEAT_NS: u64 = 1_000_000;
/// Longest sleep: well within the time that a heartbeat counts.
const MAX_SLEEP: Span = Span::from_ms(5);
/// The clock begins anew after so long: it ends after 213 days. The far edge is met again, as after a restart.
const MAX_CLOCK: Span = Span::from_secs(100 * 86_400);

/// What a loop is made of.
pub(super) struct Parts {
    pub(super) given: RouterConfig,
    pub(super) joined: Joined,
    pub(super) ports: [Port; 2],
}

/// The loop at work.
pub(super) struct EventLoop {
    given: RouterConfig,
    joined: Joined,
    frames: Frames<'static>,
    router: Rc<RefCell<Router>>,
    now: Rc<Cell<Time>>,
    ports: [Port; 2],
    /// By side, what goes first and what does not.
    waiting: [[VecDeque<Departing>; 2]; 2],
    clock: Clock,
    beat_ns: u64,
    delay: Histogram,
}

impl EventLoop {
    /// Ready to run.
    pub(super) fn new(parts: Parts) -> Result<EventLoop, narrows_kernel::Error> {
        let Parts { given, joined, ports } = parts;
        let router = Rc::new(RefCell::new(Router::new(given.clone())));
        let now = Rc::new(Cell::new(Time::ZERO));
        let frames = {
            let (router, now) = (Rc::clone(&router), Rc::clone(&now));
            joined.frames(move |frame| {
                let mut router = router.borrow_mut();
                router.went_past(now.get(), frame.side, frame.past);
                if frame.overtaken {
                    router.handle_late(now.get(), frame.side, frame.kind, frame.bytes, frame.came_ns);
                } else {
                    router.handle(now.get(), frame.side, frame.kind, frame.bytes, frame.came_ns);
                }
            })?
        };
        // From here on frames wait for the loop, which is about to begin.
        let beat_ns = monotonic_ns();
        joined.beat(beat_ns)?;
        Ok(EventLoop {
            given,
            joined,
            frames,
            router,
            now,
            ports,
            waiting: Default::default(),
            clock: Clock::start(),
            beat_ns,
            delay: Histogram::default(),
        })
    }

    /// Works until it is told to `stop`; `turn` is called two hundred times a second at least, and may end it.
    ///
    /// # Errors
    /// If the kernel takes the ring away; and those of `turn`.
    pub(super) fn run(
        &mut self,
        stop: &AtomicBool,
        mut turn: impl FnMut(&mut EventLoop) -> Result<(), String>,
    ) -> Result<(), String> {
        while !stop.load(Ordering::Relaxed) {
            let taken = self.step()?;
            turn(self)?;
            if taken < BATCH {
                self.sleep()?;
            }
        }
        Ok(())
    }

    /// Takes what there is, up to a bound; how many frames that were.
    fn step(&mut self) -> Result<usize, String> {
        let now_ns = monotonic_ns();
        if now_ns - self.beat_ns >= BEAT_NS {
            self.joined.beat(now_ns).map_err(|error| error.to_string())?;
            self.beat_ns = now_ns;
        }
        let now = self.clock.now();
        self.now.set(now);
        let taken = self.frames.take(BATCH, now_ns).map_err(|error| error.to_string())?;
        let mut router = self.router.borrow_mut();
        if router.deadline() <= now {
            router.handle_timeout(now);
        }
        if now > Time::ZERO + MAX_CLOCK {
            self.clock = Clock::start();
            *router = Router::new(RouterConfig { clock: unix_ns(), ..self.given.clone() });
        }
        drop(router);
        self.flush();
        Ok(taken)
    }

    fn flush(&mut self) {
        let mut router = self.router.borrow_mut();
        while let Some(sent) = router.poll() {
            self.waiting[sent.side as usize][usize::from(!sent.urgent)].push_back(sent.frame);
        }
        for side in Side::BOTH {
            let [urgent, others] = &mut self.waiting[side as usize];
            let port = &mut self.ports[side as usize];
            port.send(urgent, None);
            port.send(others, Some(&mut self.delay));
        }
    }

    fn sleep(&self) -> Result<(), String> {
        let until = self.clock.until(self.router.borrow().deadline()).min(MAX_SLEEP);
        let until = TimeSpec::from_duration(Duration::from_nanos(until.as_ps().div_ceil(1_000)));
        let mut wanted = [PollFd::new(self.frames.wakes(), PollFlags::POLLIN)];
        match ppoll(&mut wanted, Some(until), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).to_string()),
        }
    }

    /// Ends in order: the kernel forwards from now on, and what is here still is sent.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        // Long ago: nothing is handed over any more.
        self.joined.beat(0).map_err(|error| error.to_string())?;
        self.now.set(self.clock.now());
        while self.frames.take(BATCH, monotonic_ns()).map_err(|error| error.to_string())? > 0 {
            self.flush();
        }
        // What is held back is shown.
        let end = self.clock.now() + self.given.config.hold;
        self.router.borrow_mut().handle_timeout(end);
        self.flush();
        Ok(())
    }

    /// The outer interface takes so many bytes of an IP packet from now on.
    pub(super) fn set_longest(&mut self, longest: u16) {
        self.given.longest = longest;
        self.router.borrow_mut().set_longest(longest);
    }

    /// Looks at the router.
    pub(super) fn with_router<T>(&self, look: impl FnOnce(&Router, Time) -> T) -> T {
        look(&self.router.borrow(), self.clock.now())
    }

    pub(super) const fn ports(&self) -> &[Port; 2] {
        &self.ports
    }

    /// How long frames were in this machine's hands, those left out that go first; what was held back on purpose is among them.
    pub(super) const fn delay(&self) -> &Histogram {
        &self.delay
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[allow(clippy::cast_sign_loss, reason = "time since boot is positive")]
pub(super) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds since 1970.
pub(super) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
