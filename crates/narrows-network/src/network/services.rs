//! What happens where a network is more than FIFOs and delays: services that end, frames that pause and resume, packets that were
//! late on a wire or dropped after they were accepted.

use super::*;

impl<P: Payload> Network<P> {
    /// What a served port brings about beside: ends of services that must be told, and frames that pause and resume.
    #[inline(always)]
    pub(super) fn follow_served(&mut self, now: Time) {
        if self.ports.has_news() {
            self.follow_news(now);
        }
    }

    #[inline(never)]
    fn follow_news(&mut self, now: Time) {
        while let Some(link) = self.ports.take_frame() {
            self.send_frame(now, link);
        }
        while let Some((link, first)) = self.ports.take_first() {
            self.agenda.arm_link::<true>(link, first);
        }
        while let Some((link, at)) = self.ports.take_wake() {
            // Of a port that has caught up with the time, what it said on the way is over.
            if at >= now {
                self.agenda.arm(Entity::service(link), at);
            }
        }
        self.tell_dropped(now);
    }

    /// Has the driver told of what was dropped after it was accepted: as soon as this event is handled. The entity is that of
    /// the port after the last.
    pub(super) fn tell_dropped(&mut self, now: Time) {
        if self.ports.has_dropped() {
            self.agenda.arm(Entity::service(self.ports.len()), now);
        }
    }

    /// Has the other end of `link` told, over the way back, which of its priorities are paused: told again after a while, if any
    /// is.
    fn send_frame(&mut self, now: Time, link: u32) {
        self.packet_hops += u64::from(self.ports.request_frame(now, self.reverses[link as usize], link));
        if self.ports.asking(link) != 0 {
            self.agenda.arm(Entity::refresh(link), now + self.ports.refresh_time(now, link));
        }
    }

    /// What the network has an appointment for itself is due.
    #[cold]
    pub(super) fn act(&mut self, now: Time, entity: Entity) -> Option<Event<P>> {
        if entity.class() == Class::Service {
            return self.serve(now, entity);
        }
        self.events += 1;
        let link = entity.slot();
        let (packet, next) = self.ports.arrive_late(now, link);
        if let Some(next) = next {
            self.agenda.arm(entity, next);
        }
        self.note(now, link, Happened::Arrived(packet));
        match self.ports.far_end(link) {
            FarEnd::Host(host) => Some(Event::Arrival { host, packet }),
            FarEnd::Switch(_) => self.go_on(now, link, packet),
        }
    }

    /// A port of which the end of a service is told, or a pause that is asked for again, is due.
    fn serve(&mut self, now: Time, entity: Entity) -> Option<Event<P>> {
        let link = entity.slot() >> 1;
        if link == self.ports.len() {
            let dropped = self.ports.take_dropped();
            self.follow_served(now);
            return dropped.map(|packet| Event::Dropped { packet });
        }
        if entity == Entity::service(link) {
            self.ports.serve(now, link);
        } else if self.ports.asking(link) != 0 {
            self.send_frame(now, link);
        }
        self.follow_served(now);
        self.ports.take_left().map(|(link, packet)| Event::Left { link, packet })
    }
}
