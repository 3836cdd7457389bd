//! The largest backlog of a port, which most packets cannot raise: a port learns how long they may wait for that.

use narrows_core::units::{Bytes, Time};

use super::{Kind, Port, Ports};
use crate::network::Payload;

impl Port {
    /// Whether a packet that was accepted behind such a wait may have raised `queue_max`, or tells more of what will.
    #[inline(always)]
    pub(super) fn may_be_fullest(&self, wait_ps: u64, ip_bytes: u32) -> bool {
        let is_quiet = (wait_ps < self.quiet_below) & (ip_bytes <= self.largest);
        !is_quiet && (!self.quiet || self.held_bytes > self.queue_max.get() || !self.knows(ip_bytes))
    }

    /// Whether what was learned of quiet waits holds for a packet of this size.
    fn knows(&self, ip_bytes: u32) -> bool {
        self.quiet_below > 0 && ip_bytes <= self.largest
    }

    /// Learns for how long the next packet may wait and not raise `queue_max`.
    ///
    /// What is held when a packet comes takes that packet's wait to leave, but for what has gone of the packet in service, which
    /// is less than the largest. So a wait up to the maximum less two of the largest is short enough; and where there is no wait,
    /// nothing is held.
    fn learn_quiet(&mut self) {
        let (largest, most) = (u64::from(self.largest), self.queue_max.get());
        let longest_wait = most.saturating_sub(2 * largest) * u64::from(self.ps_per_byte);
        self.quiet_below = if most < largest { 0 } else { 1 + longest_wait };
    }
}

impl<P: Payload> Ports<P> {
    /// Looks at the queue behind a packet that was accepted, at a port where more is to be known than its largest backlog: a sample is
    /// taken if one is due.
    #[inline(never)]
    pub(super) fn look(&mut self, now: Time, link: u32) {
        let port = &self.ports[link as usize];
        // What is held is a bound of the backlog; perhaps the backlog itself is larger than any before.
        if port.held_bytes > port.queue_max.get() {
            self.settle(now, link);
            let port = &mut self.ports[link as usize];
            port.queue_max = port.queue_max.max(port.held().bytes);
        }
        let port = &self.ports[link as usize];
        if port.accepted.bytes.get() > self.rules[link as usize].sample_beyond {
            self.sample(now, link);
        }
    }

    /// The same where nothing is sampled: the port learns what need not be looked at.
    #[inline(never)]
    pub(super) fn look_at_quiet(&mut self, now: Time, link: u32, ip_bytes: u32) {
        let port = &mut self.ports[link as usize];
        let held = port.held_bytes;
        port.settle(&self.store, now);
        if port.kind == Kind::PooledFifo {
            self.pools[port.pool as usize].pool.give_back(Bytes::new(held - port.held_bytes));
        }
        if port.held_bytes > port.queue_max.get() || !port.knows(ip_bytes) {
            port.queue_max = port.queue_max.max(port.held().bytes);
            port.largest = port.largest.max(ip_bytes);
            port.learn_quiet();
        }
    }
}
