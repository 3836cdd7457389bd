//! Which receive a message completes: the one of its channel that was posted first, as messages arrive.

use alloc::vec;
use alloc::vec::Vec;

use super::schedule::Schedule;

/// No operation.
const NONE: u32 = u32::MAX;

/// The channels of a program while it runs.
#[derive(Clone, Debug)]
pub(super) struct Matching {
    /// By channel: messages that no receive has met yet.
    unexpected: Vec<u32>,
    /// By channel: the first and the last receive that waits.
    waiting: Vec<[u32; 2]>,
    /// By operation: the receive that waits behind it.
    behind: Vec<u32>,
}

impl Matching {
    pub(super) fn new(schedule: &Schedule) -> Matching {
        let channels = schedule.channels().len();
        let behind = vec![NONE; schedule.operations() as usize];
        Matching { unexpected: vec![0; channels], waiting: vec![[NONE; 2]; channels], behind }
    }

    /// A message is here: the receive that it completes, if one waits.
    pub(super) fn arrive(&mut self, channel: u32) -> Option<u32> {
        let [first, last] = &mut self.waiting[channel as usize];
        if *first == NONE {
            self.unexpected[channel as usize] += 1;
            return None;
        }
        let met = core::mem::replace(first, self.behind[*first as usize]);
        if *first == NONE {
            *last = NONE;
        }
        Some(met)
    }

    /// A receive is posted: whether its message is here already.
    pub(super) fn post(&mut self, channel: u32, receive: u32) -> bool {
        let unexpected = &mut self.unexpected[channel as usize];
        if *unexpected > 0 {
            *unexpected -= 1;
            return true;
        }
        let [first, last] = &mut self.waiting[channel as usize];
        if *first == NONE {
            *first = receive;
        } else {
            self.behind[*last as usize] = receive;
        }
        *last = receive;
        false
    }
}
