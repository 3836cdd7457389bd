use super::*;
use crate::{Key, Keys};
use proptest::prelude::*;

const NONCE: [u8; 24] = [9; 24];
const SALT_BYTES: [u8; SALT] = [3; SALT];
const TUNNEL: u16 = 7;

fn key() -> Key {
    Key::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").unwrap()
}

fn path() -> Path {
    Path { source: "192.0.2.1".parse().unwrap(), destination: "198.51.100.2".parse().unwrap() }
}

/// Two ends of one tunnel.
fn ends() -> [End; 2] {
    let names = Names::new("left", "right", TUNNEL).unwrap();
    [End::new(&key().into(), &names), End::new(&key().into(), &names.reversed())]
}

/// Two ends, the first of which marks in session 5.
fn met() -> [End; 2] {
    let [mut left, mut right] = ends();
    meet(&mut left, &mut right, 5);
    [left, right]
}

fn meet(left: &mut End, right: &mut End, session: u32) {
    let token = 0x1122_3344_5566_7788 + u64::from(session);
    let greeting = left.greet(path(), &NONCE, 1_000, token);
    assert_eq!(right.open(path(), &greeting), Some(Ok(Opened::Greeting { clock: 1_000, token, sign: 0 })));
    let welcome = right.welcome(path().reversed(), (&NONCE, &SALT_BYTES), token, session).unwrap();
    assert_eq!(left.open(path().reversed(), &welcome), Some(Ok(Opened::Welcome { token, session, sign: 0 })));
}

fn shim(number: u32, tries: u8) -> Shim {
    Shim { session: 5, number, ecn: 2, tries }
}

fn marked(end: &End, shim: Shim, inner: &[u8]) -> Vec<u8> {
    [&end.mark(shim, inner).unwrap()[..], inner].concat()
}

/// As docs/reference/wire.md shows them, byte for byte: what another implementation is to be compared with.
#[test]
fn the_documents_examples_are_what_is_written() {
    let text = include_str!("../../../../docs/reference/wire.md");
    let examples: Vec<Vec<u8>> = (text.split("```hex tunnel\n").skip(1))
        .map(|rest| {
            let digits: String = rest.split("```").next().unwrap().split_whitespace().collect();
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
        })
        .collect();
    let [mut left, mut right] = ends();
    let token = 0x1122_3344_5566_7788;
    let greeting = left.greet(path(), &NONCE, 1_767_225_600_000_000_000, token);
    assert!(right.open(path(), &greeting).unwrap().is_ok());
    let welcome = right.welcome(path().reversed(), (&NONCE, &SALT_BYTES), token, 5).unwrap();
    assert!(left.open(path().reversed(), &welcome).unwrap().is_ok());
    let inner: Vec<u8> = (0..48).collect();
    let marked = marked(&left, shim(9, 2), &inner);
    assert!(right.open(path(), &marked).unwrap().is_ok());
    let acknowledgement = right.acknowledge(5, 9, 2).unwrap();
    let written = [&greeting[..], &welcome, &marked, &acknowledgement];
    let shown = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let missing: Vec<String> =
        written.iter().filter(|written| !examples.contains(&written.to_vec())).map(|written| shown(written)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(examples.len(), 4);
}

#[test]
fn a_session_marks_and_acknowledges() {
    let [mut left, mut right] = met();
    let inner = [0x45; 60];
    let bytes = marked(&left, shim(3, 1), &inner);
    assert_eq!(right.open(path(), &bytes), Some(Ok(Opened::Marked(shim(3, 1), &inner))));
    let said = right.acknowledge(5, 3, 1).unwrap();
    assert_eq!(left.open(path(), &said), Some(Ok(Opened::Acknowledgement { session: 5, number: 3, tries: 1 })));
    assert_eq!((left.mark(Shim { session: 6, ..shim(3, 1) }, &inner), right.acknowledge(6, 3, 1)), (None, None));
}

/// One edge after the other is told of the new key, uses it, and forgets the old one: whoever asks is answered at each step.
#[test]
fn a_key_is_changed_without_a_gap() {
    let names = Names::new("left", "right", TUNNEL).unwrap();
    let (old, new) = (key(), Key::new([8; 32]));
    let steps = [
        (&old, None, &old, Some(&new)),
        (&old, Some(&new), &old, Some(&new)),
        (&new, Some(&old), &old, Some(&new)),
        (&new, Some(&old), &new, Some(&old)),
        (&new, None, &new, Some(&old)),
        (&new, None, &new, None),
    ];
    for (step, (own, other, far, far_other)) in steps.into_iter().enumerate() {
        let mut left = End::new(&Keys::new(own.clone(), other.cloned()), &names);
        let mut right = End::new(&Keys::new(far.clone(), far_other.cloned()), &names.reversed());
        for (number, swap) in [(5, false), (6, true)] {
            let (from, to) = if swap { (&mut right, &mut left) } else { (&mut left, &mut right) };
            meet(from, to, number);
            let shim = Shim { session: number, ..shim(3, 1) };
            let bytes = marked(from, shim, &[0x45; 60]);
            assert!(to.open(path(), &bytes).unwrap().is_ok(), "step {step}");
            let said = to.acknowledge(number, 3, 1).unwrap();
            assert!(from.open(path(), &said).unwrap().is_ok(), "step {step}");
        }
    }
    let [mut of_old, mut of_new] = [End::new(&old.into(), &names), End::new(&new.into(), &names.reversed())];
    let greeting = of_old.greet(path(), &NONCE, 1, 2);
    assert_eq!(of_new.open(path(), &greeting), Some(Err(Refusal::Unauthenticated)));
}

#[test]
fn what_comes_again_is_refused() {
    let [mut left, mut right] = ends();
    let greeting = left.greet(path(), &NONCE, 1, 2);
    assert!(right.open(path(), &greeting).unwrap().is_ok());
    assert_eq!(right.open(path(), &greeting), Some(Err(Refusal::Replayed)));
    let welcome = right.welcome(path(), (&NONCE, &SALT_BYTES), 2, 5).unwrap();
    assert!(left.open(path(), &welcome).unwrap().is_ok());
    assert_eq!(left.open(path(), &welcome), Some(Err(Refusal::Unasked)));
    let (first, second) = (marked(&left, shim(3, 1), &[0x45; 60]), marked(&left, shim(3, 2), &[0x45; 60]));
    assert!(right.open(path(), &second).unwrap().is_ok());
    for again in [&first, &second] {
        assert_eq!(right.open(path(), again), Some(Err(Refusal::Replayed)));
    }
    // A session that follows has other keys, though its number be the same.
    meet(&mut left, &mut right, 5);
    assert_eq!(right.open(path(), &first), Some(Err(Refusal::Unauthenticated)));
    assert!(right.open(path(), &marked(&left, shim(3, 1), &[0x45; 60])).unwrap().is_ok());
}

#[test]
fn nothing_is_believed_in_the_wrong_direction_tunnel_path_or_order() {
    let [mut left, mut right] = met();
    meet(&mut right, &mut left, 5);
    let greeting = left.greet(path(), &NONCE, 1, 2);
    assert_eq!(left.open(path(), &greeting), Some(Err(Refusal::Unauthenticated)), "reflected");
    assert_eq!(right.open(path().reversed(), &greeting), Some(Err(Refusal::Unauthenticated)), "to other hosts");
    assert_eq!(right.welcome(path(), (&NONCE, &SALT_BYTES), 2, 5), None, "it was not opened");
    let bytes = marked(&left, shim(3, 1), &[0x45; 60]);
    assert_eq!(left.open(path(), &bytes), Some(Err(Refusal::Unauthenticated)), "reflected");
    let said = right.acknowledge(5, 3, 1).unwrap();
    assert_eq!(right.open(path(), &said), Some(Err(Refusal::Unauthenticated)), "reflected");
    let mut other = End::new(&key().into(), &Names::new("right", "left", TUNNEL + 1).unwrap());
    assert_eq!(other.open(path(), &bytes), None, "of another tunnel");
    let mut stranger = End::new(&Key::new([8; 32]).into(), &Names::new("right", "left", TUNNEL).unwrap());
    assert_eq!(stranger.open(path(), &bytes), Some(Err(Refusal::UnknownSession)));
    assert_eq!(stranger.open(path(), &greeting), Some(Err(Refusal::Unauthenticated)));
    let mut third = End::new(&key().into(), &Names::new("right", "middle", TUNNEL).unwrap());
    assert_eq!(third.open(path(), &greeting), Some(Err(Refusal::Unauthenticated)), "not from who it knows");
}

#[test]
fn names_are_refused_that_would_not_tell_the_ends_apart() {
    assert_eq!(Names::new("a", "a", 1), Err(NameError::Same));
    assert_eq!(Names::new("a", "", 1), Err(NameError::Length(0)));
    assert!(Names::new(&"a".repeat(65), "b", 1).is_err());
}

/// One datagram of each kind, what each end is to be before it comes, and the way it goes.
fn each_kind(inner: &[u8]) -> Vec<(End, Vec<u8>, Path)> {
    let [mut asking, asked] = ends();
    let greeting = asking.greet(path(), &NONCE, 1, 2).to_vec();
    let [mut left, mut right] = ends();
    let opening = left.greet(path(), &NONCE, 1, 2);
    assert!(right.open(path(), &opening).unwrap().is_ok());
    let welcome = right.welcome(path(), (&NONCE, &SALT_BYTES), 2, 5).unwrap().to_vec();
    let [sender, receiver] = met();
    let marked = marked(&sender, shim(3, 1), inner);
    let said = receiver.acknowledge(5, 3, 1).unwrap().to_vec();
    vec![(asked, greeting, path()), (left, welcome, path()), (receiver, marked, path()), (sender, said, path())]
}

#[test]
fn every_changed_bit_is_noticed_and_every_length_but_one() {
    for (mut end, bytes, path) in each_kind(&[0x45; 60]) {
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(!matches!(end.open(path, &changed), Some(Ok(_))), "bit {at} of {bytes:02x?}");
        }
        for length in 0..bytes.len() {
            assert!(!matches!(end.open(path, &bytes[..length]), Some(Ok(_))), "{length} of {bytes:02x?}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(!matches!(end.open(path, &longer), Some(Ok(_))));
        assert!(matches!(end.open(path, &bytes), Some(Ok(_))), "and what is genuine is believed still");
    }
}

#[test]
fn each_end_is_told_the_sign_of_the_other() {
    let [left, right] = ends();
    let (mut left, mut right) = (left.with_sign(44), right.with_sign(MAX_SIGN));
    let mut greeting = left.greet(path(), &NONCE, 1, 2);
    assert_eq!(right.open(path(), &greeting), Some(Ok(Opened::Greeting { clock: 1, token: 2, sign: 44 })));
    let welcome = right.welcome(path().reversed(), (&NONCE, &SALT_BYTES), 2, 5).unwrap();
    let opened = Opened::Welcome { token: 2, session: 5, sign: MAX_SIGN };
    assert_eq!(left.open(path().reversed(), &welcome), Some(Ok(opened)));
    assert_eq!((left.far_sign(), right.far_sign()), (Some(MAX_SIGN), None), "the greeting may be a recording");
    let mut forged = marked(&left, shim(3, 1), &[0x45; 60]);
    forged[40] ^= 1;
    assert_eq!((right.open(path(), &forged), right.far_sign()), (Some(Err(Refusal::Unauthenticated)), None));
    assert!(right.open(path(), &marked(&left, shim(3, 1), &[0x45; 60])).unwrap().is_ok());
    assert_eq!(right.far_sign(), Some(44), "who marks has the salt of the welcome");
    // A greeting that is answered changes nothing until then.
    let greeting_of_another = ends()[0].greet(path(), &NONCE, 3, 4);
    assert!(right.open(path(), &greeting_of_another).unwrap().is_ok());
    right.welcome(path().reversed(), (&NONCE, &SALT_BYTES), 4, 6).unwrap();
    assert_eq!(right.far_sign(), Some(44));
    greeting[1] = MAX_SIGN + 1;
    assert_eq!(right.open(path(), &greeting), Some(Err(Refusal::Malformed)), "no DSCP");
}

proptest! {
    #[test]
    fn what_is_marked_is_read(number: u32, ecn in 0_u8..4, tries in 1..=MAX_TRIES,
        inner in prop::collection::vec(any::<u8>(), 40..2_000))
    {
        let [left, mut right] = met();
        let shim = Shim { session: 5, number: number >> 1, ecn, tries };
        let bytes = marked(&left, shim, &inner);
        prop_assert_eq!(right.open(path(), &bytes), Some(Ok(Opened::Marked(shim, &inner[..]))));
    }

    #[test]
    fn a_changed_byte_of_a_long_packet_is_noticed(inner in prop::collection::vec(any::<u8>(), 40..2_000), at: prop::sample::Index, by in 1_u8..)
    {
        let [left, mut right] = met();
        let mut bytes = marked(&left, shim(1, 1), &inner);
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert!(!matches!(right.open(path(), &bytes), Some(Ok(_))));
    }

    #[test]
    fn hostile_bytes_are_refused(kind in 0_u8..6, mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(header) = bytes.first_chunk_mut::<4>() {
            *header = [0x10 | kind, header[1], 0, 7];
        }
        let [mut left, mut right] = met();
        for end in [&mut left, &mut right] {
            prop_assert!(!matches!(end.open(path(), &bytes), Some(Ok(_))));
        }
    }
}
