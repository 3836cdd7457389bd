//! The loop of a run's host.

use std::sync::atomic::AtomicBool;

use narrows_core::units::Span;
use narrows_testbed::near_source::{Heard, Host, Listener};
use narrows_wire::Admission;

use super::work::{Given, Loop};

/// Switches and hosts of a run have one clock; a notification waits for a processor at most.
const TOLERANCE: Span = Span::from_secs(1);

/// Limits connections of this kernel.
pub(crate) struct ThisKernel;

impl Listener for ThisKernel {
    fn listen(&self, host: &Host, stop: &AtomicBool) -> Result<Heard, String> {
        let mut work = Loop::new(Given {
            address: host.address,
            admission: Admission::new(host.senders.clone(), TOLERANCE.as_ns()),
            line: host.line,
            seed: host.seed,
            clock: host.clock,
        })?;
        let mut cuts = Vec::new();
        work.run(|flow| host.point(flow).copied(), stop, |cut| cuts.push(cut), |_| ())?;
        let (tally, reaction) = work.finish();
        Ok(Heard { cuts, tally, reaction })
    }
}
