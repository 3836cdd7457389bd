//! In-band telemetry at the hosts: what ports wrote into a packet of data goes back with an acknowledgement, and to the sender's
//! controller. Headers are not made longer by it.

use narrows_core::telemetry::Hop;

use super::*;

impl Simulation<'_> {
    /// Packets under way, or in the hands of hosts' ports, beside which telemetry lies.
    pub fn telemetry_under_way(&self) -> usize {
        self.network.telemetry_records()
    }

    /// The packet as its host sent it, and its telemetry.
    pub(super) fn without_telemetry(&mut self, packet: Packet) -> (Packet, Option<Vec<Hop>>) {
        let Some(place) = packet.wrapped().filter(|_| self.has_telemetry) else { return (packet, None) };
        let (extra, hops) = self.network.take_telemetry(place);
        (packet.unwrap(extra, 0), Some(hops))
    }

    /// A packet has come to its host. Of data its telemetry waits for an acknowledgement, unless the end is not there yet; of an
    /// acknowledgement it is what the sender asked for.
    #[cold]
    #[inline(never)]
    pub(super) fn take_telemetry(&mut self, packet: Packet) -> Packet {
        let (packet, Some(hops)) = self.without_telemetry(packet) else { return packet };
        let slot = self.connections.slot(packet.connection, packet.side());
        if let Some(end) = slot.map(|slot| self.connections.end(slot)) {
            let read = if packet.payload() > 0 {
                end.telemetry.replace(hops)
            } else {
                end.endpoint.handle_telemetry(&hops);
                Some(hops)
            };
            read.into_iter().for_each(|hops| self.network.give_back_telemetry(hops));
        }
        packet
    }
}
