//! Proportional rate reduction: how the transport moves the window from where it was to where the controller wants it,
//! over one RTT of recovery [RFC 6937; Linux `tcp_cwnd_reduction`].

/// The state of one reduction. All counts are packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reduction {
    /// Where it leads.
    threshold: u64,
    /// In flight when it began: RecoverFS.
    flight: u64,
    delivered: u64,
    sent: u64,
    /// The window now.
    window: u64,
}

impl Reduction {
    /// A reduction from `flight` in flight to a window of `threshold`.
    pub fn begin(flight: u64, threshold: u64) -> Reduction {
        Reduction { threshold, flight: flight.max(1), delivered: 0, sent: 0, window: flight.max(1) }
    }

    /// The window now.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// A packet left.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An acknowledgement delivered `packets`; `pipe` are in flight after it. `clean` if it advanced the cumulative
    /// acknowledgement and reported no new loss: then, below the threshold, slow start makes up for lost ground.
    pub fn on_ack(&mut self, packets: u64, pipe: u64, clean: bool) {
        self.delivered += packets;
        let may_send = if pipe > self.threshold {
            (self.delivered * self.threshold).div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            let banked = self.delivered.saturating_sub(self.sent).max(packets);
            (self.threshold - pipe).min(banked + u64::from(clean))
        };
        // The first transmission of a recovery is never held back: it is the fast retransmit itself.
        let may_send = may_send.max(u64::from(self.sent == 0));
        self.window = pipe + may_send;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_packets_leave_while_the_flight_is_acknowledged() {
        // [RFC 6937 §4, first example]: one loss in a flight of 20, threshold 10.
        let mut reduction = Reduction::begin(20, 10);
        let (mut pipe, mut sent) = (19, 0);
        for _ in 0..19 {
            pipe -= 1;
            reduction.on_ack(1, pipe, false);
            while pipe < reduction.window() {
                reduction.on_sent();
                pipe += 1;
                sent += 1;
            }
        }
        assert_eq!(pipe, 10);
        assert_eq!(sent, 10);
    }

    #[test]
    fn heavy_loss_is_made_up_by_conservation_then_slow_start() {
        let mut reduction = Reduction::begin(20, 10);
        // 15 of 20 were lost: 5 remain. Conservation sends one for each delivered, slow start one more.
        reduction.on_ack(1, 4, false);
        assert_eq!(reduction.window(), 5);
        reduction.on_sent();
        reduction.on_ack(1, 4, true);
        assert_eq!(reduction.window(), 6);
    }
}
