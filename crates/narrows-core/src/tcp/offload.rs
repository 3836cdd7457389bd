//! Receive offload: segments in a row reach the stack as one, and one acknowledgement answers them all.
//!
//! Linux merges what the port received within one poll [Linux `tcp_gro_receive`]; here a gap without an arrival ends the
//! poll. A mark, a new timestamp, a hole, a short segment or a pushed one ends a run, as in Linux.

use super::Stack;
use super::receiver::Arrival;
use crate::packet::Flags;
use crate::units::Time;

/// Most bytes in one run: the length field of IP.
const MAX_BYTES: u64 = 65_535;

/// The run that waits for more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveOffload {
    run: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    arrival: Arrival,
    segments: u8,
    last: Time,
}

impl ReceiveOffload {
    /// Whether a host has it.
    pub(super) fn is_on(stack: &Stack) -> bool {
        stack.profile.receive_offload_segments > 1
    }

    /// Takes a segment. `deliver` gets what is complete: the earlier run if this segment does not continue it, and the
    /// run with this segment if nothing may follow it.
    pub(super) fn handle(&mut self, now: Time, arrival: Arrival, stack: &Stack, mut deliver: impl FnMut(Arrival)) {
        let full = arrival.end.since(arrival.start) == stack.mss();
        let run = match self.run.take() {
            Some(run) if run.continues(arrival) => Run {
                arrival: Arrival {
                    end: arrival.end,
                    flags: run.arrival.flags.with(arrival.flags),
                    tag: arrival.tag,
                    ..run.arrival
                },
                segments: run.segments + 1,
                last: now,
            },
            earlier => {
                if let Some(earlier) = earlier {
                    deliver(earlier.arrival);
                }
                Run { arrival, segments: 1, last: now }
            }
        };
        let ends =
            !full || arrival.flags.contains(Flags::PSH) || run.segments >= stack.profile.receive_offload_segments;
        if ends {
            deliver(run.arrival);
        } else {
            self.run = Some(run);
        }
    }

    /// When the waiting run is handed up if nothing follows; [`Time::NEVER`] if none waits.
    pub(super) fn deadline(&self, stack: &Stack) -> Time {
        self.run.map_or(Time::NEVER, |run| run.last + stack.profile.receive_offload_gap)
    }

    /// The waiting run, if any: its gap has passed, or a segment that may not overtake it has come.
    pub(super) fn flush(&mut self) -> Option<Arrival> {
        self.run.take().map(|run| run.arrival)
    }
}

impl Run {
    fn continues(&self, next: Arrival) -> bool {
        next.start == self.arrival.end
            && next.marked == self.arrival.marked
            && next.timestamp == self.arrival.timestamp
            && next.flags.contains(Flags::CWR) == self.arrival.flags.contains(Flags::CWR)
            && next.end.since(self.arrival.start) <= MAX_BYTES
    }
}
