//! Where the time of a packet between two ends of a link went.

use narrows_core::link::Schedule;
use narrows_core::packet::wire_bytes;
use narrows_core::units::{Bytes, Span, Time};
use narrows_plan::{NodeKind, Plan};

use super::{Hop, Journey};

/// A port was told to pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) at: Time,
    pub(crate) link: u32,
    pub(crate) priorities: u8,
    pub(crate) time: Span,
}

/// A stretch of a flow's time at a place, which the port of a link may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: Time,
    pub(crate) until: Time,
    pub(crate) place: &'static str,
    pub(crate) link: Option<u32>,
}

pub(crate) const WIRE: &str = "wire";
pub(crate) const QUEUE: &str = "queue";
pub(crate) const PAUSE: &str = "pause";
pub(crate) const EVENT: &str = "event";
pub(crate) const EDGE_PAIR: &str = "edge-pair";
pub(crate) const RECEIVE_QUEUE: &str = "receive-queue";
pub(crate) const RECEIVER: &str = "receiver";
pub(crate) const SENDER: &str = "sender";

/// A link as the time of a packet on it needs it.
#[derive(Debug)]
struct Known {
    schedule: Option<Schedule>,
    delay: Span,
    /// Of it, what lies before the port.
    before: Span,
    has_classes: bool,
    is_bridge: bool,
    /// Times at which it is paused, and which of its priorities.
    paused: Vec<(Time, Time, u8)>,
}

/// The links of a plan, and when they were paused.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    plan: &'a Plan,
    known: Vec<Known>,
}

impl<'a> Links<'a> {
    pub(crate) fn new(plan: &'a Plan, pauses: &[Pause]) -> Links<'a> {
        let served = plan.network.served();
        let mut known: Vec<Known> = plan
            .network
            .links
            .iter()
            .zip(served)
            .map(|(link, served)| {
                let schedule = (!link.events.is_empty()).then(|| link.schedule());
                let of_host = plan.network.nodes[link.from as usize].kind == NodeKind::Host;
                Known {
                    delay: schedule.as_ref().map_or(link.delay, Schedule::least_delay),
                    schedule,
                    before: if served && of_host { link.stack } else { Span::ZERO },
                    has_classes: link.classes() > 1,
                    is_bridge: link.bridge.is_some(),
                    paused: Vec::new(),
                }
            })
            .collect();
        for pause in pauses {
            let paused = &mut known[pause.link as usize].paused;
            if let Some((_, until, _)) = paused.last_mut() {
                *until = (*until).min(pause.at);
            }
            if pause.priorities != 0 {
                paused.push((pause.at, pause.at + pause.time, pause.priorities));
            }
        }
        Links { plan, known }
    }

    /// Whether adapters of hosts have limiters.
    pub(crate) fn has_adapters(&self) -> bool {
        self.plan.traffic.iter().any(|traffic| traffic.profile.nic_limiter.is_some())
    }

    /// How long a packet takes on the wire until its last bit has left, if it leaves at `departure` and came at `from`.
    fn sending(&self, link: u32, ip_bytes: u32, from: Time, departure: Time) -> Span {
        let bytes = wire_bytes(Bytes::new(ip_bytes.into()));
        let Some(schedule) = &self.known[link as usize].schedule else {
            return Span::from_ps(self.plan.network.links[link as usize].rate.time_for(bytes).as_ps());
        };
        // The latest start from which it is done by then.
        let (mut low, mut high) = (from.as_ps(), departure.as_ps());
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if schedule.finish(Time::from_ps(middle), bytes.get()) <= departure {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        departure.since(Time::from_ps(low))
    }

    /// When a packet began to leave the port: its wait there ends.
    pub(crate) fn begun(&self, journey: &Journey, hop: &Hop) -> Option<Time> {
        let reached = hop.crossed.or(hop.arrived)?;
        let known = &self.known[hop.link as usize];
        let departure = Time::from_ps(reached.as_ps().checked_sub((known.delay.saturating_sub(known.before)).as_ps())?);
        let earliest = hop.offered + known.before;
        let sending = self.sending(hop.link, journey.ip_bytes, earliest.min(departure), departure);
        Some(Time::from_ps(departure.as_ps().saturating_sub(sending.as_ps())).max(earliest.min(departure)))
    }

    /// The whole time between two ends of a link, in order, for a packet that arrived.
    pub(crate) fn stretches(&self, journey: &Journey, hop: &Hop) -> Vec<Stretch> {
        let (Some(arrived), known) = (hop.arrived, &self.known[hop.link as usize]) else { return Vec::new() };
        let mut found = Vec::new();
        let mut at = hop.offered;
        let mut push = |until: Time, place| {
            if until > at {
                found.push(Stretch { from: at, until, place, link: Some(hop.link) });
                at = until;
            }
        };
        if known.is_bridge {
            push(arrived, EDGE_PAIR);
            return found;
        }
        let reached = hop.crossed.unwrap_or(arrived);
        let begun = self.begun(journey, hop).unwrap_or(hop.offered);
        push((hop.offered + known.before).min(begun), WIRE);
        for (from, until, place) in self.interruptions(journey, hop) {
            push(from.min(begun), QUEUE);
            push(until.min(begun), place);
        }
        push(begun, QUEUE);
        push(reached, WIRE);
        push(arrived, EVENT);
        found
    }

    /// When the port could not send the packet, in order.
    fn interruptions(&self, journey: &Journey, hop: &Hop) -> Vec<(Time, Time, &'static str)> {
        let known = &self.known[hop.link as usize];
        let concerns = |priorities: u8| !known.has_classes || priorities & 1 << journey.service_class != 0;
        let paused = known.paused.iter().filter(|(_, _, priorities)| concerns(*priorities));
        let paused = paused.map(|&(from, until, _)| (from, until, PAUSE));
        let outages = known.schedule.iter().flat_map(|schedule| schedule.outages());
        let mut all: Vec<_> = outages.map(|&(down, up)| (down, up, EVENT)).chain(paused).collect();
        all.retain(|(_, until, _)| *until > hop.offered);
        all.sort_by_key(|(from, _, _)| *from);
        all
    }
}
