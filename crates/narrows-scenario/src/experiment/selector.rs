//! One text or a list of texts, and values whose shape depends on where they will stand.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::located::Located;

/// Names or globs, `"a1-*"` or `["a1-1", "a2-*"]`; a list counts in its order.
#[derive(Clone, Debug)]
pub struct Selector(pub Vec<Located<String>>);

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Selector;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, a glob such as \"a1-*\", or a list of them")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Selector, E> {
                // The span is filled in by whoever holds the whole value: see `Selector::at`.
                Ok(Selector(vec![Located { value: text.to_owned(), span: 0..0 }]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Selector, A::Error> {
                let mut texts = vec![];
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(Selector(texts))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

impl JsonSchema for Selector {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "selector".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

/// A value that is looked at only where a path puts it.
#[derive(Clone, Copy, Debug)]
pub struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Anything)
    }
}

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "anything".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// One value of a controller's parameter, before its kind is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A real number.
    Real(f64),
    /// Text: a quantity, a choice or `"auto"`.
    Text(String),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl Visitor<'_> for One {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, a number or a text")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Switch(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(value))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Real(value))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }
        }
        deserializer.deserialize_any(One)
    }
}

/// A controller: its name, or a table from its name to parameters.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Its name in the registry.
    pub name: String,
    /// Where the name stands; empty if the whole value is the name.
    pub name_span: std::ops::Range<usize>,
    /// What is said of its parameters.
    pub parameters: Vec<(Located<String>, Located<Scalar>)>,
}

impl<'de> Deserialize<'de> for Controller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Controller;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a controller's name, or a table such as { gemini = { beta = 0.2 } }")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Controller, E> {
                Ok(Controller { name: text.to_owned(), name_span: 0..0, parameters: vec![] })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Controller, A::Error> {
                let Some((name, Parameters(parameters))) = map.next_entry::<Located<String>, Parameters>()? else {
                    return Err(A::Error::custom("a controller is missing"));
                };
                if let Some(second) = map.next_key::<String>()? {
                    return Err(A::Error::custom(format_args!(
                        "two controllers in one place: `{}` and `{second}`{}keep one; several share a run through the \
                         `cc` of each [[traffic]]",
                        name.value,
                        super::quantity::HELP
                    )));
                }
                Ok(Controller { name: name.value, name_span: name.span, parameters })
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

impl JsonSchema for Controller {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "controller".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {
                "type": "object", "additionalProperties": { "type": ["boolean", "number", "string"] } } },
        ] })
    }
}

/// Parameters in the order of the text's keys.
struct Parameters(Vec<(Located<String>, Located<Scalar>)>);

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Parameters;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = vec![];
                while let Some(entry) = map.next_entry()? {
                    parameters.push(entry);
                }
                Ok(Parameters(parameters))
            }
        }
        deserializer.deserialize_map(Table)
    }
}
