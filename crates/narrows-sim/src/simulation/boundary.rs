//! What crosses from one part of a run to another: packets on the links between them.

use narrows_core::packet::SackBlocks;
use narrows_network::Carried;

use super::*;

/// Packets on their way into another part, and what some of them have in the side pool, by value in the same order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    packets: Vec<Carried<Packet>>,
    beside: Vec<(SackBlocks, Tag)>,
}

impl Mail {
    /// Moves all of `later` to the end, and leaves it empty.
    pub(crate) fn append(&mut self, later: &mut Mail) {
        if self.packets.is_empty() {
            std::mem::swap(self, later);
        } else {
            self.packets.append(&mut later.packets);
            self.beside.append(&mut later.beside);
        }
    }
}

impl Simulation<'_> {
    /// Handles everything up to and including `until`, once all [`Mail`] that arrives by then has been received.
    pub(crate) fn run_until(&mut self, until: Time) {
        let all = self.run(until, u64::MAX);
        debug_assert!(all.is_some());
    }

    /// Puts what this part has sent into the boxes of the parts that it goes to.
    pub(crate) fn send(&mut self, boxes: &mut [Mail]) {
        for (part, mail) in (0..).zip(boxes) {
            // The box was handed over after the last step.
            debug_assert!(mail.packets.is_empty());
            self.network.hand_over(self.now, part, &mut mail.packets);
            let pool = &mut self.pool;
            mail.beside.extend(mail.packets.iter().filter_map(|carried| carried.packet.leave(pool)));
        }
    }

    /// Takes what other parts have sent, each link's packets in the order in which they were sent.
    pub(crate) fn receive(&mut self, mail: &mut Mail) {
        let mut beside = mail.beside.drain(..);
        for carried in &mut mail.packets {
            debug_assert!(carried.at > self.now, "a packet comes from the past");
            carried.packet.enter(&mut beside, &mut self.pool);
        }
        for carried in mail.packets.chunk_by(|one, next| one.link == next.link) {
            self.network.import(carried);
        }
        mail.packets.clear();
    }

    /// Flows with a size that were opened in this part, less those that were whole in it: over all parts, those that are
    /// not done.
    pub(crate) fn unfinished(&self) -> i64 {
        self.unfinished
    }
}
