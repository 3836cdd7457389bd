//! Which of equal paths packets take, where hosts choose it: what the sender tells its [`Plb`], and the label that this says.

use alloc::boxed::Box;

use super::{Plb, Sender};
use crate::packet::Seq;
use crate::rng::SmallStream;
use crate::routing::rehash;

impl Sender {
    /// Chooses the path of its packets by labels of these bits.
    pub(in crate::tcp) fn balance(&mut self, config: rehash::Config, labels: u32, stream: SmallStream) {
        self.plb = Some(Box::new(Plb::new(config, labels, stream)));
    }

    /// The label of the next packet; see [`Endpoint::balance`](crate::tcp::Endpoint::balance).
    pub(in crate::tcp) fn path_label(&self) -> u32 {
        self.plb.as_ref().map_or(0, |plb| plb.label())
    }

    /// How often another label was drawn since the last call.
    pub(in crate::tcp) fn take_path_changes(&mut self) -> u32 {
        self.plb.as_mut().map_or(0, |plb| plb.take_draws())
    }

    /// The handshake makes no progress: the path may be dead.
    pub(in crate::tcp) fn leave_path(&mut self) {
        if let Some(plb) = &mut self.plb {
            plb.on_dead_path();
        }
    }

    /// The peer sent data again that was here.
    pub(in crate::tcp) fn note_repeated_data(&mut self, seq: Seq) {
        if let Some(plb) = &mut self.plb {
            plb.on_repeated_data(seq);
        }
    }
}
