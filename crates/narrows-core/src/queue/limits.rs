//! How much a port may hold: a limit of its own, and a share of its switch's memory.

use super::Backlog;
use crate::units::{Bytes, Packets};

/// A port's own limit. The packet in service counts until its last bit has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Limit {
    /// None: a host's own port, or one bounded by its pool alone.
    Unlimited,
    /// At most so many packets.
    Packets(Packets),
    /// At most so many IP bytes.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a port that holds `backlog` may take a packet of `size` as well. What is admitted at one backlog is
    /// admitted at every smaller one.
    pub const fn admits(self, backlog: Backlog, size: Bytes) -> bool {
        match self {
            Limit::Unlimited => true,
            Limit::Packets(most) => backlog.packets.get() < most.get(),
            Limit::Bytes(most) => backlog.bytes.get() + size.get() <= most.get(),
        }
    }

    /// One of so many equal shares, rounded down.
    ///
    /// # Panics
    /// If there are none.
    pub const fn share(self, shares: u64) -> Limit {
        match self {
            Limit::Unlimited => Limit::Unlimited,
            Limit::Packets(most) => Limit::Packets(Packets::new(most.get() / shares)),
            Limit::Bytes(most) => Limit::Bytes(Bytes::new(most.get() / shares)),
        }
    }
}

/// Memory that a switch's ports share by dynamic thresholds [Choudhury and Hahne 1998]: a port may hold at most
/// `alpha` times what is free in the whole pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct PoolConfig {
    /// The whole pool, IP bytes.
    pub size: Bytes,
    /// α in units of 2⁻¹⁶.
    pub alpha: u32,
}

/// A switch's shared memory and how much of it is in use.
///
/// `n` ports that all want more than their share end at `α·B / (1 + n·α)` bytes each, within a packet; the part
/// `B / (1 + n·α)` stays free for ports that have held nothing so far.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    config: PoolConfig,
    used: Bytes,
}

impl Pool {
    /// An empty pool.
    pub const fn new(config: PoolConfig) -> Pool {
        Pool { config, used: Bytes::ZERO }
    }

    /// Whether a port that holds `port` bytes of this pool may take a packet of `size` as well: with it the port holds
    /// at most α·(B − Q), where Q is what all ports held just before, and the packet fits into what is free. What is
    /// admitted is admitted too if the port or the pool in truth holds less.
    pub fn admits(&self, port: Bytes, size: Bytes) -> bool {
        self.admits_share(port, size, 1)
    }

    /// Whether one of so many equal `shares` of a port, which holds `share` bytes of this pool, may take a packet of `size`
    /// as well: with it the share holds at most that part of what the port might. As [`admits`](Self::admits) otherwise.
    #[inline]
    pub fn admits_share(&self, share: Bytes, size: Bytes, shares: u64) -> bool {
        let free = self.config.size.saturating_sub(self.used);
        let threshold = u128::from(self.config.alpha) * u128::from(free.get());
        size <= free && (u128::from((share + size).get()) * u128::from(shares)) << 16 <= threshold
    }

    /// A packet of `size` came in.
    pub fn take(&mut self, size: Bytes) {
        self.used += size;
    }

    /// A packet of `size` has left, or several of that size together.
    pub fn give_back(&mut self, size: Bytes) {
        self.used -= size;
    }

    /// Bytes in use over all ports; an upper bound while the driver has not given back all that left.
    pub const fn used(&self) -> Bytes {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn backlog(bytes: u64, packets: u64) -> Backlog {
        Backlog { bytes: Bytes::new(bytes), packets: Packets::new(packets) }
    }

    #[test]
    fn a_limit_counts_what_it_is_stated_in() {
        let size = Bytes::new(1_500);
        assert!(Limit::Unlimited.admits(backlog(u64::MAX, u64::MAX), size));
        assert!(Limit::Packets(Packets::new(3)).admits(backlog(90_000, 2), size));
        assert!(!Limit::Packets(Packets::new(3)).admits(backlog(3, 3), size));
        assert!(Limit::Bytes(Bytes::new(4_500)).admits(backlog(3_000, 90), size));
        assert!(!Limit::Bytes(Bytes::new(4_499)).admits(backlog(3_000, 0), size));
    }

    /// Fills `ports` ports in turn until the pool refuses all of them.
    fn greedy_shares(alpha: u32, ports: usize, size: u64, packet: u64) -> std::vec::Vec<u64> {
        let mut pool = Pool::new(PoolConfig { size: Bytes::new(size), alpha });
        let mut held = std::vec![Bytes::ZERO; ports];
        let packet = Bytes::new(packet);
        loop {
            let mut refused = 0;
            for port in &mut held {
                if pool.admits(*port, packet) {
                    pool.take(packet);
                    *port += packet;
                } else {
                    refused += 1;
                }
            }
            if refused == ports {
                return held.iter().map(|bytes| bytes.get()).collect();
            }
        }
    }

    #[test]
    fn greedy_ports_end_at_the_published_share() {
        // [Choudhury and Hahne 1998 §III]: α·B / (1 + n·α) each.
        for (alpha, ports) in [(1 << 16, 1), (1 << 15, 1), (1 << 16, 7), (1 << 18, 3), (13_107, 24)] {
            let (size, packet) = (4_000_000, 1_000);
            let exact = u64::from(alpha) * size / ((1 << 16) + ports as u64 * u64::from(alpha));
            for share in greedy_shares(alpha, ports, size, packet) {
                assert!(share.abs_diff(exact) <= 2 * packet, "α = {alpha}/65536, {ports} ports: {share}, not {exact}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_pool_is_never_exceeded(alpha in 0u32..1 << 20, size in 0u64..100_000, offers in
            prop::collection::vec((0usize..4, 1u64..9_000), 0..200))
        {
            let mut pool = Pool::new(PoolConfig { size: Bytes::new(size), alpha });
            let mut held = [Bytes::ZERO; 4];
            for (port, packet) in offers {
                if pool.admits(held[port], Bytes::new(packet)) {
                    pool.take(Bytes::new(packet));
                    held[port] += Bytes::new(packet);
                }
                prop_assert!(pool.used() <= Bytes::new(size));
                prop_assert_eq!(held.iter().copied().sum::<Bytes>(), pool.used());
            }
        }

        #[test]
        fn a_yes_to_an_upper_bound_is_a_yes_to_the_truth(alpha in 0u32..1 << 20, used in 0u64..100_000,
            port in 0u64..100_000, less in 0u64..100_000, packet in 1u64..9_000)
        {
            let mut pool = Pool::new(PoolConfig { size: Bytes::new(100_000), alpha });
            pool.take(Bytes::new(used));
            if pool.admits(Bytes::new(port), Bytes::new(packet)) {
                pool.give_back(Bytes::new(less.min(used)));
                prop_assert!(pool.admits(Bytes::new(port.saturating_sub(less)), Bytes::new(packet)));
            }
        }
    }
}
