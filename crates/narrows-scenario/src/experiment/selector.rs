//! One text or a list of texts, and values whose shape depends on where they will stand.

use std::fmt;

use narrows_core::app::program::generate;
use narrows_core::cc::SPECS;
use narrows_core::component::{Kind, Parameter, Value};
use narrows_core::edge;
use narrows_core::link;
use narrows_core::queue::{aqm, congestion_point, scheduler};
use narrows_core::routing;
use narrows_core::transport;
use narrows_core::units::{Bytes, Packets, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::located::Located;
use super::quantity::{Fraction, Quantity, inline_schema};

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

inline_schema!(
    Selector,
    "selector",
    |_| json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
);

/// A value that is looked at only where a path puts it.
#[derive(Clone, Copy, Debug)]
pub struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Anything)
    }
}

inline_schema!(Anything, "anything", |_| json_schema!(true));

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
    /// Several of them.
    List(Vec<Scalar>),
    /// Values of a file's parameters, by name.
    Table(Vec<(Located<String>, Located<Scalar>)>),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, a number, a text or a list of numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scalar, A::Error> {
                let mut all = vec![];
                while let Some(item) = items.next_element::<Scalar>()? {
                    all.push(item);
                }
                Ok(Scalar::List(all))
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

/// Reads a component of this kind: a name, or a table from it to parameters.
fn choice<'de, D: Deserializer<'de>>(deserializer: D, kind: &'static str) -> Result<Controller, D::Error> {
    struct NameOrTable(&'static str);
    impl<'de> Visitor<'de> for NameOrTable {
        type Value = Controller;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}'s name, or a table such as {{ {} }}", self.0, example(self.0))
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Controller, E> {
            Ok(Controller { name: text.to_owned(), name_span: 0..0, parameters: vec![] })
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Controller, A::Error> {
            let Some(name) = map.next_key::<Located<String>>()? else {
                return Err(A::Error::custom(format_args!(
                    "{} is missing{}give its name, or a table such as {{ {} }}; or leave the key out",
                    self.0,
                    super::quantity::HELP,
                    example(self.0)
                )));
            };
            let parameters = if self.0 == CONTROLLER && name.value == FILE {
                map.next_value::<File>()?.0
            } else {
                map.next_value::<Parameters>()?.0
            };
            if let Some(second) = map.next_key::<String>()? {
                let (one, help) = match self.0 {
                    CONTROLLER if name.value == FILE => (
                        "a controller's file and something else",
                        "what belongs to the file stands in a table of its own: \
                         cc = { file = { path = \"mine.bpf.c\", name = \"mine\", parameters = { alpha = 2 } } }",
                    ),
                    CONTROLLER => {
                        ("two controllers", "keep one; several share a run through the `cc` of each [[traffic]]")
                    }
                    _ => ("two components", "keep one"),
                };
                return Err(A::Error::custom(format_args!(
                    "{one} in one place: `{}` and `{second}`{}{help}",
                    name.value,
                    super::quantity::HELP
                )));
            }
            Ok(Controller { name: name.value, name_span: name.span, parameters })
        }
    }
    deserializer.deserialize_any(NameOrTable(kind))
}

const CONTROLLER: &str = "a controller";
const SCHEDULER: &str = "a scheduler";
const ROUTING: &str = "a routing policy";
const REORDERING: &str = "a reordering";

/// A table of such a component, as one may write it.
fn example(kind: &str) -> &'static str {
    match kind {
        CONTROLLER => "gemini = { beta = 0.2 }",
        SCHEDULER => "drr = { weights = [2, 1] }",
        ROUTING => "flowlet = { gap = \"50us\" }",
        REORDERING => "late = { share = 0.01, delay = \"2ms\" }",
        "a congestion point" => "qcn = {}",
        "an edge function" => "dcib = {}",
        "a transport" => "rdma = {}",
        _ => "threshold = { mark-at = \"20pkt\" }",
    }
}

/// In the place of a controller's name: a file in C or Python, `{ file = "mine.bpf.c" }` or `{ file = { path = …, name = … } }`.
pub(crate) const FILE: &str = "file";

/// Of a file: values of its controller's parameters, by name.
pub(crate) const PARAMETERS: &str = "parameters";

/// What [`FILE`] is: a path, or a table.
struct File(Vec<(Located<String>, Located<Scalar>)>);

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathOrTable;
        impl<'de> Visitor<'de> for PathOrTable {
            type Value = File;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "the path of a controller in C or Python, or a table such as { path = \"mine.bpf.c\", name = \"mine\" }",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<File, E> {
                let key = Located { value: "path".to_owned(), span: 0..0 };
                Ok(File(vec![(key, Located { value: Scalar::Text(text.to_owned()), span: 0..0 })]))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut entries = vec![];
                while let Some(key) = map.next_key::<Located<String>>()? {
                    let value = if key.value == PARAMETERS {
                        let Located { value: Parameters(values), span } = map.next_value::<Located<Parameters>>()?;
                        Located { value: Scalar::Table(values), span }
                    } else {
                        map.next_value()?
                    };
                    entries.push((key, value));
                }
                Ok(File(entries))
            }
        }
        deserializer.deserialize_any(PathOrTable)
    }
}

impl<'de> Deserialize<'de> for Controller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        choice(deserializer, CONTROLLER)
    }
}

macro_rules! chosen {
    ($($(#[$doc:meta])* $name:ident $kind:literal $($none:literal = $none_is:literal)? $specs:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(pub Controller);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                choice(deserializer, $kind).map($name)
            }
        }

        inline_schema!($name, $kind, |generator| {
            let none = [$(json_schema!({ "const": $none, "description": $none_is }))?];
            choices(none, $specs.iter().map(|spec| (spec.name, spec.about, spec.parameters)), generator)
        });
    )*};
}

chosen! {
    /// An AQM: its name, or a table from its name to parameters.
    Aqm "an AQM" "none" = "Tail drop." aqm::SPECS;
    /// Whose packet leaves a port next: its name, or a table from its name to parameters.
    Scheduler "a scheduler" "fifo" = "One queue: first in, first out." scheduler::SPECS;
    /// What samples a port's queue and tells the senders, if they listen: see `near-source` of a host.
    CongestionPoint "a congestion point" "none" = "Nothing." congestion_point::SPECS;
    /// What the routers at both ends of a link do together.
    EdgePair "an edge function" "none" = "Nothing." edge::SPECS;
    /// What delays some packets on a wire, so that others overtake them.
    Reordering "a reordering" "none" = "Packets keep their order." link::REORDERINGS;
    /// How switches choose among equally short paths: its name, or a table from its name to parameters.
    Routing "a routing policy" "ecmp" = "Each flow keeps the path that its hash selects." routing::SPECS;
    /// What writes a program: its name, or a table from its name to parameters.
    Program "a program" generate::SPECS;
}

/// What loses packets on a wire: a share of them, or a function, by its name or as a table from it to parameters.
#[derive(Clone, Debug)]
pub enum Loss {
    /// This share, independently.
    Share(Fraction),
    /// By a function.
    Function(Controller),
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShareOrFunction;
        impl<'de> Visitor<'de> for ShareOrFunction {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as 0.001, or a table such as { gilbert-elliott = { p = 0.001, r = 0.2 } }")
            }
            fn visit_i64<E: Error>(self, share: i64) -> Result<Loss, E> {
                Fraction::deserialize(share.into_deserializer()).map(Loss::Share)
            }
            fn visit_f64<E: Error>(self, share: f64) -> Result<Loss, E> {
                Fraction::deserialize(share.into_deserializer()).map(Loss::Share)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Loss, E> {
                if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
                    return choice(text.into_deserializer(), LOSS).map(Loss::Function);
                }
                Fraction::deserialize(text.into_deserializer()).map(Loss::Share)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                choice(serde::de::value::MapAccessDeserializer::new(map), LOSS).map(Loss::Function)
            }
        }
        deserializer.deserialize_any(ShareOrFunction)
    }
}

const LOSS: &str = "a loss function";

inline_schema!(Loss, "loss", |generator| {
    let others = [Fraction::json_schema(generator), json_schema!({ "const": "none", "description": "No losses." })];
    choices(others, link::LOSSES.iter().map(|spec| (spec.name, spec.about, spec.parameters)), generator)
});

/// One of these components: by its name where nothing must be said of it, or a table from its name to parameters.
fn choices(
    others: impl IntoIterator<Item = Schema>,
    components: impl IntoIterator<Item = (&'static str, &'static str, &'static [Parameter])>,
    generator: &mut SchemaGenerator,
) -> Schema {
    let mut any: Vec<Schema> = others.into_iter().collect();
    for (name, about, parameters) in components {
        let of = |parameter: &Parameter| {
            let mut schema = kind_schema(parameter, generator);
            schema.insert("description".to_owned(), parameter.about.into());
            (parameter.name.to_owned(), schema.to_value())
        };
        let properties: serde_json::Map<String, serde_json::Value> = parameters.iter().map(of).collect();
        let required: Vec<&str> =
            parameters.iter().filter(|it| it.default == Value::Required).map(|it| it.name).collect();
        if required.is_empty() {
            any.push(json_schema!({ "const": name, "description": about }));
        }
        any.push(json_schema!({
            "type": "object", "additionalProperties": false, "required": [name], "description": about,
            "properties": { name: {
                "type": "object", "additionalProperties": false, "required": required, "properties": properties,
            } },
        }));
    }
    json_schema!({ "anyOf": any })
}

fn kind_schema(parameter: &Parameter, generator: &mut SchemaGenerator) -> Schema {
    let quantity = match parameter.kind {
        Kind::Switch => json_schema!({ "type": "boolean" }),
        Kind::Count => {
            let (least, most) = parameter.range.unwrap_or((0, u64::MAX));
            json_schema!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Real { .. } => Fraction::json_schema(generator),
        Kind::Span => Quantity::<Span>::json_schema(generator),
        Kind::Rate => Quantity::<Rate>::json_schema(generator),
        Kind::LinkRate => {
            let rate = Quantity::<Rate>::json_schema(generator);
            let share =
                json_schema!({ "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$", "examples": ["50 %"] });
            json_schema!({ "anyOf": [rate, share] })
        }
        Kind::Packets => Quantity::<Packets>::json_schema(generator),
        Kind::Bytes => Quantity::<Bytes>::json_schema(generator),
        Kind::Size => {
            let sizes = (Quantity::<Packets>::json_schema(generator), Quantity::<Bytes>::json_schema(generator));
            json_schema!({ "anyOf": [sizes.0, sizes.1] })
        }
        Kind::Choice(names) => json_schema!({ "enum": names }),
        Kind::Counts(shortest, longest) => {
            let (least, most) = parameter.range.unwrap_or((0, u16::MAX.into()));
            json_schema!({
                "type": "array", "minItems": shortest, "maxItems": longest,
                "items": { "type": "integer", "minimum": least, "maximum": most },
            })
        }
    };
    match parameter.default {
        Value::Auto => json_schema!({ "anyOf": [quantity, { "const": "auto" }] }),
        _ => quantity,
    }
}

inline_schema!(Controller, "controller", |generator| choices(
    [json_schema!({
        "type": "object", "additionalProperties": false, "required": [FILE],
        "description": "A controller in C (a BPF program with a struct tcp_congestion_ops, or a module of Linux), or in Python.",
        "properties": { FILE: { "anyOf": [
            { "type": "string", "examples": ["mine.bpf.c"] },
            {
                "type": "object", "additionalProperties": false, "required": ["path"],
                "properties": {
                    "path": { "type": "string" },
                    "name": { "type": "string" },
                    PARAMETERS: {
                        "type": "object",
                        "additionalProperties": { "type": ["boolean", "number", "string"] },
                        "description": "Values of its parameters: of a module, of BPF's global `const volatile` numbers, of \
                                        NARROWS_PARAMETER in plain C, of attributes of a class in Python.",
                    },
                },
            },
        ] } },
    })],
    SPECS.iter().map(|spec| (spec.name, spec.about, spec.parameters)),
    generator
));

/// What a traffic's flows run over: a transport's name, or a table from its name to parameters.
#[derive(Clone, Debug)]
pub struct Transport(pub Controller);

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        choice(deserializer, "a transport").map(Transport)
    }
}

inline_schema!(Transport, "a transport", |generator| choices(
    [],
    transport::SPECS.iter().map(|spec| (spec.name, spec.about, spec.parameters)),
    generator
));

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
