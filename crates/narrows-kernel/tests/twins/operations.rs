//! Random sequences of operations, and the parameters and path they are played on.

use narrows_core::cc::{Cause, Kind, Limit, Parameter, Phase, Spec, Value};
use narrows_core::units::{Bytes, Packets, Rate, Span};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// One run of both twins.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// In the order of the controller's `Spec`.
    pub(crate) values: Vec<Value>,
    pub(crate) packet_bytes: u64,
    pub(crate) initial_window: u64,
    pub(crate) line_rate_bps: u64,
    pub(crate) base_us: u64,
    pub(crate) rto_ns: u64,
    pub(crate) operations: Vec<Operation>,
}

/// What an acknowledgement brings, relative to what was before.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Since the last operation; otherwise exactly one base RTT.
    pub(crate) gap_ns: Option<u64>,
    pub(crate) acked: u64,
    /// Whether the first byte not yet acknowledged moves by what is acked: otherwise it was acknowledged selectively.
    pub(crate) cumulative: bool,
    pub(crate) in_order: bool,
    pub(crate) ece: bool,
    /// Above the base RTT, microseconds; no sample otherwise.
    pub(crate) queued_us: Option<u64>,
    /// The sample's segment, in packets behind the first one not sent.
    pub(crate) behind: u64,
    pub(crate) limited_by: Limit,
    pub(crate) phase: Phase,
    /// Most packets in flight, in quarters of the window.
    pub(crate) used: u64,
}

/// `enum cc_start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Nothing,
    Idle,
    Again,
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Ack(Step),
    Congestion { gap_ns: u64, cause: Cause },
    Timeout { gap_ns: u64, repeated: bool },
    Sent { gap_ns: u64, start: Start },
    Idle { idle_ns: u64 },
    Undo,
    Configure,
}

/// Every magnitude up to `most` is as likely as the next.
fn magnitude(least: u64, most: u64) -> BoxedStrategy<u64> {
    let digits = 64 - most.leading_zeros();
    (0..=digits, any::<u64>())
        .prop_map(move |(digits, random)| {
            let value = if digits == 0 { 0 } else { random >> (64 - digits) };
            value.clamp(least, most)
        })
        .boxed()
}

fn value(parameter: &'static Parameter) -> BoxedStrategy<Value> {
    let (least, most) = parameter.range.unwrap_or((0, 1));
    let any = match parameter.kind {
        Kind::Switch => any::<bool>().prop_map(Value::Switch).boxed(),
        Kind::Count => magnitude(least, most).prop_map(Value::Count).boxed(),
        Kind::Real { .. } => magnitude(least, most).prop_map(Value::Real).boxed(),
        Kind::Span => magnitude(least, most).prop_map(|ps| Value::Span(Span::from_ps(ps))).boxed(),
        Kind::Rate | Kind::LinkRate => magnitude(least, most).prop_map(|bps| Value::Rate(Rate::from_bps(bps))).boxed(),
        Kind::Packets => magnitude(least, most).prop_map(|packets| Value::Packets(Packets::new(packets))).boxed(),
        Kind::Bytes | Kind::Size => magnitude(least, most).prop_map(|bytes| Value::Bytes(Bytes::new(bytes))).boxed(),
        Kind::Choice(names) => {
            let names = u8::try_from(names.len()).expect("few names");
            (0..names).prop_map(Value::Choice).boxed()
        }
        Kind::Counts(..) => unreachable!("no controller has a list"),
    };
    prop_oneof![3 => Just(parameter.default), 1 => any].boxed()
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        8 => Just(Phase::Open),
        1 => Just(Phase::EcnReduction),
        1 => Just(Phase::Recovery),
        1 => Just(Phase::Loss),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let limit = prop_oneof![
        6 => Just(Limit::Window),
        2 => Just(Limit::Pacing),
        // No program hears of a near-source limit yet.
        1 => select(vec![Limit::Receiver, Limit::Application]),
    ];
    let queued = prop_oneof![
        1 => Just(None),
        4 => magnitude(0, 2_000).prop_map(Some),
        2 => magnitude(0, 20_000).prop_map(Some),
    ];
    let gap = prop_oneof![3 => magnitude(0, 20_000_000).prop_map(Some), 1 => Just(None)];
    (
        gap,
        magnitude(0, 200),
        (any::<bool>(), any::<bool>(), proptest::bool::weighted(0.9)),
        queued,
        0..300_u64,
        limit,
        phase(),
        0..8_u64,
    )
        .prop_map(|(gap_ns, acked, (cumulative, ece, in_order), queued_us, behind, limited_by, phase, used)| {
            Step { gap_ns, acked, cumulative, in_order, ece, queued_us, behind, limited_by, phase, used }
        })
}

fn operation() -> impl Strategy<Value = Operation> {
    let gap = || magnitude(0, 50_000_000);
    let cause = select(vec![Cause::Loss, Cause::Ecn]);
    let start = select(vec![Start::Nothing, Start::Idle, Start::Again]);
    prop_oneof![
        30 => step().prop_map(Operation::Ack),
        2 => (gap(), cause).prop_map(|(gap_ns, cause)| Operation::Congestion { gap_ns, cause }),
        1 => (gap(), any::<bool>()).prop_map(|(gap_ns, repeated)| Operation::Timeout { gap_ns, repeated }),
        2 => (gap(), start).prop_map(|(gap_ns, start)| Operation::Sent { gap_ns, start }),
        1 => magnitude(0, 5_000_000_000).prop_map(|idle_ns| Operation::Idle { idle_ns }),
        1 => Just(Operation::Undo),
        1 => Just(Operation::Configure),
    ]
}

/// A case for the controller of `spec`: parameters at their defaults or anywhere in their range.
pub(crate) fn case(spec: &'static Spec) -> impl Strategy<Value = Case> {
    let values: Vec<_> = spec.parameters.iter().map(value).collect();
    (
        values,
        64..=9_000_u64,
        0..200_u64,
        magnitude(1_000, 400_000_000_000),
        magnitude(10, 500_000),
        magnitude(0, 1_000_000_000),
        vec(operation(), 1..120),
    )
        .prop_map(|(values, packet_bytes, initial_window, line_rate_bps, base_us, rto_ns, operations)| Case {
            values,
            packet_bytes,
            initial_window,
            line_rate_bps,
            base_us,
            rto_ns,
            operations,
        })
}
