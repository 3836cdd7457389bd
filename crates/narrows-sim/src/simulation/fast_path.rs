//! The fast path of hosts: what nearly all packets are, from the packet that arrives to the packet that answers it.
//!
//! A packet without options, and with no flags but ACK and PSH, is either the next data of an end that only receives, and may call
//! for an acknowledgement; or it acknowledges data of an end that only sends, and lets new segments go. Each of the two is a
//! function of its own, which asks for nothing else. What does not fit changes nothing and takes the full path, which would do the
//! same ([`Endpoint::take_full_path`](tcp::Endpoint::take_full_path)).

use narrows_core::packet::Segment;
use narrows_core::tcp::{self, FastPath, Stack};
use narrows_core::transport::Endpoint;
use narrows_core::units::{Bytes, Time};
use narrows_network::{Network, Payload};

use super::Simulation;
use crate::connections::{Outlet, UNTOLD};
use crate::packet::{Packet, SidePool};

impl Simulation<'_> {
    /// A packet reaches a host's stack.
    #[inline(always)]
    pub(super) fn handle_packet(&mut self, now: Time, host: u32, packet: &Packet) {
        if !packet.is_plain() {
            return self.handle_on_full_path(now, host, *packet);
        }
        if packet.has_data() {
            self.receive_in_order(now, host, packet);
        } else {
            self.acknowledged_in_order(now, host, packet);
        }
    }

    /// The slot of the end that a plain packet is for, if nothing but its machine has to do with it.
    #[inline(always)]
    fn slot_on_fast_path(&mut self, packet: &Packet) -> Option<u32> {
        let slot = self.connections.slot(packet.connection, packet.side())?;
        let end = self.connections.end(slot);
        (packet.extra() <= end.latest && !end.place.is_handed_specially).then_some(slot)
    }

    /// The next data of an end that only receives.
    #[inline(never)]
    fn receive_in_order(&mut self, now: Time, host: u32, packet: &Packet) {
        let Some(slot) = self.slot_on_fast_path(packet) else { return self.handle_on_full_path(now, host, *packet) };
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        let (Endpoint::Tcp(endpoint), mut end) = end.split() else {
            return self.handle_on_full_path(now, host, *packet);
        };
        // What it repeated may still wait in the port, and its timer for room there.
        if endpoint.fast_path(stack) != FastPath::Receiving
            || end.sends
            || *end.armed_pacing != Time::NEVER
            || !endpoint.receive_in_order(now, &packet.plain_segment(), stack)
        {
            return self.handle_on_full_path(now, host, *packet);
        }
        let mut segment = Segment::default();
        if endpoint.poll_acknowledgement(&mut segment, now, stack) {
            let answer = Packet::pack(&segment, end.connection, end.place.to, end.place.service_class, &mut self.pool);
            if self.network.send(now, end.place.port, answer).is_none() {
                self.refused.push(answer);
            }
        }
        end.arm_timer(slot, endpoint.receiving_deadline(), &mut self.network);
        self.note_refused();
    }

    /// Data of an end that only sends is acknowledged.
    #[inline(never)]
    fn acknowledged_in_order(&mut self, now: Time, host: u32, packet: &Packet) {
        let Some(slot) = self.slot_on_fast_path(packet) else { return self.handle_on_full_path(now, host, *packet) };
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        let (Endpoint::Tcp(endpoint), port) = end.split() else { return self.handle_on_full_path(now, host, *packet) };
        if endpoint.fast_path(stack) != FastPath::Sending
            || !endpoint.acknowledged_in_order(now, &packet.plain_segment(), stack)
        {
            return self.handle_on_full_path(now, host, *packet);
        }
        let packets = (&mut self.pool, &mut self.refused);
        let sent = send_in_order(now, slot, (endpoint, true), port, stack, &mut self.network, packets);
        self.finish_on_fast_path(now, slot, sent);
    }

    /// The host's port has room again for an end that waited for it. False if it is for the full path.
    #[inline(never)]
    pub(super) fn go_on_in_order(&mut self, now: Time, slot: u32) -> bool {
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        let is_handed_specially = end.place.is_handed_specially;
        let (Endpoint::Tcp(endpoint), port) = end.split() else { return false };
        if is_handed_specially || endpoint.fast_path(stack) != FastPath::Sending || endpoint.deadline() <= now {
            return false;
        }
        let packets = (&mut self.pool, &mut self.refused);
        let sent = send_in_order(now, slot, (endpoint, false), port, stack, &mut self.network, packets);
        self.finish_on_fast_path(now, slot, sent);
        true
    }

    #[inline(always)]
    fn finish_on_fast_path(&mut self, now: Time, slot: u32, sent: Option<bool>) {
        let all_sent = match sent {
            Some(all_sent) => {
                self.note_refused();
                all_sent
            }
            None => self.transmit(now, slot),
        };
        if all_sent {
            self.finish_sending(now, slot);
        }
    }
}

/// Sends what the window and the host's port admit of an end that only sends and has just had data `acknowledged`, or not; then arms
/// its deadlines. Returns whether all that it was sending is acknowledged; `None` if the full path must go on.
#[inline(always)]
fn send_in_order(
    now: Time,
    slot: u32,
    (endpoint, acknowledged): (&mut tcp::Endpoint, bool),
    mut end: Outlet<'_>,
    stack: &Stack,
    network: &mut Network<Packet>,
    (pool, refused): (&mut SidePool, &mut Vec<Packet>),
) -> Option<bool> {
    let mut waiting = end.waiting.bytes(now);
    let mut room_at = Time::NEVER;
    let mut moves_probe = acknowledged;
    let decided = loop {
        if !endpoint.has_room(waiting, stack) {
            room_at = end.waiting.next_departure();
            break true;
        }
        let mut segment = Segment::default();
        match endpoint.poll_new(&mut segment, now, stack) {
            Some(true) => moves_probe = true,
            Some(false) => break true,
            None => break false,
        }
        let packet = Packet::pack(&segment, end.connection, end.place.to, end.place.service_class, pool);
        match network.send(now, end.place.port, packet) {
            Some(departure) => {
                end.waiting.push(departure.min(UNTOLD), packet.ip_bytes());
                waiting += Bytes::new(packet.ip_bytes().into());
            }
            None => refused.push(packet),
        }
    };
    if moves_probe {
        endpoint.probe_tail(now, stack);
    }
    if !decided {
        return None;
    }
    end.arm_timer(slot, endpoint.sending_deadline(), network);
    // Pacing would have been for the full path.
    debug_assert!(room_at < Time::NEVER || endpoint.pacing_deadline() == Time::NEVER);
    end.arm_pacing(slot, room_at, network);
    Some(acknowledged && end.sends && endpoint.is_idle())
}
