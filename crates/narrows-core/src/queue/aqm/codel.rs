//! Controlled delay [RFC 8289]: judges a packet when it leaves, by how long it waited.
//!
//! Once packets have waited `target` or longer for a whole `interval`, one is dropped, and others after it while that lasts:
//! the `n`th of them `interval/√n` after the one before. A queue with no more than a full packet behind the one that leaves
//! is good whatever that waited. Where the AQM may mark, an ECN-capable packet is marked and sent in place of each drop, as
//! in Linux.
//!
//! The AQM is asked of the packet whose service is about to begin. If it drops that one, it is asked of the next at the same
//! instant. What the RFC does when a dequeue finds nothing was done when the last packet left: nothing was behind it.
//!
//! Invariant: a packet with nothing behind it passes, so that no queue runs empty by drops.

use alloc::vec;
use alloc::vec::Vec;

use super::{Arrival, Context, Departure, Onset, Verdict};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::queue::Backlog;
use crate::units::{Bytes, Span, Time};

/// The RFC's MAXPACKET, IP bytes: a full packet.
const MAX_PACKET: Bytes = Bytes::new(1_500);
/// A dropping state that begins within so many intervals of the former one's next drop goes on at its rate [RFC 8289 §5.5].
const RECENT_INTERVALS: u64 = 16;
/// Least and greatest `target` and `interval`.
pub const RANGE: (Span, Span) = (Span::from_us(1), Span::from_secs(60));

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "codel",
    about: "Controlled delay: drops packets as they leave while all have waited too long, ever more often.",
    source: "[RFC 8289]",
    parameters: parameters! {
        "target": Kind::Span, Value::Span(Span::from_ms(5)), (RANGE.0.as_ps(), RANGE.1.as_ps()),
            "the wait that is good for a standing queue";
        "interval": Kind::Span, Value::Span(Span::from_ms(100)), (RANGE.0.as_ps(), RANGE.1.as_ps()),
            "how long packets may wait longer before one is dropped; at least the RTT of most flows";
        "ecn": Kind::Switch, Value::Switch(true), "marks ECN-capable packets instead of dropping them";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// The wait that is good for a standing queue.
    pub target: Span,
    /// How long packets may wait longer before one is dropped.
    pub interval: Span,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    /// Those of the [`SPEC`].
    fn default() -> Config {
        Config::new(&Settings::new(SPEC.parameters, &SPEC.defaults())).expect("the defaults go together")
    }
}

impl Config {
    /// Also of what has CoDel in its queues.
    pub(in crate::queue) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Config::checked(settings.span("target"), settings.span("interval"), settings.switch("ecn"))
    }

    /// With these values, each within its [`RANGE`].
    ///
    /// # Errors
    /// If they do not go together.
    pub fn checked(target: Span, interval: Span, ecn: bool) -> Result<Config, &'static str> {
        if target > interval {
            return Err("CoDel needs a `target` of at most its `interval`");
        }
        Ok(Config { target, interval, ecn })
    }
    pub(in crate::queue) fn values(&self) -> Vec<Value> {
        vec![Value::Span(self.target), Value::Span(self.interval), Value::Switch(self.ecn)]
    }
    pub(super) const fn marks(&self) -> bool {
        self.ecn
    }
    pub(super) const fn draws(&self) -> bool {
        false
    }
    pub(super) const fn judges_departures(&self) -> bool {
        true
    }
    pub(super) const fn onset(&self) -> Onset {
        Onset::Delay(self.target)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Codel {
    config: Config,
    /// Since when packets have waited too long, and `interval` more: from then on they may be dropped.
    first_above: Option<Time>,
    is_dropping: bool,
    drop_next: Time,
    /// Drops since the dropping state began, and what that number was when it began.
    count: u32,
    last_count: u32,
    /// What the drop of the packet before has left to do.
    after: After,
}

/// What the packet after a dropped one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Nothing,
    /// The state goes on, and the next drop is scheduled.
    Drop,
    /// The state begins.
    FirstDrop,
}

impl Codel {
    /// An AQM that has seen nothing.
    pub const fn new(config: Config) -> Codel {
        Codel {
            config,
            first_above: None,
            is_dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            after: After::Nothing,
        }
    }

    pub(super) fn build(config: &Config, _context: &Context) -> Codel {
        Codel::new(*config)
    }

    #[allow(clippy::unused_self, reason = "as those of every AQM")]
    pub(super) fn decide(&mut self, _arrival: &Arrival) -> Verdict {
        Verdict::Pass
    }

    /// Always.
    #[allow(clippy::unused_self, reason = "as those of every AQM")]
    pub(super) fn indifferent_up_to(&self) -> Option<Backlog> {
        Some(Backlog::MAX)
    }

    /// The verdict on a packet that is about to leave [RFC 8289 §5.5].
    pub fn leaves(&mut self, departure: &Departure) -> Verdict {
        let now = departure.now;
        let may_drop = self.may_drop(departure);
        match core::mem::replace(&mut self.after, After::Nothing) {
            After::FirstDrop => {
                self.begin(now);
                return Verdict::Pass;
            }
            After::Drop if may_drop => self.drop_next = self.after_drop(self.drop_next),
            After::Drop | After::Nothing => {}
        }
        let marks = self.config.ecn && departure.ecn_capable;
        if !self.is_dropping {
            if !may_drop {
                return Verdict::Pass;
            }
            if marks {
                self.begin(now);
                return Verdict::Mark;
            }
            self.after = After::FirstDrop;
            return Verdict::Drop;
        }
        self.is_dropping = may_drop;
        if !may_drop || now < self.drop_next {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        if marks {
            self.drop_next = self.after_drop(self.drop_next);
            return Verdict::Mark;
        }
        self.after = After::Drop;
        Verdict::Drop
    }

    /// Whether packets have waited too long for a whole interval.
    fn may_drop(&mut self, departure: &Departure) -> bool {
        if departure.sojourn < self.config.target || departure.backlog.bytes <= MAX_PACKET {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(departure.now + self.config.interval);
        departure.now >= first_above
    }

    /// The dropping state begins: at the former one's rate, if that has only just ended.
    fn begin(&mut self, now: Time) {
        self.is_dropping = true;
        let since = self.count - self.last_count;
        let is_recent = now < self.drop_next + self.config.interval * RECENT_INTERVALS;
        self.count = if since > 1 && is_recent { since } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.after_drop(now);
    }

    /// The control law: `interval/√count` after `time`, rounded down.
    fn after_drop(&self, time: Time) -> Time {
        let interval = u128::from(self.config.interval.as_ps());
        let gap = (interval * interval / u128::from(self.count)).isqrt();
        time + Span::from_ps(u64::try_from(gap).expect("at most the interval"))
    }
}

#[cfg(test)]
mod tests;
