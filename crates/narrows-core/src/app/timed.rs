//! Flows that begin at their times, whatever becomes of earlier ones: arrivals at random, and lists.

use alloc::boxed::Box;
use core::iter::Peekable;

use super::{Application, FlowStart, Start};
use crate::units::Time;

/// Numbered flows, in the order of time.
pub type Starts<'a> = Box<dyn Iterator<Item = (u32, FlowStart)> + Send + 'a>;

/// The machine: every host knows all flows that it has an end of.
pub struct Timed<'a>(Peekable<Starts<'a>>);

impl<'a> Timed<'a> {
    /// An application that begins these flows.
    pub fn new(starts: Starts<'a>) -> Timed<'a> {
        Timed(starts.peekable())
    }
}

impl Application for Timed<'_> {
    fn next_at(&mut self) -> Option<Time> {
        self.0.peek().map(|(_, flow)| flow.at)
    }

    fn poll(&mut self, now: Time) -> Option<Start> {
        let (sequence, flow) = self.0.next_if(|(_, flow)| flow.at <= now)?;
        Some(Start { sequence, flow, request: None })
    }
}
