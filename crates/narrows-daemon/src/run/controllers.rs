//! Which of the kernel's controllers stands for which of the plan's, with the plan's parameters.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use narrows_core::cc::{Kernel, Kind, SPECS, Value, spec};
use narrows_core::units::Rate;
use narrows_kernel::{Controller, Loaded, Settings};
use narrows_plan::{ControllerChoice, Plan, Role};

use crate::cc::make_room;
use crate::failure::Failure;
use crate::{lock, refused};

/// `NAME=KERNEL` of the command line.
pub(super) fn choice(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, kernel)) if !name.is_empty() && !kernel.is_empty() => Ok((name.to_owned(), kernel.to_owned())),
        _ => Err("write NAME=KERNEL, such as dctcp=dctcp".to_owned()),
    }
}

/// By the plan's names, the kernel's.
pub(super) fn names(plan: &Plan, chosen: &[(String, String)]) -> BTreeMap<String, String> {
    let name = |choice: &ControllerChoice| {
        let in_file = || choice.program.as_ref().map(|program| program.controller.clone());
        let chosen = chosen.iter().find(|(ours, _)| *ours == choice.name).map(|(_, kernel)| kernel.clone());
        chosen.or_else(in_file).unwrap_or_else(|| usual(&choice.name))
    };
    plan.traffic.iter().map(|traffic| &traffic.controller).map(|used| (used.name.clone(), name(used))).collect()
}

/// The kernel's name for a controller of the plan, if none is chosen.
pub(crate) fn usual(name: &str) -> String {
    match spec(name).map(|spec| spec.kernel) {
        Some(Kernel::Own(kernel)) => kernel.to_owned(),
        Some(Kernel::Twin) => format!("narrows_{name}"),
        Some(Kernel::None) | None => name.to_owned(),
    }
}

/// Refuses what no kernel has, by the kernel's names.
///
/// # Errors
/// If one of them is a model of the simulator's.
pub(super) fn refuse_models(names: &BTreeMap<String, String>) -> Result<(), Failure> {
    match names.values().find(|name| spec(name).is_some_and(|spec| spec.kernel == Kernel::None)) {
        Some(model) => Err(Failure::input(format!("no kernel has {model}: it is a model, and the simulator's alone"))
            .help("run it in the simulator")),
        None => Ok(()),
    }
}

/// Refuses what the kernel's own controllers cannot be told: they are as the kernel has them.
fn check(plan: &Plan, names: &BTreeMap<String, String>) -> Result<(), Failure> {
    for choice in plan.traffic.iter().map(|traffic| &traffic.controller) {
        let kernel = &names[&choice.name];
        let is_ours = narrows_kernel::controllers::find(kernel).is_ok_and(|found| found.registered == kernel);
        let spec = SPECS.iter().find(|spec| spec.name == choice.name);
        let Some(spec) = spec.filter(|_| !is_ours) else { continue };
        for (parameter, value) in spec.parameters.iter().zip(&choice.values) {
            // BBR's first parameter is the kernel whose BBR it is; this is the later one.
            let (theirs, told) = if parameter.name == "version" {
                (Value::Choice(1), "linux-6")
            } else {
                (parameter.default, "its default")
            };
            if *value != theirs {
                return Err(Failure::input(format!(
                    "{}'s {} is not {told}, and the kernel's own {kernel} knows no other",
                    choice.name, parameter.name
                ))
                .help(format!("state {told} in the experiment, or run it in the simulator")));
            }
        }
    }
    Ok(())
}

/// Loads our own among these, with the parameters of the plan. They are unloaded with the values.
///
/// # Errors
/// If the kernel's controllers cannot be what the plan says, or cannot be loaded; and if it is told to `stop`.
pub(super) fn load(plan: &Plan, names: &BTreeMap<String, String>, stop: &AtomicBool) -> Result<Vec<Loaded>, Failure> {
    check(plan, names)?;
    let mut all = Vec::new();
    for (name, controller) in ours(names)? {
        let settings = settings(plan, name, controller)?;
        let _lock = lock::take_unless(controller, stop)?;
        make_room(controller)?;
        all.push(Loaded::load(controller, &settings).map_err(refused::by_kernel)?);
    }
    Ok(all)
}

/// Our own among these.
///
/// # Errors
/// If one of ours stands for two of the plan's: it would have the parameters of one of them.
fn ours(names: &BTreeMap<String, String>) -> Result<Vec<(&str, &'static Controller)>, Failure> {
    let mut all: Vec<(&str, &'static Controller)> = Vec::new();
    for (name, kernel) in names {
        let found = narrows_kernel::controllers::find(kernel).ok().filter(|found| found.registered == kernel);
        let Some(controller) = found else { continue };
        if let Some((other, _)) = all.iter().find(|(_, known)| known.registered == kernel) {
            let sentence =
                format!("{kernel} is to stand for the plan's {other} and {name}, and has one set of parameters");
            return Err(Failure::input(sentence).help("give them different controllers with --controller NAME=KERNEL"));
        }
        all.push((name, controller));
    }
    Ok(all)
}

/// The plan's parameters: a kernel has one set of them for each controller.
fn settings(plan: &Plan, name: &str, controller: &'static Controller) -> Result<Settings, Failure> {
    let choices: Vec<&ControllerChoice> =
        plan.traffic.iter().map(|traffic| &traffic.controller).filter(|choice| choice.name == name).collect();
    let mut settings = Settings::defaults(controller);
    if controller.spec.name != name {
        return Ok(settings);
    }
    let Some(first) = choices.first() else { return Ok(settings) };
    if choices.iter().any(|choice| choice.values != first.values) {
        return Err(Failure::input(format!(
            "the plan's traffic uses {name} with different parameters; a kernel has one set of them"
        ))
        .help("give the traffic entries the same parameters, or run them apart"));
    }
    for (parameter, value) in controller.spec.parameters.iter().zip(&first.values) {
        let value = match (parameter.kind, value) {
            (Kind::Rate, Value::Auto) => Value::Rate(line_rate(plan, name, parameter.name)?),
            _ => *value,
        };
        settings.set(parameter.name, value).map_err(Failure::input)?;
    }
    Ok(settings)
}

/// The rate of the hosts' own ports, which is what a rate that was left out stands for.
fn line_rate(plan: &Plan, name: &str, parameter: &str) -> Result<Rate, Failure> {
    let rates = plan.network.links.iter().filter(|link| link.role == Role::Host).map(|link| link.rate);
    let (least, most) = rates.fold((None, None), |(least, most): (Option<Rate>, Option<Rate>), rate| {
        (Some(least.map_or(rate, |least| least.min(rate))), Some(most.map_or(rate, |most| most.max(rate))))
    });
    match (least, most) {
        (Some(least), Some(most)) if least == most => Ok(most),
        _ => Err(Failure::input(format!("{name}'s {parameter} is left out, and hosts have different rates"))
            .help(format!("state {parameter} in the experiment"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_ours_stands_for_one_of_the_plans() {
        let names = |pairs: [(&str, &str); 3]| pairs.map(|(name, kernel)| (name.to_owned(), kernel.to_owned())).into();
        let apart = names([("dctcp", "narrows_dctcp"), ("gemini", "narrows_gemini"), ("newreno", "reno")]);
        let found: Vec<&str> = ours(&apart).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["dctcp", "gemini"]);
        let shared = names([("dctcp", "narrows_dctcp"), ("gemini", "narrows_dctcp"), ("newreno", "reno")]);
        let refused = ours(&shared).map(|_| ()).expect_err("it cannot be both").to_string();
        assert!(refused.starts_with("narrows_dctcp is to stand for the plan's dctcp and gemini"), "{refused}");
    }

    #[test]
    fn what_has_a_twin_can_be_loaded_as_it() {
        for spec in SPECS.iter().filter(|spec| spec.kernel == Kernel::Twin) {
            let found = narrows_kernel::controllers::find(spec.name).expect("a program of ours");
            assert_eq!(found.registered, format!("narrows_{}", spec.name));
        }
    }

    #[test]
    fn models_are_refused() {
        let of = |kernel: &str| [("dcqcn".to_owned(), kernel.to_owned())].into();
        let refused = refuse_models(&of("dcqcn")).expect_err("no kernel has it").to_string();
        assert!(refused.starts_with("no kernel has dcqcn"), "{refused}");
        assert!(refuse_models(&of("dctcp")).is_ok(), "the kernel's may stand for it if somebody says so");
    }

    #[test]
    fn choices_name_both() {
        assert_eq!(choice("dctcp=dctcp"), Ok(("dctcp".to_owned(), "dctcp".to_owned())));
        for wrong in ["dctcp", "=dctcp", "dctcp=", ""] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
    }
}
