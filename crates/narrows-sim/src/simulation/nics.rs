//! Limiters in hosts' adapters: one for all that a host sends to one other, once it was notified of congestion on the way
//! there [802.1Qau].

use super::*;

impl Simulation<'_> {
    /// Whether an end of this stack on `host` has a limiter towards `peer`.
    pub(super) fn is_limited(&self, stack: u32, host: u32, peer: u32) -> bool {
        self.stacks.get(stack).profile.nic_limiter.is_some() && self.nics.contains_key(&(host, peer))
    }

    /// A notification for an end whose host's adapter takes it.
    pub(super) fn notify_nic(&mut self, now: Time, slot: u32, feedback: u8) {
        let Place { host, peer, port, stack, .. } = self.connections.end(slot).place;
        let key = (host, peer);
        if !self.nics.contains_key(&key) {
            let pair = u64::from(host) << 32 | u64::from(peer);
            let stream = SmallStream::new(mix(self.random ^ mix(pair).rotate_left(17)));
            let entity = Entity::start(NICS | u64::from(host * MAX_HOSTS + peer), self.slots.take());
            let stack = self.stacks.get(stack);
            let config = stack.profile.nic_limiter.expect("the adapter takes notifications");
            self.nics.insert(key, Nic::new(stream, config, stack, port, entity));
            for end in self.connections.between(host, peer) {
                end.place.is_limited = self.stacks.get(end.place.stack).profile.nic_limiter.is_some();
            }
        }
        *self.nic_cuts.entry(slot).or_default() += 1;
        let nic = self.nics.get_mut(&key).expect("it has one now");
        nic.notify(now, feedback);
        self.release_limited(now, key);
    }

    /// See [`Simulation::transmit`]: an end with a limiter in its host's adapter.
    #[inline(never)]
    pub(super) fn transmit_limited(&mut self, now: Time, slot: u32) -> bool {
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        let nic = self.nics.get_mut(&(end.place.host, end.place.peer)).expect("a limited end has one");
        let packets = (&mut self.pool, &mut self.refused);
        let all_sent = match end.split() {
            (Endpoint::Tcp(endpoint), port) => {
                transmit_rarely(now, slot, (endpoint, nic), port, stack, &mut self.network, packets)
            }
            (Endpoint::Datagram(endpoint), port) => {
                transmit_rarely(now, slot, (endpoint, nic), port, stack, &mut self.network, packets)
            }
        };
        nic.arm(&mut self.network);
        nic.take_dropped().into_iter().for_each(|packet| self.note_dropped(packet));
        all_sent
    }

    /// A limiter's next packet may go.
    #[inline(never)]
    pub(super) fn handle_nic(&mut self, now: Time, id: u64) {
        let pair = u32::try_from(id - NICS).expect("two hosts");
        let key = (pair / MAX_HOSTS, pair % MAX_HOSTS);
        self.nics.get_mut(&key).expect("it was armed").note_woken();
        self.release_limited(now, key);
    }

    /// What may go by now goes to the port, and whoever waited for that may send.
    fn release_limited(&mut self, now: Time, key: (u32, u32)) {
        let mut senders: Vec<u32> = vec![];
        let nic = self.nics.get_mut(&key).expect("it has a limiter");
        while let Some((packet, departure)) = nic.release(now, &mut self.network) {
            let side = Side::on(packet.destination(), packet.connection).other();
            // An end that is gone waits for nothing.
            let Some(slot) = self.connections.slot(packet.connection, side).filter(|_| packet.payload() > 0) else {
                continue;
            };
            self.connections.end(slot).waiting.release(departure);
            if !senders.contains(&slot) {
                senders.push(slot);
            }
        }
        nic.arm(&mut self.network);
        nic.take_dropped().into_iter().for_each(|packet| self.note_dropped(packet));
        senders.into_iter().for_each(|slot| self.pump(now, slot));
    }
}
