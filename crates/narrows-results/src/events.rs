//! What changes at links during a run, and which flows meet it.

use std::collections::BTreeSet;

use narrows_core::units::Time;
use narrows_plan::{Change, Graph};

use crate::rows::{EventRow, FlowRow, real};

impl EventRow {
    /// All that changes in a network, by time, then link, numbered in this order. A coming up is the end of its outage.
    pub fn all(graph: &Graph) -> Vec<EventRow> {
        let mut rows: Vec<EventRow> = vec![];
        for (port, link) in (0..).zip(&graph.links) {
            for (place, event) in link.events.iter().enumerate() {
                let (kind, value) = match event.change {
                    Change::Rate(rate) => ("rate", Some(real(rate.as_bps()))),
                    Change::Delay(delay) => ("delay", Some(real(delay.saturating_sub(link.stack).as_ns()))),
                    Change::Loss(loss) => ("loss", Some(f64::from(loss) / 4_294_967_296.0)),
                    Change::Down => ("outage", None),
                    Change::Up => continue,
                };
                let ends = |later: &&narrows_plan::Event| match (event.change, later.change) {
                    (Change::Down, Change::Up) => true,
                    (one, other) => std::mem::discriminant(&one) == std::mem::discriminant(&other),
                };
                let end = link.events[place + 1..].iter().find(ends);
                rows.push(EventRow {
                    event: 0,
                    time_ns: event.at.as_ns(),
                    until_ns: end.map(|end| end.at.as_ns()),
                    port,
                    kind,
                    value,
                    flows: 0,
                });
            }
        }
        rows.sort_by_key(|row| (row.time_ns, row.port));
        (0..).zip(&mut rows).for_each(|(number, row)| row.event = number);
        rows
    }

    /// Whether it is in force at any time from `start` to `end`, in nanoseconds.
    fn meets(&self, start: u64, end: u64) -> bool {
        self.time_ns <= end && self.until_ns.is_none_or(|until| until > start)
    }

    /// Counts a flow at each event that it meets on these links, and tells the flow.
    pub fn meet(events: &mut [EventRow], links: &BTreeSet<u32>, flow: &mut FlowRow, ended: Time) {
        let end = flow.fct_ns.map_or(ended.as_ns(), |fct| flow.start_ns + fct);
        let mut met: Vec<String> = vec![];
        for event in events.iter_mut().filter(|event| links.contains(&event.port) && event.meets(flow.start_ns, end)) {
            event.flows += 1;
            met.push(event.event.to_string());
        }
        flow.events_met = (!met.is_empty()).then(|| met.join(","));
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::units::{Rate, Span};
    use narrows_plan::{Event, Link, Role};

    use super::*;

    #[test]
    fn an_event_lasts_until_the_next_of_its_kind_at_its_link() {
        let at = |ms, change| Event { at: Time::ZERO + Span::from_ms(ms), change };
        let link = |name: &str, events: Vec<Event>| Link {
            events,
            stack: Span::from_us(1),
            ..Link::new(name, (0, 1), Role::Wan, Rate::from_gbps(1), Span::from_us(9))
        };
        let first = vec![
            at(1, Change::Rate(Rate::from_mbps(5))),
            at(2, Change::Down),
            at(3, Change::Up),
            at(4, Change::Rate(Rate::from_mbps(7))),
        ];
        let second = vec![at(1, Change::Delay(Span::from_us(3))), at(9, Change::Down)];
        let graph = Graph { links: vec![link("a->b", first), link("b->a", second)], ..Graph::default() };
        let rows = EventRow::all(&graph);
        let told: Vec<_> = rows.iter().map(|row| (row.time_ns / 1_000_000, row.port, row.kind, row.value)).collect();
        assert_eq!(
            told,
            [
                (1, 0, "rate", Some(5e6)),
                (1, 1, "delay", Some(2_000.0)),
                (2, 0, "outage", None),
                (4, 0, "rate", Some(7e6)),
                (9, 1, "outage", None)
            ]
        );
        let until: Vec<_> = rows.iter().map(|row| row.until_ns.map(|ns| ns / 1_000_000)).collect();
        assert_eq!(until, [Some(4), None, Some(3), None, None]);
        let met = |start: u64, end: u64| rows.iter().filter(|row| row.meets(start, end)).count();
        assert_eq!([met(0, 999_999), met(0, 1_000_000), met(3_000_000, 3_500_000)], [0, 2, 2]);
    }
}
