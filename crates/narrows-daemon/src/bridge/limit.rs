//! How long a packet may be outside: what the interface takes, less where routers complained recently. And less where nobody complains, and
//! what is long does not arrive though what is short does.

use narrows_core::units::{Span, Time};

/// A complaint counts for so long [RFC 1191 §6.3].
const AGE: Span = Span::from_secs(600);
/// No complaint lowers it further: what every host takes [RFC 791 §3.1], and every link [RFC 8200 §5].
const LEAST: [u16; 2] = [576, 1_280];

/// What arrived speaks for the path so long.
const PROOF: Span = Span::from_secs(10);

/// See the [module](self). IPv4 and IPv6 apart.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    interface: u16,
    /// What was learnt, and when.
    learnt: [Option<(u16, Time)>; 2],
    /// The longest packet that arrived recently, and when.
    proven: [Option<(u16, Time)>; 2],
    /// When that was sent which was sent last of what arrived.
    latest: [Time; 2],
}

impl Limit {
    /// As long as the interface takes.
    pub(super) const fn new(interface: u16) -> Limit {
        Limit { interface, learnt: [None; 2], proven: [None; 2], latest: [Time::ZERO; 2] }
    }

    /// The interface takes so much from now on; what was learnt of the path stays.
    pub(super) const fn set_interface(&mut self, interface: u16) {
        self.interface = interface;
    }

    /// Bytes of a packet at most.
    pub(super) fn now(&self, now: Time, v6: bool) -> u16 {
        match self.learnt[usize::from(v6)] {
            Some((most, at)) if now.since(at) < AGE => most.min(self.interface),
            _ => self.interface,
        }
    }

    /// A router takes no more than this; 0 if it does not say how much. Whether that is less than was known.
    pub(super) fn complain(&mut self, now: Time, v6: bool, most: u16) -> bool {
        let known = self.now(now, v6);
        // A router of old says nothing of how much it takes: the next size below that is in use [RFC 1191 §7].
        let most =
            if most > 0 { most } else { [1_492, 1_006, 576].into_iter().find(|&size| size < known).unwrap_or(0) };
        let most = most.max(LEAST[usize::from(v6)]);
        let lower = most < known;
        if lower {
            self.learnt[usize::from(v6)] = Some((most, now));
        }
        lower
    }

    /// A packet of this size has arrived, which was first sent at `sent`.
    pub(super) fn arrived(&mut self, now: Time, v6: bool, size: u16, sent: Time) {
        let latest = &mut self.latest[usize::from(v6)];
        *latest = sent.max(*latest);
        let proven = &mut self.proven[usize::from(v6)];
        if proven.is_none_or(|(longest, at)| size >= longest || now.since(at) >= PROOF) {
            *proven = Some((size, now));
        }
    }

    /// One of this size, first sent at `sent`, was lost again and again. Whether it is taken to be too long: shorter ones arrived, of which one was
    /// sent later, so that it is not the path that is gone; and none as long.
    pub(super) fn lost(&mut self, now: Time, v6: bool, size: u16, sent: Time) -> bool {
        let goes_on = self.latest[usize::from(v6)] > sent;
        match self.proven[usize::from(v6)] {
            Some((longest, at)) if goes_on && longest < size && now.since(at) < PROOF => {
                self.complain(now, v6, longest.max(1));
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_lower_it_for_a_while_and_not_without_bound() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut limit = Limit::new(1_500);
        assert!(limit.complain(at(0), false, 1_400) && !limit.complain(at(1), false, 1_450));
        assert_eq!((limit.now(at(1), false), limit.now(at(1), true)), (1_400, 1_500));
        assert!(limit.complain(at(1), false, 68) && limit.complain(at(1), true, 68));
        assert_eq!((limit.now(at(600), false), limit.now(at(600), true)), (576, 1_280));
        // An interface that takes less counts at once, and one that takes more when the complaint is forgotten.
        limit.set_interface(560);
        assert_eq!((limit.now(at(600), false), limit.now(at(600), true)), (560, 560));
        limit.set_interface(1_500);
        assert_eq!((limit.now(at(601), false), limit.now(at(601), true)), (1_500, 1_500));
        assert!(limit.complain(at(700), false, 0));
        assert_eq!(limit.now(at(700), false), 1_492);
    }

    #[test]
    fn what_never_arrives_while_shorter_does_is_too_long() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut limit = Limit::new(1_500);
        assert!(!limit.lost(at(0), false, 1_500, at(0)), "nothing arrived: who knows");
        limit.arrived(at(2), false, 700, at(1));
        assert!(!limit.lost(at(2), true, 1_500, at(0)) && !limit.lost(at(2), false, 700, at(0)));
        assert!(!limit.lost(at(2), false, 1_500, at(1)), "nothing that was sent later arrived: the path may be gone");
        assert!(limit.lost(at(2), false, 1_500, at(0)));
        assert_eq!(limit.now(at(3), false), 700);
        // As long ones arrived a moment ago, it is another loss; and old proof is none.
        let mut limit = Limit::new(1_500);
        limit.arrived(at(1), false, 1_500, at(1));
        limit.arrived(at(5), false, 700, at(5));
        assert!(!limit.lost(at(6), false, 1_500, at(0)));
        limit.arrived(at(12), false, 700, at(12));
        assert!(limit.lost(at(13), false, 1_500, at(0)) && !limit.lost(at(23), false, 1_500, at(0)));
    }
}
