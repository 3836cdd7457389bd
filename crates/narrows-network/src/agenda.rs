//! What is due when.
use narrows_core::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SLOT_BITS: u32 = 24;
const ID_BITS: u32 = 36;
const CLASS_SHIFT: u32 = SLOT_BITS + ID_BITS;

/// Something that can be due: its class and identifier say in which order equal times are handled, its slot where its
/// appointment is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity(u64);

/// The kinds of entities, in the order in which they are handled at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// The first packet of a link reaches its far end. (What a port might have to do at the end of a service comes
    /// before: 0 is kept for it.)
    Arrival = 1,
    /// A timer of a protocol machine.
    Timer = 2,
    /// Traffic begins or ends.
    Start = 3,
    /// Something is measured.
    Sample = 4,
}

impl Entity {
    const fn new(class: Class, id: u64, slot: u32) -> Entity {
        assert!(id >> ID_BITS == 0, "identifiers are below 2³⁶");
        assert!(slot >> SLOT_BITS == 0, "slots are below 2²⁴");
        Entity((class as u64) << CLASS_SHIFT | id << SLOT_BITS | slot as u64)
    }
    /// A timer. `id`, below 2³⁶, comes from the plan and decides the order among timers due at once; `slot`, below
    /// 2²⁴, is any number that no other armed timer uses, small ones preferred.
    pub const fn timer(id: u64, slot: u32) -> Entity {
        Entity::new(Class::Timer, id, slot)
    }
    /// A start of traffic; `id` and `slot` as for [`Entity::timer`], slots apart from the timers'.
    pub const fn start(id: u64, slot: u32) -> Entity {
        Entity::new(Class::Start, id, slot)
    }
    /// A sampler; `id` and `slot` as for [`Entity::timer`], slots apart from the others'.
    pub const fn sample(id: u64, slot: u32) -> Entity {
        Entity::new(Class::Sample, id, slot)
    }
    pub(crate) const fn arrival(link: u32) -> Entity {
        Entity((Class::Arrival as u64) << CLASS_SHIFT | link as u64)
    }
    /// The link of an arrival.
    pub(crate) const fn link(self) -> u32 {
        self.0 as u32
    }
    /// Its class.
    pub const fn class(self) -> Class {
        match self.0 >> CLASS_SHIFT {
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
    pub const fn slot(self) -> u32 {
        (self.0 & ((1 << SLOT_BITS) - 1)) as u32
    }
}

#[derive(Clone, Copy, Debug)]
struct Appointment {
    entity: Entity,
    queued: Time,
    due: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    pending: BinaryHeap<Reverse<(Time, Entity)>>,
    slots: [Vec<Appointment>; 3],
}

impl Agenda {
    pub(crate) fn new(_graph: &narrows_scenario::plan::Graph) -> Agenda {
        Agenda { pending: BinaryHeap::new(), slots: Default::default() }
    }
    pub(crate) fn arm_link(&mut self, link: u32, at: Time) {
        self.pending.push(Reverse((at, Entity::arrival(link))));
    }
    fn slot(&mut self, entity: Entity) -> &mut Appointment {
        let slots = &mut self.slots[entity.class() as usize - 2];
        let slot = entity.slot() as usize;
        if slot >= slots.len() {
            slots.resize(slot + 1, Appointment { entity, queued: Time::NEVER, due: Time::NEVER });
        }
        &mut slots[slot]
    }
    pub(crate) fn arm(&mut self, entity: Entity, at: Time) {
        let slot = self.slot(entity);
        if slot.entity != entity {
            *slot = Appointment { entity, queued: Time::NEVER, due: at };
        }
        slot.due = at;
        if at < slot.queued {
            slot.queued = at;
            self.pending.push(Reverse((at, entity)));
        }
    }
    pub(crate) fn disarm(&mut self, entity: Entity) {
        let slot = self.slot(entity);
        if slot.entity == entity {
            slot.due = Time::NEVER;
        }
    }
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, Entity)> {
        loop {
            let &Reverse((time, entity)) = self.pending.peek()?;
            if time > until {
                return None;
            }
            self.pending.pop();
            if entity.class() == Class::Arrival {
                return Some((time, entity));
            }
            let slot = self.slot(entity);
            if slot.entity != entity || slot.queued != time {
                continue;
            }
            slot.queued = Time::NEVER;
            if slot.due == time {
                slot.due = Time::NEVER;
                return Some((time, entity));
            }
            if slot.due != Time::NEVER {
                slot.queued = slot.due;
                let due = slot.due;
                self.pending.push(Reverse((due, entity)));
            }
        }
    }
}
