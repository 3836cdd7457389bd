//! A controller that is held by pointer, and called through it: one in C, or one of the simulator's own that is not in its
//! innermost loop.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

use super::{Ack, Cause, CongestionControl, Context, Controller, Lost, Owner, Path, Sent, Spec};
use crate::telemetry::Hop;
use crate::units::{Packets, Rate, Span, Time};

/// What such a controller is: the contract of all, and copies of itself.
pub trait Machine: CongestionControl + Debug + Send + Sync {
    /// A copy with a state of its own.
    fn copy(&self) -> Box<dyn Machine>;
}

impl<T: CongestionControl + Clone + Debug + Send + Sync + 'static> Machine for T {
    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}

/// Whether a file is in Python: its name ends so. Otherwise it is in C.
pub fn is_python(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, end)| end == "py")
}

/// A file's controller, loaded for one run: its connections share the file's variables.
pub trait Library: Debug + Send + Sync {
    /// Its name, its use of ECN, and whether it reads rates of delivery.
    fn spec(&self) -> &'static Spec;

    /// What an experiment may set, name and value, in the order of names.
    fn parameters(&self) -> Vec<(String, String)>;

    /// The controller of a new connection.
    fn build(self: Arc<Self>, context: &Context<'_>, ecn: bool) -> Controller;
}

/// A controller behind a pointer. What it states is kept here after each call, so that reading it costs what it costs of others.
#[derive(Debug)]
pub struct External {
    /// What the world may know of it.
    pub spec: &'static Spec,
    recovery: Owner,
    window: Packets,
    threshold: Packets,
    pacing: Option<Rate>,
    burst: Option<Packets>,
    machine: Box<dyn Machine>,
}

impl External {
    /// This controller.
    pub fn new(spec: &'static Spec, machine: Box<dyn Machine>) -> External {
        External {
            spec,
            recovery: machine.recovery(),
            window: machine.window(),
            threshold: machine.slow_start_threshold(),
            pacing: machine.pacing(),
            burst: machine.burst(),
            machine,
        }
    }

    /// A call, and what it states after it. Cold, so that the code of controllers that are compiled in stays as it is.
    #[cold]
    #[inline(never)]
    fn call(&mut self, of: impl FnOnce(&mut dyn Machine)) {
        of(&mut *self.machine);
        self.window = self.machine.window();
        self.threshold = self.machine.slow_start_threshold();
        self.pacing = self.machine.pacing();
        self.burst = self.machine.burst();
    }
}

impl Clone for External {
    fn clone(&self) -> External {
        External::new(self.spec, self.machine.copy())
    }
}

impl CongestionControl for External {
    fn recovery(&self) -> Owner {
        self.recovery
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.call(|machine| machine.on_ack(ack, path));
    }

    fn on_lost(&mut self, lost: &Lost, path: &Path) {
        self.call(|machine| machine.on_lost(lost, path));
    }

    fn on_telemetry(&mut self, hops: &[Hop]) {
        self.call(|machine| machine.on_telemetry(hops));
    }

    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        self.call(|machine| machine.on_congestion(now, cause, path));
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        self.call(|machine| machine.on_timeout(now, repeated, path));
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        self.call(|machine| machine.on_sent(now, sent, path));
    }

    fn on_idle_restart(&mut self, now: Time, idle: Span, path: &Path) {
        self.call(|machine| machine.on_idle_restart(now, idle, path));
    }

    fn on_undo(&mut self) {
        self.call(|machine| machine.on_undo());
    }

    fn recall(&mut self, threshold: Packets) {
        self.call(|machine| machine.recall(threshold));
    }

    fn window(&self) -> Packets {
        self.window
    }

    fn slow_start_threshold(&self) -> Packets {
        self.threshold
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn burst(&self) -> Option<Packets> {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::path;

    /// Counts its calls, and states its count.
    #[derive(Clone, Debug)]
    struct Counting(u64);

    impl CongestionControl for Counting {
        fn recovery(&self) -> Owner {
            Owner::Controller
        }
        fn on_ack(&mut self, _: &Ack, _: &Path) {
            self.0 += 1;
        }
        fn on_lost(&mut self, _: &Lost, _: &Path) {
            self.0 += 1;
        }
        fn on_telemetry(&mut self, _: &[Hop]) {
            self.0 += 1;
        }
        fn on_congestion(&mut self, _: Time, _: Cause, _: &Path) {
            self.0 += 1;
        }
        fn on_timeout(&mut self, _: Time, _: bool, _: &Path) {
            self.0 += 1;
        }
        fn on_sent(&mut self, _: Time, _: &Sent, _: &Path) {
            self.0 += 1;
        }
        fn on_idle_restart(&mut self, _: Time, _: Span, _: &Path) {
            self.0 += 1;
        }
        fn on_undo(&mut self) {
            self.0 += 1;
        }
        fn recall(&mut self, _: Packets) {
            self.0 += 1;
        }
        fn window(&self) -> Packets {
            Packets::new(self.0)
        }
        fn slow_start_threshold(&self) -> Packets {
            Packets::new(2 * self.0)
        }
        fn pacing(&self) -> Option<Rate> {
            Some(Rate::from_bps(3 * self.0))
        }
        fn burst(&self) -> Option<Packets> {
            Some(Packets::new(4 * self.0))
        }
    }

    #[test]
    fn after_a_call_it_states_what_the_machine_states() {
        let (path, now) = (path(), Time::ZERO);
        let sent = Sent { size: path.packet, idle: None, starts: false };
        type Call<'a> = &'a dyn Fn(&mut External);
        let calls: [Call<'_>; 7] = [
            &|it| it.on_telemetry(&[]),
            &|it| it.on_congestion(now, Cause::Loss, &path),
            &|it| it.on_timeout(now, false, &path),
            &|it| it.on_sent(now, &sent, &path),
            &|it| it.on_idle_restart(now, Span::from_secs(1), &path),
            &|it| it.on_undo(),
            &|it| it.recall(Packets::new(5)),
        ];
        let mut external = External::new(&crate::cc::cubic::SPEC, Box::new(Counting(1)));
        for (count, call) in (1..).zip(calls) {
            let mut copy = external.clone();
            for it in [&external, &copy] {
                let packets = |times: u64| Packets::new(times * count);
                assert_eq!((it.window(), it.slow_start_threshold()), (packets(1), packets(2)));
                assert_eq!((it.pacing(), it.burst()), (Some(Rate::from_bps(3 * count)), Some(packets(4))));
                assert_eq!(it.recovery(), Owner::Controller);
            }
            // A copy has a state of its own.
            copy.on_undo();
            call(&mut external);
        }
        assert_eq!(external.window(), Packets::new(8));
    }
}
