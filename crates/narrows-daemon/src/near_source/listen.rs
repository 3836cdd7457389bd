//! The loop of a run's host.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use narrows_core::units::Span;
use narrows_plan::Plan;
use narrows_testbed::near_source::{Heard, Host, Listener};
use narrows_wire::Admission;

use super::table::Table;
use super::work::{Given, Loop};
use crate::failure::Failure;
use crate::refused;

/// Switches and hosts of a run have one clock; a notification waits for a processor at most.
const TOLERANCE: Span = Span::from_secs(1);

/// Limits connections of this kernel.
pub(crate) struct ThisKernel {
    table: Arc<Table>,
}

impl ThisKernel {
    /// Before the run, for it takes some tens of milliseconds. `None` if no host of the plan listens.
    ///
    /// # Errors
    /// If the kernel's connections cannot be found.
    pub(crate) fn of(plan: &Plan) -> Result<Option<ThisKernel>, Failure> {
        if plan.traffic.iter().all(|traffic| traffic.profile.near_source.is_none()) {
            return Ok(None);
        }
        let table = Table::new().map_err(refused::by_kernel)?;
        Ok(Some(ThisKernel { table: Arc::new(table) }))
    }
}

impl Listener for ThisKernel {
    fn listen(&self, host: &Host, stop: &AtomicBool) -> Result<Heard, String> {
        let mut work = Loop::new(Given {
            address: host.address,
            table: Arc::clone(&self.table),
            admission: Admission::new(host.senders.clone(), TOLERANCE.as_ns()),
            line: host.line,
            seed: host.seed,
            clock: host.clock,
        })
        .map_err(|error| format!("the port for notifications cannot be had: {error}"))?;
        let mut cuts = Vec::new();
        work.run(|flow| host.point(flow).copied(), stop, |cut| cuts.push(cut), |_| ())?;
        let (tally, reaction) = work.finish();
        Ok(Heard { cuts, tally, reaction })
    }
}
