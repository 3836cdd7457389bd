//! Telemetry of the packets under way: what ports have written into each, kept aside so that packets stay small.

use std::collections::VecDeque;

use narrows_core::telemetry::Hop;

use crate::network::Payload;

/// What lies beside a packet.
#[derive(Clone, Debug, Default)]
struct Record {
    /// What the packet held where it now holds the record's place: see [`Payload::carry_telemetry`].
    kept: u32,
    hops: Vec<Hop>,
}

/// Records by place. A place is used again when its record was taken out, the one that has been free for longest first: what was
/// kept there can still be read for a while, by a tracer for instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    records: Vec<Record>,
    free: VecDeque<u32>,
    /// Lists whose hops have been read: their memory is used again.
    spare: Vec<Vec<Hop>>,
}

impl Telemetry {
    /// A place for these hops.
    pub(crate) fn keep(&mut self, hops: Vec<Hop>) -> u32 {
        if let Some(place) = self.free.pop_front() {
            self.records[place as usize].hops = hops;
            return place;
        }
        self.records.push(Record { kept: 0, hops });
        u32::try_from(self.records.len() - 1).expect("fewer packets under way than 2³²")
    }

    /// What the packet of this place held before it held the place.
    pub(crate) fn keep_beside(&mut self, place: u32, kept: u32) {
        self.records[place as usize].kept = kept;
    }

    /// The same, to be read; also shortly after the record was taken out.
    pub(crate) fn kept(&self, place: u32) -> u32 {
        self.records[place as usize].kept
    }

    /// One more port writes into a packet, for which there is a place from the first port on.
    pub(crate) fn write_into(&mut self, packet: &mut impl Payload, hop: Hop) {
        let place = match packet.telemetry() {
            Some(place) => place,
            None => {
                let hops = self.spare.pop().unwrap_or_default();
                let place = self.keep(hops);
                let Some(kept) = packet.carry_telemetry(place) else {
                    self.take(place);
                    return;
                };
                self.keep_beside(place, kept);
                place
            }
        };
        self.records[place as usize].hops.push(hop);
    }

    /// Takes a record out: what the packet held before, and its hops.
    pub(crate) fn take(&mut self, place: u32) -> (u32, Vec<Hop>) {
        let record = &mut self.records[place as usize];
        let taken = (record.kept, std::mem::take(&mut record.hops));
        self.free.push_back(place);
        taken
    }

    /// The hops have been read.
    pub(crate) fn give_back(&mut self, mut hops: Vec<Hop>) {
        hops.clear();
        self.spare.push(hops);
    }

    /// Records that were not taken out.
    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }
}
