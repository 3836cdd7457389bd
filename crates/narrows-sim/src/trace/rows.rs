//! What was recorded, as rows.

use std::collections::HashMap;

use narrows_core::cc::Phase;
use narrows_core::units::Time;
use narrows_plan::Plan;
use narrows_results::trace::{HopRow, PauseRow, SenderRow, TimeRow, Trace};

use super::critical::Walk;
use super::hop::Links;
use super::{Recorder, TracedFlow};
use crate::flows::Flows;

impl Recorder {
    /// The rows, with flows by their place among the run's; `place_of` finds it by the tag.
    pub(crate) fn rows(&self, plan: &Plan, flows: &Flows, place_of: impl Fn(u32) -> Option<u32>) -> Trace {
        let links = Links::new(plan, &self.pauses);
        let finished = self.flows.iter().filter(|flow| flows[flow.place].done < Time::NEVER);
        let mut times: Vec<TimeRow> =
            finished.flat_map(|flow| self.times(&links, *flow, flows[flow.place].done)).collect();
        times.sort_by_key(|row| (row.flow, row.from_ns));
        Trace { hops: self.hops(plan, flows, &links, place_of), senders: self.senders(), times, pauses: self.pauses() }
    }

    fn times(&self, links: &Links<'_>, flow: TracedFlow, done: Time) -> Vec<TimeRow> {
        let since_start = |at: Time| at.since(flow.start).as_ns();
        let rows = Walk::of(self, links, flow, done).into_iter().map(|found| TimeRow {
            flow: flow.place,
            from_ns: since_start(found.stretch.from),
            until_ns: since_start(found.stretch.until),
            reason: found.reason,
            place: found.stretch.place,
            link: found.stretch.link,
        });
        let mut merged: Vec<TimeRow> = Vec::new();
        for row in rows {
            match merged.last_mut() {
                Some(last) if (last.reason, last.place, last.link) == (row.reason, row.place, row.link) => {
                    last.until_ns = row.until_ns;
                }
                _ => merged.push(row),
            }
        }
        merged
    }

    fn hops(
        &self,
        plan: &Plan,
        flows: &Flows,
        links: &Links<'_>,
        place_of: impl Fn(u32) -> Option<u32>,
    ) -> Vec<HopRow> {
        let scales: Vec<u8> = plan.traffic.iter().map(|traffic| traffic.profile.window_scale()).collect();
        let scales = &scales;
        // The last traced flow of each connection.
        let by_connection: HashMap<u32, u32> = self.flows.iter().map(|flow| (flow.connection, flow.place)).collect();
        let rows = (0..).zip(&self.journeys).flat_map(|(packet, journey)| {
            let own = (journey.payload > 0).then(|| place_of(journey.tag)).flatten();
            let flow = own.unwrap_or_else(|| by_connection[&journey.connection]);
            (0..).zip(&journey.hops).skip(journey.copied_hops).map(move |(hop, at)| {
                let begun = links.begun(journey, at);
                let last = hop as usize + 1 == journey.hops.len();
                HopRow {
                    packet,
                    hop,
                    flow,
                    connection: journey.connection,
                    port: at.link,
                    source: journey.host,
                    destination: journey.destination,
                    from_opener: self.numbering.opener(journey.connection) == journey.host,
                    opened: self.numbering.count(journey.connection),
                    offered_ns: at.offered.as_ns(),
                    waited_ns: begun.map_or(0, |begun| begun.since(at.offered).as_ns()),
                    arrived_ns: at.arrived.map(Time::as_ns),
                    dropped: last && journey.dropped,
                    marked: at.marked,
                    ecn: at.ecn,
                    flags: journey.flags,
                    window: journey.window,
                    window_scale: scales[flows[flow].name.traffic as usize],
                    timestamps: journey.timestamps,
                    sack: journey.sack,
                    is_datagram: journey.is_datagram,
                    left: begun.is_some(),
                    seq: journey.seq,
                    ack: journey.ack,
                    payload_bytes: journey.payload,
                    ip_bytes: journey.ip_bytes,
                    retransmission: journey.is_retransmission,
                }
            })
        });
        rows.collect()
    }

    fn senders(&self) -> Vec<SenderRow> {
        let mut rows: Vec<SenderRow> = Vec::new();
        for log in self.ends.values() {
            for look in log.looks.iter().filter(|look| look.flow != u32::MAX) {
                let state = look.snapshot;
                let threshold = state.map(|state| state.slow_start_threshold.get()).filter(|most| *most < u64::MAX);
                rows.push(SenderRow {
                    time_ns: look.at.as_ns(),
                    flow: look.flow,
                    host: look.host,
                    event: look.trigger.name(),
                    window_packets: state.map(|state| state.window.get()),
                    slow_start_threshold_packets: threshold,
                    pacing_bps: state.and_then(|state| state.pacing).map(|rate| rate.as_bps()),
                    near_source_bps: state.and_then(|state| state.near_source).map(|rate| rate.as_bps()),
                    srtt_ns: state.and_then(|state| state.srtt).map(|span| span.as_ns()),
                    min_rtt_ns: state.and_then(|state| state.min_rtt).map(|span| span.as_ns()),
                    rto_ns: state.map(|state| state.rto.as_ns()),
                    in_flight_packets: state.map(|state| state.in_flight),
                    outstanding_packets: state.map(|state| state.outstanding),
                    phase: state.map(|state| phase_name(state.phase)),
                    acknowledged_bytes: state.map(|state| state.una.get() - 1),
                    sent_bytes: state.map(|state| state.nxt.get() - 1),
                    waits_for: look.wait.name(),
                });
            }
        }
        rows.sort_by_key(|row| (row.time_ns, row.flow));
        rows
    }

    fn pauses(&self) -> Vec<PauseRow> {
        let of_packets: std::collections::BTreeSet<u32> =
            self.journeys.iter().flat_map(|journey| journey.hops.iter().map(|hop| hop.link)).collect();
        let pauses = self.pauses.iter().filter(|pause| of_packets.contains(&pause.link));
        let row = |pause: &super::Pause| PauseRow {
            time_ns: pause.at.as_ns(),
            port: pause.link,
            priorities: pause.priorities.into(),
            for_ns: pause.time.as_ns(),
        };
        pauses.map(row).collect()
    }
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::EcnReduction => "ecn",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}
