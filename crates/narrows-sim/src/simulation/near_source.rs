//! From a congested switch back to the sender: who is told, and what it does.

use narrows_core::queue::Feedback;

use super::*;

impl Simulation<'_> {
    /// A port's congestion point has sampled a packet. Whoever sent it is told, if it is within the scope.
    #[inline(never)]
    pub(super) fn notify_sender(&mut self, now: Time, link: u32, feedback: Feedback, packet: Packet) {
        let Some(source) = self.sender_of(packet) else { return };
        if self.plan.network.is_told(source, self.network.host_link(source), link) {
            self.network.notify(now, link, packet.notification(source, feedback.quantized));
        }
    }

    /// The host that sent a packet; `None` if its end of the connection is gone, or lives in another part.
    fn sender_of(&mut self, packet: Packet) -> Option<u32> {
        let side = Side::on(packet.destination(), packet.connection).other();
        let slot = self.connections.slot(packet.connection, side)?;
        Some(self.connections.end(slot).place.host)
    }

    /// A notification has come to a host. One that is not to be believed changes nothing.
    #[inline(never)]
    pub(super) fn handle_notification(&mut self, now: Time, host: u32, connection: u32, feedback: u8, seq: u32) {
        let Some(slot) = self.connections.slot(connection, Side::on(host, connection)) else { return };
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        if stack.profile.nic_limiter.is_some() {
            return self.notify_nic(now, slot, feedback);
        }
        if end.endpoint.handle_notification(now, feedback, seq, stack).is_ok() {
            self.pump(now, slot);
        }
    }
}
