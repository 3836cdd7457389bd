//! Packets come from whatever program runs in a host's namespace. What is read of one is what an independent reader sees,
//! and after a mark and hops the checksum of its header is as right as it was.
#![no_main]

use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice};
use libfuzzer_sys::fuzz_target;
use narrows_core::packet::Ecn;
use narrows_testbed::packet::{Header, set_congestion_experienced, take_hops};

/// Whether an IPv4 header's checksum is right; IPv6 has none.
fn is_right(packet: &[u8]) -> bool {
    Ipv4HeaderSlice::from_slice(packet).is_ok_and(|header| {
        let header = header.to_header();
        header.calc_header_checksum() == header.header_checksum
    })
}

fuzz_target!(|input: (u8, &[u8])| {
    let (switches, bytes) = input;
    let Ok(header) = Header::parse(bytes) else { return };
    let size = usize::from(header.ip_bytes);
    assert!(size <= bytes.len() && usize::from(header.header_bytes) <= size);
    if header.source.is_ipv4() {
        let other = Ipv4HeaderSlice::from_slice(bytes).expect("both read it");
        assert_eq!(header.source, other.source_addr());
        assert_eq!(header.destination, other.destination_addr());
        assert_eq!((header.ip_bytes, header.hop_limit), (other.total_len(), other.ttl()));
        assert_eq!((header.ecn as u8, IpNumber(header.protocol)), (other.ecn().value(), other.protocol()));
        assert_eq!(
            (usize::from(header.header_bytes), header.whole),
            (other.slice().len(), !other.is_fragmenting_payload())
        );
    } else {
        let other = Ipv6HeaderSlice::from_slice(bytes).expect("both read it");
        assert_eq!(header.source, other.source_addr());
        assert_eq!(header.destination, other.destination_addr());
        assert_eq!((size, header.hop_limit), (usize::from(other.payload_length()) + 40, other.hop_limit()));
        assert_eq!((header.ecn as u8, IpNumber(header.protocol)), (other.traffic_class() & 3, other.next_header()));
    }
    let payload = header.tcp_payload(bytes);
    assert!(payload.is_none_or(|payload| usize::from(payload) <= size));
    assert!(payload.is_none() || header.ports(bytes).is_some() && header.tcp_seq(bytes).is_some());
    assert_eq!(header.flow_hash(bytes), header.flow_hash(&bytes[..size]), "what is behind a packet is not of it");

    let was_right = is_right(bytes);
    let mut marked = bytes.to_vec();
    set_congestion_experienced(&mut marked);
    let read = Header::parse(&marked).expect("a mark changes no more than itself");
    assert_eq!(read, Header { ecn: Ecn::Marked, ..header });
    assert!(!was_right || is_right(&marked), "{marked:02x?}");
    let goes = take_hops(&mut marked, switches);
    assert_eq!(goes, header.hop_limit > switches);
    let left = if goes { header.hop_limit - switches } else { header.hop_limit };
    assert_eq!(Header::parse(&marked), Ok(Header { hop_limit: left, ..read }));
    assert!(!was_right || is_right(&marked), "{marked:02x?}");
});
