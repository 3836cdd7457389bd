//! What goes over a connection: flows written and read, requests met and answered.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use narrows_core::app::{Application, FlowStart, Reply};
use narrows_plan::flows::Name;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::message::{NAME_BYTES, from_bytes, to_bytes, with_name};
use super::notes::{Received, Sent};
use super::socket::Info;
use super::{Agent, Due, ENDLESS, PIECE, Reading, Sending, Writing, socket};

impl<'a> Agent<'a> {
    /// The opener's message of the flow that waits for this connection.
    pub(super) fn send_first(&mut self, id: u32) {
        self.prepare_first(id);
        self.write(id);
    }

    /// The same, of which nothing is written yet.
    fn prepare_first(&mut self, id: u32) {
        let connection = self.connections.get_mut(&id).expect("the caller has seen it");
        let Some(name) = connection.queued.take() else { return };
        let flow = self.flows.get(name).expect("a flow of this host");
        if let Some(request) = flow.request {
            connection.reading = Reading::Flow(name, flow.size.unwrap_or(ENDLESS).get());
            connection.writing = Some(Writing { named: 0, name, left: with_name(request) });
            self.notes.flows.entry(name).or_default().received = Some(Received::default());
            if flow.size.is_none() {
                self.endless.insert(name, id);
            }
        } else {
            self.prepare_flow(id, name, &flow, 0);
        }
    }

    /// The flow's own bytes, from this end, are to be written.
    fn prepare_flow(&mut self, id: u32, name: Name, flow: &FlowStart, named: usize) {
        self.note_sent(id);
        let connection = self.connections.get_mut(&id).expect("the caller has seen it");
        let before = Info::of(&connection.socket).unwrap_or(Info::NONE);
        connection.sending = Some(Sending { name, before });
        let size = flow.size.unwrap_or(ENDLESS);
        let left = if named == 0 { with_name(size) } else { size.get() };
        connection.writing = Some(Writing { named, name, left });
        connection.unsent_limit = flow.size.is_none().then_some(0);
        connection.stops = flow.stop.is_some();
        if flow.size.is_none() {
            self.endless.insert(name, id);
            if let Some(stop) = flow.stop {
                self.arm(self.on_clock(stop), Due::Stop(name));
            }
        }
        self.notes.flows.entry(name).or_default().sent = Some(Sent { ecn: before.has_ecn(), ..Sent::default() });
    }

    pub(super) fn answer(&mut self, id: u32, name: Name) {
        let flow = self.flows.get(name).expect("a request was understood");
        if self.connections.contains_key(&id) {
            self.prepare_flow(id, name, &flow, NAME_BYTES);
            self.write(id);
        }
    }

    /// There is room to write on, at last.
    pub(super) fn write_on(&mut self, id: u32) {
        let Some(connection) = self.connections.get(&id) else { return };
        if connection.writing.is_some_and(|writing| writing.named > 0) {
            let dry = Info::of(&connection.socket).is_ok_and(|info| info.unsent() == 0);
            self.notes.ran_dry += u64::from(dry);
        }
        self.write(id);
    }

    /// Writes what there is room for: the message at hand, and those that follow it.
    pub(super) fn write(&mut self, id: u32) {
        while self.write_message(id) {
            let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.writing.is_none())
            else {
                return;
            };
            let Some(next) = connection.behind.pop_front() else { return };
            connection.queued = Some(next);
            self.prepare_first(id);
        }
    }

    /// Writes what there is room for of the message at hand; whether it is all of it.
    fn write_message(&mut self, id: u32) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let mut whole = None;
        while let Some(writing) = &mut connection.writing {
            let most = connection
                .unsent_limit
                .as_mut()
                .map_or(PIECE, |limit| room(&connection.socket, limit, connection.stops));
            let length = usize::try_from(writing.left).unwrap_or(PIECE).min(most).min(PIECE);
            if length == 0 {
                self.watch_room(id, true);
                return false;
            }
            let name = to_bytes(writing.name);
            let rest = &name[writing.named.min(NAME_BYTES)..];
            self.piece[..rest.len()].copy_from_slice(rest);
            let sent = send(&connection.socket, &self.piece[..length], SendFlags::NOSIGNAL);
            self.piece[..NAME_BYTES].fill(0);
            match sent {
                Ok(bytes) => {
                    writing.named = (writing.named + bytes).min(NAME_BYTES);
                    writing.left -= bytes as u64;
                    if writing.left == 0 {
                        whole = Some(writing.name);
                        connection.writing = None;
                        if connection.number.is_none() {
                            // Answered: the next request may come.
                            connection.reading = Reading::Name([0; NAME_BYTES], 0);
                        }
                    }
                }
                Err(Errno::AGAIN) => {
                    self.watch_room(id, true);
                    return false;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.fail(id);
                    return false;
                }
            }
        }
        self.watch_room(id, false);
        self.written(id);
        if let Some(name) = whole {
            self.taken(name);
        }
        true
    }

    /// The kernel has taken a message whole: a flow of this host, or a request.
    fn taken(&mut self, name: Name) {
        if self.flows.get(name).is_none_or(|flow| flow.source != self.host) {
            return;
        }
        let now = self.plan_time(self.run.clock.now());
        if self.flows.apps[name.traffic as usize].handle_sent(now, name.sequence) {
            self.arm(self.on_clock(now), Due::Start(name.traffic));
        }
    }

    /// A message has been handed over whole.
    pub(super) fn written(&mut self, id: u32) {
        let connection = &self.connections[&id];
        // The opener of a flow that it sends itself is done with the connection.
        if connection.number.is_some() && connection.sending.is_some() {
            if self.one_flow_only(connection.traffic) {
                let _ = shutdown(&connection.socket, Shutdown::Write);
            } else if !self.draining.contains(&id) {
                self.draining.push(id);
            }
        }
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, id: u32) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let (buffer, flags) = match connection.reading {
                Reading::Name(_, got) => (&mut self.piece[..NAME_BYTES - got], RecvFlags::empty()),
                Reading::Request(_, left) | Reading::Flow(_, left) => {
                    let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                    // The bytes mean nothing: the kernel need not copy them.
                    (&mut self.piece[..length], RecvFlags::TRUNC)
                }
                Reading::Nothing => (&mut self.piece[..1], RecvFlags::empty()),
            };
            let received = recv(&connection.socket, buffer, flags).map(|(_, bytes)| bytes);
            match received {
                Ok(0) => {
                    self.ended(id);
                    return;
                }
                Ok(bytes) => {
                    let start: [u8; NAME_BYTES] = std::array::from_fn(|i| self.piece[i]);
                    self.piece[..NAME_BYTES].fill(0);
                    self.take(id, bytes, start);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.fail(id);
                    return;
                }
            }
        }
    }

    /// So many bytes have come; the first of them.
    pub(super) fn take(&mut self, id: u32, bytes: usize, start: [u8; NAME_BYTES]) {
        let connection = self.connections.get_mut(&id).expect("it was read from");
        match &mut connection.reading {
            Reading::Name(name, got) => {
                name[*got..*got + bytes].copy_from_slice(&start[..bytes]);
                *got += bytes;
                if *got == NAME_BYTES {
                    let name = from_bytes(*name);
                    self.meet(id, name);
                }
            }
            Reading::Request(name, left) => {
                *left -= bytes as u64;
                if *left == 0 {
                    let name = *name;
                    self.requested(id, name);
                }
            }
            Reading::Flow(name, left) => {
                *left -= bytes as u64;
                let (name, whole) = (*name, *left == 0);
                self.received(id, name, bytes as u64, whole);
            }
            Reading::Nothing => self.fail(id),
        }
    }

    /// This end hears of a flow for the first time.
    pub(super) fn meet(&mut self, id: u32, name: Name) {
        let traffic = self.connections[&id].traffic;
        let known = self.flows.get(name).filter(|flow| name.traffic == traffic && flow.ends().1 == self.host);
        // Each has one message, whoever says that this is another.
        let Some(flow) = known.filter(|_| self.met.insert(name)) else {
            self.fail(id);
            return;
        };
        // An earlier answer on this connection is acknowledged by now.
        self.note_sent(id);
        let connection = self.connections.get_mut(&id).expect("it was read from");
        connection.sending = None;
        if let Some(request) = flow.request {
            connection.reading = Reading::Request(name, with_name(request) - NAME_BYTES as u64);
            if with_name(request) == NAME_BYTES as u64 {
                self.requested(id, name);
            }
        } else {
            let size = with_name(flow.size.unwrap_or(ENDLESS));
            connection.reading = Reading::Flow(name, size - NAME_BYTES as u64);
            self.notes.flows.entry(name).or_default().received = Some(Received::default());
            if flow.size.is_none() {
                self.endless.insert(name, id);
            }
            self.received(id, name, NAME_BYTES as u64, size == NAME_BYTES as u64);
        }
    }

    /// A request is whole: its application says when it is answered. Until then nothing else may come.
    pub(super) fn requested(&mut self, id: u32, name: Name) {
        let connection = self.connections.get_mut(&id).expect("it was read from");
        connection.reading = Reading::Nothing;
        let now = self.run.clock.now();
        let plan_now = self.plan_time(now);
        match self.flows.apps[name.traffic as usize].handle_request(plan_now, name.sequence) {
            Reply::Now => self.answer(id, name),
            Reply::After(wait) => self.arm(now + wait, Due::Answer(id, name)),
            Reply::Later => {
                self.owed.insert(name, id);
                self.arm(now, Due::Start(name.traffic));
            }
        }
    }

    /// Bytes of a flow have come, perhaps its last.
    pub(super) fn received(&mut self, id: u32, name: Name, bytes: u64, whole: bool) {
        let now = self.plan_time(self.run.clock.now());
        let flow = self.notes.flows.entry(name).or_default();
        let received = flow.received.get_or_insert_default();
        received.delivered += bytes;
        received.first_byte.get_or_insert(now);
        if !whole {
            return;
        }
        received.done = Some(now);
        // A message shorter than its name was lengthened to it.
        if let Some(size) = self.flows.get(name).and_then(|flow| flow.size) {
            received.delivered = received.delivered.min(size.get());
        }
        let query = flow.opened.and_then(|opened| opened.query);
        self.shared.unfinished.fetch_sub(1, Ordering::Relaxed);
        let connection = self.connections.get_mut(&id).expect("it was read from");
        if connection.number.is_none() {
            connection.reading = Reading::Name([0; NAME_BYTES], 0);
        } else {
            connection.reading = Reading::Nothing;
            let key = (connection.traffic, connection.peer);
            if self.one_flow_only(key.0) {
                self.close(id);
            } else {
                self.persistent.get_mut(&key).expect("it was taken from there").release(id);
            }
        }
        if let Some(query) = query {
            self.notes.queries[query as usize].answer(now);
        }
        if self.flows.apps[name.traffic as usize].handle_delivered(now, name.sequence) {
            self.arm(self.on_clock(now), Due::Start(name.traffic));
        }
    }

    /// Takes the connection's counts into the flow that it sends.
    pub(super) fn note_sent(&mut self, id: u32) {
        self.note_round_trip(id, true);
        let Some(connection) = self.connections.get(&id) else { return };
        let Some(Sending { name, before }) = connection.sending else { return };
        let Ok(info) = Info::of(&connection.socket) else { return };
        let sent = self.notes.flows.entry(name).or_default().sent.get_or_insert_default();
        sent.retransmitted_bytes = info.retransmitted().saturating_sub(before.retransmitted());
        sent.timeouts = info.timeouts().saturating_sub(before.timeouts());
    }

    /// Takes the connection's RTT into the flow that it sends, while it does; at the flow's end, if it has none.
    pub(super) fn note_round_trip(&mut self, id: u32, at_end: bool) {
        let Some(connection) = self.connections.get(&id) else { return };
        let Some(Sending { name, .. }) = connection.sending else { return };
        let Ok(info) = Info::of(&connection.socket) else { return };
        let sent = self.notes.flows.entry(name).or_default().sent.get_or_insert_default();
        let counts = if at_end { sent.rtt_count == 0 } else { !info.is_idle() };
        if let Some(trip) = info.round_trip().filter(|_| counts) {
            sent.rtt_sum += trip;
            sent.rtt_count += 1;
        }
    }

    /// Nothing begins any more and nothing more is measured.
    pub(super) fn end(&mut self) {
        let received = self.notes.flows.values_mut().filter_map(|flow| flow.received.as_mut());
        received.for_each(|received| received.delivered_at_end = Some(received.delivered));
        let endless: Vec<Name> = self.endless.keys().copied().collect();
        endless.into_iter().for_each(|name| self.stop(name));
    }
}

/// How many bytes a connection may be given now, so that no more than its limit waits unsent; the limit follows the
/// connection's window and rate.
fn room(socket: &OwnedFd, limit: &mut u32, stops: bool) -> usize {
    let info = Info::of(socket).unwrap_or(Info::NONE);
    let now = info.unsent_limit(stops);
    if now.abs_diff(*limit) > *limit / 4 && socket::limit_unsent(socket, now).is_ok() {
        *limit = now;
    }
    limit.saturating_sub(info.unsent()) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration;

    use narrows_core::units::{Bytes, Span, Time};
    use narrows_plan::{Connections, Pattern, Plan};
    use rustix::event::epoll;

    use super::super::flows::Flows;
    use super::super::{Notes, Run, Shared};
    use super::*;
    use crate::clock::Clock;

    const MESSAGES: u32 = 100_000;

    fn plan(flows: Vec<FlowStart>) -> Plan {
        let text = "[topology.star]\nhosts = 2\n[[traffic]]\nfrom = \"h1\"\nto = \"h2\"\nlong = { size = \"1B\" }\n\
                    [[arm]]\nname = \"A\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\n";
        let experiment = narrows_scenario::load_str(text, &Default::default(), &Default::default());
        let mut plan = experiment.expect("an experiment").plans.remove(0);
        plan.traffic[0].pattern = Pattern::List(flows);
        plan.traffic[0].connections = Connections::InOrder;
        plan
    }

    /// The first host's.
    fn agent<'a>(plan: &'a Plan, shared: &'a Shared, controllers: &'a [String]) -> Agent<'a> {
        let (clock, plan_begins) = (Clock::start(), Span::ZERO);
        Agent {
            run: Run { plan, seed: 1, controllers, clock, plan_begins, real_time: None },
            host: 0,
            shared,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).expect("a kernel with epoll"),
            listeners: Vec::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            opened: 0,
            due: BTreeSet::new(),
            flows: Flows::draw(plan, 1, 0),
            persistent: BTreeMap::new(),
            draining: Vec::new(),
            ahead: BTreeMap::new(),
            met: BTreeSet::new(),
            owed: BTreeMap::new(),
            endless: BTreeMap::new(),
            reported: BTreeMap::new(),
            asks_for_ecn: false,
            notes: Notes::default(),
            piece: vec![0; PIECE],
        }
    }

    /// A connection of the agent's over which these flows are to go, and its other end.
    fn connected(agent: &mut Agent<'_>, mut names: impl Iterator<Item = Name>) -> (u32, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let sender = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        sender.set_nonblocking(true).expect("a socket");
        let (receiver, _) = listener.accept().expect("it has connected");
        let id = agent.insert(sender.into(), 0, 1, Some(0)).expect("room in epoll");
        let connection = agent.connections.get_mut(&id).expect("it is there");
        (connection.connected, connection.queued) = (true, names.next());
        connection.behind.extend(names);
        (id, receiver)
    }

    #[test]
    fn messages_that_wait_for_a_connection_are_written_in_their_order_however_many() {
        let flow = FlowStart::new(Time::ZERO, 0, 1, Some(Bytes::new(1)));
        let (plan, shared, controllers) =
            (plan(vec![flow; MESSAGES as usize]), Shared::default(), ["cubic".to_owned()]);
        let mut agent = agent(&plan, &shared, &controllers);
        let names = (0..MESSAGES).map(|sequence| Name { traffic: 0, sequence });
        let (id, mut receiver) = connected(&mut agent, names);
        agent.send_first(id);
        let reader = thread::spawn(move || {
            let mut bytes = vec![0; NAME_BYTES * MESSAGES as usize];
            receiver.read_exact(&mut bytes).map(|()| bytes)
        });
        while agent.connections[&id].writing.is_some() || !agent.connections[&id].behind.is_empty() {
            thread::yield_now();
            agent.write_on(id);
        }
        let bytes = reader.join().expect("it reads").expect("all of them");
        let came = bytes.chunks_exact(NAME_BYTES).map(|name| from_bytes(name.try_into().expect("a name")).sequence);
        assert!(came.eq(0..MESSAGES));
    }

    #[test]
    fn of_a_flow_without_a_size_little_waits_unsent_so_that_it_can_stop() {
        for (stop, most) in [(Some(Time::ZERO + Span::from_secs(60)), 1 << 18), (None, 1 << 20)] {
            let flow = FlowStart { stop, ..FlowStart::new(Time::ZERO, 0, 1, None) };
            let (plan, shared, controllers) = (plan(vec![flow]), Shared::default(), ["cubic".to_owned()]);
            let mut agent = agent(&plan, &shared, &controllers);
            let (id, _receiver) = connected(&mut agent, std::iter::once(Name { traffic: 0, sequence: 0 }));
            agent.send_first(id);
            let mut before = u64::MAX;
            // Nobody reads: what the receiver's socket does not take waits here.
            while agent.connections[&id].writing.is_some_and(|writing| writing.left != before) {
                before = agent.connections[&id].writing.expect("it has no end").left;
                thread::sleep(Duration::from_millis(10));
                agent.write_on(id);
            }
            let unsent = Info::of(&agent.connections[&id].socket).expect("a connection").unsent();
            assert!((1..=most).contains(&unsent), "{stop:?}: {unsent}");
        }
    }

    #[test]
    fn an_application_is_polled_once_at_a_time_however_often_it_is_asked_for() {
        let begins = Time::ZERO + Span::from_ms(900);
        let flow = FlowStart::new(begins, 0, 1, Some(Bytes::new(1)));
        let (plan, shared, controllers) = (plan(vec![flow]), Shared::default(), ["cubic".to_owned()]);
        let mut agent = agent(&plan, &shared, &controllers);
        agent.arm_application(0);
        for _ in 0..100 {
            let now = agent.run.clock.now();
            agent.arm(now, Due::Start(0));
            agent.arm(now, Due::Start(0));
            agent.handle_due().expect("nothing to do");
        }
        // Each poll says that the next is due when the flow begins.
        assert_eq!(agent.due.into_iter().collect::<Vec<_>>(), [(begins, Due::Start(0))]);
    }
}
