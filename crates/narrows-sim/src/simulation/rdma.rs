//! Packets of RDMA at the end of their connection.

use super::*;

impl Simulation<'_> {
    /// A packet of RDMA has come to its end; to a sender of datagrams nothing comes back.
    #[inline(never)]
    pub(super) fn handle_rdma(&mut self, now: Time, slot: u32, segment: &Segment) {
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        if let Endpoint::Rdma(endpoint) = &mut end.endpoint {
            endpoint.handle_segment(now, segment, stack);
            if endpoint.has_event() {
                self.drain_events(now, slot);
            }
            if self.transmit(now, slot) {
                self.finish_sending(now, slot);
            }
        }
    }
}
