//! Whatever comes to the port for notifications, nothing is believed without the key, and nothing fails.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use narrows_wire::{Admission, Key, Sender};

fuzz_target!(|input: (u8, u64, &[u8])| {
    let (hop_limit, now_ns, bytes) = input;
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    // The identity and the quoted address that a fuzzer finds first.
    let host = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let senders = [((0, host), Sender { address, keys: Key::new([7; 32]).into() })].into();
    let mut admission = Admission::new(senders, 100_000_000);
    assert!(admission.admit(bytes, address, hop_limit, now_ns).is_err());
});
