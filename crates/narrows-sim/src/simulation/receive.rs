//! The receive queues of hosts' adapters: what arrives waits there for an interrupt, and a poll hands up runs of segments.
//!
//! A host whose adapter has none ([`Profile::receive_offload`]) hands up each packet as it arrives, and pays nothing.
//!
//! [`Profile::receive_offload`]: narrows_core::tcp::profile::Profile::receive_offload

use narrows_core::nic::merge::Merging;
use narrows_core::nic::receive::{ReceiveOffload, ReceiveQueue};

use narrows_plan::Node;

use super::*;

/// The adapters of this part's hosts.
pub(super) struct Adapters {
    /// By node.
    queues: Vec<Adapter>,
    /// What a poll holds; nothing between two polls.
    merging: Merging<u32>,
    /// Kept for its room.
    batch: Vec<Packet>,
}

#[derive(Clone)]
struct Adapter {
    config: ReceiveOffload,
    queue: ReceiveQueue<Packet>,
    /// What the agenda was last told.
    armed: Time,
    slot: u32,
}

impl Adapters {
    /// Of a plan, whose hosts have all the same; `None` if it is none.
    pub(super) fn of(plan: &Plan, mut slot: impl FnMut() -> u32) -> Option<Box<Adapters>> {
        let config = plan.traffic.first()?.profile.receive_offload?;
        let mut rates = vec![Rate::from_bps(1); plan.network.nodes.len()];
        for link in &plan.network.links {
            let fastest = &mut rates[link.to as usize];
            *fastest = link.rate.max(*fastest);
        }
        let mut adapter = |(node, rate): (&Node, Rate)| {
            let slot = if node.kind == NodeKind::Host { slot() } else { u32::MAX };
            let config = config.at(rate);
            Adapter { config, queue: ReceiveQueue::default(), armed: Time::NEVER, slot }
        };
        let queues = plan.network.nodes.iter().zip(rates).map(&mut adapter).collect();
        Some(Box::new(Adapters { queues, merging: Merging::default(), batch: Vec::new() }))
    }

    /// Whether nothing waits for a poll of this host.
    pub(super) fn is_idle(&self, host: u32) -> bool {
        self.queues[host as usize].queue.is_empty()
    }
}

impl Simulation<'_> {
    /// A packet has come to a host: telemetry is taken from it, and if the adapter has a receive queue it waits there. What the
    /// adapter answers by itself does not wait.
    #[inline(never)]
    pub(super) fn take_in(&mut self, now: Time, host: u32, packet: Packet) {
        let packet = if self.has_telemetry { self.take_telemetry(packet) } else { packet };
        let Some(adapters) = &mut self.adapters else { return self.handle_packet(now, host, &packet) };
        if packet.is_special() && (packet.is_rdma() || packet.is_notification() && self.limiting.is_some()) {
            self.handle_packet(now, host, &packet);
            return;
        }
        let adapter = &mut adapters.queues[host as usize];
        let due = adapter.queue.arrive(now, packet, &adapter.config);
        if due <= now {
            self.poll_adapter(now, host);
        } else if due < adapter.armed {
            adapter.armed = due;
            self.network.arm(Entity::start(POLLS | u64::from(host), adapter.slot), due);
        }
    }

    /// A poll may be due.
    pub(super) fn handle_poll(&mut self, now: Time, id: u64) {
        let host = u32::try_from(id - POLLS).expect("a host");
        let Some(adapters) = &mut self.adapters else { unreachable!("only such arm it") };
        let adapter = &mut adapters.queues[host as usize];
        adapter.armed = Time::NEVER;
        let due = adapter.queue.due();
        if due <= now {
            self.poll_adapter(now, host);
        } else if due < Time::NEVER {
            // A number of frames has ended an earlier wait.
            adapter.armed = due;
            self.network.arm(Entity::start(POLLS | u64::from(host), adapter.slot), due);
        }
    }

    /// Everything that waits goes to the stack, merged.
    fn poll_adapter(&mut self, now: Time, host: u32) {
        let Some(adapters) = &mut self.adapters else { unreachable!("its callers have looked") };
        let mut batch = std::mem::take(&mut adapters.batch);
        let adapter = &mut adapters.queues[host as usize];
        let config = adapter.config;
        adapter.queue.poll(now, &mut batch, &config);
        if let [lone] = batch[..] {
            self.handle_packet(now, host, &lone);
        } else {
            let mut merging = std::mem::take(&mut adapters.merging);
            for part in batch.chunks(usize::from(config.budget)) {
                for packet in part {
                    let connection = packet.connection;
                    if packet.is_special() {
                        // Nothing overtakes what came before it of its connection, whatever paths either took.
                        if self.connections.numbering.labels() == 0 {
                            merging.flush_one(connection, |_, run| self.handle_run(now, host, connection, run));
                        } else {
                            merging.flush(|connection, run| self.handle_run(now, host, connection, run));
                        }
                        self.handle_packet(now, host, packet);
                        self.note();
                        continue;
                    }
                    let mut segment = Segment::default();
                    packet.unpack_into(&mut segment, &mut self.pool);
                    merging.handle(connection, &segment, &config, |connection, run| {
                        self.handle_run(now, host, connection, run);
                    });
                }
                merging.flush(|connection, run| self.handle_run(now, host, connection, run));
            }
            if let Some(adapters) = &mut self.adapters {
                adapters.merging = merging;
            }
        }
        batch.clear();
        if let Some(adapters) = &mut self.adapters {
            adapters.batch = batch;
        }
    }

    /// See [`Simulation::handle_packet`]: several segments that were merged, or one.
    #[inline(never)]
    fn handle_run(&mut self, now: Time, host: u32, connection: u32, run: &Segment) {
        let numbering = self.connections.numbering;
        let (connection, side) = (numbering.unlabelled(connection), numbering.side(host, connection));
        self.handle_segment(now, host, (connection, side), run);
        self.note();
    }
}
