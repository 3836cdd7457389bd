//! A component as written becomes one value for each of its parameters.

use std::ops::Range;
use std::path::Path;

use narrows_core::cc::{EcnUse, Settings, Spec};
use narrows_core::cc::{Kind, Parameter, Value};
use narrows_core::component::{self, Counts};
use narrows_core::queue::{AqmConfig, SchedulerConfig, aqm, scheduler};
use narrows_core::routing;
use narrows_core::units::{Bytes, Packets, Rate, Span};

use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::quantity::Fraction;
use crate::experiment::selector::{Aqm, Controller, FILE, PARAMETERS, Scalar, Scheduler};
use crate::files;
use crate::units;
use narrows_plan::{ControllerChoice, FunctionConfig, Program, RoutingConfig};

/// The choice, with the defaults of the hosts' profile, and the spec's; `folder` is the experiment's.
pub(crate) fn resolve(
    written: &Located<Controller>,
    ecn: Option<&Located<bool>>,
    of_profile: &[(&str, &str, Value)],
    specs: &'static [&'static Spec],
    folder: Option<&Path>,
) -> Judged<ControllerChoice> {
    if written.name == FILE {
        return in_file(written, ecn, specs, folder);
    }
    let Some(spec) = specs.iter().find(|spec| spec.name == written.name) else {
        let span = if written.name_span.is_empty() { &written.span } else { &written.name_span };
        let known = specs.iter().map(|spec| spec.name);
        return Err(Problem::unknown_name("controller", &written.name, known).at(span));
    };
    let mut values = values(spec.name, spec.parameters, written, &written.span)?;
    for (_, name, value) in of_profile.iter().filter(|(controller, ..)| *controller == spec.name) {
        let said = written.parameters.iter().any(|(said, _)| said.value == *name);
        if let (false, Some(place)) = (said, spec.parameters.iter().position(|parameter| parameter.name == *name)) {
            values[place] = *value;
        }
    }
    if let Some([(least, low), (most, high)]) = spec.disorder(&values) {
        let (low, high) = (describe_value(least, low), describe_value(most, high));
        let sentence = format!("`{}` of `{}` is {low}, above `{}`, {high}", least.name, spec.name, most.name);
        let help = format!("make `{}` smaller or `{}` larger", least.name, most.name);
        let said = written.parameters.iter().find(|(name, _)| [least.name, most.name].contains(&&*name.value));
        return Err(Problem::new(sentence, help).at(said.map_or(&written.span, |(_, value)| &value.span)));
    }
    let ecn = use_of_ecn(spec, ecn)?;
    Ok(ControllerChoice { name: spec.name.to_owned(), values, ecn, program: None })
}

fn use_of_ecn(spec: &Spec, wanted: Option<&Located<bool>>) -> Judged<bool> {
    match (spec.ecn, wanted) {
        (EcnUse::Exact | EcnUse::L4s, Some(denied)) if !denied.value => {
            let sentence = format!("`{}` cannot run without ECN", spec.name);
            Err(Problem::new(sentence, "take `ecn = false` away").at(&denied.span))
        }
        (EcnUse::Exact | EcnUse::L4s, _) => Ok(true),
        (EcnUse::Optional, wanted) => Ok(wanted.is_some_and(|wanted| wanted.value)),
    }
}

/// A controller in C or Python, which is loaded to see whether it can be.
fn in_file(
    written: &Located<Controller>,
    ecn: Option<&Located<bool>>,
    specs: &'static [&'static Spec],
    folder: Option<&Path>,
) -> Judged<ControllerChoice> {
    let text = |key: &str| {
        let found = written.parameters.iter().find(|(name, _)| name.value == key);
        found.and_then(|(_, value)| match &value.value {
            Scalar::Text(text) => Some(Located { value: text.clone(), span: value.span.clone() }),
            _ => None,
        })
    };
    const KEYS: [&str; 3] = ["path", "name", PARAMETERS];
    if let Some((stray, _)) = written.parameters.iter().find(|(name, _)| !KEYS.contains(&&*name.value)) {
        return Err(Problem::unknown_name("key", stray, KEYS).at(&stray.span));
    }
    let Some(path) = text("path") else {
        let help = "write cc = { file = \"mine.bpf.c\" }, or { file = { path = \"mine.bpf.c\", name = \"mine\" } }";
        return Err(Problem::new("`file` is the path of a controller in C or Python", help).at(&written.span));
    };
    let chosen = text("name").map(|name| name.value);
    let file = Path::new(&path.value).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let beside = |name: &str| {
        let other = Path::new(&path.value).with_file_name(name).to_string_lossy().into_owned();
        files::beside(folder, &Located { value: other, span: path.span.clone() }).ok()
    };
    let mut source = narrows_c::Source::gather(file, files::beside(folder, &path)?, beside);
    let given = written.parameters.iter().find(|(key, _)| key.value == PARAMETERS);
    let given = given.map_or(&[][..], |(_, value)| match &value.value {
        Scalar::Table(values) => values,
        _ => &[],
    });
    source.parameters = given.iter().map(of_file).collect::<Judged<_>>()?;
    let spec = narrows_c::inspect(&source, chosen.as_deref()).map_err(|error| {
        let about = match &error {
            narrows_c::Error::NoParameter { name, .. } | narrows_c::Error::NoValue { name, .. } => Some(name),
            _ => None,
        };
        let place = about.and_then(|about| given.iter().find(|(name, _)| name.value == *about));
        Problem::new(error.to_string(), error.help()).at(place.map_or(&path.span, |(name, _)| &name.span))
    })?;
    let narrows_c::Source { name: file, text, others, parameters } = source;
    let name = if specs.iter().any(|own| own.name == spec.name) { file.clone() } else { spec.name.to_owned() };
    let (controller, needs_telemetry) = (spec.name.to_owned(), spec.needs_telemetry);
    let program = Program { file, controller, text, others, parameters, needs_telemetry };
    let ecn = use_of_ecn(spec, ecn)?;
    Ok(ControllerChoice { name, values: vec![], ecn, program: Some(program) })
}

/// A parameter of a file's controller, of whose type only the file knows: its name, and its value as text.
fn of_file((name, value): &(Located<String>, Located<Scalar>)) -> Judged<(String, String)> {
    let text = match &value.value {
        Scalar::Switch(on) => on.to_string(),
        Scalar::Whole(whole) => whole.to_string(),
        Scalar::Real(real) => real.to_string(),
        Scalar::Text(text) => text.clone(),
        Scalar::List(_) | Scalar::Table(_) => {
            let sentence = format!("`{}` is a list", name.value);
            return Err(Problem::new(sentence, "a file's parameter is true, false, a number or a text").at(&value.span));
        }
    };
    Ok((name.value.clone(), text))
}

/// What is written of an AQM: `"none"` is none.
pub(crate) fn aqm(written: &Located<Aqm>) -> Judged<Option<AqmConfig>> {
    let found = chosen("AQM", aqm::SPECS, NONE, &written.value.0, &written.span)?;
    let Some((spec, values)) = found else { return Ok(None) };
    let config = AqmConfig::new(spec.name, &Settings::new(spec.parameters, &values)).expect("it is in the registry");
    let problem = |sentence: &str| Problem::malformed(sentence).at(&written.span);
    config.map(Some).map_err(problem)
}

/// What is written of a scheduler: `"fifo"` is none.
pub(crate) fn scheduler(written: &Located<Scheduler>) -> Judged<Option<SchedulerConfig>> {
    let found = chosen("scheduler", scheduler::SPECS, "fifo", &written.value.0, &written.span)?;
    let Some((spec, values)) = found else { return Ok(None) };
    let settings = Settings::new(spec.parameters, &values);
    let config = SchedulerConfig::new(spec.name, &settings).expect("it is in the registry");
    config.map(Some).map_err(|sentence| Problem::malformed(sentence).at(&written.span))
}

/// What is written of a link function of one of these kinds: `"none"` is none.
pub(crate) fn link_function(
    what: &'static str,
    specs: &'static [component::Spec],
    written: &Controller,
    span: &Range<usize>,
) -> Judged<Option<FunctionConfig>> {
    let Some((spec, values)) = chosen(what, specs, NONE, written, span)? else { return Ok(None) };
    let config = FunctionConfig::new(spec.name, &Settings::new(spec.parameters, &values));
    config.expect("it is in the registry").map(Some).map_err(|sentence| Problem::malformed(sentence).at(span))
}

/// What is written of a routing policy: [`ECMP`] is none.
pub(crate) fn routing_policy(written: &Controller, span: &Range<usize>) -> Judged<Option<RoutingConfig>> {
    let Some((spec, values)) = chosen("routing policy", routing::SPECS, ECMP, written, span)? else { return Ok(None) };
    let config = RoutingConfig::new(spec.name, &Settings::new(spec.parameters, &values));
    config.expect("it is in the registry").map(Some).map_err(|sentence| Problem::malformed(sentence).at(span))
}

/// In the place of a routing policy's name: a flow's hash selects its path.
pub(crate) const ECMP: &str = routing::ECMP.name;

/// In the place of most components' names: none.
pub(crate) const NONE: &str = "none";

/// The component that is written and a value for each of its parameters; `none` is none, and has no parameters.
pub(crate) fn chosen(
    what: &'static str,
    specs: &'static [component::Spec],
    none: &str,
    written: &Controller,
    span: &Range<usize>,
) -> Judged<Option<(&'static component::Spec, Vec<Value>)>> {
    if written.name != none {
        return component(what, specs, &[none], written, span).map(Some);
    }
    let Some((name, _)) = written.parameters.first() else { return Ok(None) };
    let sentence = format!("`{none}` has no parameter `{}`", name.value);
    Err(Problem::new(sentence, format!("write \"{none}\" alone")).at(&name.span))
}

/// The component that is written and a value for each of its parameters; `others` may be written in its place.
pub(crate) fn component(
    what: &'static str,
    specs: &'static [component::Spec],
    others: &[&str],
    written: &Controller,
    span: &Range<usize>,
) -> Judged<(&'static component::Spec, Vec<Value>)> {
    let Some(spec) = specs.iter().find(|spec| spec.name == written.name) else {
        let known = others.iter().copied().chain(specs.iter().map(|spec| spec.name));
        let span = if written.name_span.is_empty() { span } else { &written.name_span };
        return Err(Problem::unknown_name(what, &written.name, known).at(span));
    };
    Ok((spec, values(spec.name, spec.parameters, written, span)?))
}

/// One value for each parameter: what is written, or the default.
pub(crate) fn values(
    of: &'static str,
    parameters: &'static [Parameter],
    written: &Controller,
    span: &Range<usize>,
) -> Judged<Vec<Value>> {
    let mut values: Vec<Value> = parameters.iter().map(|parameter| parameter.default).collect();
    for (name, scalar) in &written.parameters {
        let Some(index) = parameters.iter().position(|parameter| parameter.name == name.value) else {
            let known = parameters.iter().map(|parameter| parameter.name);
            return Err(Problem::unknown_name("parameter", name, known).at(&name.span));
        };
        values[index] = value(of, &parameters[index], scalar)?;
    }
    match parameters.iter().zip(&values).find(|(_, value)| **value == Value::Required) {
        Some((parameter, _)) => {
            let sentence = format!("`{}` of `{of}` is missing", parameter.name);
            let help = format!("add `{}`, {}", parameter.name, describe(parameter.kind));
            Err(Problem::new(sentence, help).at(span))
        }
        None => Ok(values),
    }
}

/// One parameter as a command line writes it, without quotes: `1Gbps`, `0.2`, `true`, `seq`, `auto`. Judged as in an
/// experiment.
///
/// # Errors
/// If there is no such parameter, or this is none of its values.
pub fn parameter_value(spec: &'static Spec, name: &str, text: &str) -> Result<Value, Problem> {
    component_value(spec.name, spec.parameters, name, text)
}

/// The same, of any component with these parameters, called `of`.
///
/// # Errors
/// If there is no such parameter, or this is none of its values.
pub fn component_value(
    of: &'static str,
    parameters: &'static [Parameter],
    name: &str,
    text: &str,
) -> Result<Value, Problem> {
    let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
        let known = parameters.iter().map(|parameter| parameter.name);
        return Err(Problem::unknown_name("parameter", name, known));
    };
    let scalar = match (text.parse(), text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(on), _, _) => Scalar::Switch(on),
        (_, Ok(whole), _) => Scalar::Whole(whole),
        (_, _, Ok(real)) if real.is_finite() => Scalar::Real(real),
        _ => Scalar::Text(text.to_owned()),
    };
    value(of, parameter, &Located { value: scalar, span: 0..0 }).map_err(|fault| fault.problem)
}

/// A value of the parameter's kind, and within its range.
fn value(of: &'static str, parameter: &'static Parameter, written: &Located<Scalar>) -> Judged<Value> {
    let wrong = || Problem::wrong_kind(of, parameter.name, &describe(parameter.kind)).at(&written.span);
    let quantity = |error: units::UnitError| Problem::new(error.to_string(), error.help()).at(&written.span);
    if written.value == Scalar::Text("auto".to_owned()) && parameter.default == Value::Auto {
        return Ok(Value::Auto);
    }
    let default = match parameter.default {
        Value::Span(span) => span.as_ps(),
        Value::Rate(rate) => rate.as_bps(),
        _ => 0,
    };
    let (value, integer) = match (parameter.kind, &written.value) {
        (Kind::Switch, Scalar::Switch(on)) => return Ok(Value::Switch(*on)),
        (Kind::Count, Scalar::Whole(count)) => {
            let count = u64::try_from(*count).map_err(|_| out_of_range(of, parameter, written, count.to_string()))?;
            (Value::Count(count), count)
        }
        (Kind::Real { bits }, Scalar::Whole(_) | Scalar::Real(_)) => {
            #[expect(clippy::cast_precision_loss, reason = "a parameter written as a whole number is small")]
            let real = match written.value {
                Scalar::Whole(whole) => whole as f64,
                Scalar::Real(real) => real,
                _ => unreachable!("matched above"),
            };
            if !real.is_finite() || real < 0.0 {
                return Err(out_of_range(of, parameter, written, real.to_string()));
            }
            let scaled = Fraction(real).scaled(bits);
            (Value::Real(scaled), scaled)
        }
        (Kind::Real { bits }, Scalar::Text(text)) if units::parse_fraction(text).is_some() => {
            let scaled = units::parse_fraction(text).map_or(0, |real| Fraction(real).scaled(bits));
            (Value::Real(scaled), scaled)
        }
        (Kind::Size, Scalar::Text(text)) => match (units::parse::<Packets>(text), units::parse::<Bytes>(text)) {
            (Ok(packets), _) => (Value::Packets(packets), packets.get()),
            (_, Ok(bytes)) => (Value::Bytes(bytes), bytes.get()),
            (Err(error), _) => return Err(quantity(error)),
        },
        (Kind::Size, Scalar::Whole(number)) => return Err(quantity(units::bare::<Packets>(number))),
        (Kind::Span, Scalar::Text(text)) => {
            let span = units::parse::<Span>(text).map_err(quantity)?;
            (Value::Span(span), span.as_ps())
        }
        (Kind::Span, Scalar::Whole(number)) => return Err(quantity(units::bare::<Span>(number).near(default))),
        (Kind::Span, Scalar::Real(number)) => return Err(quantity(units::bare::<Span>(number).near(default))),
        (Kind::Rate, Scalar::Text(text)) => {
            let rate = units::parse::<Rate>(text).map_err(quantity)?;
            (Value::Rate(rate), rate.as_bps())
        }
        (Kind::Rate, Scalar::Whole(number)) => return Err(quantity(units::bare::<Rate>(number).near(default))),
        (Kind::LinkRate, Scalar::Text(text)) => match (units::parse::<Rate>(text), units::parse_fraction(text)) {
            (Ok(rate), _) if rate.as_bps() > 0 => return Ok(Value::Rate(rate)),
            (_, Some(share)) if text.contains('%') => match Fraction(share).scaled(16) {
                scaled @ 1..=0x1_0000 => return Ok(Value::Real(scaled)),
                _ => return Err(Problem::out_of_range(parameter.name, text, "0.01 %", "100 %").at(&written.span)),
            },
            (Ok(_), _) => return Err(Problem::zero("the rate of a flow").at(&written.span)),
            (Err(error), _) => return Err(quantity(error)),
        },
        (Kind::LinkRate, Scalar::Whole(number)) => return Err(quantity(units::bare::<Rate>(number))),
        (Kind::LinkRate, Scalar::Real(number)) => return Err(quantity(units::bare::<Rate>(number))),
        (Kind::Packets, Scalar::Text(text)) => {
            let packets = units::parse::<Packets>(text).map_err(quantity)?;
            (Value::Packets(packets), packets.get())
        }
        (Kind::Packets, Scalar::Whole(number)) => return Err(quantity(units::bare::<Packets>(number))),
        (Kind::Bytes, Scalar::Text(text)) => {
            let bytes = units::parse::<Bytes>(text).map_err(quantity)?;
            (Value::Bytes(bytes), bytes.get())
        }
        (Kind::Bytes, Scalar::Whole(number)) => return Err(quantity(units::bare::<Bytes>(number))),
        (Kind::Choice(names), Scalar::Text(text)) => {
            let Some(chosen) = names.iter().position(|name| name == text) else {
                return Err(Problem::unknown_name("choice", text, names).at(&written.span));
            };
            return Ok(Value::Choice(u8::try_from(chosen).expect("a choice has few names")));
        }
        (Kind::Counts(shortest, longest), Scalar::List(numbers)) => {
            let length = numbers.len();
            if !(usize::from(shortest)..=usize::from(longest)).contains(&length) {
                let what = format!("the number of `{}`", parameter.name);
                return Err(Problem::out_of_range(what, length, shortest, longest).at(&written.span));
            }
            let (least, most) = parameter.range.unwrap_or((0, u16::MAX.into()));
            let judged = numbers.iter().map(|number| {
                let Scalar::Whole(number) = *number else { return Err(wrong()) };
                let count = u16::try_from(number).ok().filter(|&count| (least..=most).contains(&count.into()));
                count.ok_or_else(|| out_of_range(of, parameter, written, number.to_string()))
            });
            let judged: Vec<u16> = judged.collect::<Result<_, _>>()?;
            return Ok(Value::Counts(Counts::new(&judged).expect("its kind allows a short list")));
        }
        _ => return Err(wrong()),
    };
    match parameter.range {
        Some((least, most)) if !(least..=most).contains(&integer) => {
            let shown = match &written.value {
                Scalar::Text(text) => text.clone(),
                Scalar::Whole(number) => number.to_string(),
                Scalar::Real(number) => number.to_string(),
                Scalar::Switch(_) | Scalar::List(_) | Scalar::Table(_) => {
                    unreachable!("a switch has no range, and of a list each number was judged")
                }
            };
            Err(out_of_range(of, parameter, written, shown))
        }
        _ => Ok(value),
    }
}

fn out_of_range(of: &str, parameter: &Parameter, written: &Located<Scalar>, value: String) -> Box<crate::error::Fault> {
    let (least, most) = parameter.range.unwrap_or((0, u64::MAX));
    let of_list = if matches!(written.value, Scalar::List(_)) { "one of " } else { "" };
    let what = format!("{of_list}`{}` of `{of}`", parameter.name);
    let (least, most) = (shown(parameter.kind, least), shown(parameter.kind, most));
    Problem::out_of_range(what, value, least, most).at(&written.span)
}

/// The shortest decimal that stands for `scaled` / 2^`bits`: what an experiment wrote, not what scaling made of it.
pub fn real_text(scaled: u64, bits: u8) -> String {
    #[expect(clippy::cast_precision_loss, reason = "parameters stay below 2^53")]
    let value = libm::ldexp(scaled as f64, -i32::from(bits));
    let short = (0..17)
        .filter_map(|digits| format!("{value:.digits$e}").parse::<f64>().ok())
        .find(|short| Fraction(*short).scaled(bits) == scaled)
        .unwrap_or(value);
    if short != 0.0 && short < 1e-4 { format!("{short:e}") } else { short.to_string() }
}

/// An integer of a kind, as one writes it.
pub fn shown(kind: Kind, integer: u64) -> String {
    match kind {
        Kind::Real { bits } => real_text(integer, bits),
        Kind::Span => Span::from_ps(integer).to_string(),
        Kind::Rate | Kind::LinkRate => Rate::from_bps(integer).to_string(),
        Kind::Packets | Kind::Size => Packets::new(integer).to_string(),
        Kind::Bytes => Bytes::new(integer).to_string(),
        Kind::Switch | Kind::Count | Kind::Choice(_) | Kind::Counts(..) => integer.to_string(),
    }
}

/// A value as one writes it, for disclosures and labels.
pub fn describe_value(parameter: &Parameter, value: Value) -> String {
    match value {
        Value::Auto => "auto".to_owned(),
        Value::Required => "required".to_owned(),
        Value::Switch(on) => on.to_string(),
        Value::Real(share) if parameter.kind == Kind::LinkRate => real_text(share, 16),
        Value::Count(integer) | Value::Real(integer) => shown(parameter.kind, integer),
        Value::Span(span) => span.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Packets(packets) => packets.to_string(),
        Value::Bytes(bytes) => bytes.to_string(),
        Value::Choice(chosen) => match parameter.kind {
            Kind::Choice(names) => names.get(usize::from(chosen)).copied().unwrap_or("?").to_owned(),
            _ => chosen.to_string(),
        },
        Value::Counts(counts) => format!("{counts:?}"),
    }
}

/// A controller's parameters, name and value, as one writes them; none of a controller that is not of these.
pub fn described(choice: &ControllerChoice, controllers: &[&'static Spec]) -> Vec<(&'static str, String)> {
    let spec = controllers.iter().find(|spec| spec.name == choice.name);
    let values = spec.into_iter().flat_map(|spec| spec.parameters.iter().zip(&choice.values));
    values.map(|(parameter, value)| (parameter.name, describe_value(parameter, *value))).collect()
}

fn describe(kind: Kind) -> String {
    match kind {
        Kind::Switch => "true or false".to_owned(),
        Kind::Count => "a whole number".to_owned(),
        Kind::Real { .. } => "a number".to_owned(),
        Kind::Span => "a length of time such as \"5ms\"".to_owned(),
        Kind::Rate => "a rate such as \"1Gbps\"".to_owned(),
        Kind::LinkRate => "a rate such as \"1Gbps\", or a share of the host's link such as \"50 %\"".to_owned(),
        Kind::Packets => "a number of packets such as \"50pkt\"".to_owned(),
        Kind::Bytes => "a size such as \"10MB\"".to_owned(),
        Kind::Size => "a size such as \"20pkt\" or \"30KB\"".to_owned(),
        Kind::Choice(names) => format!("one of {}", names.join(", ")),
        Kind::Counts(..) => "a list of whole numbers such as [2, 1]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::CONTROLLERS;

    #[test]
    fn a_real_number_is_told_as_it_was_written() {
        for (scaled, bits, text) in [(129, 30, "1.2e-7"), (102, 10, "0.1"), (717, 10, "0.7"), (209_715, 20, "0.2")] {
            assert_eq!(real_text(scaled, bits), text);
        }
    }

    #[test]
    fn parameters_are_told_as_they_are_written() {
        let values =
            vec![Value::Real(205), Value::Span(Span::from_ms(5)), Value::Auto, Value::Switch(true), Value::Choice(1)];
        let told = |name: &str, values| {
            described(&ControllerChoice { name: name.to_owned(), values, ecn: true, program: None }, CONTROLLERS)
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(told("gemini", values), ["beta=0.2", "t=5ms", "k=auto", "delay=true", "growth=frozen"]);
        assert!(told("of-tomorrow", vec![]).is_empty());
    }
}
