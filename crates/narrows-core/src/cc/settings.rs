//! A controller's parameters as data: name, kind, default, range and meaning stand in one line beside the algorithm.
//! Experiments, help texts and documentation all read that line.

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
    /// A number of packets: `"50pkt"`.
    Packets,
    /// A number of bytes: `"10MB"`.
    Bytes,
    /// One of these names.
    Choice(&'static [&'static str]),
}

/// A parameter's value, an integer of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Value {
    /// The controller works it out itself; the parameter's text says how.
    Auto,
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Real`], scaled by its `bits`.
    Real(u64),
    /// Of [`Kind::Span`].
    Span(Span),
    /// Of [`Kind::Rate`].
    Rate(Rate),
    /// Of [`Kind::Packets`].
    Packets(Packets),
    /// Of [`Kind::Bytes`].
    Bytes(Bytes),
    /// Of [`Kind::Choice`]: the position of the chosen name.
    Choice(u8),
}

/// One parameter of a controller.
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

/// A controller's parameters with the values of one experiment, in the same order.
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
        self.values[index.expect("a controller asks only for parameters that its spec names")]
    }

    /// The switch called `name`.
    pub fn switch(&self, name: &str) -> bool {
        matches!(self.value(name), Value::Switch(true))
    }
    /// The count called `name`; `None` if it is left to the controller.
    pub fn count(&self, name: &str) -> Option<u64> {
        if let Value::Count(count) = self.value(name) { Some(count) } else { None }
    }
    /// The scaled real number called `name`; `None` if it is left to the controller.
    pub fn real(&self, name: &str) -> Option<u64> {
        if let Value::Real(real) = self.value(name) { Some(real) } else { None }
    }
    /// The span called `name`; `None` if it is left to the controller.
    pub fn span(&self, name: &str) -> Option<Span> {
        if let Value::Span(span) = self.value(name) { Some(span) } else { None }
    }
    /// The rate called `name`; `None` if it is left to the controller.
    pub fn rate(&self, name: &str) -> Option<Rate> {
        if let Value::Rate(rate) = self.value(name) { Some(rate) } else { None }
    }
    /// The number of packets called `name`; `None` if it is left to the controller.
    pub fn packets(&self, name: &str) -> Option<Packets> {
        if let Value::Packets(packets) = self.value(name) { Some(packets) } else { None }
    }
    /// The number of bytes called `name`; `None` if it is left to the controller.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        if let Value::Bytes(bytes) = self.value(name) { Some(bytes) } else { None }
    }
    /// The chosen name of the choice called `name`.
    ///
    /// # Panics
    /// If the parameter is not a choice.
    pub fn choice(&self, name: &str) -> &'static str {
        let index = self.parameters.iter().position(|parameter| parameter.name == name);
        let index = index.expect("a controller asks only for parameters that its spec names");
        match (self.parameters[index].kind, self.values[index]) {
            (Kind::Choice(names), Value::Choice(chosen)) => names[usize::from(chosen)],
            _ => panic!("parameter {name} is not a choice"),
        }
    }
}
