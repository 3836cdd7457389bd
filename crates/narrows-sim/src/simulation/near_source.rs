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

    /// The host that sent a packet; `None` if it belongs to another part, or nobody there would listen: its end of the
    /// connection is gone. An adapter listens for its host; who opened a connection is known without an end.
    fn sender_of(&mut self, packet: Packet) -> Option<u32> {
        let side = packet.side().other();
        if side == Side::Opener && self.limiting.is_some() {
            return Some(self.connections.numbering.opener(packet.connection)).filter(|&host| self.owns(host));
        }
        let slot = self.connections.slot(packet.connection, side)?;
        Some(self.connections.end(slot).place.host)
    }

    /// A notification has come to a host. One that is not to be believed changes nothing.
    #[inline(never)]
    pub(super) fn handle_notification(&mut self, now: Time, host: u32, packet: Packet, (feedback, seq): (u8, u32)) {
        let slot = self.connections.slot(packet.connection, packet.side());
        if let Some(traffic) = self.limiting {
            return self.notify_nic(now, (host, packet.notified_peer()), slot, traffic, feedback);
        }
        let Some(slot) = slot else { return };
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        if end.endpoint.handle_notification(now, feedback, seq, stack).is_ok() {
            self.pump(now, slot);
        }
    }
}
