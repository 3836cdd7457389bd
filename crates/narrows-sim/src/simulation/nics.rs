//! Limiters in hosts' adapters: one for all that a host sends to one other, once it was notified of congestion on the way
//! there [802.1Qau].

use super::*;

impl Simulation<'_> {
    /// A notification for a host whose adapter takes it, about a packet to `peer`, which may have been its connection's last.
    /// `traffic` is an entry that says so of adapters.
    pub(super) fn notify_nic(&mut self, now: Time, key: (u32, u32), slot: Option<u32>, traffic: u32, feedback: u8) {
        let (host, peer) = key;
        if !self.nics.contains_key(&key) {
            let pair = u64::from(host) << 32 | u64::from(peer);
            let stream = SmallStream::new(mix(self.random ^ mix(pair).rotate_left(17)));
            let entity = Entity::start(NICS | u64::from(host * MAX_HOSTS + peer), self.slots.take());
            let stack = self.stacks.get(self.stacks.index(traffic, self.rates[host as usize]));
            let nic = Nic::new(stream, stack, self.network.host_link(host), entity);
            self.nics.insert(key, nic);
            self.connections.between(host, peer).for_each(|end| end.place.is_handed_specially = true);
        }
        if let Some(slot) = slot {
            *self.nic_cuts.entry(slot).or_default() += 1;
        }
        self.nics.get_mut(&key).expect("it has one now").notify(now, feedback);
        self.release_limited(now, key);
    }

    /// See [`Simulation::transmit`]: an end of another transport than TCP, with a limiter in its host's adapter, or with telemetry to
    /// carry back.
    #[inline(never)]
    pub(super) fn transmit_specially(&mut self, now: Time, slot: u32) -> bool {
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        let nic = self.nics.get_mut(&(end.place.host, end.place.peer()));
        let mut handing = Specially { nic, telemetry: end.telemetry.take() };
        let packets = (&mut self.pool, &mut self.refused);
        let (endpoint, port) = end.split();
        let machine = (endpoint.machine(), &mut handing);
        let all_sent = transmit_rarely(now, slot, machine, port, stack, &mut self.network, packets);
        let Specially { nic, telemetry } = handing;
        let dropped = nic.map(|nic| {
            nic.arm(now, &mut self.network);
            nic.take_dropped()
        });
        self.connections.end(slot).telemetry = telemetry;
        self.note_refused();
        dropped.into_iter().flatten().for_each(|packet| self.note_dropped(packet));
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
            let side = packet.side().other();
            // An end that is gone waits for nothing.
            let Some(slot) = self.connections.slot(packet.connection, side).filter(|_| packet.payload() > 0) else {
                continue;
            };
            self.connections.end(slot).waiting.release(departure);
            if !senders.contains(&slot) {
                senders.push(slot);
            }
        }
        nic.arm(now, &mut self.network);
        nic.take_dropped().into_iter().for_each(|packet| self.note_dropped(packet));
        senders.into_iter().for_each(|slot| self.pump(now, slot));
    }
}
