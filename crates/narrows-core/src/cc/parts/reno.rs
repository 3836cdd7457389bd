//! The window that most controllers move: slow start, "one more after so many", cuts, and what an undo restores.

use crate::cc::{Ack, Limit, MIN_WINDOW, Path};
use crate::units::{Packets, Span};

/// A window in whole packets with Linux's credit counter: `snd_cwnd`, `snd_cwnd_cnt`, `snd_ssthresh`, and their values
/// before the last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The window, packets; at least 1.
    pub packets: u64,
    /// Slow-start threshold, packets.
    pub threshold: u64,
    /// Packets acknowledged towards the next increment.
    credit: u64,
    /// Window and threshold before the last cut, for an undo.
    before: Option<(u64, u64)>,
}

impl Window {
    /// A window of `initial` packets in slow start.
    pub fn new(initial: Packets) -> Window {
        Window { packets: initial.get().max(1), threshold: u64::MAX, credit: 0, before: None }
    }

    /// Below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.packets < self.threshold
    }

    /// Whether the last round used the window: otherwise it must not grow (Linux `tcp_is_cwnd_limited`; [RFC 7661]).
    /// A host that paces a window-based sender derives the rate from the window, so waiting for the pacer is using it; a
    /// near-source limiter does not, and what grew behind it would leave at once.
    pub fn was_used(&self, ack: &Ack) -> bool {
        if ack.limited_by == Limit::NearSource {
            return false;
        }
        if self.in_slow_start() {
            return self.packets < 2 * ack.max_in_flight.get();
        }
        matches!(ack.limited_by, Limit::Window | Limit::Pacing)
    }

    /// One packet more for each acknowledged, up to the threshold; returns the acknowledged packets left over
    /// [RFC 5681 §3.1].
    #[must_use]
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let grown = (self.packets + acked).min(self.threshold);
        let left = acked - (grown - self.packets);
        self.packets = grown;
        left
    }

    /// One packet more after every `per_packet` acknowledged (Linux `tcp_cong_avoid_ai`). `per_packet` of the window's
    /// size is Reno's one packet per RTT.
    pub fn add_after(&mut self, per_packet: u64, acked: u64) {
        let per_packet = per_packet.max(1);
        if self.credit >= per_packet {
            self.credit = 0;
            self.packets += 1;
        }
        self.credit += acked;
        if self.credit >= per_packet {
            let grown = self.credit / per_packet;
            self.credit -= grown * per_packet;
            self.packets += grown;
        }
    }

    /// Reno's growth: slow start, then one packet per window acknowledged.
    pub fn grow(&mut self, acked: u64) {
        let left = if self.in_slow_start() { self.slow_start(acked) } else { acked };
        if left > 0 {
            self.add_after(self.packets, left);
        }
    }

    /// Cuts threshold and window to `to`, at least 2, and remembers both for an undo, of the threshold at least 3/4 of the
    /// window (Linux `tcp_current_ssthresh`). A window of one packet stays so.
    pub fn cut(&mut self, to: u64) {
        self.before = Some((self.packets, self.threshold.max(three_quarters(self.packets))));
        self.threshold = to.max(MIN_WINDOW.get());
        self.packets = self.packets.min(self.threshold);
        self.credit = 0;
    }

    /// After a timeout: threshold to `to`, window to one packet [RFC 5681 §3.1]. If it is `repeated`, in a window whose loss was
    /// already answered, the threshold stays, and so does what an undo would restore.
    pub fn collapse(&mut self, to: u64, repeated: bool) {
        if !repeated {
            self.cut(to);
        }
        self.packets = 1;
        self.credit = 0;
    }

    /// Window and threshold as before the last cut, if they were larger.
    pub fn undo(&mut self) {
        if let Some((packets, threshold)) = self.before.take() {
            self.packets = self.packets.max(packets);
            self.threshold = self.threshold.max(threshold);
        }
    }

    /// Forgets the part of the window that idling has made doubtful; the threshold keeps 3/4 of the old window (Linux
    /// `tcp_cwnd_restart`, [RFC 2861]).
    pub fn restart_after_idle(&mut self, idle: Span, path: &Path) {
        self.threshold = self.threshold.max(three_quarters(self.packets));
        self.packets = after_idle(self.packets, path.initial_window.get(), idle, path);
    }
}

/// The part of a window that a threshold keeps, rounded as Linux does.
fn three_quarters(window: u64) -> u64 {
    (window >> 1) + (window >> 2)
}

/// What is left of a window after idling: one halving for each timeout's worth of `idle`, not below the initial window
/// [RFC 2861 §3.2]. Both windows in one unit, packets or a part of them.
pub fn after_idle(window: u64, initial: u64, idle: Span, path: &Path) -> u64 {
    let floor = initial.min(window);
    let (mut left, mut kept) = (idle, window);
    while left > path.rto && kept > floor {
        left = left.saturating_sub(path.rto);
        kept >>= 1;
    }
    kept.max(floor)
}

/// What a controller leaves to its field `window`: idling, undo, window and threshold. Within its `impl CongestionControl`.
macro_rules! leave_to_window {
    () => {
        fn on_idle_restart(&mut self, _now: $crate::units::Time, idle: $crate::units::Span, path: &$crate::cc::Path) {
            self.window.restart_after_idle(idle, path);
        }

        leave_to_window!(but on_idle_restart);
    };
    (but on_idle_restart) => {
        fn on_undo(&mut self) {
            self.window.undo();
        }

        fn recall(&mut self, threshold: $crate::units::Packets) {
            self.window.threshold = threshold.get().max($crate::cc::MIN_WINDOW.get());
        }

        fn window(&self) -> $crate::units::Packets {
            $crate::units::Packets::new(self.window.packets)
        }

        fn slow_start_threshold(&self) -> $crate::units::Packets {
            $crate::units::Packets::new(self.window.threshold)
        }
    };
}
pub(crate) use leave_to_window;
