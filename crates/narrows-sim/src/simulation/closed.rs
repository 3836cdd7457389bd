//! What still arrives for a connection that is gone.

use super::*;

impl Simulation<'_> {
    /// A connection that is gone was closed with everything delivered: what still arrives for it is old, and all of it
    /// is acknowledged without any state [RFC 9293 §3.6.1, TIME-WAIT].
    #[inline(never)]
    #[allow(clippy::cast_possible_truncation, reason = "the upper half of 64 bits")]
    pub(super) fn answer_for_closed(&mut self, now: Time, host: u32, connection: u32, segment: Segment) {
        if segment.length == 0 {
            return;
        }
        let number = self.flow_of(segment.tag);
        let flow = &self.flows[number];
        let (size, source) = (flow.size.unwrap_or(ENDLESS), flow.source);
        let Traffic { service_class, profile, .. } = &self.plan.traffic[flow.name.traffic as usize];
        let numbering = self.connections.numbering;
        let side = numbering.side(host, connection);
        let delivered = if side == Side::Opener || segment.ack == Seq::FIRST.wire() {
            Seq::FIRST.plus(size.get()).wire()
        } else {
            segment.seq.wrapping_add(u32::from(segment.length))
        };
        let mut answer = Segment { seq: segment.ack, ack: delivered, flags: Flags::ACK, ..Segment::default() };
        if segment.flags.contains(Flags::RDMA) {
            answer.flags = Flags::RDMA.with(Flags::ACK);
        } else {
            answer.window = u16::MAX;
            (answer.timestamp, answer.timestamp_echo) = (profile.timestamp(now), segment.timestamp);
        }
        let to = if side == Side::Opener { source } else { numbering.opener(connection) };
        // Where hosts choose paths, each answer takes its own: nothing tells that one is dead.
        let label = (mix(u64::from(segment.timestamp)) >> 32) as u32 & numbering.labels();
        let number = numbering.unlabelled(connection) | label;
        let packet = Packet::pack(&answer, number, Recipient::new(to, side.other()), *service_class, &mut self.pool);
        let port = self.network.host_link(host);
        if let Offered::Dropped(_) = self.network.offer(now, port, packet) {
            packet.unpack(&mut self.pool);
        }
    }
}
