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

    /// See [`Simulation::transmit`]: an end with a limiter in its host's adapter.
    #[inline(never)]
    pub(super) fn transmit_limited(&mut self, now: Time, slot: u32) -> bool {
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        let nic = self.nics.get_mut(&slot).expect("a limited end has one");
        let packets = (&mut self.pool, &mut self.refused);
        let all_sent = match end.split() {
            (Endpoint::Tcp(endpoint), port) => {
                transmit_rarely(now, slot, (endpoint, nic), port, stack, &mut self.network, packets)
            }
            (Endpoint::Datagram(endpoint), port) => {
                transmit_rarely(now, slot, (endpoint, nic), port, stack, &mut self.network, packets)
            }
        };
        self.note_dropped_by_nic(slot);
        all_sent
    }

    /// Takes note of packets for which an adapter's limiter had no place.
    #[inline(never)]
    pub(super) fn note_dropped_by_nic(&mut self, slot: u32) {
        for packet in self.nics.get_mut(&slot).map(|nic| std::mem::take(&mut nic.dropped)).unwrap_or_default() {
            self.note_dropped(packet);
        }
    }

    /// A notification has come to a host. One that is not to be believed changes nothing.
    #[inline(never)]
    pub(super) fn handle_notification(&mut self, now: Time, host: u32, connection: u32, feedback: u8, seq: u32) {
        let Some(slot) = self.connections.slot(connection, Side::on(host, connection)) else { return };
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        if stack.profile.nic_limiter.is_some() {
            let side = end.side() as u64;
            end.place.is_limited = true;
            let stream = || SmallStream::new(mix(self.random ^ mix(u64::from(connection) << 1 | side).rotate_left(17)));
            self.nics.entry(slot).or_insert_with(|| Nic::new(stream())).notify(now, feedback, stack);
            self.pump(now, slot);
            return;
        }
        if end.endpoint.handle_notification(now, feedback, seq, stack).is_ok() {
            self.pump(now, slot);
        }
    }
}
