//! Strict priority: a class is served while all classes before it are empty or paused.

use alloc::vec;
use alloc::vec::Vec;

use super::{Aqms, Arriving, Discipline, MAX_CLASSES, Queues};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Bytes;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "strict-priority",
    about: "A class is served while all classes before it are empty or paused.",
    source: "[802.1Q §8.6.8.1]",
    parameters: parameters! {
        "classes": Kind::Count, Value::Required, (2, MAX_CLASSES as u64), "how many there are; class 0 goes first";
    },
};

/// Its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// 2 to 8.
    pub classes: u8,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config { classes: u8::try_from(settings.count("classes")).unwrap_or(u8::MAX) })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![Value::Count(self.classes.into())]
    }
    pub(super) fn queues(&self) -> Queues {
        Queues::Classes(self.classes.into())
    }
    pub(super) const fn aqm(&self) -> Aqms {
        Aqms::OfPort
    }
    pub(super) fn build(&self, _seed: u64) -> StrictPriority {
        StrictPriority::new(self.classes.into())
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct StrictPriority {
    /// Bit `i` is set while queue `i` waits.
    waiting: u32,
    classes: usize,
}

impl StrictPriority {
    /// So many classes.
    ///
    /// # Panics
    /// If there are none, or more than [`MAX_CLASSES`].
    pub fn new(classes: usize) -> StrictPriority {
        assert!((1..=MAX_CLASSES).contains(&classes), "a port has one to {MAX_CLASSES} classes");
        StrictPriority { waiting: 0, classes }
    }
}

impl Discipline for StrictPriority {
    fn queues(&self) -> usize {
        self.classes
    }
    #[inline]
    fn queue_of(&mut self, packet: &Arriving) -> usize {
        class_of(packet, self.classes)
    }
    #[inline]
    fn wake(&mut self, queue: usize) {
        self.waiting |= 1 << queue;
    }
    #[inline]
    fn choose(&mut self, _first: impl Fn(usize) -> Bytes) -> Option<usize> {
        if self.waiting == 0 { None } else { Some(self.waiting.trailing_zeros() as usize) }
    }
    #[inline]
    fn rest(&mut self) {
        self.waiting &= self.waiting - 1;
    }
    fn refund(&mut self, _size: Bytes) {}
    fn leave(&mut self, queue: usize) {
        self.waiting &= !(1 << queue);
    }
}

/// The queue of a packet's class.
///
/// # Panics
/// If there is none.
pub(super) fn class_of(packet: &Arriving, classes: usize) -> usize {
    assert!(usize::from(packet.class) < classes, "class {} has no queue", packet.class);
    packet.class.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(_: usize) -> Bytes {
        Bytes::new(1_500)
    }

    #[test]
    fn the_first_class_that_waits_and_is_not_paused_sends() {
        let mut scheduler = StrictPriority::new(4);
        assert_eq!(scheduler.choose(size), None);
        [3, 1, 2].into_iter().for_each(|class| scheduler.wake(class));
        assert_eq!(scheduler.choose(size), Some(1));
        scheduler.leave(1);
        assert_eq!(scheduler.choose(size), Some(2));
        scheduler.rest();
        assert_eq!(scheduler.choose(size), Some(3));
        scheduler.wake(1);
        assert_eq!(scheduler.choose(size), Some(1));
    }

    #[test]
    fn each_class_has_a_queue() {
        let packet = Arriving { class: 7, flow_hash: 9, is_l4s: false };
        assert_eq!(StrictPriority::new(8).queue_of(&packet), 7);
    }
}
