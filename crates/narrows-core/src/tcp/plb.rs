//! Protective load balancing (PLB): a connection draws another label, by which switches choose among equal paths, after rounds in
//! which much was marked; rather while nothing is in flight, when no packet can overtake another [PLB, Linux `tcp_plb.c`].
//!
//! Protective rerouting: where its path may be dead it draws another at once, after a timeout, or when data comes again and again
//! because acknowledgements are lost [Wetherall 2023, Linux `tcp_write_timeout`, `tcp_rcv_spurious_retrans`]. For a while after a
//! timeout congested rounds change no path: what it leaves then may be alive, and what it finds dead.

use crate::packet::Seq;
use crate::rng::SmallStream;
use crate::routing::rehash::{Config, SHARE_BITS};
use crate::units::{Span, Time};

/// One connection's, of the half that sends.
#[derive(Clone, Debug)]
pub(super) struct Plb {
    config: Config,
    /// Bits of labels.
    labels: u32,
    label: u32,
    /// Labels drawn since the count was taken.
    draws: u32,
    stream: SmallStream,
    /// Of this round: packets delivered, and those of them that were reported as marked.
    delivered: u64,
    marked: u64,
    congested_rounds: u8,
    suspended_until: Time,
    /// Where the data began that came twice last.
    repeated: Option<Seq>,
}

impl Plb {
    /// Labels have these bits, and the first is 0.
    pub(super) fn new(config: Config, labels: u32, stream: SmallStream) -> Plb {
        let (delivered, marked, congested_rounds) = (0, 0, 0);
        let (suspended_until, repeated) = (Time::ZERO, None);
        Plb {
            config,
            labels,
            label: 0,
            draws: 0,
            stream,
            delivered,
            marked,
            congested_rounds,
            suspended_until,
            repeated,
        }
    }

    /// By which packets are labelled.
    pub(super) fn label(&self) -> u32 {
        self.label
    }

    /// How often the label was drawn since the last call.
    pub(super) fn take_draws(&mut self) -> u32 {
        core::mem::take(&mut self.draws)
    }

    /// An acknowledgement delivered so many packets, of which so many are reported as marked. It may end a round, and leave nothing in
    /// flight.
    pub(super) fn on_ack(&mut self, now: Time, (delivered, marked): (u64, u64), round_ended: bool, idle: bool) {
        self.delivered += delivered;
        self.marked += marked;
        if !round_ended || self.delivered == 0 {
            return;
        }
        let congested = self.marked << SHARE_BITS >= u64::from(self.config.threshold) * self.delivered;
        self.congested_rounds = if congested { (self.congested_rounds + 1).min(self.config.rounds) } else { 0 };
        (self.delivered, self.marked) = (0, 0);
        self.check(now, idle);
    }

    /// Data is about to be sent, and nothing is in flight.
    pub(super) fn on_start(&mut self, now: Time) {
        self.check(now, true);
    }

    /// The path may be dead: a SYN or its answer came to nothing.
    pub(super) fn on_dead_path(&mut self) {
        self.draw();
    }

    /// Data that begins at `seq` was here before. If the same comes a third time the peer hears no acknowledgement: their path may be
    /// dead (Linux `tcp_rcv_spurious_retrans`).
    pub(super) fn on_repeated_data(&mut self, seq: Seq) {
        if self.repeated.replace(seq) == Some(seq) {
            self.draw();
        }
    }

    /// The retransmission timer expired; `repeated` if for data that had its timeout before, without progress.
    pub(super) fn on_timeout(&mut self, now: Time, repeated: bool) {
        self.draw();
        if repeated {
            return;
        }
        self.congested_rounds = 0;
        let suspend = self.config.suspend.as_ps();
        let more = (u128::from(self.stream.next_u64()) * u128::from(suspend)) >> 64;
        self.suspended_until = now + Span::from_ps(suspend + u64::try_from(more).unwrap_or(suspend));
    }

    fn check(&mut self, now: Time, idle: bool) {
        let Config { rounds, idle_rounds, .. } = self.config;
        let enough = if idle && idle_rounds > 0 { rounds.min(idle_rounds) } else { rounds };
        if self.congested_rounds >= enough && now >= self.suspended_until {
            self.congested_rounds = 0;
            self.draw();
        }
    }

    /// Another label than this one, as likely as any other.
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    fn draw(&mut self) {
        let before = self.label;
        self.draws += u32::from(self.labels != 0);
        while self.label == before && self.labels != 0 {
            // Bits of both halves, as labels may lie in either.
            let drawn = self.stream.next_u64();
            self.label = (drawn ^ drawn >> 32) as u32 & self.labels;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn plb(rounds: u8, idle_rounds: u8) -> Plb {
        let config = Config { threshold: 128, rounds, idle_rounds, suspend: Span::from_secs(60) };
        Plb::new(config, 0b1110 << 16, SmallStream::new(7))
    }

    #[test]
    fn so_many_congested_rounds_in_a_row_change_the_path() {
        let mut plb = plb(12, 3);
        let round = |plb: &mut Plb, marked| {
            let before = plb.label();
            plb.on_ack(at(1), (5, marked), false, false);
            assert_eq!(plb.label(), before, "a round is judged at its end");
            plb.on_ack(at(1), (5, 0), true, false);
            plb.label() != before
        };
        // Half of ten is congested, and less is not.
        assert!((0..11).all(|_| !round(&mut plb, 5)));
        assert!(!round(&mut plb, 4), "this one ends the row");
        assert!((0..11).all(|_| !round(&mut plb, 5)));
        assert!(round(&mut plb, 5), "the twelfth");
        assert!((0..11).all(|_| !round(&mut plb, 5)), "the count begins anew");
        assert!(round(&mut plb, 5));
        assert_eq!((plb.take_draws(), plb.take_draws()), (2, 0));
    }

    #[test]
    fn while_nothing_is_in_flight_fewer_rounds_suffice() {
        let mut resting = plb(12, 3);
        for round in 1..=3 {
            resting.on_ack(at(1), (5, 5), true, true);
            assert_eq!(resting.label() != 0, round == 3);
        }
        let mut starting = plb(12, 3);
        (0..3).for_each(|_| starting.on_ack(at(1), (5, 5), true, false));
        assert_eq!(starting.label(), 0);
        starting.on_start(at(2));
        assert_ne!(starting.label(), 0);
        let mut never = plb(12, 0);
        (0..11).for_each(|_| never.on_ack(at(1), (5, 5), true, true));
        never.on_start(at(2));
        assert_eq!(never.label(), 0);
    }

    #[test]
    fn a_timeout_changes_the_path_at_once_and_congested_rounds_none_for_a_while() {
        for seed in 0..20 {
            let mut plb = Plb { stream: SmallStream::new(seed), ..plb(1, 1) };
            plb.on_timeout(at(1_000), false);
            let first = plb.label();
            assert_ne!(first, 0);
            let until = plb.suspended_until;
            assert!((at(61_000)..at(121_000)).contains(&until), "{until}");
            plb.on_ack(until - Span::from_ns(1), (5, 5), true, false);
            assert_eq!(plb.label(), first);
            plb.on_timeout(at(2_000), true);
            let second = plb.label();
            assert_ne!(second, first, "another timeout");
            assert_eq!(plb.suspended_until, until, "for the same data");
            // What was counted meanwhile counts.
            plb.on_ack(until, (5, 0), false, false);
            assert_eq!(plb.label(), second);
            plb.on_start(until);
            assert_ne!(plb.label(), second);
        }
    }

    #[test]
    fn data_that_comes_a_third_time_changes_the_path_of_acknowledgements() {
        let mut plb = plb(12, 3);
        let (one, other) = (Seq::FIRST, Seq::FIRST.plus(1_448));
        for seq in [one, other, one] {
            plb.on_repeated_data(seq);
            assert_eq!(plb.label(), 0, "each for the first time, or not twice in a row");
        }
        plb.on_repeated_data(one);
        assert_ne!(plb.label(), 0);
        assert_eq!(plb.suspended_until, Time::ZERO);
    }

    #[test]
    fn labels_are_all_of_their_bits_alike() {
        let mut plb = plb(1, 1);
        let mut counts = [0_i64; 16];
        for _ in 0..80_000 {
            plb.draw();
            assert_eq!(plb.label() & !(0b1110 << 16), 0);
            counts[(plb.label() >> 16) as usize] += 1;
        }
        // √(80,000 · 1/8 · 7/8) = 93.5, four times.
        assert!(counts.iter().step_by(2).all(|count| (count - 10_000).abs() < 374), "{counts:?}");
    }
}
