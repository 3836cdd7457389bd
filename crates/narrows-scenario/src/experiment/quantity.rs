//! What an experiment writes where a quantity belongs: text with a unit, and nothing else.

use std::fmt;
use std::marker::PhantomData;

use narrows_core::units::{Bytes, Packets};
use schemars::json_schema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::units::{self, Dimension, UnitError};

/// Separates the sentence of an error raised inside serde, which carries text only, from its help.
pub(crate) const HELP: &str = "\nhelp: ";

/// A schema that stands where its type is used, without an entry of its own.
macro_rules! inline_schema {
    ($(@[$($generic:tt)*])? $type:ty, $name:expr, |$generator:pat_param| $schema:expr) => {
        impl $(<$($generic)*>)? schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use inline_schema;

fn refused<E: Error>(error: &UnitError) -> E {
    E::custom(format_args!("{error}{HELP}{}", error.help()))
}

/// Text with a unit of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity<D>(pub D);

impl<'de, D: Dimension> Deserialize<'de> for Quantity<D> {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        struct Text<D>(PhantomData<D>);
        impl<D: Dimension> Visitor<'_> for Text<D> {
            type Value = Quantity<D>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} such as \"{}\"", D::WHAT, D::EXAMPLE)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Quantity<D>, E> {
                units::parse(text).map(Quantity).map_err(|error| refused(&error))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity<D>, E> {
                Err(refused(&units::bare::<D>(number)))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity<D>, E> {
                Err(refused(&units::bare::<D>(number)))
            }
        }
        deserializer.deserialize_any(Text(PhantomData))
    }
}

inline_schema!(@[D: Dimension] Quantity<D>, D::WHAT, |_| {
    let units: Vec<_> = D::UNITS.iter().map(|(unit, _)| *unit).collect();
    json_schema!({
        "type": "string",
        "pattern": format!(r"^\s*[0-9]+(\.[0-9]+)?([eE]\+?[0-9]+)?\s*({})\s*$", units.join("|")),
        "examples": [D::EXAMPLE],
    })
});

/// A size counted in packets or in bytes, or for a limit no bound at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many packets.
    Packets(Packets),
    /// So many IP bytes.
    Bytes(Bytes),
    /// `"unlimited"`.
    Unlimited,
}

impl<'de> Deserialize<'de> for Room {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Room;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"300pkt\" or \"64KB\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Room, E> {
                if text == "unlimited" {
                    return Ok(Room::Unlimited);
                }
                match units::parse::<Packets>(text) {
                    Ok(packets) => Ok(Room::Packets(packets)),
                    Err(error) => match units::parse::<Bytes>(text) {
                        Ok(bytes) => Ok(Room::Bytes(bytes)),
                        Err(_) => Err(E::custom(format_args!(
                            "`{}` is neither a number of packets nor a size{HELP}{}",
                            text.chars().take(40).collect::<String>(),
                            if error.help().starts_with("add") {
                                format!("write \"{0}pkt\" or \"{0}B\"", text.trim())
                            } else {
                                "write it like \"300pkt\" or \"64KB\"".to_owned()
                            }
                        ))),
                    },
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Room, E> {
                Err(refused(&units::bare::<Packets>(number)))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Room, E> {
                Err(refused(&units::bare::<Packets>(number)))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

inline_schema!(Room, "packets or bytes", |generator| {
    let (packets, bytes) = (Quantity::<Packets>::json_schema(generator), Quantity::<Bytes>::json_schema(generator));
    json_schema!({ "anyOf": [packets, bytes, { "const": "unlimited" }] })
});

/// A share: `0.2`, `"20%"`. Finite and not negative; the nearest `f64` to what is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(pub f64);

impl Fraction {
    /// In units of 2^−`bits`, rounded to nearest, ties to even.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "finite, not negative, and saturating")]
    pub fn scaled(self, bits: u8) -> u64 {
        libm::rint(libm::ldexp(self.0, i32::from(bits))) as u64
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Fraction;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as 0.2 or \"20%\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Fraction, E> {
                units::parse_fraction(text).map(Fraction).ok_or_else(|| {
                    let text: String = text.chars().take(40).collect();
                    E::custom(format_args!("`{text}` is not a share{HELP}write 0.2 or \"20%\""))
                })
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Fraction, E> {
                #[expect(clippy::cast_precision_loss, reason = "whole shares are 0 and 1")]
                self.visit_f64(number as f64)
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Fraction, E> {
                if number.is_finite() && number >= 0.0 {
                    Ok(Fraction(number))
                } else {
                    Err(E::custom(format_args!("{number} is not a share{HELP}write 0.2 or \"20%\"")))
                }
            }
        }
        deserializer.deserialize_any(Number)
    }
}

inline_schema!(Fraction, "share", |_| json_schema!({ "anyOf": [
        { "type": "number", "minimum": 0 },
        { "type": "string", "pattern": r"^\s*[0-9.]+\s*%?\s*$", "examples": ["20%"] },
    ] }));
