//! Which of its open connections to a peer a client uses next: the first idle one, else a new one. Persistent
//! connections as the traffic generators of the datacenter papers hold them.

use alloc::vec::Vec;

/// A client's connections to one peer, in the order in which it opened them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionPool {
    /// Connection and whether it is in use.
    connections: Vec<(u32, bool)>,
}

impl ConnectionPool {
    /// A pool of idle connections.
    pub fn of_idle(connections: impl IntoIterator<Item = u32>) -> ConnectionPool {
        ConnectionPool { connections: connections.into_iter().map(|connection| (connection, false)).collect() }
    }

    /// The first idle connection, in use from now on; `None` if all are in use: open one and [`add`](Self::add) it.
    pub fn take(&mut self) -> Option<u32> {
        let idle = self.connections.iter_mut().find(|(_, in_use)| !in_use)?;
        idle.1 = true;
        Some(idle.0)
    }

    /// The first connection, in use from now on, whether it was idle or not: what it carries keeps its order.
    pub fn take_first(&mut self) -> Option<u32> {
        let first = self.connections.first_mut()?;
        first.1 = true;
        Some(first.0)
    }

    /// A connection opened for a transfer that begins now.
    pub fn add(&mut self, connection: u32) {
        self.connections.push((connection, true));
    }

    /// The transfer on `connection` is done.
    ///
    /// # Panics
    /// If the connection is not of this pool.
    pub fn release(&mut self, connection: u32) {
        let entry = self.connections.iter_mut().find(|entry| entry.0 == connection);
        entry.expect("a connection is released to the pool that it was taken from").1 = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_idle_connection_is_used_again_and_a_new_one_only_when_all_are_busy() {
        let mut pool = ConnectionPool::of_idle([7, 8]);
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(7), Some(8), None]);
        pool.add(9);
        assert_eq!(pool.take(), None);
        pool.release(9);
        pool.release(7);
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(7), Some(9), None]);
    }
}
