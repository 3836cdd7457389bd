//! Socket buffers that grow: by a step whenever more than 7/8 of one went through within an RTT [FreeBSD
//! `tcp_input.c`, `sb_autosize`]. The receiver tells RTTs apart by the echo of its timestamps, the sender by its samples.

use super::profile::Buffers;
use crate::units::{Span, Time};

/// One socket's buffer for one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    size: u64,
    step: u64,
    most: u64,
    /// What went through since the present RTT began.
    through: u64,
}

impl Buffer {
    fn new(buffers: &Buffers) -> Buffer {
        let Buffers { first, step, most } = *buffers;
        Buffer { size: first.get(), step: step.get(), most: most.get(), through: 0 }
    }

    /// `bytes` went through; an RTT has passed if `round_ended`.
    fn pass(&mut self, bytes: u64, round_ended: bool) {
        self.through += bytes;
        if round_ended {
            if self.through > self.size / 8 * 7 {
                self.size = (self.size + self.step).min(self.most);
            }
            self.through = 0;
        }
    }
}

/// What was sent and is not acknowledged, and what waits to be sent, fits this.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    buffer: Buffer,
    since: Time,
}

impl SendBuffer {
    pub(super) fn new(buffers: &Buffers) -> SendBuffer {
        SendBuffer { buffer: Buffer::new(buffers), since: Time::ZERO }
    }

    /// So much was acknowledged, where an RTT is `srtt`.
    pub(super) fn acknowledge(&mut self, now: Time, bytes: u64, srtt: Span) {
        let round_ended = now.since(self.since) >= srtt;
        self.buffer.pass(bytes, round_ended);
        if round_ended {
            self.since = now;
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.buffer.size
    }
}

/// What was received in order or beyond a hole fits this.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveBuffer {
    buffer: Buffer,
    /// Our clock when the present RTT began: it ends with the first segment that returns a later timestamp.
    since: u32,
}

impl ReceiveBuffer {
    pub(super) fn new(buffers: &Buffers) -> ReceiveBuffer {
        ReceiveBuffer { buffer: Buffer::new(buffers), since: 0 }
    }

    /// So much arrived in order, with a segment that echoes our timestamp `echo`; our clock shows `clock`.
    pub(super) fn deliver(&mut self, bytes: u64, echo: u32, clock: u32) {
        let round_ended = echo.wrapping_sub(self.since).cast_signed() > 0;
        self.buffer.pass(bytes, round_ended);
        if round_ended {
            self.since = clock;
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.buffer.size
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const KIB: u64 = 1 << 10;
    const RTT: Span = Span::from_us(500);

    /// Sizes in KiB after each of some RTTs, in which `share` eighths of the buffer, and a byte, go through in ten parts.
    fn sizes(share: u64, rounds: u64) -> (Vec<u64>, Vec<u64>) {
        let mut sent = SendBuffer::new(&Buffers::FREEBSD);
        let mut received = ReceiveBuffer::new(&Buffers::FREEBSD);
        // The first segment of all begins the first RTT.
        sent.acknowledge(Time::ZERO + RTT, 0, RTT);
        received.deliver(0, 1, 500);
        (1..=rounds)
            .map(|round| {
                let part = |size: u64| (size / 8 * share).div_ceil(10) + 1;
                let (of_sent, of_received) = (part(sent.size()), part(received.size()));
                for tenth in 1..=10_u64 {
                    let now = Time::ZERO + RTT + (RTT * (round - 1)) + RTT.div(10) * tenth;
                    sent.acknowledge(now, of_sent, RTT);
                    let clock = u32::try_from(now.as_us()).unwrap();
                    // The last tenth answers what was sent as the RTT began, and no other does.
                    received.deliver(of_received, clock - if tenth == 10 { 499 } else { 500 }, clock);
                }
                (sent.size() / KIB, received.size() / KIB)
            })
            .unzip()
    }

    #[test]
    fn a_buffer_that_is_used_grows_by_a_step_for_each_round_trip() {
        let expected = [144, 160, 176, 192, 208, 224, 240, 256, 256];
        let (sent, received) = sizes(7, 9);
        assert_eq!((&sent[..], &received[..]), (&expected[..], &expected[..]));
    }

    #[test]
    fn a_buffer_of_which_less_is_used_stays() {
        assert_eq!(sizes(6, 5), (alloc::vec![128; 5], alloc::vec![128; 5]));
    }
}
