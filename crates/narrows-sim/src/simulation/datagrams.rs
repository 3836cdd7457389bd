//! Flows of datagrams: what arrives is counted for its flow, and no connection has an end where it arrives. A flow is over
//! once each of its bytes has arrived or was dropped.

use super::*;

impl Simulation<'_> {
    /// Takes what is of no connection; false for a SYN, and for a packet of RDMA.
    #[inline(never)]
    pub(super) fn handle_special(&mut self, now: Time, host: u32, packet: Packet) -> bool {
        if let Some((feedback, seq)) = packet.as_notification() {
            self.handle_notification(now, host, packet, (feedback, seq));
        } else if packet.is_datagram() {
            self.receive_datagram(now, packet);
        } else {
            return false;
        }
        true
    }

    fn receive_datagram(&mut self, now: Time, packet: Packet) {
        let segment = packet.unpack(&mut self.pool);
        let number = self.flow_of(segment.tag);
        let flow = &mut self.flows[number];
        let (length, traffic) = (u64::from(segment.length), flow.name.traffic);
        flow.first_byte = flow.first_byte.min(now);
        flow.delivered += length;
        let (sequence, whole) = (flow.name.sequence, flow.size == Some(Bytes::new(flow.delivered)));
        if whole {
            flow.done = now;
        }
        self.settle(segment.length);
        if whole && self.apps[traffic as usize].handle_delivered(now, sequence) {
            self.follow(now, traffic);
        }
    }

    /// A flow without a size has sent its last, though some of it may wait in its host's adapter still: all of it is to arrive or
    /// to be dropped. Until then the sum lacks what is on its way, but no run is over before every such flow has stopped.
    pub(super) fn note_last_sent(&mut self, sent: Bytes) {
        self.unfinished += i64::try_from(sent.get()).expect("sizes are far below 2⁶³");
    }

    /// So many bytes have arrived or were dropped.
    pub(super) fn settle(&mut self, bytes: u16) {
        self.unfinished -= i64::from(bytes);
    }
}
