//! Whatever segments arrive and whenever its timers run, an end of a connection neither fails nor asks to be called in the
//! past for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_core::cc::{Context, Controller, SPECS, Settings};
use narrows_core::packet::{Ecn, Flags, Mtu, SackBlocks, Segment, Seq, Tag};
use narrows_core::rng::SmallStream;
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint, Stack, initial_path};
use narrows_core::units::{Bytes, Rate, Span, Time};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[choice, modes], mut rest)) = bytes.split_first_chunk::<2>() else { return };
    let spec = SPECS[usize::from(choice) % SPECS.len()];
    let ecn = [EcnMode::Off, EcnMode::Classic, EcnMode::Exact][usize::from(modes) % 3];
    let profile = Profile::NAMED[usize::from(modes / 3) % Profile::NAMED.len()].1;
    let (line_rate, mtu) = (Rate::from_gbps(1), Mtu::ETHERNET);
    let stack = Stack { profile, ecn, line_rate, delivery_rate: spec.needs_delivery_rate, mtu };
    let values: Vec<_> = spec.parameters.iter().map(|parameter| parameter.default).collect();
    let path = initial_path(&stack);
    let context =
        Context { settings: Settings::new(spec.parameters, &values), path: &path, random: SmallStream::new(1) };
    let controller = Controller::build(spec.name, &context).expect("a registered controller");
    let mut end = Endpoint::established(controller, Span::from_ms(10), &stack);
    end.offer(Bytes::new(10_000_000), Tag(1));
    let mut now = Time::ZERO;
    while let Some((word, after)) = rest.split_first_chunk::<12>() {
        rest = after;
        now += Span::from_us(u64::from(word[0]) << (word[1] % 16));
        let number = |at: usize| u32::from(u16::from_le_bytes([word[at], word[at + 1]])) * 1448 / 4 + 1;
        let mut sack = SackBlocks::NONE;
        if word[2] & 1 != 0 {
            sack.push(Seq::new(u64::from(number(6))), Seq::new(u64::from(number(8))));
        }
        let segment = Segment {
            seq: number(10),
            ack: number(4),
            length: if word[2] & 2 != 0 { 1448 } else { 0 },
            flags: Flags::from_bits(word[3]),
            ecn: if word[2] & 4 != 0 { Ecn::Marked } else { Ecn::Capable },
            window: u16::from(word[2]) << 6,
            timestamp: u32::from(word[1]),
            timestamp_echo: u32::from(word[0]),
            sack,
            tag: Tag(u32::from(word[5])),
        };
        if word[2] & 8 != 0 {
            end.handle_segment(now, &segment, &stack);
        } else {
            end.handle_timeout(now, &stack);
        }
        while end.poll_event().is_some() {}
        let mut sent = 0_u32;
        while end.poll_transmit(now, &stack).is_some() {
            sent += 1;
            assert!(sent < 100_000, "a window that never ends");
        }
    }
});
