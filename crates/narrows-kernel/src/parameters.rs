//! Parameters as a program reads them: one 64-bit integer each, in the order of the controller's `Spec`.

use crate::controllers::Controller;
use crate::error::Error;
use narrows_core::cc::{Kind, Parameter, Spec, Value};
use narrows_core::units::{Bytes, Packets, Rate, Span};
use std::fs;
use std::path::Path;

/// What [`Value::Auto`] is to a program.
const AUTO: u64 = u64::MAX;

/// A controller's parameters, each within its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    spec: &'static Spec,
    values: Vec<Value>,
}

impl Settings {
    /// Every parameter at its default.
    pub fn defaults(controller: &Controller) -> Settings {
        let spec = controller.spec;
        let values = spec.parameters.iter().map(|parameter| parameter.default).collect();
        Settings { spec, values }
    }

    /// Changes one parameter.
    ///
    /// # Errors
    /// [`Error::UnknownParameter`], [`Error::WrongKind`], [`Error::OutOfRange`].
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), Error> {
        let Some(index) = self.spec.parameters.iter().position(|parameter| parameter.name == name) else {
            return Err(Error::UnknownParameter {
                controller: self.spec.name,
                name: name.to_owned(),
                known: self.spec.parameters.iter().map(|parameter| parameter.name).collect(),
            });
        };
        check(&self.spec.parameters[index], value)?;
        self.values[index] = value;
        Ok(())
    }

    /// Parameters and their values, in the order of the `Spec`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, Value)> + '_ {
        self.spec.parameters.iter().zip(self.values.iter().copied())
    }

    /// The value of the parameter with this name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.iter().find(|(parameter, _)| parameter.name == name).map(|(_, value)| value)
    }

    /// Whether no lower bound is above its upper one.
    ///
    /// # Errors
    /// [`Error::Disordered`].
    pub fn check(&self) -> Result<(), Error> {
        match self.spec.disorder(&self.values) {
            None => Ok(()),
            Some([(least, low), (most, high)]) => Err(Error::Disordered {
                least: least.name,
                most: most.name,
                low: text(least.kind, encode(low)),
                high: text(most.kind, encode(high)),
            }),
        }
    }

    /// The integers that a program reads. A rate that was left out is the host's line rate, which a program cannot see.
    pub(crate) fn integers(&self) -> Result<Vec<u64>, Error> {
        self.check()?;
        self.iter()
            .map(|(parameter, value)| match (parameter.kind, value) {
                (Kind::Rate, Value::Auto) => {
                    let rate = line_rate().ok_or(Error::NoLineRate { parameter: parameter.name })?;
                    check(parameter, Value::Rate(rate))?;
                    Ok(rate.as_bps())
                }
                _ => Ok(encode(value)),
            })
            .collect()
    }

    /// The inverse, from as many integers as there are parameters.
    pub(crate) fn from_integers(controller: &Controller, integers: &[u64]) -> Settings {
        let mut settings = Settings::defaults(controller);
        for ((parameter, value), integer) in controller.spec.parameters.iter().zip(&mut settings.values).zip(integers) {
            *value = decode(parameter, *integer);
        }
        settings
    }
}

/// The integer that stands for a value, in the unit of its kind: picoseconds, bits per second, packets, bytes, 2^-`bits`,
/// the position of a choice. The greatest integer is [`Value::Auto`].
pub fn encode(value: Value) -> u64 {
    // No controller has a list.
    value.integer().unwrap_or(AUTO)
}

/// The inverse of [`encode`].
fn decode(parameter: &Parameter, integer: u64) -> Value {
    if integer == AUTO && parameter.default == Value::Auto {
        return Value::Auto;
    }
    match parameter.kind {
        Kind::Switch => Value::Switch(integer != 0),
        Kind::Count => Value::Count(integer),
        Kind::Real { .. } => Value::Real(integer),
        Kind::Span => Value::Span(Span::from_ps(integer)),
        Kind::Rate | Kind::LinkRate => Value::Rate(Rate::from_bps(integer)),
        Kind::Packets => Value::Packets(Packets::new(integer)),
        Kind::Bytes | Kind::Size => Value::Bytes(Bytes::new(integer)),
        Kind::Choice(_) => Value::Choice(u8::try_from(integer).unwrap_or(0)),
        Kind::Counts(..) => Value::Auto,
    }
}

fn check(parameter: &Parameter, value: Value) -> Result<(), Error> {
    let takes = match (parameter.kind, value) {
        (_, Value::Auto) if parameter.default == Value::Auto => return Ok(()),
        (Kind::Switch, Value::Switch(_)) => return Ok(()),
        (Kind::Choice(names), Value::Choice(position)) if usize::from(position) < names.len() => return Ok(()),
        (Kind::Count, Value::Count(_))
        | (Kind::Real { .. }, Value::Real(_))
        | (Kind::Span, Value::Span(_))
        | (Kind::Rate, Value::Rate(_))
        | (Kind::Packets, Value::Packets(_))
        | (Kind::Bytes, Value::Bytes(_)) => None,
        (Kind::Switch, _) => Some("true or false"),
        (Kind::Choice(_), _) => Some("one of its names"),
        (Kind::Count, _) => Some("a whole number"),
        (Kind::Counts(..), _) => Some("a list, which the kernel's controllers have no place for"),
        (Kind::Real { .. }, _) => Some("a number"),
        (Kind::Span, _) => Some("a length of time"),
        (Kind::Rate | Kind::LinkRate, _) => Some("a rate"),
        (Kind::Packets, _) => Some("a number of packets"),
        (Kind::Bytes | Kind::Size, _) => Some("a size"),
    };
    if let Some(takes) = takes {
        return Err(Error::WrongKind { parameter: parameter.name, takes });
    }
    let integer = encode(value);
    match parameter.range {
        Some((least, most)) if !(least..=most).contains(&integer) => Err(Error::OutOfRange {
            parameter: parameter.name,
            value: text(parameter.kind, integer),
            least: text(parameter.kind, least),
            most: text(parameter.kind, most),
        }),
        _ => Ok(()),
    }
}

/// A value of this kind as a person reads it.
#[allow(clippy::cast_precision_loss, reason = "for reading")]
fn text(kind: Kind, integer: u64) -> String {
    match kind {
        Kind::Span => Span::from_ps(integer).to_string(),
        Kind::Rate | Kind::LinkRate => Rate::from_bps(integer).to_string(),
        Kind::Packets => Packets::new(integer).to_string(),
        Kind::Bytes | Kind::Size => Bytes::new(integer).to_string(),
        Kind::Real { bits } => (integer as f64 / 2_f64.powi(i32::from(bits))).to_string(),
        Kind::Switch | Kind::Count | Kind::Choice(_) | Kind::Counts(..) => integer.to_string(),
    }
}

/// The rate of the fastest network device that is up and states one.
pub fn line_rate() -> Option<Rate> {
    fs::read_dir("/sys/class/net").ok()?.filter_map(Result::ok).filter_map(|device| device_rate(&device.path())).max()
}

fn device_rate(device: &Path) -> Option<Rate> {
    let read = |name: &str| fs::read_to_string(device.join(name)).ok();
    // A device without a rate states -1, or refuses.
    let mbps: u64 = read("speed")?.trim().parse().ok().filter(|mbps| *mbps > 0)?;
    (read("operstate")?.trim() == "up").then(|| Rate::from_mbps(mbps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::{CONTROLLERS, find};

    fn refusal(name: &str, value: Value) -> String {
        let mut settings = Settings::defaults(find("gemini").expect("it is in the table"));
        settings.set(name, value).expect_err("it is refused").to_string()
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        assert_eq!(refusal("t", Value::Span(Span::from_secs(11))), "t = 11s is out of range: 0s to 10s");
        assert_eq!(refusal("beta", Value::Real(3 << 19)), "beta = 1.5 is out of range: 0 to 1");
        assert_eq!(
            refusal("capacity", Value::Rate(Rate::from_bps(1))),
            "capacity = 1bps is out of range: 1kbps to 400Gbps"
        );
        assert_eq!(refusal("t", Value::Count(3)), "t takes a length of time");
        assert_eq!(refusal("t", Value::Auto), "t takes a length of time");
        assert_eq!(refusal("gate", Value::Choice(2)), "gate takes one of its names");
        assert!(
            refusal("gamma", Value::Count(3)).starts_with("gemini has no parameter `gamma`; it has capacity, k, t,")
        );
        let error = find("cubic").expect_err("it has no twin").to_string();
        assert_eq!(error, "no controller `cubic`; there are dctcp, gemini, newreno, vegas");
    }

    #[test]
    fn integers_carry_every_value_there_and_back() {
        for controller in CONTROLLERS {
            let mut settings = Settings::defaults(controller);
            if controller.spec.name == "gemini" {
                settings.set("capacity", Value::Rate(Rate::from_gbps(10))).expect("within its range");
                settings.set("gate", Value::Choice(1)).expect("it has two");
            }
            let integers = settings.integers().expect("no rate is left out");
            assert_eq!(Settings::from_integers(controller, &integers), settings);
        }
    }

    #[test]
    fn bounds_in_the_wrong_order_are_refused() {
        let mut settings = Settings::defaults(find("gemini").expect("it has a twin"));
        settings.set("capacity", Value::Rate(Rate::from_gbps(10))).expect("within its range");
        settings.set("h-min", Value::Real(5 << 10)).expect("within its range");
        assert!(settings.integers().is_ok());
        settings.set("h-min", Value::Real(6 << 10)).expect("within its range");
        assert_eq!(settings.integers().expect_err("it is above").to_string(), "h-min = 6 is above h-max = 5");
    }

    #[test]
    fn the_kernel_takes_names_of_at_most_15_characters() {
        for controller in CONTROLLERS {
            assert!(controller.registered.len() <= 15);
            assert_eq!(controller.registered, format!("narrows_{}", controller.spec.name));
        }
    }
}
