//! What the host begins: flows that are due, requests, and the connections that they take.

use std::sync::atomic::Ordering;

use narrows_core::units::Time;
use narrows_scenario::plan::{Connections as Mode, FlowStart};
use narrows_scenario::traffic::flows::Name;
use rustix::io;
use rustix::net::{Shutdown, shutdown};

use super::notes::{Opened, Query};
use super::socket::Info;
use super::{Agent, Due, socket};

impl<'a> Agent<'a> {
    /// The flows of an entry, or the queries of its client, that are to begin by now.
    pub(super) fn start(&mut self, now: Time, traffic: u32) -> io::Result<()> {
        if self.clients.contains_key(&traffic) {
            return self.ask(now, traffic);
        }
        while let Some((at, sequence)) = self.starts[traffic as usize].pop_if(|(at, _)| *at <= now) {
            let name = Name { traffic, sequence };
            let flow = self.flows.get(name).expect("drawn for this host");
            self.begin(name, &flow, at, None)?;
        }
        if let Some(&(at, _)) = self.starts[traffic as usize].last() {
            self.arm(at, Due::Start(traffic));
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, now: Time, traffic: u32) -> io::Result<()> {
        let plan_now = self.plan_time(now);
        let client = self.clients.get_mut(&traffic).expect("the caller has seen it");
        let (queries, next) = client.asks.poll(plan_now);
        if let Some(next) = next {
            self.arm(self.on_clock(next), Due::Start(traffic));
        }
        for _ in 0..queries {
            let client = self.clients.get_mut(&traffic).expect("the caller has seen it");
            let (incast, first) = (client.incast, client.begun);
            let servers = u32::try_from(incast.servers.len()).expect("a plan has fewer than 2³² nodes");
            client.begun += servers;
            let query = u32::try_from(self.notes.queries.len()).expect("fewer than 2³² queries");
            self.notes.queries.push(Query { traffic, start: plan_now, completion: None, responses: 0 });
            for sequence in first..first + servers {
                let flow = incast.asked(sequence, plan_now);
                self.begin(Name { traffic, sequence }, &flow, now, Some(query))?;
            }
        }
        Ok(())
    }

    /// A flow begins: this host opens its connection.
    pub(super) fn begin(&mut self, name: Name, flow: &FlowStart, planned: Time, query: Option<u32>) -> io::Result<()> {
        if flow.size.is_some() {
            self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
        }
        let start = self.plan_time(self.run.clock.now());
        let (_, peer) = flow.ends();
        let id = self.connection_for(name, peer)?;
        let connection = &self.connections[&id];
        let number = connection.number.expect("this host has opened it");
        let port = socket::own_port(&connection.socket);
        let opened = Opened {
            planned: self.plan_time(planned),
            start,
            connection: number,
            query,
            port,
            handshake: None,
            syn_retransmits: connection.connected.then_some(0),
        };
        self.notes.flows.entry(name).or_default().opened = Some(opened);
        let connection = self.connections.get_mut(&id).expect("it is there");
        connection.queued = Some(name);
        if connection.connected {
            self.send_first(id);
        }
        Ok(())
    }

    /// A connection that may carry a new flow.
    pub(super) fn connection_for(&mut self, name: Name, peer: u32) -> io::Result<u32> {
        match self.run.plan.traffic[name.traffic as usize].connections {
            Mode::Fresh => self.open(name.traffic, peer),
            Mode::FreshEstablished => match self.ahead.remove(&name).filter(|id| self.connections.contains_key(id)) {
                Some(id) => Ok(id),
                None => self.open(name.traffic, peer),
            },
            Mode::Persistent { .. } => {
                self.release_drained();
                let key = (name.traffic, peer);
                while let Some(id) = self.persistent.entry(key).or_default().take() {
                    // One that failed stays in use for ever.
                    if self.connections.contains_key(&id) {
                        return Ok(id);
                    }
                }
                let id = self.open(name.traffic, peer)?;
                self.persistent.entry(key).or_default().add(id);
                Ok(id)
            }
        }
    }

    pub(super) fn one_flow_only(&self, traffic: u32) -> bool {
        !matches!(self.run.plan.traffic[traffic as usize].connections, Mode::Persistent { .. })
    }

    /// Persistent connections whose last message is acknowledged may be used again.
    pub(super) fn release_drained(&mut self) {
        for id in std::mem::take(&mut self.draining) {
            let Some(connection) = self.connections.get(&id) else { continue };
            if Info::of(&connection.socket).is_ok_and(|info| info.is_idle()) {
                let key = (connection.traffic, connection.peer);
                self.note_sent(id);
                self.persistent.get_mut(&key).expect("it was taken from there").release(id);
            } else {
                self.draining.push(id);
            }
        }
    }

    /// A flow without a size offers no more.
    pub(super) fn stop(&mut self, name: Name) {
        let Some(connection) = self.endless.get(&name).and_then(|id| self.connections.get_mut(id)) else { return };
        if connection.writing.is_some_and(|writing| writing.name == name) && connection.sending.is_some() {
            connection.writing = None;
            let _ = shutdown(&connection.socket, Shutdown::Write);
            let id = self.endless[&name];
            self.watch_room(id, false);
        }
    }
}
