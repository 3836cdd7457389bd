//! Parameters.
use narrows_core::cc::Value;
/// The integer.
pub fn encode(value: Value) -> u64 {
    match value {
        Value::Auto => u64::MAX,
        Value::Switch(on) => u64::from(on),
        Value::Count(integer) | Value::Real(integer) => integer,
        Value::Span(span) => span.as_ps(),
        Value::Rate(rate) => rate.as_bps(),
        Value::Packets(packets) => packets.get(),
        Value::Choice(position) => u64::from(position),
    }
}
