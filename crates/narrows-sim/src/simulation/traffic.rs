//! Flows from their start to their end: which connection carries each, what the applications do next, what is counted.

use super::*;

impl Simulation<'_> {
    pub(super) fn handle_start(&mut self, now: Time, entity: Entity) {
        let id = entity.id();
        if id >= ANSWERS {
            self.slots.give_back(entity.slot());
            self.send_flow(now, u32::try_from(id - ANSWERS).expect("flow numbers are 32 bits"));
        } else if id >= STOPS {
            self.slots.give_back(entity.slot());
            self.stop_flow(now, u32::try_from(id - STOPS).expect("flow numbers are 32 bits"));
        } else {
            let traffic = usize::try_from(id).expect("a plan has few entries");
            match self.client_of_traffic[traffic] {
                Some(client) => self.ask(now, client),
                None => self.begin_arrivals(now, traffic, entity),
            }
        }
        self.all_begun |= self.arrivals.iter_mut().all(|arrivals| arrivals.peek().is_none())
            && self.clients.iter().all(|client| client.machine.is_done());
    }

    pub(super) fn begin_arrivals(&mut self, now: Time, traffic: usize, entity: Entity) {
        while let Some(flow) = self.arrivals[traffic].next_if(|flow| flow.at <= now) {
            self.begin_flow(now, u32::try_from(traffic).expect("a plan has few entries"), flow, None);
        }
        if let Some(next) = self.arrivals[traffic].peek().filter(|next| next.at < self.plan.schedule.end) {
            self.network.arm(entity, next.at);
        }
    }

    /// A flow begins: the opener of its connection sends the request, or the data itself.
    pub(super) fn begin_flow(&mut self, now: Time, traffic: u32, start: FlowStart, query: Option<u32>) -> u32 {
        let number = u32::try_from(self.flows.len()).expect("fewer than 2³² flows");
        let (network, graph) = (&self.network, &self.plan.network);
        let ideal = self.ideal.completion(
            graph,
            (start.source, start.destination),
            start.size.unwrap_or(Bytes::new(1)),
            start.request,
            |from, to| network.path(from, to, 0),
        );
        let (opener, peer) = match start.request {
            Some(_) => (start.destination, start.source),
            None => (start.source, start.destination),
        };
        self.flows.push(Flow {
            connection: 0,
            traffic,
            source: start.source,
            destination: start.destination,
            size: start.size,
            query,
            start: now,
            done: None,
            ideal,
            rtt_sum: Span::ZERO,
            rtt_count: 0,
            retransmitted_bytes: 0,
            timeouts: 0,
            marked_bytes: 0,
            delivered_at_warmup: 0,
            delivered_at_end: None,
            delivered: 0,
            reported: 0,
            stopped: false,
        });
        let tag = Tag(number + 1);
        let slot = self.connection_for(traffic, opener, peer, tag);
        let end = self.connections.end(slot);
        let connection = end.connection;
        self.flows[number as usize].connection = connection;
        if start.size.is_some() {
            self.unfinished += 1;
        } else {
            self.endless.push(number);
            if let Some(stop) = start.stop {
                let slot = self.slots.take();
                self.network.arm(Entity::start(STOPS + u64::from(number), slot), stop);
            }
        }
        match start.request {
            Some(request) => {
                self.begin_receiving(slot, number);
                self.connections.end(slot).endpoint.offer(request, tag);
                self.serve(now, slot);
            }
            None => {
                if let Some(other) = self.connections.slot(connection, Side::Other) {
                    self.begin_receiving(other, number);
                }
                self.send_flow(now, number);
            }
        }
        number
    }

    /// The end awaits this flow from now on; what it counted for an earlier one is taken into that.
    pub(super) fn begin_receiving(&mut self, slot: u32, flow: u32) {
        self.note_received(slot);
        let end = self.connections.end(slot);
        end.receiving = Some(Current { flow, base: end.endpoint.tallies() });
    }

    /// The end sends this flow from now on; what it counted for an earlier one is taken into that.
    fn begin_sending(&mut self, slot: u32, flow: u32) {
        self.note_sent(slot);
        let end = self.connections.end(slot);
        end.sending = Some(Current { flow, base: end.endpoint.tallies() });
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
            Mode::Persistent { pool } => {
                let key = (traffic, opener, peer);
                if !self.persistent.contains_key(&key) {
                    let open = |_| {
                        let slot = self.open(traffic, opener, peer, true);
                        self.connections.end(slot).connection
                    };
                    let connections: Vec<u32> = (0..pool).map(open).collect();
                    self.persistent.insert(key, ConnectionPool::of_idle(connections));
                }
                if let Some(connection) = self.connection_pool(key).take() {
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

    /// A new connection; where it is established from the start, both its ends.
    pub(super) fn open(&mut self, traffic: u32, opener: u32, peer: u32, established: bool) -> u32 {
        let connection = self
            .connections
            .open(opener)
            .expect("counted before the run began, and persistent ones are fewer than the flows under way");
        let slot = self.insert_end(connection, Side::Opener, opener, peer, traffic, established);
        if established {
            self.insert_end(connection, Side::Other, peer, opener, traffic, true);
        }
        slot
    }

    /// The source's end sends the flow's bytes.
    pub(super) fn send_flow(&mut self, now: Time, number: u32) {
        let flow = &self.flows[number as usize];
        let (connection, size) = (flow.connection, flow.size.unwrap_or(ENDLESS));
        let side = Side::on(flow.source, connection);
        let Some(slot) = self.connections.slot(connection, side).filter(|_| !flow.stopped) else { return };
        self.begin_sending(slot, number);
        self.connections.end(slot).endpoint.offer(size, Tag(number + 1));
        self.serve(now, slot);
    }

    /// A flow without a size offers no more; one whose request has not arrived yet never will.
    pub(super) fn stop_flow(&mut self, now: Time, number: u32) {
        let flow = &mut self.flows[number as usize];
        if std::mem::replace(&mut flow.stopped, true) {
            return;
        }
        let side = Side::on(flow.source, flow.connection);
        if let Some(slot) = self.connections.slot(flow.connection, side) {
            let end = self.connections.end(slot);
            // The connection may carry another flow by now.
            if end.sending.is_some_and(|current| current.flow == number) {
                end.endpoint.stop();
                self.serve(now, slot);
            }
        }
    }

    /// A message is whole at this end: a request to answer, or a flow that is done.
    pub(super) fn handle_message(&mut self, now: Time, slot: u32, tag: Tag) {
        let number = tag.0 - 1;
        let host = self.connections.end(slot).place.host;
        let flow = &self.flows[number as usize];
        if flow.source == host {
            let jitter = match &self.plan.traffic[flow.traffic as usize].pattern {
                Pattern::Incast(incast) if incast.jitter > Span::ZERO => incast.jitter,
                _ => {
                    self.send_flow(now, number);
                    return;
                }
            };
            // A draw of the pair and the query alone, whoever else answers.
            let pair = u64::from(flow.destination) << 32 | u64::from(flow.source);
            let mut random = SmallStream::new(mix(self.jitter ^ mix(pair)) ^ flow.start.as_ps());
            let wait = Span::from_ps(random.below(jitter.as_ps()));
            let slot = self.slots.take();
            self.network.arm(Entity::start(ANSWERS + u64::from(number), slot), now + wait);
            return;
        }
        self.finish_receiving(now, slot, number);
    }

    /// The flow's last byte is here: its completion is known, and the opener may use the connection again.
    pub(super) fn finish_receiving(&mut self, now: Time, slot: u32, number: u32) {
        self.unfinished -= 1;
        self.flows[number as usize].done = Some(now);
        self.note_received(slot);
        let end = self.connections.end(slot);
        end.receiving = None;
        if end.side() == Side::Opener {
            self.release(now, slot);
        } else if self.one_flow_only(slot) {
            // Nothing more will come, but the last acknowledgement must still go.
            self.transmit(now, slot);
            self.close(slot);
            return;
        }
        if let Some(query) = self.flows[number as usize].query {
            self.handle_answer(now, number, query);
        }
    }

    /// Takes the receiving end's counts into the flow that it awaits.
    pub(super) fn note_received(&mut self, slot: u32) {
        let end = self.connections.end(slot);
        let Some(current) = end.receiving else { return };
        let tallies = end.endpoint.tallies();
        let flow = &mut self.flows[current.flow as usize];
        flow.marked_bytes = tallies.marked_bytes - current.base.marked_bytes;
        flow.delivered = tallies.delivered_bytes - current.base.delivered_bytes;
    }

    /// Takes the sending end's counts into its flow once everything is acknowledged.
    pub(super) fn finish_sending(&mut self, now: Time, slot: u32) {
        let Some(end) = self.connections.end_if_alive(slot) else { return };
        if end.sending.is_none() || !end.endpoint.is_idle() {
            return;
        }
        self.note_sent(slot);
        let end = self.connections.end(slot);
        end.sending = None;
        if end.side() == Side::Opener {
            self.release(now, slot);
        } else if self.one_flow_only(slot) {
            self.close(slot);
        }
    }

    /// Takes the sending end's counts into the flow that it sends.
    pub(super) fn note_sent(&mut self, slot: u32) {
        let end = self.connections.end(slot);
        let Some(current) = end.sending else { return };
        let tallies = end.endpoint.tallies();
        let flow = &mut self.flows[current.flow as usize];
        flow.retransmitted_bytes = tallies.retransmitted_bytes - current.base.retransmitted_bytes;
        flow.timeouts = tallies.timeouts - current.base.timeouts;
        flow.rtt_sum = tallies.rtt_sum - current.base.rtt_sum;
        flow.rtt_count = tallies.rtt_count - current.base.rtt_count;
    }

    pub(super) fn one_flow_only(&mut self, slot: u32) -> bool {
        let traffic = self.connections.end(slot).place.traffic;
        !matches!(self.plan.traffic[traffic as usize].connections, Mode::Persistent { .. })
    }

    /// The opener is done with its connection: it closes, or waits for the next flow.
    pub(super) fn release(&mut self, now: Time, slot: u32) {
        if self.one_flow_only(slot) {
            self.transmit(now, slot);
            self.close(slot);
            return;
        }
        let end = self.connections.end(slot);
        let (key, connection) = ((end.place.traffic, end.place.host, end.place.peer), end.connection);
        self.connection_pool(key).release(connection);
    }

    pub(super) fn close(&mut self, slot: u32) {
        let end = self.connections.end(slot);
        let id = (u64::from(end.connection) << 1 | end.side() as u64) << 1;
        self.network.disarm(Entity::timer(id, slot << 1));
        self.network.disarm(Entity::timer(id | 1, slot << 1 | 1));
        self.connections.remove(slot);
    }

    pub(super) fn ask(&mut self, now: Time, client: usize) {
        if now >= self.plan.schedule.end {
            return;
        }
        let Some(_servers) = self.clients[client].machine.poll_query(now) else { return };
        let (traffic, incast) = (self.clients[client].traffic, self.clients[client].incast);
        let query = u32::try_from(self.queries.len()).expect("fewer than 2³² queries");
        self.queries.push(RequestRow {
            request: query,
            client: incast.client,
            start_ns: now.as_ns(),
            completion_ns: None,
            responses: 0,
        });
        self.clients[client].query = Some(query);
        for &server in &incast.servers {
            let start = FlowStart {
                at: now,
                source: server,
                destination: incast.client,
                size: Some(incast.response),
                stop: None,
                request: Some(incast.request),
            };
            self.begin_flow(now, traffic, start, Some(query));
        }
    }

    pub(super) fn handle_answer(&mut self, now: Time, flow: u32, query: u32) {
        let traffic = self.flows[flow as usize].traffic as usize;
        let client = self.client_of_traffic[traffic].expect("queries belong to clients");
        let row = &mut self.queries[query as usize];
        row.responses += 1;
        if let Some(completed) = self.clients[client].machine.handle_answer(now) {
            row.completion_ns = Some(completed.answered_at.since(completed.asked_at).as_ns());
            // The next query is an event of its own, after everything else that this instant brings.
            let index = u32::try_from(traffic).expect("a plan has few entries");
            self.network.arm(Entity::start(u64::from(index), index), now);
        }
    }
}
