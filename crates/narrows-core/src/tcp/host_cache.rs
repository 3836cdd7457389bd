//! What a host remembers of its peers: a new connection begins with what the last ones to the same host had learned
//! [FreeBSD `tcp_hostcache.c`].
//!
//! A driver keeps one [`Metrics`] for each pair of hosts. It merges what a connection's end knows as that closes, and hands
//! it to the next end that opens.

use super::profile::HostCache;
use crate::units::{Packets, Span};

/// What is known of the path to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Smoothed RTT.
    pub srtt: Span,
    /// Its variance: what a timeout adds to it, divided by four.
    pub variance: Span,
    /// Slow-start threshold; `None` if no connection has had one.
    pub threshold: Option<Packets>,
    /// Congestion window.
    pub window: Packets,
}

impl Metrics {
    /// With what another connection knew when it closed: of each the mean of old and new.
    #[must_use]
    pub fn merged(self, new: Metrics) -> Metrics {
        let span = |old: Span, new: Span| (old + new).div(2);
        let packets = |old: Packets, new: Packets| Packets::new((old.get() + new.get()) / 2);
        Metrics {
            srtt: span(self.srtt, new.srtt),
            variance: span(self.variance, new.variance),
            threshold: match (self.threshold, new.threshold) {
                (Some(old), Some(new)) => Some(packets(old, new)),
                (old, new) => old.or(new),
            },
            window: packets(self.window, new.window),
        }
    }

    /// The window that a connection begins with.
    pub fn initial_window(&self, cache: &HostCache) -> Packets {
        self.window.clamp(cache.min_window, cache.max_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_count_alike() {
        let of = |us, threshold: Option<u64>, window| Metrics {
            srtt: Span::from_us(us),
            variance: Span::from_us(us / 10),
            threshold: threshold.map(Packets::new),
            window: Packets::new(window),
        };
        assert_eq!(of(100, None, 10).merged(of(300, Some(8), 20)), of(200, Some(8), 15));
        assert_eq!(of(200, Some(8), 15).merged(of(400, Some(20), 16)), of(300, Some(14), 15));
        assert_eq!(of(200, Some(8), 15).merged(of(200, None, 15)), of(200, Some(8), 15));
    }

    #[test]
    fn a_new_connection_begins_with_three_to_sixty_four_segments() {
        let cache = HostCache::FREEBSD;
        let window = |packets| {
            let metrics =
                Metrics { srtt: Span::ZERO, variance: Span::ZERO, threshold: None, window: Packets::new(packets) };
            metrics.initial_window(&cache).get()
        };
        assert_eq!([1, 3, 40, 64, 200].map(window), [3, 3, 40, 64, 64]);
    }
}
