//! Flows from their start to their end: which connection carries each, what the applications do next, what is counted.

use narrows_core::tcp::Tallies;

use super::*;

impl Simulation<'_> {
    pub(super) fn handle_start(&mut self, now: Time, entity: Entity) {
        let id = entity.id();
        if id >= POLLS {
            self.handle_poll(now, id);
        } else if id >= NICS {
            self.handle_nic(now, id);
        } else if id >= BRIDGES {
            self.handle_bridge_timer(now, usize::try_from(id - BRIDGES).expect("few bridges"));
        } else if id >= ANSWERS {
            self.slots.give_back(entity.slot());
            let number = self.flow_of(tag_of(id - ANSWERS));
            self.send_flow(now, number);
        } else if id >= STOPS {
            self.slots.give_back(entity.slot());
            let number = self.flow_of(tag_of(id - STOPS));
            self.stop_flow(now, number);
        } else {
            self.poll_application(now, u32::try_from(id).expect("a plan has few entries"));
        }
    }

    fn poll_application(&mut self, now: Time, traffic: u32) {
        while let Some(start) = self.apps[traffic as usize].poll(now) {
            let query = start.request.map(|request| self.query_of(now, traffic, request));
            self.begin_flow(now, Name { traffic, sequence: start.sequence }, &start.flow, query);
        }
        while let Some(sequence) = self.apps[traffic as usize].poll_answer() {
            let number = self.flow_of(self.names.tag(Name { traffic, sequence }));
            self.send_flow(now, number);
        }
        self.arm_application(traffic);
    }

    pub(super) fn arm_application(&mut self, traffic: u32) {
        if let Some(at) = self.apps[traffic as usize].next_at() {
            self.network.arm(Entity::start(u64::from(traffic), traffic), at);
        }
    }

    /// The place of a request that is known, or begins now.
    fn query_of(&mut self, now: Time, traffic: u32, request: Request) -> u32 {
        let Request { number, client, responses } = request;
        if self.queries.last().is_none_or(|query| (query.traffic, query.number) != (traffic, number)) {
            let place = u32::try_from(self.queries.len()).expect("fewer than 2³² queries");
            let row = RequestRow {
                request: place,
                client,
                start_ns: now.as_ns(),
                completion_ns: None,
                responses: 0,
                timeouts: 0,
            };
            self.queries.push(Query { traffic, number, start: now, awaited: responses, row });
        }
        u32::try_from(self.queries.len() - 1).expect("fewer than 2³² queries")
    }

    /// The flow with this tag. One that another part asks for is new to its source.
    pub(super) fn flow_of(&mut self, tag: Tag) -> u32 {
        let name = self.names.name(tag);
        if let Some(place) = self.flows.place(name) {
            return place;
        }
        let flow = self.apps[name.traffic as usize].flow(name.sequence);
        let flow = flow.expect("every part knows the flows that begin by themselves");
        let number = self.flows.push(Flow::new(name, &flow, None));
        if self.ports.is_some() {
            // It began before the end of what is measured, and nothing of it was here by then.
            self.flows[number].arrived_at_end = 0;
        }
        if self.choice.has(name) {
            self.sample_flow(number, flow.request.is_some());
        }
        number
    }

    /// The goodput of a flow that its destination knows from the plan, or has asked for, is sampled from now on; that of another
    /// once the destination [hears of it](Self::learn_flow).
    fn sample_flow(&mut self, number: u32, asked: bool) {
        self.windows_of.push(number);
        if asked || self.begins_by_itself(self.flows[number].name.traffic) {
            self.goodput_of.push((number, 0));
        }
    }

    pub(super) fn begins_by_itself(&self, traffic: u32) -> bool {
        !matches!(self.plan.traffic[traffic as usize].pattern, Pattern::App(_))
    }

    /// A flow begins: the opener of its connection sends the request, or the data itself. A part that owns but the other
    /// end takes note of it.
    pub(super) fn begin_flow(&mut self, now: Time, name: Name, start: &FlowStart, query: Option<u32>) {
        let (opener, peer) = start.ends();
        if !self.owns(opener) && !self.owns(peer) {
            return;
        }
        let number = self.flows.push(Flow::new(name, start, query));
        let tag = self.names.tag(name);
        if start.size.is_none() || self.choice.has(name) {
            self.sample_flow(number, start.request.is_some());
        }
        if let (None, Some(stop)) = (start.size, start.stop) {
            let slot = self.slots.take();
            self.network.arm(Entity::start(STOPS + u64::from(tag.0), slot), stop);
        }
        if !self.owns(opener) {
            return;
        }
        let transport = &self.plan.traffic[name.traffic as usize].transport;
        self.unfinished += match start.size {
            None => 0,
            Some(_) if transport.is_reliable() => 1,
            Some(size) => i64::try_from(size.get()).expect("sizes are far below 2⁶³"),
        };
        self.flows[number].ideal = self.ideal.completion(&self.plan.network, &self.network, transport, start);
        let slot = self.connection_for(name.traffic, opener, peer, tag);
        let end = self.connections.end(slot);
        self.flows[number].connection = Some(end.connection);
        match start.request {
            Some(request) => {
                self.begin_receiving(slot, number);
                self.connections.end(slot).endpoint.offer(request, tag);
                self.pump(now, slot);
            }
            None => self.send_flow(now, number),
        }
        if self.recorder.is_some() {
            self.record_flow(now, number, tag);
        }
    }

    /// The end awaits this flow from now on; what it counted for an earlier one is taken into that.
    pub(super) fn begin_receiving(&mut self, slot: u32, flow: u32) {
        self.note_received(slot);
        let tag = self.names.tag(self.flows[flow].name);
        let is_of_program = self.is_of_program(slot);
        let mut base = self.tallies(slot);
        let end = self.connections.end(slot);
        end.latest = tag.0 - 1;
        if is_of_program {
            // Bytes of the next one may be there already.
            base.delivered_bytes = self.received.get(&end.connection).copied().unwrap_or(0);
        }
        end.receiving = Some(Current { flow, base });
    }

    /// The end sends this flow from now on; what it counted for an earlier one is taken into that.
    fn begin_sending(&mut self, slot: u32, flow: u32) {
        self.note_sent(slot);
        let base = self.tallies(slot);
        let is_first = self.one_flow_only(slot);
        let end = self.connections.end(slot);
        if !is_first {
            // Those since an earlier flow are of none.
            end.endpoint.take_path_changes();
        }
        end.sending = Some(Current { flow, base });
    }

    /// The opener's end of a connection that may carry a new flow.
    pub(super) fn connection_for(&mut self, traffic: u32, opener: u32, peer: u32, tag: Tag) -> u32 {
        let mode = self.plan.traffic[traffic as usize].connections;
        match mode {
            Mode::Fresh => {
                let slot = self.open(traffic, opener, peer, false);
                self.connections.end(slot).endpoint.open(tag);
                slot
            }
            Mode::FreshEstablished => self.open(traffic, opener, peer, true),
            Mode::Persistent { .. } | Mode::InOrder => {
                let pool = if let Mode::Persistent { pool } = mode { pool } else { 1 };
                let key = (traffic, opener, peer);
                if !self.persistent.contains_key(&key) {
                    let open = |_| {
                        let slot = self.open(traffic, opener, peer, true);
                        self.connections.end(slot).connection
                    };
                    let connections: Vec<u32> = (0..pool).map(open).collect();
                    self.persistent.insert(key, ConnectionPool::of_idle(connections));
                }
                let pool = self.connection_pool(key);
                let connection = if mode == Mode::InOrder { pool.take_first() } else { pool.take() };
                if let Some(connection) = connection {
                    return self.connections.slot(connection, Side::Opener).expect("persistent ends live on");
                }
                let slot = self.open(traffic, opener, peer, false);
                let end = self.connections.end(slot);
                end.endpoint.open(tag);
                let connection = end.connection;
                self.connection_pool(key).add(connection);
                slot
            }
        }
    }

    pub(super) fn connection_pool(&mut self, key: (u32, u32, u32)) -> &mut ConnectionPool {
        self.persistent.get_mut(&key).expect("a pair's pool exists from its first flow on")
    }

    /// The opener's end of a new connection. The other end begins with its first packet, even where the connection counts
    /// as established: its host may be another part's.
    pub(super) fn open(&mut self, traffic: u32, opener: u32, peer: u32, established: bool) -> u32 {
        let connection = self
            .connections
            .open(opener)
            .expect("counted before the run began, and persistent ones are fewer than the flows under way");
        self.insert_end(connection, Side::Opener, opener, peer, traffic, established)
    }

    /// The source's end sends the flow's bytes.
    pub(super) fn send_flow(&mut self, now: Time, number: u32) {
        let flow = &self.flows[number];
        let (name, size) = (flow.name, flow.size.unwrap_or(ENDLESS));
        let Some(slot) = self.slot_of(flow.connection, flow.source).filter(|_| !flow.stopped) else { return };
        self.begin_sending(slot, number);
        self.connections.end(slot).endpoint.offer(size, self.names.tag(name));
        self.pump(now, slot);
        // A model stack takes a message whole.
        if self.apps[name.traffic as usize].handle_sent(now, name.sequence) {
            self.follow(now, name.traffic);
        }
    }

    /// A flow without a size offers no more; one whose request has not arrived yet never will.
    pub(super) fn stop_flow(&mut self, now: Time, number: u32) {
        let flow = &mut self.flows[number];
        if std::mem::replace(&mut flow.stopped, true) {
            return;
        }
        let (connection, source) = (flow.connection, flow.source);
        if let Some(slot) = self.slot_of(connection, source) {
            let end = self.connections.end(slot);
            // The connection may carry another flow by now.
            if end.sending.is_some_and(|current| current.flow == number) {
                end.endpoint.stop();
                if let Some(sent) = end.endpoint.datagram_bytes() {
                    self.note_last_sent(sent);
                }
                self.pump(now, slot);
            }
        }
    }

    /// A message is whole at this end: a request to answer, or a flow that is done.
    pub(super) fn handle_message(&mut self, now: Time, slot: u32, tag: Tag) {
        let number = self.flow_of(tag);
        let host = self.connections.end(slot).place.host;
        let flow = &self.flows[number];
        if flow.source == host {
            let traffic = flow.name.traffic;
            match self.apps[traffic as usize].handle_request(now, flow.name.sequence) {
                Reply::Now => self.send_flow(now, number),
                Reply::After(wait) => {
                    let slot = self.slots.take();
                    self.network.arm(Entity::start(ANSWERS + u64::from(tag.0), slot), now + wait);
                }
                Reply::Later => self.follow(now, traffic),
            }
            return;
        }
        self.finish_receiving(now, slot, number);
    }

    /// The slot of a flow's end on `host`, if the flow has come there and the end lives.
    pub(super) fn slot_of(&self, connection: Option<u32>, host: u32) -> Option<u32> {
        let connection = connection?;
        self.connections.slot(connection, self.connections.numbering.side(host, connection))
    }

    /// The flow's last byte is here: its completion is known, and the opener may use the connection again.
    pub(super) fn finish_receiving(&mut self, now: Time, slot: u32, number: u32) {
        self.unfinished -= 1;
        self.flows[number].done = now;
        let is_of_program = self.is_of_program(slot);
        if is_of_program && self.connections.end(slot).receiving.is_none_or(|current| current.flow != number) {
            self.begin_receiving(slot, number);
        }
        self.note_received(slot);
        let end = self.connections.end(slot);
        end.receiving = None;
        if is_of_program {
            let flow = &mut self.flows[number];
            flow.first_byte = flow.first_byte.min(now);
            *self.received.entry(end.connection).or_default() += flow.size.map_or(0, Bytes::get);
            // The next one may have any tag.
            end.latest = 0;
        }
        if end.place.side() == Side::Opener {
            self.release(now, slot);
        } else if self.one_flow_only(slot) {
            // Nothing more will come, but the last acknowledgement must still go.
            self.transmit(now, slot);
            self.close(slot);
        }
        let Flow { name, query, .. } = self.flows[number];
        if let Some(query) = query {
            self.queries[query as usize].answer(now);
        }
        if self.apps[name.traffic as usize].handle_delivered(now, name.sequence) {
            self.follow(now, name.traffic);
        }
    }

    /// What follows a message is an event of its own, after everything else that this instant brings.
    pub(super) fn follow(&mut self, now: Time, traffic: u32) {
        self.network.arm(Entity::start(u64::from(traffic), traffic), now);
    }

    /// A connection that was opened for a flow is established.
    pub(super) fn note_established(&mut self, now: Time, slot: u32) {
        let end = self.connections.end(slot);
        if let Some(current) = end.sending.or(end.receiving).filter(|_| end.place.side() == Side::Opener) {
            let flow = &mut self.flows[current.flow];
            (flow.established, flow.syn_retransmits) = (now, end.endpoint.syn_retransmits());
        }
    }

    /// What an end has counted, and its adapter.
    fn tallies(&mut self, slot: u32) -> Tallies {
        let end = self.connections.end(slot);
        let mut tallies = end.endpoint.tallies();
        if end.place.is_handed_specially {
            tallies.near_source_cuts += self.nic_cuts.get(&slot).copied().unwrap_or(0);
        }
        tallies
    }

    /// Takes the receiving end's counts into the flow that it awaits.
    pub(super) fn note_received(&mut self, slot: u32) {
        let tallies = self.tallies(slot);
        let end = self.connections.end(slot);
        let Some(current) = &mut end.receiving else { return };
        let flow = &mut self.flows[current.flow];
        flow.marked_bytes = tallies.marked_bytes - current.base.marked_bytes;
        let delivered = tallies.delivered_bytes - current.base.delivered_bytes;
        flow.delivered = delivered.min(flow.size.map_or(u64::MAX, Bytes::get));
        current.note_waits(flow, &end.endpoint, &tallies);
    }

    /// Takes the sending end's counts into its flow once everything is acknowledged.
    #[inline(never)]
    pub(super) fn finish_sending(&mut self, now: Time, slot: u32) {
        self.note_sent(slot);
        let end = self.connections.end(slot);
        let is_datagram = end.endpoint.datagram_bytes().is_some();
        if let Some(current) = end.sending.take().filter(|_| !is_datagram) {
            self.flows[current.flow].stopped = true;
        }
        let end = self.connections.end(slot);
        if end.place.side() == Side::Opener {
            self.release(now, slot);
        } else if self.one_flow_only(slot) {
            self.close(slot);
        }
    }

    /// Takes the sending end's counts into the flow that it sends.
    pub(super) fn note_sent(&mut self, slot: u32) {
        let tallies = self.tallies(slot);
        let end = self.connections.end(slot);
        let Some(current) = &mut end.sending else { return };
        let flow = &mut self.flows[current.flow];
        flow.retransmitted_bytes = tallies.retransmitted_bytes - current.base.retransmitted_bytes;
        flow.timeouts = tallies.timeouts - current.base.timeouts;
        current.note_waits(flow, &end.endpoint, &tallies);
        flow.near_source_cuts = tallies.near_source_cuts - current.base.near_source_cuts;
        flow.path_changes += end.endpoint.take_path_changes();
        flow.rtt_sum = tallies.rtt_sum - current.base.rtt_sum;
        flow.rtt_count = tallies.rtt_count - current.base.rtt_count;
    }

    pub(super) fn one_flow_only(&mut self, slot: u32) -> bool {
        let traffic = self.connections.end(slot).place.traffic;
        !self.plan.traffic[traffic as usize].connections.are_kept()
    }

    /// Whether the connection carries messages of a program, which may follow each other without a gap, and in any order of
    /// their tags.
    pub(super) fn is_of_program(&mut self, slot: u32) -> bool {
        let traffic = &self.plan.traffic[self.connections.end(slot).place.traffic as usize];
        traffic.connections.are_kept() && matches!(traffic.pattern, Pattern::App(Kind::Program(_)))
    }

    /// The opener is done with its connection: it closes, or waits for the next flow.
    pub(super) fn release(&mut self, now: Time, slot: u32) {
        if self.one_flow_only(slot) {
            self.transmit(now, slot);
            self.close(slot);
            return;
        }
        let end = self.connections.end(slot);
        let (key, connection) = ((end.place.traffic, end.place.host, end.place.peer()), end.connection);
        self.connection_pool(key).release(connection);
    }

    pub(super) fn close(&mut self, slot: u32) {
        let end = self.connections.end(slot);
        let id = (u64::from(end.connection) << 1 | end.place.side() as u64) << 1;
        self.network.disarm(Entity::timer(id, slot << 1));
        self.network.disarm(Entity::timer(id | 1, slot << 1 | 1));
        let metrics = match self.stacks.get(end.place.stack).profile.host_cache {
            Some(_) => end.endpoint.tcp().and_then(tcp::Endpoint::metrics),
            None => None,
        };
        if let Some(new) = metrics {
            let known = self.host_cache.entry((end.place.host, end.place.peer())).or_insert(new);
            *known = known.merged(new);
        }
        self.nic_cuts.remove(&slot);
        self.connections.remove(slot);
    }
}

fn tag_of(id: u64) -> Tag {
    Tag(u32::try_from(id).expect("tags are 32 bits"))
}
