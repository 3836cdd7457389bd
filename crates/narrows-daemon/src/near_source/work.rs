//! The loop of a host: datagrams and timers in, rates out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narrows_core::tcp::near_source::ReactionPoint;
use narrows_core::units::{Rate, Span, Time};
use narrows_testbed::clock::Clock;
use narrows_testbed::lateness::Histogram;
use narrows_testbed::near_source::Cut;
use narrows_testbed::near_source::reactor::Reactor;
use narrows_wire::{Admission, Flow, Pair, Sender, Tally};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::kernel::Kernel;
use super::receive::{Datagram, Receiver};
use super::table::Table;

/// Longest sleep: a stop is noticed after this at the latest.
const MAX_SLEEP: Span = Span::from_ms(10);
/// So long after a notification another is expected.
const EXPECTED: Span = Span::from_secs(1);
/// The clock begins anew after so long, when nothing is held: it ends after 213 days.
const MAX_CLOCK: Span = Span::from_secs(86_400);
/// Most datagrams that are taken before timers are looked at again.
const BATCH: usize = 32;

/// What a loop is given.
pub(super) struct Given {
    /// Where it listens.
    pub(super) address: IpAddr,
    pub(super) admission: Admission,
    /// The host's connections.
    pub(super) table: Arc<Table>,
    /// The rate of the host's own link.
    pub(super) line: Rate,
    pub(super) seed: u64,
    pub(super) clock: Clock,
}

/// The loop at work.
pub(super) struct Loop {
    clock: Clock,
    receiver: Receiver,
    reactor: Reactor<Kernel>,
    reaction: Histogram,
    /// When a notification was taken last.
    heard: Option<Time>,
}

impl Loop {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the port is taken, or there is no such address.
    pub(super) fn new(given: Given) -> std::io::Result<Loop> {
        let receiver = Receiver::new(given.address)?;
        let kernel = Kernel::new(given.table)?;
        let reactor = Reactor::new(given.admission, kernel, given.line, given.seed);
        Ok(Loop { clock: given.clock, receiver, reactor, reaction: Histogram::default(), heard: None })
    }

    /// Keeps a record of what is held, and lets go of what a killed process held; how many connections that was.
    ///
    /// # Errors
    /// If the record cannot be kept.
    pub(super) fn keep_record(&mut self) -> std::io::Result<usize> {
        self.reactor.connections().keep_record()
    }

    /// Believes these from now on; what is held stays so.
    pub(super) fn believe(&mut self, senders: BTreeMap<Pair, Sender>) {
        self.reactor.admission().replace(senders);
    }

    /// What became of notifications.
    pub(super) fn tally(&self) -> &Tally {
        self.reactor.tally()
    }

    /// From a datagram's arrival at this host until the connection had its new rate.
    pub(super) const fn reaction(&self) -> &Histogram {
        &self.reaction
    }

    /// The connections that are held, and their rates.
    pub(super) fn held(&self) -> impl Iterator<Item = (&Flow, Rate)> {
        self.reactor.held()
    }

    /// Works until it is told to `stop`. `note` is told of each cut; `turn` is called a hundred times a second at least.
    ///
    /// # Errors
    /// If the kernel takes the socket away.
    pub(super) fn run(
        &mut self,
        point: impl Fn(&Flow) -> Option<ReactionPoint>,
        stop: &AtomicBool,
        mut note: impl FnMut(Cut),
        mut turn: impl FnMut(&mut Loop),
    ) -> Result<(), String> {
        let lost = |error: std::io::Error| format!("the port for notifications is lost: {error}");
        while !stop.load(Ordering::Relaxed) {
            if self.reactor.deadline() == Time::NEVER && self.clock.now() > Time::ZERO + MAX_CLOCK {
                (self.clock, self.heard) = (Clock::start(), None);
            }
            let now = self.clock.now();
            self.reactor.tick(now);
            if self.heard.is_some_and(|heard| now.since(heard) < EXPECTED) {
                self.reactor.connections().keep_fresh();
            }
            turn(self);
            let sleep = self.clock.until(self.reactor.deadline()).min(MAX_SLEEP);
            let sleep = TimeSpec::from_duration(Duration::from_nanos(sleep.as_ps().div_ceil(1_000)));
            let mut wanted = [PollFd::new(self.receiver.socket().as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut wanted, Some(sleep), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(lost(error.into())),
            }
            for _ in 0..BATCH {
                let Some(datagram) = self.receiver.take().map_err(lost)? else { break };
                if let Some(cut) = self.take(&datagram, &point) {
                    note(cut);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, datagram: &Datagram, point: &impl Fn(&Flow) -> Option<ReactionPoint>) -> Option<Cut> {
        let at = self.clock.now();
        let from = (datagram.from, datagram.hop_limit);
        // What waited for this process is not older for it.
        let came_ns = if datagram.came_ns > 0 { datagram.came_ns } else { now_ns() };
        let flow = self.reactor.take(datagram.bytes(), from, (at, came_ns), point).ok()?;
        if datagram.came_ns > 0 {
            self.reaction.record(Span::from_ns(now_ns().saturating_sub(datagram.came_ns)));
        }
        self.heard = Some(at);
        Some(Cut { at, flow })
    }

    /// Lets go of every connection; what became of notifications, and how soon.
    pub(super) fn finish(mut self) -> (Tally, Histogram) {
        let left = self.reactor.release();
        if left > 0 {
            eprintln!(
                "warning: {left} connections could not be reached, and are held still; the next one lets them go"
            );
        }
        self.reactor.connections().end_record();
        (*self.reactor.tally(), self.reaction)
    }
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
