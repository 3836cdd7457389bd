//! A host with smoltcp's stack: an interface, a socket, and an application that reads and writes.

use std::cell::Cell;
use std::collections::VecDeque;

use narrows_core::units::{Span, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::bytes::stream;
use crate::wire::{OUR_ADDRESS, OUR_PORT, THEIR_ADDRESS, THEIR_PORT};

thread_local! {
    /// smoltcp asks a plain function for its timestamps.
    static CLOCK_MS: Cell<u32> = const { Cell::new(0) };
}

/// Packets that wait for the interface, and those that it sent.
#[derive(Default)]
struct Wires {
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

struct Arrived(Vec<u8>);
struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut bytes = vec![0; length];
        let result = write(&mut bytes);
        self.0.push(bytes);
        result
    }
}

impl Device for Wires {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Sent<'_>)> {
        let bytes = self.arrived.pop_front()?;
        Some((Arrived(bytes), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, 1_500);
        capabilities
    }
}

/// What may differ from host to host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Chooses the number of its SYN.
    pub(crate) seed: u64,
    pub(crate) receive_buffer: usize,
    pub(crate) send_buffer: usize,
    pub(crate) ack_delay: Option<Span>,
    pub(crate) reno: bool,
    /// The application reads so many bytes at most, and again after so long; without, all at once.
    pub(crate) reads: Option<(usize, Span)>,
}

pub(crate) struct Theirs {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    wires: Wires,
    habits: Habits,
    read_at: Time,
    /// What the application got.
    pub(crate) received: Vec<u8>,
    /// What it has still to write.
    to_write: VecDeque<u8>,
}

/// smoltcp counts microseconds.
fn instant(now: Time) -> Instant {
    Instant::from_micros(i64::try_from(now.as_us()).expect("a test ends sooner"))
}

impl Theirs {
    /// A host whose application has so many bytes to send.
    pub(crate) fn new(habits: Habits, bytes: u64) -> Theirs {
        let mut wires = Wires::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = habits.seed;
        let mut interface = Interface::new(config, &mut wires, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(THEIR_ADDRESS.into(), 24)).expect("room for one");
        });
        let buffer = |size| SocketBuffer::new(vec![0; size]);
        let mut socket = Socket::new(buffer(habits.receive_buffer), buffer(habits.send_buffer));
        socket.set_tsval_generator(Some(|| CLOCK_MS.get()));
        socket.set_ack_delay(habits.ack_delay.map(|delay| Duration::from_micros(delay.as_us())));
        if habits.reno {
            socket.set_congestion_control(CongestionControl::Reno);
        } else {
            socket.set_congestion_control(CongestionControl::None);
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Theirs {
            interface,
            sockets,
            handle,
            wires,
            habits,
            read_at: Time::ZERO,
            received: Vec::new(),
            to_write: stream(1, bytes + 1).into(),
        }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    pub(crate) fn listen(&mut self) {
        self.socket().listen(THEIR_PORT).expect("a closed socket");
    }

    pub(crate) fn connect(&mut self) {
        let socket = self.sockets.get_mut::<Socket>(self.handle);
        socket.connect(self.interface.context(), (OUR_ADDRESS, OUR_PORT), THEIR_PORT).expect("a closed socket");
    }

    /// Everything that the application wrote is acknowledged, and it has read everything that came in order.
    pub(crate) fn is_done(&mut self) -> bool {
        self.to_write.is_empty() && self.socket().send_queue() == 0 && self.socket().recv_queue() == 0
    }

    /// The next byte that its stack expects.
    pub(crate) fn next(&mut self) -> u64 {
        let read = self.received.len() as u64;
        read + self.socket().recv_queue() as u64 + 1
    }

    /// When it is to be polled.
    pub(crate) fn due(&mut self, now: Time) -> Time {
        let reads = if self.socket().recv_queue() > 0 { self.read_at } else { Time::NEVER };
        let polls = self.interface.poll_at(instant(now), &self.sockets);
        polls.map_or(Time::NEVER, |at| Time::from_ns(at.total_micros().unsigned_abs() * 1_000)).min(reads)
    }

    pub(crate) fn arrive(&mut self, bytes: Vec<u8>) {
        self.wires.arrived.push_back(bytes);
    }

    /// What the stack and the application make of what arrived and of the time: the packets that they send.
    pub(crate) fn poll(&mut self, now: Time) -> Vec<Vec<u8>> {
        let clock = now.as_ms() & u64::from(u32::MAX);
        CLOCK_MS.set(u32::try_from(clock).expect("masked"));
        loop {
            self.interface.poll(instant(now), &mut self.wires, &mut self.sockets);
            let moved = self.read(now) + self.write();
            if moved == 0 {
                return std::mem::take(&mut self.wires.sent);
            }
        }
    }

    fn read(&mut self, now: Time) -> usize {
        let most = match self.habits.reads {
            Some(_) if now < self.read_at => return 0,
            Some((most, _)) => most,
            None => usize::MAX,
        };
        let mut bytes = vec![0; self.socket().recv_queue().min(most)];
        if bytes.is_empty() {
            return 0;
        }
        let count = self.socket().recv_slice(&mut bytes).expect("an open connection");
        assert_eq!(count, bytes.len());
        self.received.extend(bytes);
        if let Some((_, wait)) = self.habits.reads {
            self.read_at = now + wait;
        }
        count
    }

    fn write(&mut self) -> usize {
        if !self.socket().can_send() {
            return 0;
        }
        let bytes = self.to_write.make_contiguous().to_vec();
        let count = self.socket().send_slice(&bytes).expect("an open connection");
        self.to_write.drain(..count);
        count
    }
}
