//! What experiments may choose of the edge pair.

use crate::component::{Kind, Spec, Value, parameters};
use crate::units::{Rate, Span};

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "dcib",
    about: "An edge pair that chooses packets that may be lost, and repairs them.",
    source: "[DCIB]",
    parameters: parameters! {
        "share": Kind::Real { bits: 32 }, Value::Real(429_496_730), (1, 1 << 32),
            "m, the part of the packets with data that may be lost";
        "choose": Kind::Choice(&["sampled", "bernoulli", "band"]), Value::Choice(0),
            "which packets: one of every 1/share, each with that probability, or those beyond (1 − share) of `rate`";
        "rate": Kind::Rate, Value::Auto, (Rate::from_mbps(1).as_bps(), Rate::from_gbps(100_000).as_bps()),
            "R, nothing beyond it may be lost; auto: the link's rate";
        "round-trip": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(60).as_ps()),
            "the RTT between the two edges until it is measured; auto: twice the link's delay";
        "repairs": Kind::Count, Value::Count(3), (0, 14), "N_retx, how often a packet is retransmitted";
        "store": Kind::Bytes, Value::Auto, (1_500, 1 << 42),
            "B_clone, bytes of copies; auto: four RTTs of share times rate";
        "hiding": Kind::Choice(&["resequence", "resequence-repairable", "snoop", "nothing"]), Value::Choice(1),
            "how hosts are kept from noticing a loss that may be repaired";
        "hold": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(60).as_ps()),
            "H_B, how long a hole is hidden; auto: one and a half RTTs and 2 ms";
        "held": Kind::Bytes, Value::Auto, (1_500, 1 << 42),
            "B_reseq, bytes of packets that wait behind holes; auto: one and a half RTTs of rate";
        "marks": Kind::Choice(&["clear", "drop"]), Value::Choice(0),
            "what becomes of a CE mark on a packet of a host without ECN: taken off, or the packet is dropped [RFC 6040]";
    },
};
