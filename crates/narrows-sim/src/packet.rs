//! The simulator's packet: 32 bytes by value, with what few packets carry kept aside.

use narrows_core::packet::{
    DATAGRAM_HEADER_BYTES, Ecn, Flags, HEADER_BYTES, RDMA_HEADER_BYTES, SackBlocks, Segment, Tag,
};
use narrows_core::queue::pfc::FRAME_BYTES;
use narrows_core::rng::mix;
use narrows_core::units::Span;
use narrows_network::Payload;

use crate::connections::Side;

/// The host that a packet is for, and in the highest bit which end of its connection stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Recipient(u16);

impl Recipient {
    const OPENER: u16 = 1 << 15;

    pub(crate) fn new(host: u32, side: Side) -> Recipient {
        let host = u16::try_from(host).ok().filter(|host| host & Recipient::OPENER == 0);
        let side = if side == Side::Opener { Recipient::OPENER } else { 0 };
        Recipient(host.expect("hosts come first and are fewer than 2¹⁵") | side)
    }

    #[inline(always)]
    pub(crate) fn host(self) -> u32 {
        u32::from(self.0 & !Recipient::OPENER)
    }

    #[inline(always)]
    pub(crate) fn side(self) -> Side {
        if self.0 & Recipient::OPENER == 0 { Side::Other } else { Side::Opener }
    }
}

/// A segment on the wire of the simulated network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// The connection; see [`crate::connections`].
    pub(crate) connection: u32,
    seq: u32,
    ack: u32,
    timestamp: u32,
    timestamp_echo: u32,
    /// A slot of the side pool if the packet has SACK blocks, else its tag; on a bridge, where what is around it lies; with
    /// telemetry, where that lies.
    extra: u32,
    to: Recipient,
    /// Size of the IP packet, bytes: asked at every hop, where the payload is asked at the ends only.
    size: u16,
    window: u16,
    flags: u8,
    /// From the lowest: two bits of ECN, two that count SACK blocks, three of the service class, one if something is around or
    /// beside it.
    bits: u8,
}

const _: () = assert!(size_of::<Packet>() == 32);

#[allow(clippy::cast_possible_truncation, reason = "headers are short")]
const HEADER_BYTES_U16: u16 = HEADER_BYTES as u16;
#[allow(clippy::cast_possible_truncation, reason = "headers are short")]
const HEADER_BYTES_U32: u32 = HEADER_BYTES as u32;
#[allow(clippy::cast_possible_truncation, reason = "headers are short")]
const DATAGRAM_HEADER_BYTES_U32: u32 = DATAGRAM_HEADER_BYTES as u32;
#[allow(clippy::cast_possible_truncation, reason = "headers are short")]
const RDMA_HEADER_BYTES_U32: u32 = RDMA_HEADER_BYTES as u32;

/// Where the number of SACK blocks stands among a packet's bits, and the service class.
const BLOCKS_SHIFT: u8 = 2;
const BLOCKS: u8 = 3 << BLOCKS_SHIFT;
const CLASS_SHIFT: u8 = 4;
/// Something is around the packet, as it is on a bridge, or telemetry lies beside it: never both.
const WRAPPED: u8 = 1 << 7;

/// Beside the flags of a segment: no segment at all, but a switch's notification of congestion, or what the ends of a
/// bridge tell each other.
const NOTIFICATION: u8 = 1 << 7;
/// In the place of the tag: no notification, but a frame that pauses a port.
const PAUSE: u32 = u32::MAX;
/// Size of a notification: 24 bytes of fields, and 64 of the sampled packet [802.1Qau].
const NOTIFICATION_BYTES: u16 = 88;

/// SACK blocks (and, rarely, a tag beside them) of the packets under way.
#[derive(Clone, Debug)]
pub(crate) struct SidePool {
    /// In a free slot the tag's place says which is the next free one.
    slots: Vec<(SackBlocks, Tag)>,
    free: u32,
}

const NO_SLOT: u32 = u32::MAX;

impl Default for SidePool {
    fn default() -> SidePool {
        SidePool { slots: Vec::new(), free: NO_SLOT }
    }
}

impl SidePool {
    #[inline(never)]
    fn keep(&mut self, sack: SackBlocks, tag: Tag) -> u32 {
        if self.free == NO_SLOT {
            if self.slots.len() == self.slots.capacity() {
                self.slots.reserve_exact((self.slots.len() / 4).max(64));
            }
            self.slots.push((sack, tag));
            return u32::try_from(self.slots.len() - 1).expect("fewer packets under way than 2³²");
        }
        let slot = self.free;
        let place = &mut self.slots[slot as usize];
        self.free = place.1.0;
        *place = (sack, tag);
        slot
    }

    #[inline(never)]
    fn take(&mut self, slot: u32) -> (SackBlocks, Tag) {
        let place = &mut self.slots[slot as usize];
        let kept = *place;
        place.1 = Tag(self.free);
        self.free = slot;
        kept
    }
}

impl Packet {
    #[inline(always)]
    pub(crate) fn pack(
        segment: &Segment,
        connection: u32,
        to: Recipient,
        service_class: u8,
        pool: &mut SidePool,
    ) -> Packet {
        let blocks = u8::try_from(segment.sack.len()).expect("at most three blocks");
        let extra = if blocks > 0 { pool.keep(segment.sack, segment.tag) } else { segment.tag.0 };
        Packet {
            connection,
            seq: segment.seq,
            ack: segment.ack,
            timestamp: segment.timestamp,
            timestamp_echo: segment.timestamp_echo,
            extra,
            to,
            size: u16::try_from(segment.ip_bytes().get()).expect("a packet is below 64 KiB"),
            window: segment.window,
            flags: segment.flags.bits(),
            bits: segment.ecn as u8 | blocks << BLOCKS_SHIFT | service_class << CLASS_SHIFT,
        }
    }

    /// What a switch tells the sender of this packet, which stands on `host`: that it is congested so much, 1 to 63.
    pub(crate) fn notification(&self, host: u32, feedback: u8) -> Packet {
        Packet {
            connection: self.connection,
            seq: self.seq,
            ack: u32::from(feedback),
            timestamp: self.to.host(),
            timestamp_echo: 0,
            extra: 0,
            to: Recipient::new(host, self.side().other()),
            size: NOTIFICATION_BYTES,
            window: 0,
            flags: NOTIFICATION,
            bits: Ecn::NotCapable as u8,
        }
    }

    /// Of a notification, where the packet was going that it is about.
    pub(crate) fn notified_peer(&self) -> u32 {
        self.timestamp
    }

    /// Of a notification, the feedback and the first byte of the packet that it is about.
    #[inline(always)]
    pub(crate) fn as_notification(&self) -> Option<(u8, u32)> {
        (self.flags & NOTIFICATION != 0).then(|| (u8::try_from(self.ack).unwrap_or(0), self.seq))
    }

    /// What one end of a bridge tells the other: all that it says lies in this place.
    pub(crate) fn control(place: u32, size: u64) -> Packet {
        Packet {
            connection: 0,
            seq: 0,
            ack: 0,
            timestamp: 0,
            timestamp_echo: 0,
            extra: place,
            to: Recipient::default(),
            size: u16::try_from(size).expect("it is short"),
            window: 0,
            flags: NOTIFICATION,
            bits: Ecn::Capable as u8 | WRAPPED,
        }
    }

    /// The packet with something around it that makes it longer by so many bytes, and lies in this place.
    pub(crate) fn wrap(mut self, place: u32, longer: u64) -> Packet {
        self.extra = place;
        self.size += u16::try_from(longer).expect("it is short");
        self.bits |= WRAPPED;
        self
    }

    /// The inverse of [`Packet::wrap`]; `extra` is what stood in the packet before.
    pub(crate) fn unwrap(mut self, extra: u32, longer: u64) -> Packet {
        self.extra = extra;
        self.size -= u16::try_from(longer).expect("it is short");
        self.bits &= !WRAPPED;
        self
    }

    /// Where what is around the packet lies, if there is anything.
    pub(crate) fn wrapped(&self) -> Option<u32> {
        (self.bits & WRAPPED != 0).then_some(self.extra)
    }

    /// Whether it is anything but a segment of a TCP connection that is open: a notification, a SYN, a datagram or a packet of
    /// RDMA.
    #[inline(always)]
    pub(crate) fn is_special(&self) -> bool {
        self.flags & (NOTIFICATION | Flags::ACK.with(Flags::RDMA).bits()) != Flags::ACK.bits()
    }

    /// Whether it is a segment without options, and with no flags but ACK and PSH.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.flags & !Flags::PSH.bits() == Flags::ACK.bits() && self.bits & BLOCKS == 0
    }

    /// Of a packet that [is plain](Self::is_plain), whether it has data.
    #[inline(always)]
    pub(crate) fn has_data(&self) -> bool {
        self.size > HEADER_BYTES_U16
    }

    /// The segment of a packet that [is plain](Self::is_plain).
    #[inline(always)]
    pub(crate) fn plain_segment(&self) -> Segment {
        Segment {
            seq: self.seq,
            ack: self.ack,
            length: self.size - HEADER_BYTES_U16,
            flags: Flags::from_bits(self.flags),
            ecn: self.ecn_bits(),
            window: self.window,
            timestamp: self.timestamp,
            timestamp_echo: self.timestamp_echo,
            sack: SackBlocks::NONE,
            tag: Tag(self.extra),
        }
    }

    /// Whether it is a datagram.
    pub(crate) fn is_datagram(&self) -> bool {
        self.is_special() && self.flags & NOTIFICATION == 0 && !self.is_syn() && !self.is_rdma()
    }

    /// Whether it is of a connection of RDMA.
    pub(crate) fn is_rdma(&self) -> bool {
        self.flags & (NOTIFICATION | Flags::RDMA.bits()) == Flags::RDMA.bits()
    }

    /// Which end of its connection it is for.
    #[inline(always)]
    pub(crate) fn side(&self) -> Side {
        self.to.side()
    }

    pub(crate) fn extra(&self) -> u32 {
        self.extra
    }

    pub(crate) fn ecn_bits(&self) -> Ecn {
        match self.bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable,
            _ => Ecn::Marked,
        }
    }

    pub(crate) fn set_ecn_bits(&mut self, ecn: Ecn) {
        self.bits = self.bits & !3 | ecn as u8;
    }

    pub(crate) fn seq(&self) -> u32 {
        self.seq
    }

    pub(crate) fn is_syn(&self) -> bool {
        Flags::from_bits(self.flags).contains(Flags::SYN)
    }

    /// The acknowledgement, if it has one.
    pub(crate) fn ack(&self) -> Option<u32> {
        Flags::from_bits(self.flags).contains(Flags::ACK).then_some(self.ack)
    }

    /// Bytes of data in it, where nothing is around it: a segment with SACK blocks has none.
    pub(crate) fn payload(&self) -> u32 {
        let has_none = self.bits & BLOCKS != 0 || self.flags & NOTIFICATION != 0 || self.is_syn();
        let headers = match self.is_special() {
            false => HEADER_BYTES_U32,
            true if self.is_rdma() => return self.rdma_payload(),
            true => DATAGRAM_HEADER_BYTES_U32,
        };
        if has_none { 0 } else { u32::from(self.size).saturating_sub(headers) }
    }

    fn rdma_payload(&self) -> u32 {
        let has_none = self.flags & Flags::ACK.bits() != 0;
        if has_none { 0 } else { u32::from(self.size).saturating_sub(RDMA_HEADER_BYTES_U32) }
    }

    /// What the packet has in the pool, taken out of there: the packet goes to where there is another pool.
    pub(crate) fn leave(&self, pool: &mut SidePool) -> Option<(SackBlocks, Tag)> {
        (self.bits & BLOCKS > 0).then(|| pool.take(self.extra))
    }

    /// The inverse of [`Packet::leave`], in another pool. `beside` gives what was taken out, if there was anything.
    pub(crate) fn enter(&mut self, beside: &mut impl Iterator<Item = (SackBlocks, Tag)>, pool: &mut SidePool) {
        if self.bits & BLOCKS > 0 {
            let (sack, tag) = beside.next().expect("a packet with blocks left them beside it");
            self.extra = pool.keep(sack, tag);
        }
    }

    /// Whether it is no segment, but of a switch or of an end of a bridge.
    pub(crate) fn is_notification(&self) -> bool {
        self.flags & NOTIFICATION != 0
    }

    /// What stays the same on its way, and nearly tells the packets of a connection apart.
    pub(crate) fn identity(&self) -> Identity {
        (self.to, self.flags, self.window, self.seq, self.ack, self.timestamp, self.timestamp_echo)
    }

    /// The segment of a packet that may go on, or that was put away just now.
    pub(crate) fn segment(&self, pool: &SidePool) -> Segment {
        let kept =
            if self.bits & BLOCKS > 0 { pool.slots[self.extra as usize] } else { (SackBlocks::NONE, Tag(self.extra)) };
        let mut segment = Segment::default();
        Packet { bits: self.bits & !BLOCKS, ..*self }.unpack_into(&mut segment, &mut SidePool::default());
        (segment.sack, segment.tag) = kept;
        segment.length =
            self.size - u16::try_from(Segment { length: 0, ..segment }.ip_bytes().get()).expect("headers are short");
        segment
    }

    /// The segment; its place in the pool is free afterwards. A dropped packet is unpacked too, to free its place.
    pub(crate) fn unpack(self, pool: &mut SidePool) -> Segment {
        let mut segment = Segment::default();
        self.unpack_into(&mut segment, pool);
        segment
    }

    /// The same, into an empty `segment`: on the path of every packet a copy counts.
    #[inline(always)]
    pub(crate) fn unpack_into(self, segment: &mut Segment, pool: &mut SidePool) {
        *segment = Segment {
            seq: self.seq,
            ack: self.ack,
            length: 0,
            flags: Flags::from_bits(self.flags),
            ecn: self.ecn_bits(),
            window: self.window,
            timestamp: self.timestamp,
            timestamp_echo: self.timestamp_echo,
            sack: SackBlocks::NONE,
            tag: Tag(self.extra),
        };
        if self.bits & BLOCKS > 0 {
            (segment.sack, segment.tag) = pool.take(self.extra);
        }
        segment.length = self.size - u16::try_from(segment.ip_bytes().get()).expect("headers are short");
    }
}

/// See [`Packet::identity`].
pub(crate) type Identity = (Recipient, u8, u16, u32, u32, u32, u32);

/// What decides the path of a connection's packets to a host. Both directions may take different ones.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "any 32 bits of the hash will do")]
pub(crate) fn flow_hash(connection: u32, destination: u32) -> u32 {
    mix(u64::from(connection) << 16 | u64::from(destination)) as u32
}

impl Payload for Packet {
    #[inline]
    fn ip_bytes(&self) -> u32 {
        u32::from(self.size)
    }

    #[inline]
    fn destination(&self) -> u32 {
        self.to.host()
    }

    #[inline]
    fn flow_hash(&self) -> u32 {
        flow_hash(self.connection, self.destination())
    }

    #[inline]
    fn flow_key(&self) -> u64 {
        u64::from(self.connection) << 16 | u64::from(self.to.0)
    }

    #[inline]
    fn service_class(&self) -> u8 {
        (self.bits & !WRAPPED) >> CLASS_SHIFT
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.bits & 3 != 0
    }

    #[inline]
    fn is_l4s(&self) -> bool {
        self.bits & 1 != 0
    }

    fn carries_data(&self) -> bool {
        // What may be around it changes nothing: only what carries data is made longer.
        self.payload() > 0
    }

    #[inline]
    fn mark(&mut self) {
        self.bits |= 3;
    }

    #[inline]
    fn is_urgent(&self) -> bool {
        self.flags & NOTIFICATION != 0
    }

    fn pause(priorities: u8, time: Span) -> Option<Packet> {
        let time = time.as_ps();
        Some(Packet {
            connection: 0,
            seq: u32::from(priorities),
            ack: 0,
            timestamp: u32::try_from(time >> 32).expect("a pause is below a year"),
            timestamp_echo: u32::try_from(time & u64::from(u32::MAX)).expect("32 bits"),
            extra: PAUSE,
            to: Recipient::default(),
            size: FRAME_BYTES,
            window: 0,
            flags: NOTIFICATION,
            bits: Ecn::NotCapable as u8,
        })
    }

    fn telemetry(&self) -> Option<u32> {
        self.wrapped()
    }

    fn carry_telemetry(&mut self, place: u32) -> Option<u32> {
        self.bits |= WRAPPED;
        Some(std::mem::replace(&mut self.extra, place))
    }

    fn as_pause(&self) -> Option<(u8, Span)> {
        let is_pause = self.flags & NOTIFICATION != 0 && self.extra == PAUSE && self.bits & WRAPPED == 0;
        let time = || Span::from_ps(u64::from(self.timestamp) << 32 | u64::from(self.timestamp_echo));
        is_pause.then(|| (u8::try_from(self.seq).unwrap_or(0), time()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::packet::Seq;

    impl SidePool {
        fn free_slots(&self) -> usize {
            let next = |&slot: &u32| self.slots.get(slot as usize).map(|free| free.1.0);
            std::iter::successors(Some(self.free), next).filter(|&slot| slot != NO_SLOT).count()
        }
    }

    #[test]
    fn a_segment_survives_packing() {
        let mut pool = SidePool::default();
        let mut sack = SackBlocks::NONE;
        sack.push(Seq::new(5), Seq::new(9));
        for segment in [
            Segment {
                seq: 7,
                length: 1448,
                flags: Flags::ACK.with(Flags::PSH),
                ecn: Ecn::Capable,
                tag: Tag(9),
                ..Segment::default()
            },
            Segment {
                ack: 3,
                flags: Flags::ACK.with(Flags::ECE),
                window: 77,
                sack,
                timestamp: 1,
                timestamp_echo: 2,
                ..Segment::default()
            },
        ] {
            let packet = Packet::pack(&segment, 4, Recipient::new(5, Side::Opener), 7, &mut pool);
            assert_eq!(packet.service_class(), 7);
            assert_eq!(u64::from(packet.ip_bytes()), segment.ip_bytes().get());
            assert_eq!(packet.unpack(&mut pool), segment);
        }
        assert_eq!((pool.slots.len(), pool.free_slots()), (1, 1));
    }

    #[test]
    fn a_datagram_is_told_from_segments() {
        let mut pool = SidePool::default();
        let datagram = Segment { seq: 7, length: 1472, flags: Flags::END, tag: Tag(9), ..Segment::default() };
        let packet = Packet::pack(&datagram, 4, Recipient::new(5, Side::Opener), 7, &mut pool);
        assert_eq!((packet.ip_bytes(), packet.payload(), packet.carries_data()), (1_500, 1_472, true));
        assert!(packet.is_datagram() && packet.is_special() && !packet.ecn_capable());
        assert_eq!(packet.unpack(&mut pool), datagram);
        for (flags, special) in [(Flags::ACK, false), (Flags::SYN, true), (Flags::SYN.with(Flags::ACK), false)] {
            let packet = Packet::pack(
                &Segment { flags, ..Segment::default() },
                4,
                Recipient::new(5, Side::Opener),
                7,
                &mut pool,
            );
            assert_eq!((packet.is_datagram(), packet.is_special()), (false, special));
        }
        assert!(!packet.notification(2, 63).is_datagram() && packet.notification(2, 63).is_special());
    }

    #[test]
    fn packets_of_rdma_are_told_from_others() {
        let mut pool = SidePool::default();
        let data =
            Segment { seq: 7, length: 1_456, flags: Flags::RDMA.with(Flags::END), tag: Tag(9), ..Segment::default() };
        let packet = Packet::pack(&data, 4, Recipient::new(5, Side::Opener), 7, &mut pool);
        assert_eq!((packet.ip_bytes(), packet.payload(), packet.carries_data()), (1_500, 1_456, true));
        assert!(packet.is_rdma() && packet.is_special() && !packet.is_datagram());
        assert_eq!(packet.unpack(&mut pool), data);
        let mut sack = SackBlocks::NONE;
        for bytes in [48, 52] {
            let ack =
                Segment { ack: 9, flags: Flags::RDMA.with(Flags::ACK).with(Flags::NAK), sack, ..Segment::default() };
            let packet = Packet::pack(&ack, 4, Recipient::new(5, Side::Opener), 7, &mut pool);
            assert_eq!((packet.ip_bytes(), packet.payload(), packet.carries_data()), (bytes, 0, false));
            assert!(packet.is_rdma() && packet.is_special() && !packet.is_datagram());
            assert_eq!((packet.ack(), packet.unpack(&mut pool)), (Some(9), ack));
            sack.push(Seq::new(5), Seq::new(9));
        }
        assert!(!packet.notification(2, 63).is_rdma());
    }

    #[test]
    fn a_notification_tells_how_congested_and_by_which_packet() {
        let segment = Segment { seq: 77, length: 1448, flags: Flags::ACK, ..Segment::default() };
        let packet = Packet::pack(&segment, 4, Recipient::new(5, Side::Other), 1, &mut SidePool::default());
        assert_eq!(packet.as_notification(), None);
        let told = packet.notification(2, 63);
        assert_eq!((told.as_notification(), told.destination(), told.connection), (Some((63, 77)), 2, 4));
    }

    #[test]
    fn a_pause_frame_says_which_priorities_and_how_long() {
        let longest = Span::from_ms(33_554);
        let frame = Packet::pause(5, longest).unwrap();
        assert_eq!((frame.as_pause(), frame.is_urgent()), (Some((5, longest)), true));
        let segment = Segment { seq: 77, length: 1448, flags: Flags::ACK, ..Segment::default() };
        let packet = Packet::pack(&segment, 4, Recipient::new(5, Side::Other), 1, &mut SidePool::default());
        assert_eq!((packet.as_pause(), packet.notification(2, 63).as_pause()), (None, None));
    }

    #[test]
    fn a_packet_takes_its_blocks_from_pool_to_pool() {
        let (mut here, mut there) = (SidePool::default(), SidePool::default());
        let mut sack = SackBlocks::NONE;
        sack.push(Seq::new(5), Seq::new(9));
        let segments = [Segment { sack, ..Segment::default() }, Segment { tag: Tag(3), ..Segment::default() }];
        there.keep(SackBlocks::NONE, Tag(1));
        let mut packets =
            segments.map(|segment| Packet::pack(&segment, 4, Recipient::new(5, Side::Other), 0, &mut here));
        let beside: Vec<_> = packets.iter().filter_map(|packet| packet.leave(&mut here)).collect();
        assert_eq!(here.free_slots(), here.slots.len());
        let mut beside = beside.into_iter();
        packets.iter_mut().for_each(|packet| packet.enter(&mut beside, &mut there));
        assert_eq!(packets.map(|packet| packet.unpack(&mut there)), segments);
        assert_eq!(there.slots.len() - there.free_slots(), 1);
    }
}
