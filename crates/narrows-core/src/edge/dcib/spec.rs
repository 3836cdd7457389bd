//! What experiments may choose of the edge pair.

use crate::component::{Kind, Parameter, Spec, Value};
use crate::units::{Rate, Span};

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "dcib",
    about: "An edge pair that chooses packets that may be lost, and repairs them.",
    source: "[DCIB]",
    parameters: &[
        Parameter {
            name: "share",
            kind: Kind::Real { bits: 32 },
            default: Value::Real((1 << 32) / 10),
            range: Some((1, 1 << 32)),
            about: "m, the part of the packets with data that may be lost",
        },
        Parameter {
            name: "choose",
            kind: Kind::Choice(&["sampled", "bernoulli", "band"]),
            default: Value::Choice(0),
            range: None,
            about: "which packets: one of every 1/share, each with that probability, or those beyond (1 − share) of `rate`",
        },
        Parameter {
            name: "rate",
            kind: Kind::Rate,
            default: Value::Auto,
            range: Some((Rate::from_mbps(1).as_bps(), Rate::from_gbps(100_000).as_bps())),
            about: "R, nothing beyond it may be lost; auto: the link's rate",
        },
        Parameter {
            name: "round-trip",
            kind: Kind::Span,
            default: Value::Auto,
            range: Some((Span::from_us(1).as_ps(), Span::from_secs(60).as_ps())),
            about: "the RTT between the two edges until it is measured; auto: twice the link's delay",
        },
        Parameter {
            name: "repairs",
            kind: Kind::Count,
            default: Value::Count(3),
            range: Some((0, 14)),
            about: "N_retx, how often a packet is retransmitted",
        },
        Parameter {
            name: "store",
            kind: Kind::Bytes,
            default: Value::Auto,
            range: Some((1_500, 1 << 42)),
            about: "B_clone, bytes of copies; auto: four RTTs of share times rate",
        },
        Parameter {
            name: "hiding",
            kind: Kind::Choice(&["resequence", "resequence-repairable", "snoop", "nothing"]),
            default: Value::Choice(0),
            range: None,
            about: "how hosts are kept from noticing a loss that may be repaired",
        },
        Parameter {
            name: "hold",
            kind: Kind::Span,
            default: Value::Auto,
            range: Some((Span::from_us(1).as_ps(), Span::from_secs(60).as_ps())),
            about: "H_B, how long a hole is hidden; auto: one and a half RTTs and 2 ms",
        },
        Parameter {
            name: "held",
            kind: Kind::Bytes,
            default: Value::Auto,
            range: Some((1_500, 1 << 42)),
            about: "B_reseq, bytes of packets that wait behind holes; auto: one and a half RTTs of rate",
        },
    ],
};
