//! Which notifications a host believes: those of switches that it knows, sent by their holders of keys, from next door,
//! recent, and each once.
//!
//! What costs least is looked at first. A sender's state changes by what it has signed only, so that nobody else can make a
//! host refuse what is genuine.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::key::Keys;
use crate::notification::{HOP_LIMIT, MAX_FEEDBACK, Notification, Unverified};
use crate::refusal::Refusal;

/// A congestion point that may tell this host.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The address that it sends from.
    pub address: IpAddr,
    /// The secret that it shares with this host, at one address of the host's; two while it is changed.
    pub keys: Keys,
}

/// Who tells this host, and where: the congestion point's identity, and the address of this host that its packets had. A host
/// with several addresses shares a key at each.
pub type Pair = (u64, IpAddr);

/// Decides on notifications.
#[derive(Debug)]
pub struct Admission {
    senders: BTreeMap<Pair, State>,
    tolerance_ns: u64,
}

#[derive(Debug)]
struct State {
    sender: Sender,
    /// When it sent the last notification that was believed; nothing was sent at or before 1970.
    last_ns: u64,
}

impl Admission {
    /// Believes these senders as long as their clocks and this host's are within `tolerance_ns` of each other,
    /// the datagram's travel included. A notification that was recorded before this began is believed once within that time.
    pub fn new(senders: BTreeMap<Pair, Sender>, tolerance_ns: u64) -> Admission {
        let senders = senders.into_iter().map(|(pair, sender)| (pair, State { sender, last_ns: 0 })).collect();
        Admission { senders, tolerance_ns }
    }

    /// Believes these from now on. What is recorded of those that it knew already is believed no more than before.
    pub fn replace(&mut self, senders: BTreeMap<Pair, Sender>) {
        let known = std::mem::take(&mut self.senders);
        let last_ns = |pair: &Pair| known.get(pair).map_or(0, |state| state.last_ns);
        self.senders =
            senders.into_iter().map(|(pair, sender)| (pair, State { sender, last_ns: last_ns(&pair) })).collect();
    }

    /// What a datagram says, if it is believed. It came from this address with this hop limit left, at `now_ns` of this
    /// host's clock, nanoseconds since 1970.
    ///
    /// # Errors
    /// The first [`Refusal`] that applies, up to [`Refusal::Feedback`]: what follows is for who knows the connections.
    pub fn admit(&mut self, bytes: &[u8], from: IpAddr, hop_limit: u8, now_ns: u64) -> Result<Notification, Refusal> {
        let read = Unverified::parse(bytes)?;
        if hop_limit != HOP_LIMIT {
            return Err(Refusal::TooFar);
        }
        let known = self.senders.get_mut(&read.pair()).filter(|known| known.sender.address == from);
        let known = known.ok_or(Refusal::UnknownSender)?;
        let said =
            known.sender.keys.believed().find_map(|key| read.verify(key).ok()).ok_or(Refusal::Unauthenticated)?;
        if said.sent_ns.abs_diff(now_ns) > self.tolerance_ns {
            return Err(Refusal::Stale);
        }
        if known.last_ns > now_ns.saturating_add(self.tolerance_ns) {
            // A clock was set back. What was recorded within the tolerance is believed once more, or nothing would be.
            known.last_ns = 0;
        }
        if said.sent_ns <= known.last_ns {
            return Err(Refusal::Replayed);
        }
        known.last_ns = said.sent_ns;
        if said.feedback == 0 || said.feedback > MAX_FEEDBACK {
            return Err(Refusal::Feedback);
        }
        Ok(said)
    }
}

/// Whether the packet of `payload` bytes from `seq` on has a byte that was sent, up to `next`, and is not acknowledged, from
/// `unacknowledged` on. Sequence numbers wrap [RFC 9293 §3.4].
pub const fn is_in_flight(seq: u32, payload: u16, unacknowledged: u32, next: u32) -> bool {
    let end = seq.wrapping_add(payload as u32);
    // Distances from what is acknowledged; a flight is shorter than half of the circle.
    let (last, sent) = (end.wrapping_sub(unacknowledged).cast_signed(), next.wrapping_sub(unacknowledged));
    payload > 0 && last > 0 && last.cast_unsigned() <= sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::notification::Flow;
    use proptest::prelude::*;

    const NOW: u64 = 1_767_225_600_000_000_000;
    const TOLERANCE: u64 = 100_000_000;
    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 254));
    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn key(of: u64) -> Key {
        Key::new([u8::try_from(of).unwrap(); 32])
    }

    fn admission() -> Admission {
        let senders = [7, 8].map(|of| ((of, HOST), Sender { address: ADDRESS, keys: key(of).into() }));
        Admission::new(senders.into(), TOLERANCE)
    }

    fn said(sender: u64, sent_ns: u64) -> Notification {
        let flow = Flow { source: (HOST, 40_000).into(), destination: ([192, 0, 2, 2], 5_001).into() };
        Notification { sender, sent_ns, feedback: 25, offset: 1, growth: 1, flow, seq: 1, payload: 1_448 }
    }

    fn outcome(admission: &mut Admission, said: Notification) -> Result<Notification, Refusal> {
        admission.admit(&said.seal(&key(said.sender)), ADDRESS, HOP_LIMIT, NOW)
    }

    #[test]
    fn what_is_genuine_is_believed_once() {
        let mut admission = admission();
        assert_eq!(outcome(&mut admission, said(7, NOW)), Ok(said(7, NOW)));
        assert_eq!(outcome(&mut admission, said(7, NOW)), Err(Refusal::Replayed));
        assert_eq!(outcome(&mut admission, said(7, NOW - 1)), Err(Refusal::Replayed));
        assert_eq!(outcome(&mut admission, said(8, NOW - 1)), Ok(said(8, NOW - 1)), "each sender has its own");
        assert_eq!(outcome(&mut admission, said(7, NOW + 1)), Ok(said(7, NOW + 1)));
    }

    /// A switch and a host with addresses of both families.
    #[test]
    fn a_host_is_told_at_each_of_its_addresses_with_a_key_of_its_own() {
        let switch = Key::new([5; 32]);
        let ends: [(IpAddr, IpAddr); 3] = [
            (HOST, ADDRESS),
            ([192, 0, 2, 2].into(), ADDRESS),
            ("2001:db8::1".parse().unwrap(), "2001:db8::fe".parse().unwrap()),
        ];
        let senders = ends.map(|(host, address)| ((7, host), Sender { address, keys: switch.of_host(host).into() }));
        let mut admission = Admission::new(senders.into(), TOLERANCE);
        let told = |host: IpAddr| {
            let destination = if host.is_ipv4() { ([198, 51, 100, 2], 5_001).into() } else { (host, 5_001).into() };
            Notification { flow: Flow { source: (host, 40_000).into(), destination }, ..said(7, NOW) }
        };
        for (host, address) in ends {
            for (other, _) in ends.into_iter().filter(|(other, _)| *other != host) {
                let bytes = told(host).seal(&switch.of_host(other));
                assert_eq!(admission.admit(&bytes, address, HOP_LIMIT, NOW), Err(Refusal::Unauthenticated));
            }
            let bytes = told(host).seal(&switch.of_host(host));
            assert_eq!(admission.admit(&bytes, address, HOP_LIMIT, NOW), Ok(told(host)));
            assert_eq!(admission.admit(&bytes, address, HOP_LIMIT, NOW), Err(Refusal::Replayed));
        }
        let elsewhere = told([192, 0, 2, 3].into()).seal(&switch.of_host([192, 0, 2, 3].into()));
        assert_eq!(admission.admit(&elsewhere, ADDRESS, HOP_LIMIT, NOW), Err(Refusal::UnknownSender));
    }

    /// Host first, then switch, then the old key goes: at no time is what is genuine refused, and nothing is believed twice.
    #[test]
    fn a_key_is_changed_without_a_gap() {
        let mut admission = admission();
        let with = |own, other| [((7, HOST), Sender { address: ADDRESS, keys: Keys::new(key(own), other) })];
        let signed = |at, of| said(7, at).seal(&key(of));
        assert_eq!(admission.admit(&signed(NOW, 9), ADDRESS, HOP_LIMIT, NOW), Err(Refusal::Unauthenticated));
        assert!(admission.admit(&signed(NOW, 7), ADDRESS, HOP_LIMIT, NOW).is_ok());
        admission.replace(with(7, Some(key(9))).into());
        assert_eq!(admission.admit(&signed(NOW, 7), ADDRESS, HOP_LIMIT, NOW), Err(Refusal::Replayed));
        for (later, of) in [(1, 7), (2, 9), (3, 7)] {
            assert!(admission.admit(&signed(NOW + later, of), ADDRESS, HOP_LIMIT, NOW).is_ok());
        }
        admission.replace(with(9, None).into());
        assert_eq!(admission.admit(&signed(NOW + 3, 9), ADDRESS, HOP_LIMIT, NOW), Err(Refusal::Replayed));
        assert_eq!(admission.admit(&signed(NOW + 4, 7), ADDRESS, HOP_LIMIT, NOW), Err(Refusal::Unauthenticated));
        assert!(admission.admit(&signed(NOW + 4, 9), ADDRESS, HOP_LIMIT, NOW).is_ok());
    }

    #[test]
    fn clocks_that_are_set_back_silence_nobody() {
        let mut admission = admission();
        assert!(outcome(&mut admission, said(7, NOW)).is_ok());
        let hour = 3_600_000_000_000;
        let earlier = said(7, NOW - hour);
        let now = NOW - hour + 1;
        assert_eq!(admission.admit(&earlier.seal(&key(7)), ADDRESS, HOP_LIMIT, now), Ok(earlier));
        assert_eq!(admission.admit(&earlier.seal(&key(7)), ADDRESS, HOP_LIMIT, now), Err(Refusal::Replayed));
    }

    #[test]
    fn clocks_that_are_set_back_by_the_tolerance_silence_a_switch_for_as_long() {
        let after = |back: u64, later: u64| {
            let mut admission = admission();
            assert!(outcome(&mut admission, said(7, NOW)).is_ok());
            let now = NOW - back + later;
            admission.admit(&said(7, now).seal(&key(7)), ADDRESS, HOP_LIMIT, now).map(|_| ())
        };
        assert_eq!(after(TOLERANCE, 0), Err(Refusal::Replayed));
        assert_eq!(after(TOLERANCE, TOLERANCE), Err(Refusal::Replayed));
        assert_eq!(after(TOLERANCE, TOLERANCE + 1), Ok(()));
        assert_eq!(after(TOLERANCE + 1, 0), Ok(()), "by more, it is known that they were");
    }

    #[test]
    fn each_thing_wrong_has_its_reason() {
        let genuine = said(7, NOW).seal(&key(7));
        let other: IpAddr = [192, 0, 2, 253].into();
        for (from, hops, expected) in
            [(ADDRESS, 254, Refusal::TooFar), (ADDRESS, 0, Refusal::TooFar), (other, HOP_LIMIT, Refusal::UnknownSender)]
        {
            assert_eq!(admission().admit(&genuine, from, hops, NOW), Err(expected));
        }
        let mut admission = admission();
        assert_eq!(outcome(&mut admission, said(9, NOW)), Err(Refusal::UnknownSender));
        let forged = said(7, NOW).seal(&key(8));
        assert_eq!(admission.admit(&forged, ADDRESS, HOP_LIMIT, NOW), Err(Refusal::Unauthenticated));
        for (apart, expected) in [(TOLERANCE + 1, Err(Refusal::Stale)), (TOLERANCE, Ok(()))] {
            assert_eq!(outcome(&mut admission, said(7, NOW - apart)).map(|_| ()), expected);
            assert_eq!(outcome(&mut admission, said(8, NOW + apart)).map(|_| ()), expected);
        }
        for feedback in [0, 64, 255] {
            let said = Notification { feedback, ..said(7, NOW + u64::from(feedback)) };
            assert_eq!(outcome(&mut admission, said), Err(Refusal::Feedback));
        }
        assert_eq!(admission.admit(&genuine[1..], ADDRESS, HOP_LIMIT, NOW), Err(Refusal::Malformed));
    }

    proptest! {
        /// Whatever a forger without a key sends, what is genuine is believed as before.
        #[test]
        fn forgeries_change_nothing(forged in prop::collection::vec((6u64..10, 0u64..4, any::<u8>()), 0..40)) {
            let mut admission = admission();
            for (sender, later, hops) in forged {
                let forged = said(sender, NOW + later).seal(&key(99));
                prop_assert!(admission.admit(&forged, ADDRESS, hops, NOW).is_err());
            }
            prop_assert!(outcome(&mut admission, said(7, NOW)).is_ok());
        }

        #[test]
        fn in_flight_is_what_lies_between(una: u32, flight in 0u32..1 << 30, from in -(1i64 << 30)..1 << 30, payload: u16) {
            let seq = u32::try_from((i64::from(una) + from).rem_euclid(1 << 32)).unwrap();
            let last = from + i64::from(payload);
            let expected = payload > 0 && last > 0 && last <= i64::from(flight);
            prop_assert_eq!(is_in_flight(seq, payload, una, una.wrapping_add(flight)), expected);
        }
    }
}
