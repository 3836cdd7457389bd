//! What the ends of bridges do in the network.

use super::*;
use crate::bridges::Sent;

impl Simulation<'_> {
    /// A packet enters or leaves a bridge; or what comes of one that has left.
    #[inline(never)]
    pub(super) fn handle_bridge(&mut self, now: Time, event: Event<Packet>) {
        match event {
            Event::Entering { link, packet } => {
                let end = self.bridges.enter(now, link, packet);
                self.serve_bridge(now, end);
            }
            Event::Crossed { link, packet } => {
                let end = self.bridges.leave(now, link, packet);
                self.serve_bridge(now, end);
            }
            Event::Dropped { packet } => self.note_dropped(packet),
            Event::Sampled { link, feedback, packet } => self.notify_sender(now, link, feedback, packet),
            Event::Arrival { .. } | Event::Left { .. } | Event::Recalled { .. } | Event::Due(_) => {
                unreachable!("they come from the agenda alone")
            }
        }
    }

    /// An end of a bridge is due.
    #[inline(never)]
    pub(super) fn handle_bridge_timer(&mut self, now: Time, end: usize) {
        self.bridges.handle_timeout(now, end);
        self.serve_bridge(now, end);
    }

    /// Sends what an end has to send, and arms its deadline.
    fn serve_bridge(&mut self, now: Time, end: usize) {
        while let Some(sent) = self.bridges.poll(end) {
            match sent {
                Sent::On(link, packet) => {
                    if let Some(event) = self.network.go_on(now, link, packet) {
                        self.handle_bridge(now, event);
                    }
                }
                Sent::Dropped(packet) => self.note_dropped(packet),
                Sent::Over(link, packet, urgent, shim) => {
                    match (self.network.cross(now, link, packet, urgent), shim) {
                        (Offered::Dropped(_), _) => self.note_dropped(packet),
                        (Offered::Accepted { departure, .. }, Some(shim)) => {
                            self.bridges.note_departure(end, &shim, departure);
                        }
                        (Offered::Accepted { .. }, None) => {}
                    }
                    // What the two ends tell each other has no sender.
                    let feedback = self.network.take_feedback().filter(|_| packet.as_notification().is_none());
                    if let Some(feedback) = feedback {
                        self.notify_sender(now, link, feedback, packet);
                    }
                }
            }
        }
        if let Some((entity, at)) = self.bridges.rearm(BRIDGES, end) {
            self.network.arm(entity, at);
        }
    }
}
