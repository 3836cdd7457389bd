//! Telemetry of the packets under way: what ports have written into each, kept aside so that packets stay small.

use narrows_core::telemetry::Hop;

use crate::network::Payload;

/// What lies beside a packet.
#[derive(Clone, Debug, Default)]
struct Record {
    /// What the packet holds in its place's place: see [`Payload::carry_telemetry`](crate::Payload::carry_telemetry).
    kept: u32,
    hops: Vec<Hop>,
}

/// Records by place; a place is used again when its record was taken out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    records: Vec<Record>,
    free: Vec<u32>,
}

impl Telemetry {
    /// A place for these hops.
    pub(crate) fn keep(&mut self, hops: Vec<Hop>) -> u32 {
        let record = Record { kept: 0, hops };
        if let Some(place) = self.free.pop() {
            self.records[place as usize] = record;
            return place;
        }
        self.records.push(record);
        u32::try_from(self.records.len() - 1).expect("fewer packets under way than 2³²")
    }

    /// What the packet of this place held before it held the place.
    pub(crate) fn keep_beside(&mut self, place: u32, kept: u32) {
        self.records[place as usize].kept = kept;
    }

    /// One more port writes into a packet, for which there is a place from the first port on.
    pub(crate) fn write_into(&mut self, packet: &mut impl Payload, hop: Hop) {
        let place = match packet.telemetry() {
            Some(place) => place,
            None => {
                let place = self.keep(Vec::new());
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
        let record = std::mem::take(&mut self.records[place as usize]);
        self.free.push(place);
        (record.kept, record.hops)
    }

    /// Records that were not taken out.
    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }
}
