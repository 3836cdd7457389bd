//! Components and their parameters as data: name, kind, default, range and meaning stand in one line beside the algorithm.
//! Experiments, errors, the schema, help texts and documentation all read that line.

use alloc::vec::Vec;
use core::fmt;

use crate::queue::aqm::Size;
use crate::units::{Bytes, Packets, Rate, Span};

/// What a parameter is, and so how an experiment writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Count,
    /// A real number, held as an integer scaled by 2^`bits`, rounded to nearest.
    Real {
        /// Binary digits after the point.
        bits: u8,
    },
    /// A length of time: `"5ms"`.
    Span,
    /// A rate: `"1Gbps"`.
    Rate,
    /// A rate, or a share of a host's link: `"1Gbps"`, `"50 %"`.
    LinkRate,
    /// A number of packets: `"50pkt"`.
    Packets,
    /// A number of bytes: `"10MB"`.
    Bytes,
    /// A number of packets or of bytes: `"20pkt"`, `"30KB"`.
    Size,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A list of whole numbers, at least and at most so many; the parameter's range is of each.
    Counts(u8, u8),
}

/// A parameter's value, an integer of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Value {
    /// The component works it out itself; the parameter's text says how.
    Auto,
    /// A default only: an experiment must say it.
    Required,
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Real`], scaled by its `bits`; of [`Kind::LinkRate`], by 16.
    Real(u64),
    /// Of [`Kind::Span`].
    Span(Span),
    /// Of [`Kind::Rate`] or [`Kind::LinkRate`].
    Rate(Rate),
    /// Of [`Kind::Packets`] or [`Kind::Size`].
    Packets(Packets),
    /// Of [`Kind::Bytes`] or [`Kind::Size`].
    Bytes(Bytes),
    /// Of [`Kind::Choice`]: the position of the chosen name.
    Choice(u8),
    /// Of [`Kind::Counts`].
    Counts(Counts),
}

impl Value {
    /// The integer in the kind's own unit; `None` where there is not one.
    pub const fn integer(self) -> Option<u64> {
        Some(match self {
            Value::Auto | Value::Required | Value::Counts(_) => return None,
            Value::Switch(on) => on as u64,
            Value::Count(integer) | Value::Real(integer) => integer,
            Value::Span(span) => span.as_ps(),
            Value::Rate(rate) => rate.as_bps(),
            Value::Packets(packets) => packets.get(),
            Value::Bytes(bytes) => bytes.get(),
            Value::Choice(position) => position as u64,
        })
    }
}

/// A short list of whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Vec<u16>", into = "Vec<u16>")
)]
pub struct Counts {
    length: u8,
    /// Beyond the length: 0.
    numbers: [u16; Counts::MOST],
}

impl Counts {
    /// The longest list.
    pub const MOST: usize = 8;

    /// These numbers; `None` if they are more than [`Counts::MOST`].
    pub fn new(list: &[u16]) -> Option<Counts> {
        let mut numbers = [0; Counts::MOST];
        numbers.get_mut(..list.len())?.copy_from_slice(list);
        Some(Counts { length: u8::try_from(list.len()).ok()?, numbers })
    }

    /// The numbers, in order.
    pub fn list(&self) -> &[u16] {
        &self.numbers[..usize::from(self.length)]
    }
}

impl TryFrom<Vec<u16>> for Counts {
    type Error = &'static str;
    fn try_from(list: Vec<u16>) -> Result<Counts, &'static str> {
        Counts::new(&list).ok_or("a list is too long")
    }
}

impl From<Counts> for Vec<u16> {
    fn from(counts: Counts) -> Vec<u16> {
        counts.list().to_vec()
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list().fmt(f)
    }
}

/// What a component is beside its code: a queue discipline, for instance. Controllers say more, [`crate::cc::Spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// As written in experiments: lower case, stable.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Where it is defined; keys of `docs/references.toml`.
    pub source: &'static str,
    /// What an experiment may set.
    pub parameters: &'static [Parameter],
}

impl Spec {
    /// The default of each parameter, in order.
    pub fn defaults(&self) -> Vec<Value> {
        self.parameters.iter().map(|parameter| parameter.default).collect()
    }
}

/// One parameter of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// As written in experiments: kebab-case.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Value if the experiment says nothing.
    pub default: Value,
    /// Least and greatest value allowed, both included, in the kind's own integer; `None` where any value makes sense.
    pub range: Option<(u64, u64)>,
    /// One sentence: what it does, and where its default comes from.
    pub about: &'static str,
}

/// Declares parameters: name, kind, default, least and greatest value if it has such, and its sentence.
macro_rules! parameters {
    ($($name:literal: $kind:expr, $default:expr $(, ($least:expr, $most:expr))?, $about:literal;)*) => {
        &[$($crate::component::Parameter {
            name: $name,
            kind: $kind,
            default: $default,
            range: [$(Some(($least, $most)),)? None][0],
            about: $about,
        }),*]
    };
}
pub(crate) use parameters;

/// A component's parameters with the values of one experiment, in the same order.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    parameters: &'static [Parameter],
    values: &'a [Value],
}

impl<'a> Settings<'a> {
    /// Pairs parameters with values.
    ///
    /// # Panics
    /// If there is not one value for each parameter: the plan was made from the same list.
    pub fn new(parameters: &'static [Parameter], values: &'a [Value]) -> Settings<'a> {
        assert_eq!(parameters.len(), values.len(), "a plan holds one value for each parameter");
        Settings { parameters, values }
    }

    fn value(&self, name: &str) -> Value {
        let index = self.parameters.iter().position(|parameter| parameter.name == name);
        self.values[index.expect("a component asks only for parameters that its spec names")]
    }

    /// The size called `name`, in packets or in bytes.
    ///
    /// # Panics
    /// If it is none.
    pub fn size(&self, name: &str) -> Size {
        match self.value(name) {
            Value::Packets(packets) => Size::Packets(packets),
            Value::Bytes(bytes) => Size::Bytes(bytes),
            other => panic!("`{name}` is a size, and {other:?} is none"),
        }
    }

    /// The rate or the share called `name`.
    ///
    /// # Panics
    /// If it is neither.
    pub fn link_rate(&self, name: &str) -> Value {
        match self.value(name) {
            value @ (Value::Rate(_) | Value::Real(_)) => value,
            other => panic!("`{name}` is a rate or a share, and {other:?} is neither"),
        }
    }

    /// The chosen name of the choice called `name`.
    ///
    /// # Panics
    /// If the parameter is not a choice.
    pub fn choice(&self, name: &str) -> &'static str {
        let index = self.parameters.iter().position(|parameter| parameter.name == name);
        let index = index.expect("a component asks only for parameters that its spec names");
        match (self.parameters[index].kind, self.values[index]) {
            (Kind::Choice(names), Value::Choice(chosen)) => names[usize::from(chosen)],
            _ => panic!("parameter {name} is not a choice"),
        }
    }
}

macro_rules! answers {
    ($($name:ident, $auto:ident: $variant:ident($type:ty);)*) => {
        /// The value of a parameter, as its experiment or its [`Parameter`] states it.
        ///
        /// # Panics
        /// If the parameter is of another kind, or left to the component.
        impl Settings<'_> {
            $(
                #[doc = concat!("The ", stringify!($name), " called `name`.")]
                pub fn $name(&self, name: &str) -> $type {
                    self.$auto(name).unwrap_or_else(|| panic!("`{name}` has no value of its own"))
                }
                #[doc = concat!("The ", stringify!($name), " called `name`; `None` if it is left to the component.")]
                pub fn $auto(&self, name: &str) -> Option<$type> {
                    match self.value(name) {
                        Value::$variant(value) => Some(value),
                        Value::Auto => None,
                        other => panic!("`{name}` is {other:?}"),
                    }
                }
            )*
        }
    };
}

answers! {
    switch, switch_or_auto: Switch(bool);
    count, count_or_auto: Count(u64);
    real, real_or_auto: Real(u64);
    span, span_or_auto: Span(Span);
    rate, rate_or_auto: Rate(Rate);
    packets, packets_or_auto: Packets(Packets);
    bytes, bytes_or_auto: Bytes(Bytes);
    counts, counts_or_auto: Counts(Counts);
}
