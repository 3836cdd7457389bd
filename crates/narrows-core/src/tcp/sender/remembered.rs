//! What a host remembers of a peer from one connection to the next.

use super::Sender;
use crate::tcp::{Metrics, Stack};
use crate::units::Packets;

/// So many samples of the RTT are to be taken before a host remembers a peer (FreeBSD `t_rttupdated`).
const MIN_SAMPLES: u64 = 4;

impl Sender {
    /// Begins with what the host remembers of the peer.
    pub(in crate::tcp) fn recall(&mut self, metrics: &Metrics, stack: &Stack) {
        self.rtt.recall(metrics.srtt, metrics.variance, &stack.profile);
        self.known_limit.set(0);
        self.refresh_path();
    }

    /// What the host is to remember of the peer; `None` if too little was learned (FreeBSD `tcp_discardcb`).
    pub(in crate::tcp) fn metrics(&self) -> Option<Metrics> {
        let srtt = self.rtt.smoothed().filter(|_| self.rtt_count >= MIN_SAMPLES)?;
        let threshold = self.controller.slow_start_threshold();
        Some(Metrics {
            srtt,
            variance: self.rtt.deviation(),
            threshold: (threshold.get() < u64::from(u32::MAX)).then_some(threshold),
            window: Packets::new(self.controller_window),
        })
    }
}
