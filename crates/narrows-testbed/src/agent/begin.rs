//! What the host begins: flows that are due, requests, and the connections that they take.

use std::sync::atomic::Ordering;

use narrows_core::app::connection_pool::ConnectionPool;
use narrows_core::app::{Application, FlowStart, Request, Start};
use narrows_core::units::Time;
use narrows_plan::Connections as Mode;
use narrows_plan::flows::Name;
use rustix::io;
use rustix::net::{Shutdown, shutdown};

use super::notes::{Opened, Query};
use super::socket::Info;
use super::{Agent, socket};

impl<'a> Agent<'a> {
    /// What an application begins and answers by now.
    pub(super) fn start(&mut self, now: Time, traffic: u32) -> io::Result<()> {
        let plan_now = self.plan_time(now);
        while let Some(Start { sequence, flow, request }) = self.flows.apps[traffic as usize].poll(plan_now) {
            let query = request.map(|request| self.query_of(plan_now, traffic, request));
            self.begin(Name { traffic, sequence }, &flow, query)?;
        }
        while let Some(sequence) = self.flows.apps[traffic as usize].poll_answer() {
            let name = Name { traffic, sequence };
            if let Some(id) = self.owed.remove(&name) {
                self.answer(id, name);
            }
        }
        self.arm_application(traffic);
        Ok(())
    }

    /// The place of a request that is known, or begins now.
    fn query_of(&mut self, start: Time, traffic: u32, request: Request) -> u32 {
        let Request { number, client, responses: awaited } = request;
        let queries = &mut self.notes.queries;
        if queries.last().is_none_or(|query| (query.traffic, query.number) != (traffic, number)) {
            queries.push(Query { traffic, number, client, awaited, start, completion: None, responses: 0 });
        }
        u32::try_from(queries.len() - 1).expect("fewer than 2³² queries")
    }

    /// A flow begins: this host opens its connection.
    pub(super) fn begin(&mut self, name: Name, flow: &FlowStart, query: Option<u32>) -> io::Result<()> {
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
            planned: flow.at,
            start,
            connection: number,
            query,
            port,
            handshake: None,
            syn_retransmits: connection.connected.then_some(0),
        };
        self.notes.flows.entry(name).or_default().opened = Some(opened);
        let connection = self.connections.get_mut(&id).expect("it is there");
        if connection.queued.is_some() || connection.writing.is_some() {
            connection.behind.push_back(name);
            return Ok(());
        }
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
            Mode::InOrder => {
                let key = (name.traffic, peer);
                match self.persistent.entry(key).or_default().take_first() {
                    Some(id) if self.connections.contains_key(&id) => Ok(id),
                    // It failed: what it carried is lost, and the run does not count.
                    _ => {
                        let id = self.open(name.traffic, peer)?;
                        self.persistent.insert(key, ConnectionPool::of_idle([id]));
                        Ok(id)
                    }
                }
            }
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
        !self.run.plan.traffic[traffic as usize].connections.are_kept()
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
