//! A controller that is not compiled with the others, such as one in C: held by pointer, and called through it.

use alloc::boxed::Box;
use core::fmt::Debug;

use super::{Ack, Cause, CongestionControl, Owner, Path, Sent, Spec};
use crate::units::{Packets, Rate, Span, Time};

/// What such a controller is: the contract of all, and copies of itself.
pub trait Machine: CongestionControl + Debug + Send + Sync {
    /// A copy with a state of its own.
    fn copy(&self) -> Box<dyn Machine>;
}

/// A controller behind a pointer.
#[derive(Debug)]
pub struct External {
    /// What the world may know of it.
    pub spec: &'static Spec,
    machine: Box<dyn Machine>,
}

impl External {
    /// This controller.
    pub fn new(spec: &'static Spec, machine: Box<dyn Machine>) -> External {
        External { spec, machine }
    }
}

impl Clone for External {
    fn clone(&self) -> External {
        External { spec: self.spec, machine: self.machine.copy() }
    }
}

/// Cold, so that the code of those that are compiled in stays as it was without it.
impl CongestionControl for External {
    #[cold]
    fn recovery(&self) -> Owner {
        self.machine.recovery()
    }

    #[cold]
    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.machine.on_ack(ack, path);
    }

    #[cold]
    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        self.machine.on_congestion(now, cause, path);
    }

    #[cold]
    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        self.machine.on_timeout(now, repeated, path);
    }

    #[cold]
    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        self.machine.on_sent(now, sent, path);
    }

    #[cold]
    fn on_idle_restart(&mut self, now: Time, idle: Span, path: &Path) {
        self.machine.on_idle_restart(now, idle, path);
    }

    #[cold]
    fn on_undo(&mut self) {
        self.machine.on_undo();
    }

    #[cold]
    fn recall(&mut self, threshold: Packets) {
        self.machine.recall(threshold);
    }

    #[cold]
    fn window(&self) -> Packets {
        self.machine.window()
    }

    #[cold]
    fn slow_start_threshold(&self) -> Packets {
        self.machine.slow_start_threshold()
    }

    #[cold]
    fn pacing(&self) -> Option<Rate> {
        self.machine.pacing()
    }

    #[cold]
    fn burst(&self) -> Option<Packets> {
        self.machine.burst()
    }
}
