//! What is due when, in one total order that comes from the network and the plan alone.
//!
//! Equal times are ordered by class and then by identifier, never by the order of insertion, never by a slot of a data
//! structure: those would change with the code, with fused hosts and with a partition of the network, and measured, they
//! change drops by a fifth.
//!
//! A link has at most one entry, for its first packet's arrival, set again when that packet is taken. A driver's entity
//! has an appointment: *armed* for a time, moved by arming again. An appointment that moves to a later time leaves its
//! entry where it is; when the entry's turn comes it is put back for the later time. So a retransmission timer that every
//! acknowledgement moves costs a store, and only an appointment that moves to an earlier time leaves a stale entry
//! behind. Nothing is ever searched or cancelled.
//!
//! Invariant: an entry of a driver's entity counts only if its slot still belongs to the entity and expects an entry at
//! just that time; at most one does.

mod wheel;

use crate::port::First;
use narrows_core::units::Time;
use narrows_plan::Graph;
use wheel::{Popped, Wheel};

const SLOT_BITS: u32 = 24;
const ID_BITS: u32 = 36;
const CLASS_SHIFT: u32 = SLOT_BITS + ID_BITS;
/// Beside a link's number, in an identifier: above all links' numbers.
const LATE: u64 = 1 << 32;
/// A full frame on the wire: what a link's rate is counted in.
const FULL_FRAME_BITS: u64 = 8 * 1_538;

/// Something that can be due. Its class and identifier say in which order equal times are handled; its slot says where
/// its appointment is kept.
///
/// As one number: class, 36 bits of identifier, 24 bits of slot, from the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity(u64);

/// The kinds of entities, in the order in which they are handled at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// A service ends, at a port that must act on it then; the network's own.
    Service = 0,
    /// The first packet of a link reaches its far end; after those, what was late on the wire.
    Arrival = 1,
    /// A timer of a protocol machine. Retransmission and pacing are entities of their own.
    Timer = 2,
    /// Traffic begins or ends.
    Start = 3,
    /// Something is measured.
    Sample = 4,
}

impl Entity {
    #[inline(always)]
    const fn new(class: Class, id: u64, slot: u32) -> Entity {
        assert!(id >> ID_BITS == 0, "identifiers are below 2³⁶");
        assert!(slot >> SLOT_BITS == 0, "slots are below 2²⁴");
        Entity((class as u64) << CLASS_SHIFT | id << SLOT_BITS | slot as u64)
    }

    /// A timer. `id`, below 2³⁶, comes from the plan and is unique among timers. `slot`, below 2²⁴, is a small number
    /// that no other timer uses at the same time; it may pass on to another timer after [`disarm`], or once it is due.
    ///
    /// [`disarm`]: crate::Network::disarm
    #[inline(always)]
    pub const fn timer(id: u64, slot: u32) -> Entity {
        Entity::new(Class::Timer, id, slot)
    }

    /// A start of traffic; `id` and `slot` as for [`Entity::timer`], apart from the timers'.
    pub const fn start(id: u64, slot: u32) -> Entity {
        Entity::new(Class::Start, id, slot)
    }

    /// A sampler; `id` and `slot` as for [`Entity::timer`], apart from the others'.
    pub const fn sample(id: u64, slot: u32) -> Entity {
        Entity::new(Class::Sample, id, slot)
    }

    /// Its class.
    pub const fn class(self) -> Class {
        match self.0 >> CLASS_SHIFT {
            0 => Class::Service,
            1 => Class::Arrival,
            2 => Class::Timer,
            3 => Class::Start,
            _ => Class::Sample,
        }
    }

    /// Its identifier.
    pub const fn id(self) -> u64 {
        self.0 >> SLOT_BITS & ((1 << ID_BITS) - 1)
    }

    /// Its slot.
    #[allow(clippy::cast_possible_truncation, reason = "24 bits")]
    pub const fn slot(self) -> u32 {
        (self.0 & ((1 << SLOT_BITS) - 1)) as u32
    }

    /// The end of a service at the port of a link, or of a pause.
    pub(crate) const fn service(link: u32) -> Entity {
        Entity::new(Class::Service, (link as u64) << 1, link << 1)
    }

    /// A pause that the far end of a link has asked for is asked for again.
    pub(crate) const fn refresh(link: u32) -> Entity {
        Entity::new(Class::Service, (link as u64) << 1 | 1, link << 1 | 1)
    }

    /// What was late on the wire of a link arrives.
    pub(crate) const fn late(link: u32) -> Entity {
        Entity::new(Class::Arrival, LATE | link as u64, link)
    }

    /// The first arrival of a link. The identifier is the link's; the slot is unused.
    const fn arrival(link: u32) -> Entity {
        Entity((Class::Arrival as u64) << CLASS_SHIFT | (link as u64) << SLOT_BITS)
    }
}

/// What [`Agenda::pop`] finds due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The first packet of this link.
    Arrival(u32),
    /// This entity of the driver's.
    Entity(Entity),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    pending: Wheel,
    services: Slots,
    late: Slots,
    timers: Slots,
    starts: Slots,
    samples: Slots,
}

/// Appointments of one class.
#[derive(Clone, Debug, Default)]
struct Slots(Vec<Appointment>);

#[derive(Clone, Copy, Debug)]
struct Appointment {
    entity: Entity,
    /// When its entry's turn comes: not after `due`. [`Time::NEVER`] if there is no entry.
    queued: Time,
    /// When it is due; [`Time::NEVER`] if it is not armed.
    due: Time,
}

impl Agenda {
    /// An empty agenda, shaped for this network, in which so many `links` and urgent queues have arrivals.
    pub(crate) fn new(graph: &Graph, links: u32) -> Agenda {
        let frames: u64 = graph.links.iter().map(|link| link.rate.as_bps() / FULL_FRAME_BITS).sum();
        Agenda::of(links, frames)
    }

    /// For so many links that together carry so many full frames per second.
    fn of(links: u32, frames_per_second: u64) -> Agenda {
        let keys = (0..links).map(|link| Entity::arrival(link).0);
        Agenda {
            pending: Wheel::new(wheel::width_bits(frames_per_second), keys),
            services: Slots::default(),
            late: Slots::default(),
            timers: Slots::default(),
            starts: Slots::default(),
            samples: Slots::default(),
        }
    }

    /// `first` is the first packet of `link`. For a link without an entry. Only where it is `GUESSED` can be asked what is
    /// [probably next](Self::probably_next).
    #[inline(always)]
    pub(crate) fn arm_link<const GUESSED: bool>(&mut self, link: u32, first: First) {
        self.pending.push_link::<GUESSED>(link, first.at.as_ps(), first.front);
    }

    /// Makes `entity` due at `at` and at no other time.
    #[inline(always)]
    pub(crate) fn arm(&mut self, entity: Entity, at: Time) {
        let slot = self.slots(entity).of(entity);
        if slot.entity != entity {
            debug_assert!(slot.due == Time::NEVER, "{:?} is still armed where {entity:?} would be", slot.entity);
            *slot = Appointment { entity, queued: Time::NEVER, due: Time::NEVER };
        }
        slot.due = at;
        if at < slot.queued {
            slot.queued = at;
            self.pending.push((at.as_ps(), entity.0));
        }
    }

    /// Makes `entity` not due at all.
    pub(crate) fn disarm(&mut self, entity: Entity) {
        let slot = self.slots(entity).of(entity);
        if slot.entity == entity {
            slot.due = Time::NEVER;
        }
    }

    /// What comes first, unless it is after `until`. It is not armed any more. `GUESSED`: it may be what is
    /// [probably next](Self::probably_next).
    #[inline(always)]
    pub(crate) fn pop<const GUESSED: bool>(&mut self, until: Time) -> Option<(Time, Due)> {
        loop {
            let (time, popped) = self.pending.pop::<GUESSED>(until.as_ps())?;
            let time = Time::from_ps(time);
            let key = match popped {
                Popped::Link(link) => return Some((time, Due::Arrival(link))),
                Popped::Other(key) => key,
            };
            let entity = Entity(key);
            let slot = self.slots(entity).of(entity);
            if slot.entity != entity || slot.queued != time {
                continue;
            }
            let due = slot.due;
            if due == time {
                (slot.queued, slot.due) = (Time::NEVER, Time::NEVER);
                return Some((time, Due::Entity(entity)));
            }
            // Moved to later, or (never) disarmed.
            slot.queued = due;
            if due != Time::NEVER {
                self.pending.push((due.as_ps(), key));
            }
        }
    }

    /// Before this nothing is due. It may be that nothing is due then either: the entry of an appointment that was moved or
    /// forgotten lies where it was.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.pending.next_at().map(Time::from_ps)
    }

    /// The link whose arrival is probably next, and where its packet lies: a guess.
    #[inline(always)]
    pub(crate) fn probably_next(&mut self) -> Option<(u32, u32)> {
        self.pending.probably_next()
    }

    #[inline]
    fn slots(&mut self, entity: Entity) -> &mut Slots {
        match entity.class() {
            Class::Service => &mut self.services,
            Class::Timer => &mut self.timers,
            Class::Start => &mut self.starts,
            Class::Sample => &mut self.samples,
            Class::Arrival => &mut self.late,
        }
    }
}

impl Slots {
    /// The slot of `entity`, whoever used it last.
    #[inline(always)]
    fn of(&mut self, entity: Entity) -> &mut Appointment {
        let slot = entity.slot() as usize;
        if slot >= self.0.len() {
            self.0.resize(slot + 1, Appointment { entity, queued: Time::NEVER, due: Time::NEVER });
        }
        &mut self.0[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn agenda() -> Agenda {
        Agenda::of(8, 1_000_000)
    }

    fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    #[test]
    fn equal_times_are_ordered_by_class_then_identifier() {
        let mut agenda = agenda();
        let armed = [Entity::sample(0, 3), Entity::start(1, 0), Entity::timer(7, 0), Entity::timer(2, 9)];
        for entity in armed {
            agenda.arm(entity, at(5));
        }
        agenda.arm_link::<true>(4, First { at: at(5), front: 0 });
        agenda.arm_link::<true>(3, First { at: at(5), front: 0 });
        let order: Vec<Due> = std::iter::from_fn(|| agenda.pop::<true>(at(5))).map(|(_, due)| due).collect();
        let mut expected = vec![Due::Arrival(3), Due::Arrival(4)];
        expected.extend([armed[3], armed[2], armed[1], armed[0]].map(Due::Entity));
        assert_eq!(order, expected);
    }

    #[test]
    fn a_slot_that_passes_on_leaves_nothing_behind() {
        let mut agenda = agenda();
        let (old, new) = (Entity::timer(1, 0), Entity::timer(2, 0));
        agenda.arm(old, at(10));
        agenda.disarm(old);
        agenda.arm(new, at(10));
        assert_eq!(agenda.pop::<true>(at(99)), Some((at(10), Due::Entity(new))));
        assert_eq!(agenda.pop::<true>(at(99)), None);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Arm(u64, u64),
        Disarm(u64),
        Pop(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let ahead = prop_oneof![0u64..3, 0u64..50, 0u64..1_000_000];
        prop_oneof![
            3 => (0u64..6, ahead.clone()).prop_map(|(id, ahead)| Op::Arm(id, ahead)),
            1 => (0u64..6).prop_map(Op::Disarm),
            2 => ahead.prop_map(Op::Pop),
        ]
    }

    proptest! {
        /// Against a set in which re-arming really removes.
        #[test]
        fn an_entity_is_due_once_and_when_it_was_last_armed_for(ops in prop::collection::vec(op(), 1..200)) {
            let (mut agenda, mut now) = (agenda(), 0);
            let mut set: BTreeSet<(u64, u64)> = BTreeSet::new();
            // Two entities share a slot by turns.
            let entity = |id: u64| Entity::timer(id, u32::try_from(id / 2).unwrap());
            for op in ops {
                let (announced, first) = (agenda.next_at(), set.first().map(|&(time, _)| at(time)));
                prop_assert!(first.is_none() || announced.is_some_and(|announced| Some(announced) <= first));
                match op {
                    Op::Arm(id, ahead) => {
                        let other = id ^ 1;
                        agenda.disarm(entity(other));
                        agenda.arm(entity(id), at(now + ahead));
                        set.retain(|&(_, armed)| armed != id && armed != other);
                        set.insert((now + ahead, id));
                    }
                    Op::Disarm(id) => {
                        agenda.disarm(entity(id));
                        set.retain(|&(_, armed)| armed != id);
                    }
                    Op::Pop(window) => {
                        let until = now + window;
                        let expected = set.first().copied().filter(|&(time, _)| time <= until);
                        if let Some(first) = expected {
                            set.remove(&first);
                        }
                        now = expected.map_or(until, |(time, _)| time);
                        let expected = expected.map(|(time, id)| (at(time), Due::Entity(entity(id))));
                        prop_assert_eq!(agenda.pop::<true>(at(until)), expected);
                    }
                }
            }
        }
    }
}
