//! `narrowsd cc list`: what can be loaded.

use clap::Args;
use narrows_core::cc::{Kind, Parameter, Value};
use narrows_kernel::Controller;
use narrows_kernel::controllers::CONTROLLERS;
use narrows_kernel::registered::is_registered;
use narrows_scenario::{describe_value, shown};
use serde_json::{Value as Json, json};

use super::{named, say};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which controller; left out, every one
    name: Option<String>,
    /// One line of JSON per controller
    #[arg(long)]
    json: bool,
}

pub(super) fn list(arguments: &Arguments) -> Result<(), Failure> {
    let one = arguments.name.as_deref().map(named).transpose()?;
    for controller in
        CONTROLLERS.iter().filter(|controller| one.is_none_or(|one| one.registered == controller.registered))
    {
        let loaded = is_registered(controller.registered);
        say(&if arguments.json { format!("{}\n", json(controller, loaded)) } else { text(controller, loaded) });
    }
    Ok(())
}

fn text(controller: &Controller, loaded: bool) -> String {
    let spec = controller.spec;
    let ecn = if controller.needs_ecn { "needs ECN" } else { "does not use ECN" };
    let loaded = if loaded { "loaded" } else { "not loaded" };
    let mut text = format!(
        "{} ({}), registered as {}: {ecn}, {loaded}\n  {}\n",
        spec.name, spec.title, controller.registered, spec.about
    );
    for parameter in spec.parameters {
        let default = describe_value(parameter, parameter.default);
        text += &format!("  {}={default}  {}\n      {}\n", parameter.name, takes(parameter), parameter.about);
    }
    text
}

/// What may be given.
fn takes(parameter: &Parameter) -> String {
    let auto = if parameter.default == Value::Auto { ", or auto" } else { "" };
    match (parameter.kind, parameter.range) {
        (_, Some((least, most))) => {
            format!("{} to {}{auto}", shown(parameter.kind, least), shown(parameter.kind, most))
        }
        (Kind::Switch, None) => "true or false".to_owned(),
        (Kind::Choice(names), None) => format!("one of {}", names.join(", ")),
        (_, None) => format!("any{auto}"),
    }
}

fn json(controller: &Controller, loaded: bool) -> Json {
    let spec = controller.spec;
    let parameters: Vec<Json> = spec
        .parameters
        .iter()
        .map(|parameter| {
            let range =
                parameter.range.map(|(least, most)| [shown(parameter.kind, least), shown(parameter.kind, most)]);
            let choices = if let Kind::Choice(names) = parameter.kind { Some(names) } else { None };
            json!({
                "name": parameter.name,
                "default": describe_value(parameter, parameter.default),
                "range": range,
                "choices": choices,
                "about": parameter.about,
            })
        })
        .collect();
    json!({
        "name": spec.name,
        "registered": controller.registered,
        "title": spec.title,
        "about": spec.about,
        "source": spec.source,
        "needs_ecn": controller.needs_ecn,
        "loaded": loaded,
        "parameters": parameters,
    })
}
