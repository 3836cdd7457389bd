//! A capture of any trace is read again by an independent reader: packets in order, at interfaces that there are, each with
//! a sound IP header, the addresses and sizes of its row, and a transport's header behind it.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use etherparse::{Ipv4HeaderSlice, TcpHeaderSlice, UdpHeaderSlice, ip_number};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use narrows_core::packet::{Ecn, Flags, SackBlocks, Segment, Seq, Tag};
use narrows_plan::Plan;
use narrows_results::capture;
use narrows_results::trace::{HopRow, SenderRow, Trace};
use narrows_scenario::{Limits, Overrides, load_str};
use pcap_file::pcapng::{Block, PcapNgReader};

const TEXT: &str = include_str!("../seeds/experiment/small.toml");

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let mut experiment = load_str(TEXT, &Overrides::default(), &Limits::default()).expect("the seed is good");
    experiment.plans.remove(0)
});

#[derive(Arbitrary, Debug)]
struct Hop {
    port: u8,
    ends: (u8, u8),
    flags: u8,
    kind: u8,
    numbers: (u64, u64, u32, u32),
    header: (u16, u8, u32, u32),
    blocks: Vec<(u32, u32)>,
    payload: u16,
    times: (u32, u32, Option<u32>),
    is: [bool; 5],
}

#[derive(Arbitrary, Debug)]
struct Sender {
    time: u32,
    ends: (u8, u8),
    numbers: [Option<u64>; 4],
}

/// Flags of a packet as hosts send them: a SYN, a segment of an open connection, a packet of RDMA, a datagram.
fn flags_of(kind: u8, bits: u8) -> Flags {
    let [tcp, rdma] = [Flags::ECE.with(Flags::CWR), Flags::ACK.with(Flags::ECE).with(Flags::NAK)];
    let bits = |allowed: Flags| Flags::from_bits(bits & allowed.bits());
    match kind % 4 {
        0 => Flags::SYN.with(bits(tcp.with(Flags::ACK))),
        1 => Flags::ACK.with(bits(tcp.with(Flags::PSH))),
        2 => Flags::RDMA.with(bits(rdma.with(Flags::ACK_REQUEST).with(Flags::END))),
        _ => Flags::NONE,
    }
}

fn row(hop: &Hop) -> HopRow {
    let hosts = PLAN.network.nodes.len();
    let node = |number: u8| u32::try_from(usize::from(number) % hosts).expect("few");
    let [from_opener, dropped, marked, left, retransmission] = hop.is;
    let kind = hop.kind >> 2;
    let (flags, is_datagram) = (flags_of(kind, hop.flags), kind % 4 == 3);
    let acknowledges = flags.contains(Flags::ACK) && !flags.contains(Flags::SYN);
    let is_bare = flags.contains(Flags::SYN) || flags.contains(Flags::RDMA.with(Flags::ACK));
    let length = if is_bare { 0 } else { hop.payload % 8_900 };
    let mut sack = SackBlocks::NONE;
    for (start, end) in hop.blocks.iter().take(if acknowledges { 3 } else { 0 }) {
        sack.push(Seq::new(u64::from(*start)), Seq::new(u64::from(*end)));
    }
    let segment = Segment {
        seq: 0,
        ack: 0,
        length,
        flags,
        ecn: Ecn::Capable,
        window: 0,
        timestamp: 0,
        timestamp_echo: 0,
        sack,
        tag: Tag(0),
    };
    HopRow {
        packet: 0,
        hop: u32::from(hop.flags >> 7),
        flow: u32::from(hop.ends.0),
        connection: hop.numbers.2,
        port: u32::try_from(usize::from(hop.port) % PLAN.network.links.len()).expect("few"),
        source: node(hop.ends.0),
        destination: node(hop.ends.1),
        from_opener,
        opened: hop.numbers.3,
        offered_ns: u64::from(hop.times.0),
        waited_ns: u64::from(hop.times.1),
        arrived_ns: hop.times.2.map(u64::from),
        dropped,
        marked,
        ecn: [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Marked][usize::from(hop.kind & 3)],
        flags,
        window: hop.header.0,
        window_scale: hop.header.1,
        timestamps: (hop.header.2, hop.header.3),
        sack,
        is_datagram,
        left,
        seq: hop.numbers.0,
        ack: hop.numbers.1,
        payload_bytes: u32::from(length),
        ip_bytes: u32::try_from(segment.ip_bytes().get()).expect("short"),
        retransmission,
    }
}

fn state(sender: &Sender) -> SenderRow {
    let [window_packets, slow_start_threshold_packets, pacing_bps, srtt_ns] = sender.numbers;
    SenderRow {
        time_ns: u64::from(sender.time),
        flow: u32::from(sender.ends.0),
        host: u32::from(sender.ends.1),
        event: "packet",
        window_packets,
        slow_start_threshold_packets,
        pacing_bps,
        near_source_bps: None,
        srtt_ns,
        min_rtt_ns: None,
        rto_ns: None,
        in_flight_packets: None,
        outstanding_packets: None,
        phase: Some("open"),
        acknowledged_bytes: None,
        sent_bytes: None,
        waits_for: "window",
    }
}

fuzz_target!(|input: (Vec<Hop>, Vec<Sender>, [u8; 2])| {
    let (hops, senders, [one, other]) = input;
    let links = PLAN.network.links.len();
    let ports = [one, other].map(|port| u32::try_from(usize::from(port) % links).expect("few"));
    let mut senders: Vec<SenderRow> = senders.iter().map(state).collect();
    senders.sort_by_key(|row| row.time_ns);
    let trace = Trace { hops: hops.iter().map(row).collect(), senders, ..Trace::default() };
    let mut bytes = Vec::new();
    capture::write(&PLAN, &trace, &ports, &mut bytes).expect("memory takes all");

    let reverses = PLAN.network.reverses();
    let seen = |port: u32| {
        let out = trace.hops.iter().filter(move |row| row.port == port && row.left).count();
        let back = reverses[port as usize];
        out + trace.hops.iter().filter(|row| row.arrived_ns.is_some() && Some(row.port) == back).count()
    };
    let expected: usize = ports.iter().map(|port| seen(*port)).sum();
    let mut reader = PcapNgReader::new(&bytes[..]).expect("it begins as a capture");
    let (mut count, mut interfaces, mut latest) = (0, 0, Duration::ZERO);
    while let Some(block) = reader.next_block() {
        match block.expect("a block of a capture") {
            Block::InterfaceDescription(_) => interfaces += 1,
            Block::EnhancedPacket(packet) => {
                count += 1;
                assert!(packet.interface_id < interfaces && packet.timestamp >= latest, "{packet:?}");
                latest = packet.timestamp;
                let ip = Ipv4HeaderSlice::from_slice(&packet.data).expect("an IP header");
                let header = ip.to_header();
                assert_eq!(header.calc_header_checksum(), header.header_checksum);
                assert_eq!(u32::from(ip.total_len()), packet.original_len);
                let transport = &packet.data[ip.slice().len()..];
                let whole = usize::from(ip.total_len()) - ip.slice().len();
                match ip.protocol() {
                    ip_number::TCP => {
                        let tcp = TcpHeaderSlice::from_slice(transport).expect("a TCP header");
                        assert!(tcp.slice().len() == transport.len() && transport.len() <= whole);
                        for option in tcp.options_iterator() {
                            option.expect("an option of TCP");
                        }
                    }
                    ip_number::UDP => {
                        let udp = UdpHeaderSlice::from_slice(transport).expect("a UDP header");
                        assert_eq!(usize::from(udp.length()), whole);
                    }
                    protocol => panic!("protocol {protocol:?}"),
                }
            }
            _ => {}
        }
    }
    assert_eq!((count, interfaces), (expected, 2));
});
