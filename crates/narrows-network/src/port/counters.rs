//! What a port has done: counted as packets come and settled to the moment when somebody asks.

use super::{Ports, Served, wire_bytes};
use crate::network::Payload;
use narrows_core::packet::FRAMING_BYTES;
use narrows_core::queue::{Backlog, DropReason};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};

/// What a port has done since the counters were last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Held when the counters were reset.
    pub carried: Backlog,
    /// Offered to the port.
    pub offered: Backlog,
    /// Left the port, last bit included. What is then lost on the wire counts as sent.
    pub sent: Backlog,
    /// Held now.
    pub queued: Backlog,
    /// Dropped, by reason in the order of [`DropReason`]. Impairments and cuts act on the wire, after the port.
    pub dropped: [Packets; DropReason::COUNT],
    /// Took extra time on the wire, so that others overtook them.
    pub late: Packets,
    /// Accepted with a congestion mark that the port's AQM asked for.
    pub marked: Packets,
    /// Samples of the port's congestion point that told of congestion.
    pub samples: Packets,
    /// The largest backlog just after an arrival, or at the reset.
    pub queue_max: Bytes,
    /// The integral of the backlog over time, byte-picoseconds: divided by the time since the reset, the mean.
    pub queue_integral: u128,
    /// What of the packet in service has gone over the line, as time: at the reset, and now.
    pub begun_before: Span,
    /// See above.
    pub begun: Span,
    /// How long it was paused, by one priority at least.
    pub paused: Span,
    /// The longest such time without a break.
    pub longest_pause: Span,
    /// Frames that asked the far end of this link to pause or resume, refreshes included.
    pub pause_frames: Packets,
    /// When the counters were reset.
    pub since: Time,
}

impl Counters {
    /// Packets dropped for this reason.
    pub const fn dropped_for(&self, reason: DropReason) -> Packets {
        self.dropped[reason as usize]
    }

    /// Time-weighted mean backlog up to `now`, the moment at which these counters were read; rounded down.
    pub fn queue_mean(&self, now: Time) -> Bytes {
        let mean = self.queue_integral / u128::from(now.since(self.since).as_ps().max(1));
        Bytes::new(u64::try_from(mean).expect("a mean is at most the largest backlog"))
    }

    /// How long a line of this `rate` was busy with the port's packets since the reset: not with what the first of those that
    /// left had sent before.
    pub fn busy(&self, rate: Rate) -> Span {
        let wire = self.sent.bytes.get() + self.sent.packets.get() * FRAMING_BYTES;
        (rate.time_for(Bytes::new(wire)) + self.begun).saturating_sub(self.begun_before)
    }

    /// Offered or carried over = sent + dropped by the port + queued.
    pub fn conserved(&self) -> bool {
        let at_port = [DropReason::Limit, DropReason::Pool, DropReason::Aqm, DropReason::Outage];
        let dropped: Packets = at_port.into_iter().map(|reason| self.dropped_for(reason)).sum();
        self.carried.packets + self.offered.packets == self.sent.packets + self.queued.packets + dropped
    }
}

impl<P: Payload> Ports<P> {
    /// What the port has done since the last reset, as of `now`.
    pub(crate) fn counters(&mut self, now: Time, link: u32) -> Counters {
        self.settle(now, link);
        let (port, rules, held) = (&self.ports[link as usize], &self.rules[link as usize], self.held(link));
        let with = |a: Backlog, b: Backlog| Backlog { bytes: a.bytes + b.bytes, packets: a.packets + b.packets };
        let flushed = self.flushed(now, link);
        let gone = with(with(held, flushed), rules.withdrawn);
        let taken = with(rules.carried, port.accepted);
        let mut dropped = rules.dropped;
        dropped[DropReason::Outage as usize] += flushed.packets;
        let served = self.served.get(port.served as usize);
        let [paused, longest_pause] = served.map_or([Span::ZERO; 2], |served| served.paused(now));
        Counters {
            carried: rules.carried,
            offered: with(port.accepted, rules.refused),
            sent: Backlog { bytes: taken.bytes - gone.bytes, packets: taken.packets - gone.packets },
            queued: held,
            dropped,
            late: rules.late,
            marked: rules.marked,
            samples: rules.samples,
            queue_max: port.queue_max,
            queue_integral: port.queue_integral + self.waited(now, link) - self.outstanding(now, link),
            begun_before: rules.begun_before,
            begun: self.begun(now, link),
            paused,
            longest_pause,
            pause_frames: rules.pause_frames,
            since: rules.since,
        }
    }

    /// IP bytes that have left the port since the beginning, whatever was reset.
    pub(crate) fn sent(&mut self, now: Time, link: u32) -> Bytes {
        self.settle(now, link);
        let (port, rules) = (&self.ports[link as usize], &self.rules[link as usize]);
        rules.sent_before + rules.carried.bytes + port.accepted.bytes
            - rules.withdrawn.bytes
            - self.held(link).bytes
            - self.flushed(now, link).bytes
    }

    /// Begins to count anew. What is held now is carried over.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        for link in 0..self.len() {
            self.settle(now, link);
            let (outstanding, sent, held) = (self.outstanding(now, link), self.sent(now, link), self.held(link));
            let begun = self.begun(now, link);
            self.reset_flushed(now, link);
            let (port, rules) = (&mut self.ports[link as usize], &mut self.rules[link as usize]);
            rules.sent_before = sent;
            rules.begun_before = begun;
            port.queue_integral = outstanding;
            (port.queue_max, port.quiet_below) = (held.bytes, 0);
            if rules.congestion_point.is_some() {
                rules.sample_beyond = rules.sample_beyond.saturating_sub(port.accepted.bytes.get());
            }
            port.accepted = Backlog::EMPTY;
            rules.carried = held;
            rules.refused = Backlog::EMPTY;
            rules.withdrawn = Backlog::EMPTY;
            rules.dropped = Default::default();
            rules.late = Packets::ZERO;
            rules.marked = Packets::ZERO;
            rules.samples = Packets::ZERO;
            rules.pause_frames = Packets::ZERO;
            rules.since = now;
            if let Some(served) = self.served.get_mut(port.served as usize) {
                served.reset(now);
            }
        }
    }

    /// What of the packet in service at a settled port has gone over the line.
    fn begun(&self, now: Time, link: u32) -> Span {
        let port = &self.ports[link as usize];
        if port.held_packets == 0 || self.served.get(port.served as usize).is_some_and(|served| !served.counts()) {
            return Span::ZERO;
        }
        let record = self.store.first_unsettled(&port.ring);
        let (line, bytes) = (self.rules[link as usize].line, wire_bytes(record.packet.ip_bytes()));
        if let Some(bits) = self.bits_left(now, link, record.at - port.delay) {
            return line.as_rate().time_for(Bytes::new((8 * bytes).saturating_sub(bits) / 8));
        }
        // Behind a notification it may not have begun.
        Span::from_ps(line.time_for(bytes)).saturating_sub(record.at - (now + port.delay))
    }

    /// Σ size · (departure − now) over what a settled port holds and of which the departure is known.
    fn outstanding(&self, now: Time, link: u32) -> u128 {
        let port = &self.ports[link as usize];
        let counts = self.served.get(port.served as usize).is_none_or(Served::counts);
        self.store
            .unsettled(&port.ring, u64::from(port.held_packets) * u64::from(counts))
            .map(|record| {
                let left = record.at - (now + port.delay);
                u128::from(record.packet.ip_bytes()) * u128::from(left.as_ps())
            })
            .sum()
    }
}
