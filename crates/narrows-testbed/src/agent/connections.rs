//! The host's connections: opened ahead or when a flow asks, accepted, served, and closed.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use narrows_core::app::Application;
use narrows_core::app::connection_pool::ConnectionPool;
use narrows_core::cc::{EcnUse, spec};
use narrows_plan::Connections as Mode;
use narrows_plan::flows::Name;
use rustix::event::epoll;
use rustix::event::epoll::{EventData, EventFlags};
use rustix::io;
use rustix::io::Errno;
use rustix::net::sockopt;

use super::message::NAME_BYTES;
use super::socket::Info;
use super::{Agent, Connection, MAX_PER_HOST, Reading, socket};
use crate::namespace::set_parameter;

impl<'a> Agent<'a> {
    /// Opens the connections that the plan has open at its start.
    pub(super) fn open_pools(&mut self) -> io::Result<()> {
        let mut pairs = std::collections::BTreeSet::new();
        for (name, flow) in self.flows.opened() {
            pairs.insert((name.traffic, flow.ends().1));
        }
        for (traffic, app) in (0..).zip(&self.flows.apps) {
            pairs.extend(app.peers().iter().map(|&peer| (traffic, peer)));
        }
        for (traffic, peer) in pairs {
            let pool = match self.run.plan.traffic[traffic as usize].connections {
                Mode::Persistent { pool } => pool,
                Mode::InOrder => 1,
                Mode::Fresh | Mode::FreshEstablished => continue,
            };
            {
                let mut connections = Vec::new();
                for _ in 0..pool {
                    connections.push(self.open(traffic, peer)?);
                }
                self.persistent.insert((traffic, peer), ConnectionPool::of_idle(connections));
            }
        }
        Ok(())
    }

    pub(super) fn open_ahead(&mut self, name: Name) -> io::Result<()> {
        let flow = self.flows.get(name).expect("drawn for this host");
        let id = self.open(name.traffic, flow.ends().1)?;
        self.ahead.insert(name, id);
        Ok(())
    }

    pub(super) fn open(&mut self, traffic: u32, peer: u32) -> io::Result<u32> {
        let choice = &self.run.plan.traffic[traffic as usize].controller;
        // A controller that needs ECN asks for it by itself, in its own way.
        let classic = choice.ecn && spec(&choice.name).is_none_or(|spec| spec.ecn == EcnUse::Optional);
        self.ask_for_ecn(classic)?;
        let socket = socket::connection(peer, traffic, &self.run.controllers[traffic as usize])?;
        if self.opened == MAX_PER_HOST {
            return Err(Errno::MFILE);
        }
        let number = self.host * MAX_PER_HOST + self.opened;
        self.opened += 1;
        let id = self.insert(socket, traffic, peer, Some(number))?;
        // Its room says that it is connected.
        self.watch_room(id, true);
        Ok(id)
    }

    /// Whether connections that are opened from now on ask for classic ECN. The kernel reads it when the first packet is made,
    /// and this thread is the only one in the namespace that opens any.
    pub(super) fn ask_for_ecn(&mut self, ask: bool) -> io::Result<()> {
        if ask != self.asks_for_ecn {
            self.asks_for_ecn = ask;
            let value = if ask { "1" } else { "2" };
            set_parameter("net/ipv4/tcp_ecn", value)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        Ok(())
    }

    pub(super) fn accept(&mut self, traffic: u32) -> io::Result<()> {
        while let Some(socket) = socket::accepted(&self.listeners[traffic as usize])? {
            let id = self.insert(socket, traffic, u32::MAX, None)?;
            let connection = self.connections.get_mut(&id).expect("it is there");
            connection.connected = true;
            connection.reading = Reading::Name([0; NAME_BYTES], 0);
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, socket: OwnedFd, traffic: u32, peer: u32, number: Option<u32>) -> io::Result<u32> {
        let id = self.next_connection;
        self.next_connection += 1;
        epoll::add(&self.epoll, &socket, EventData::new_u64(u64::from(id)), EventFlags::IN)?;
        let connection = Connection {
            socket,
            traffic,
            peer,
            number,
            connected: false,
            queued: None,
            behind: VecDeque::new(),
            reading: Reading::Nothing,
            writing: None,
            sending: None,
            unsent_limit: None,
            stops: false,
            watches_room: false,
        };
        self.connections.insert(id, connection);
        Ok(id)
    }

    pub(super) fn watch_room(&mut self, id: u32, watch: bool) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.watches_room != watch)
        else {
            return;
        };
        connection.watches_room = watch;
        let flags = if watch { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        let modified = epoll::modify(&self.epoll, &connection.socket, EventData::new_u64(u64::from(id)), flags);
        modified.expect("an open socket of this epoll");
    }

    /// Something happened to a connection.
    pub(super) fn serve(&mut self, id: u32, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.connected && flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP) {
            if !matches!(sockopt::socket_error(&connection.socket), Ok(Ok(()))) {
                self.fail(id);
                return;
            }
            connection.connected = true;
            if let Some(name) = connection.queued {
                let retransmits = Info::of(&connection.socket).map(|info| info.total_retransmits());
                let now = self.plan_time(self.run.clock.now());
                if let Some(opened) = self.notes.flows.get_mut(&name).and_then(|flow| flow.opened.as_mut()) {
                    opened.handshake = Some(now.since(opened.start));
                    opened.syn_retransmits = retransmits.ok();
                }
                self.send_first(id);
            } else {
                self.watch_room(id, false);
            }
        }
        if flags.contains(EventFlags::OUT) {
            self.write_on(id);
        }
        if flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP) {
            self.read(id);
        }
    }

    /// The other end sends no more.
    pub(super) fn ended(&mut self, id: u32) {
        let connection = &self.connections[&id];
        let orderly = match connection.reading {
            Reading::Name(_, got) => got == 0 && connection.writing.is_none(),
            Reading::Flow(name, _) => self.flows.get(name).is_some_and(|flow| flow.size.is_none()),
            Reading::Nothing => true,
            Reading::Request(..) => false,
        };
        self.note_failure(!orderly);
        self.close(id);
    }

    pub(super) fn fail(&mut self, id: u32) {
        self.note_failure(true);
        if let Some(connection) = self.connections.get(&id) {
            socket::abort(&connection.socket);
        }
        self.close(id);
    }

    /// When a run is over, agents drop what goes on, one sooner than another.
    pub(super) fn note_failure(&mut self, failed: bool) {
        self.notes.failures += u64::from(failed && !self.shared.stop.load(Ordering::Relaxed));
    }

    pub(super) fn close(&mut self, id: u32) {
        self.note_sent(id);
        if let Some(connection) = self.connections.remove(&id) {
            // A socket that the near-source loop has borrowed just now outlives its close, and events would not end: on one
            // processor the loop, whose priority is lower, would never come to give it back.
            let deleted = epoll::delete(&self.epoll, &connection.socket);
            deleted.expect("an open socket of this epoll");
        }
    }
}
