//! What experiments and `narrowsd bridge` may choose of the edge pair.

use alloc::vec::Vec;

use super::{Chooser, Config, Hiding, Marks, Share};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::{Rate, Span};

/// What the choices of the parameters mean, by name.
pub const CHOICES: &[(&str, &str)] = &[
    ("sampled", "one packet of every 1/share"),
    ("bernoulli", "each packet with the probability `share`"),
    ("band", "packets beyond (1 − share) of the rate"),
    ("resequence", "the receiving edge holds back what follows a hole"),
    ("resequence-repairable", "the same, but not once no loss-eligible packet is missing"),
    ("snoop", "the sending edge holds back duplicate acknowledgements"),
    ("nothing", "hosts notice"),
    ("clear", "the mark is taken off, and nobody learns of the congestion"),
    ("drop", "the packet is dropped, and its host learns by the loss [RFC 6040]"),
];

/// Names of [`Chooser`], [`Hiding`] and [`Marks`], in the order of their variants.
const CHOOSERS: &[&str] = &["sampled", "bernoulli", "band"];
const HIDINGS: &[&str] = &["resequence", "resequence-repairable", "snoop", "nothing"];
const MARKS: &[&str] = &["clear", "drop"];

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "dcib",
    about: "An edge pair that chooses packets that may be lost, and repairs them.",
    source: "[DCIB]",
    parameters: parameters! {
        "share": Kind::Real { bits: 32 }, Value::Real(429_496_730), (1, 1 << 32),
            "m, the part of the packets with data that may be lost";
        "choose": Kind::Choice(CHOOSERS), Value::Choice(0),
            "which packets: one of every 1/share, each with that probability, or those beyond (1 − share) of `rate`";
        "rate": Kind::Rate, Value::Auto, (Rate::from_mbps(1).as_bps(), Rate::from_gbps(100_000).as_bps()),
            "R, nothing beyond it may be lost; auto: the link's rate";
        "round-trip": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(60).as_ps()),
            "the RTT between the two edges until it is measured; auto: twice the link's delay";
        "repairs": Kind::Count, Value::Count(3), (0, 14), "N_retx, how often a packet is retransmitted";
        "store": Kind::Bytes, Value::Auto, (1_500, 4_000_000_000_000),
            "B_clone, bytes of copies; auto: four RTTs of share times rate";
        "hiding": Kind::Choice(HIDINGS), Value::Choice(1),
            "how hosts are kept from noticing a loss that may be repaired";
        "hold": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(60).as_ps()),
            "H_B, how long a hole is hidden; auto: one and a half RTTs and 2 ms";
        "held": Kind::Bytes, Value::Auto, (1_500, 4_000_000_000_000),
            "B_reseq, bytes of packets that wait behind holes; auto: one and a half RTTs of rate";
        "marks": Kind::Choice(MARKS), Value::Choice(0),
            "what becomes of a CE mark on a packet of a host without ECN: taken off, or the packet is dropped [RFC 6040]";
    },
};

impl Config {
    /// The parameters with these values. What is `auto` follows from a link of this rate, and from this RTT between the edges.
    pub fn of(settings: &Settings<'_>, rate: Rate, round_trip: Span) -> Config {
        let share = Share::from_q32(settings.real("share"));
        let rate = settings.rate_or_auto("rate").unwrap_or(rate);
        let auto = Config::new(rate, share, settings.span_or_auto("round-trip").unwrap_or(round_trip));
        Config {
            chooser: match settings.choice("choose") {
                "bernoulli" => Chooser::Bernoulli,
                "band" => Chooser::Band,
                _ => Chooser::Sampled,
            },
            hiding: match settings.choice("hiding") {
                "resequence" => Hiding::Resequence,
                "snoop" => Hiding::Snoop,
                "nothing" => Hiding::Nothing,
                _ => Hiding::ResequenceRepairable,
            },
            marks: if settings.choice("marks") == "drop" { Marks::Drop } else { Marks::Clear },
            repairs: u8::try_from(settings.count("repairs")).unwrap_or(u8::MAX),
            store: settings.bytes_or_auto("store").unwrap_or(auto.store),
            hold: settings.span_or_auto("hold").unwrap_or(auto.hold),
            held: settings.bytes_or_auto("held").unwrap_or(auto.held),
            ..auto
        }
    }

    /// The value of each parameter of [`SPEC`], in its order.
    pub fn values(&self) -> Vec<Value> {
        [
            Value::Real(self.share.as_q32()),
            Value::Choice(self.chooser as u8),
            Value::Rate(self.rate),
            Value::Span(self.round_trip),
            Value::Count(self.repairs.into()),
            Value::Bytes(self.store),
            Value::Choice(self.hiding as u8),
            Value::Span(self.hold),
            Value::Bytes(self.held),
            Value::Choice(self.marks as u8),
        ]
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_values() -> impl Strategy<Value = Vec<Value>> {
        let any = |(index, most): (usize, u64)| {
            let (least, most) = SPEC.parameters[index].range.unwrap_or((0, most));
            (least..=most).prop_map(move |integer| match SPEC.parameters[index].kind {
                Kind::Real { .. } => Value::Real(integer),
                Kind::Choice(_) => Value::Choice(u8::try_from(integer).unwrap()),
                Kind::Rate => Value::Rate(Rate::from_bps(integer)),
                Kind::Span => Value::Span(Span::from_ps(integer)),
                Kind::Bytes => Value::Bytes(crate::units::Bytes::new(integer)),
                _ => Value::Count(integer),
            })
        };
        let choices = |kind| if let Kind::Choice(names) = kind { names.len() as u64 - 1 } else { 0 };
        let each = SPEC.parameters.iter().map(|parameter| choices(parameter.kind)).enumerate().map(any);
        each.collect::<Vec<_>>()
    }

    proptest! {
        #[test]
        fn values_are_what_the_parameters_were_set_to(values in any_values()) {
            let config = Config::of(&Settings::new(SPEC.parameters, &values), Rate::from_bps(1), Span::ZERO);
            prop_assert_eq!(config.values(), values);
        }
    }

    #[test]
    fn every_choice_is_explained() {
        let named = [CHOOSERS, HIDINGS, MARKS].concat();
        assert_eq!(CHOICES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), named);
    }

    #[test]
    fn what_is_auto_follows_from_rate_and_rtt() {
        let (rate, round_trip) = (Rate::from_gbps(1), Span::from_ms(20));
        let config = Config::of(&Settings::new(SPEC.parameters, &SPEC.defaults()), rate, round_trip);
        assert_eq!(config, Config::new(rate, Share::TENTH, round_trip));
    }
}
