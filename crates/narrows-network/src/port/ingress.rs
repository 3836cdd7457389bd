//! The memory of switches for what comes in over a link, and who is paused because of it [802.1Qbb].
//!
//! What is held is known exactly where it counts: the ports of a switch are settled before a packet is refused or anybody
//! paused, and while a link is paused each departure from the switch is an event, so that it is resumed at the moment.

use narrows_core::queue::pfc::{self, Ask, Ingress};
use narrows_core::units::{Bytes, Packets, Span, Time};
use narrows_plan::Graph;

use super::served::Feeders;
use super::{NONE, Ports};
use crate::network::Payload;
use crate::route::switch_indices;

/// The link over which a packet came, and its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    link: u32,
    priority: u8,
}

impl Origin {
    /// It was offered from outside, or does not count.
    pub(super) const NONE: Origin = Origin { link: NONE, priority: 0 };
}

/// Of every link that ends at a switch, its memory there.
#[derive(Clone, Debug)]
pub(super) struct Memories {
    /// By link.
    of: Vec<Option<Ingress>>,
    /// By link: the switch that it begins and ends at, by index; [`NONE`] for a host.
    begins: Vec<u32>,
    ends: Vec<u32>,
    /// By switch: its served ports, and how many pauses it asks for.
    ports: Vec<Vec<u32>>,
    pauses: Vec<u32>,
}

impl Memories {
    /// `None` where no switch counts by ingress.
    pub(super) fn new(graph: &Graph, served: &[bool]) -> Option<Memories> {
        if graph.links.iter().all(|link| link.ingress.is_none() && link.pauses.is_none()) {
            return None;
        }
        let switches = switch_indices(graph);
        let count = switches.iter().filter(|&&switch| switch != NONE).count();
        let mut ports = vec![Vec::new(); count];
        let begins: Vec<u32> = graph.links.iter().map(|link| switches[link.from as usize]).collect();
        for (id, &switch) in (0..).zip(&begins) {
            if switch != NONE && served[id as usize] {
                ports[switch as usize].push(id);
            }
        }
        let ends: Vec<u32> = graph.links.iter().map(|link| switches[link.to as usize]).collect();
        let of = (graph.links.iter().zip(&ends))
            .map(|(link, &end)| {
                let pausing =
                    end != NONE && ports[end as usize].iter().any(|&port| graph.links[port as usize].pauses.is_some());
                let plain = || pausing.then(|| Ingress::new(narrows_core::queue::Limit::Unlimited, None));
                link.ingress.map(|memory| Ingress::new(memory.limit, memory.thresholds)).or_else(plain)
            })
            .collect();
        Some(Memories { of, begins, ends, ports, pauses: vec![0; count] })
    }
}

impl<P: Payload> Ports<P> {
    /// What a packet that came over `from` is counted by.
    pub(super) fn origin(&self, from: u32, priority: u8) -> Origin {
        let counts = from != NONE && self.ingress.as_ref().is_some_and(|memories| memories.of[from as usize].is_some());
        if counts { Origin { link: from, priority } } else { Origin::NONE }
    }

    #[inline(always)]
    fn memory(&mut self, origin: Origin) -> Option<&mut Ingress> {
        if origin.link == NONE {
            return None;
        }
        self.ingress.as_mut()?.of[origin.link as usize].as_mut()
    }

    /// Whether the memory for what comes over its link takes a packet.
    #[inline(always)]
    pub(super) fn ingress_admits(&mut self, now: Time, origin: Origin, size: Bytes) -> bool {
        let Some(memory) = self.memory(origin) else { return true };
        if memory.stays_below_xoff(origin.priority, size) && !memory.pauses(origin.priority) {
            return true;
        }
        self.settled_ingress_admits(now, origin, size)
    }

    /// As above, when all that has left the switch is given back.
    #[inline(never)]
    fn settled_ingress_admits(&mut self, now: Time, origin: Origin, size: Bytes) -> bool {
        for place in 0.. {
            let Some(port) = self.port_behind(origin, place) else { break };
            self.settle(now, port);
        }
        self.memory(origin).is_none_or(|memory| memory.admits(size))
    }

    /// The served ports of the switch that a packet came to, by their places.
    fn port_behind(&self, origin: Origin, place: usize) -> Option<u32> {
        let memories = self.ingress.as_ref()?;
        memories.ports[memories.ends[origin.link as usize] as usize].get(place).copied()
    }

    /// A packet that came over its link waits at the port `at`.
    #[inline(always)]
    pub(super) fn ingress_takes(&mut self, now: Time, at: u32, origin: Origin, size: Bytes) {
        let Some(memory) = self.memory(origin) else { return };
        let ask = memory.take(origin.priority, size);
        self.ask(now, origin, ask);
        if self.counted(at).pauses {
            self.pause_feeder(now, at, origin);
        }
    }

    /// If the port holds too much, the link over which a packet came to it is paused.
    #[inline(never)]
    fn pause_feeder(&mut self, now: Time, at: u32, origin: Origin) {
        let index = self.ports[at as usize].served as usize;
        let Some(Feeders { thresholds, .. }) = self.served[index].feeders else { return };
        if self.held(at).bytes > thresholds.xoff {
            self.settle(now, at);
        }
        let held = self.held(at).bytes;
        if let Some(feeders) = &mut self.served[index].feeders
            && (held > thresholds.xoff || !feeders.paused.is_empty())
            && !feeders.paused.contains(&origin)
        {
            feeders.paused.push(origin);
            let ask = self.memory(origin).map_or(Ask::Nothing, |memory| memory.claim(origin.priority));
            self.ask(now, origin, ask);
        }
    }

    /// The last bit of a packet that came over its link has left a port, while nobody is paused.
    #[inline(always)]
    pub(super) fn forget_held(&mut self, origin: Origin, size: Bytes) {
        let ask = self.memory(origin).map_or(Ask::Nothing, |memory| memory.give_back(origin.priority, size));
        debug_assert!(ask == Ask::Nothing, "whoever pauses serves packet by packet");
    }

    /// The last bit of a packet that came over its link has left the port `at`.
    pub(super) fn ingress_gives_back(&mut self, now: Time, at: u32, origin: Origin, size: Bytes) {
        let Some(memory) = self.memory(origin) else { return };
        let ask = memory.give_back(origin.priority, size);
        self.ask(now, origin, ask);
        let index = self.ports[at as usize].served as usize;
        let held = self.served[index].held.bytes;
        if let Some(feeders) = &mut self.served[index].feeders
            && held <= feeders.thresholds.xon
            && !feeders.paused.is_empty()
        {
            for origin in std::mem::take(&mut feeders.paused) {
                let ask = self.memory(origin).map_or(Ask::Nothing, |memory| memory.yield_claim(origin.priority));
                self.ask(now, origin, ask);
            }
        }
    }

    /// Has a frame sent if one is asked for, and what goes with it told.
    #[inline(always)]
    fn ask(&mut self, now: Time, origin: Origin, ask: Ask) {
        if ask != Ask::Nothing {
            self.send(now, origin, ask == Ask::Pause);
        }
    }

    #[inline(never)]
    fn send(&mut self, now: Time, origin: Origin, pause: bool) {
        self.frames.push_back(origin.link);
        let memories = self.ingress.as_mut().expect("somebody is paused");
        let switch = memories.ends[origin.link as usize] as usize;
        if !pause {
            memories.pauses[switch] -= 1;
            return;
        }
        memories.pauses[switch] += 1;
        if memories.pauses[switch] == 1 {
            for place in 0.. {
                let Some(port) = self.port_behind(origin, place) else { break };
                self.recall(now, port);
                self.tell_end(port);
            }
        }
    }

    /// Whether the switch of this port has paused anybody.
    pub(super) fn has_paused(&self, link: u32) -> bool {
        let Some(memories) = &self.ingress else { return false };
        let switch = memories.begins[link as usize];
        switch != NONE && memories.pauses[switch as usize] > 0
    }

    /// Which priorities of `link` its far end pauses, a bit for each.
    pub(crate) fn asking(&self, link: u32) -> u8 {
        let memory = self.ingress.as_ref().and_then(|memories| memories.of[link as usize].as_ref());
        memory.map_or(0, Ingress::paused)
    }

    fn pause_time(&self, now: Time, link: u32) -> Span {
        pfc::pause_time(self.rate(now, link))
    }

    /// After how long a pause of `link` is asked for again.
    pub(crate) fn refresh_time(&self, now: Time, link: u32) -> Span {
        Span::from_ps(self.pause_time(now, link).as_ps() / pfc::REFRESH)
    }

    /// A link whose other end is to be told of a change. The oldest first.
    #[inline(always)]
    pub(crate) fn take_frame(&mut self) -> Option<u32> {
        self.frames.pop_front()
    }

    /// A frame is to go out at the port `back`, ahead of all else, about the other end of `link`; whether it is one more. It says
    /// what holds when its sending begins: however often that changes meanwhile, one frame tells of it.
    pub(crate) fn request_frame(&mut self, now: Time, back: u32, link: u32) -> bool {
        self.recall(now, back);
        let served = &mut self.served[self.ports[back as usize].served as usize];
        if served.frame_about.replace(link).is_some() {
            return false;
        }
        self.rules[back as usize].pause_frames += Packets::new(1);
        self.tell_end(back);
        self.begin_if_free(now, back);
        true
    }

    /// The frame about `link`, as of now.
    pub(super) fn frame(&self, now: Time, link: u32) -> P {
        let frame = P::pause(self.asking(link), self.pause_time(now, link));
        frame.expect("the payload of a network that pauses has such frames")
    }

    /// Whether links can be paused.
    pub(crate) fn pauses_links(&self) -> bool {
        self.ingress.is_some()
    }
}
