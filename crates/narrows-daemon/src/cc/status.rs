//! `narrowsd cc status`: what is loaded, for people, for programs and for Prometheus.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use narrows_kernel::controllers::CONTROLLERS;
use narrows_kernel::{Controller, Flow, Settings, pinned};
use narrows_scenario::describe_value;
use serde_json::{Map, Value as Json, json};

use super::state::{self, Kept, State};
use super::{named_or_all, prometheus, say, system_default, table};
use crate::failure::Failure;
use crate::metrics::replace;
use crate::namespaces::{self, Namespace, label};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which controller; left out, every one
    name: Option<String>,
    /// One line of JSON per controller
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Metrics in the text format of Prometheus
    #[arg(long)]
    prometheus: bool,
    /// Metrics of each flow too: as many series as there are flows
    #[arg(long, requires = "prometheus")]
    flows: bool,
    /// Write to this file, which is replaced at once
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write it again every so often, until it is ended
    #[arg(long, value_name = "SECONDS", requires = "out", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    every: Option<u32>,
}

pub(super) fn status(arguments: &Arguments) -> Result<(), Failure> {
    let controllers: Vec<&'static Controller> = named_or_all(arguments.name.as_deref())?;
    once(&controllers, arguments)?;
    while let Some(seconds) = arguments.every {
        std::thread::sleep(Duration::from_secs(seconds.into()));
        // What worked once may work again: a disk that is full now, a namespace that went meanwhile.
        if let Err(failure) = once(&controllers, arguments) {
            eprintln!("warning: {failure}");
        }
    }
    Ok(())
}

/// Of every controller.
///
/// # Errors
/// If one that is loaded cannot be read.
pub(crate) fn metrics() -> Result<String, Failure> {
    let states = CONTROLLERS.iter().map(|controller| Ok((controller, state::read(controller)?)));
    Ok(prometheus::text(&states.collect::<Result<Vec<_>, Failure>>()?, &namespaces::all(), false))
}

fn once(controllers: &[&'static Controller], arguments: &Arguments) -> Result<(), Failure> {
    let text = text(controllers, arguments)?;
    match &arguments.out {
        Some(path) => replace(path, &text)?,
        None => say(&text),
    }
    Ok(())
}

fn text(controllers: &[&'static Controller], arguments: &Arguments) -> Result<String, Failure> {
    let all = namespaces::all();
    let mut states = Vec::new();
    let (of_files, of_table): (Vec<_>, Vec<_>) = controllers.iter().partition(|controller| controller.is_of_file());
    for controller in of_table {
        states.push((controller, state::read(controller)?));
    }
    if arguments.prometheus {
        return Ok(prometheus::text(&states, &all, arguments.flows));
    }
    let of_files = of_files.into_iter().map(|controller: &'static Controller| of_file(controller, arguments.json));
    Ok(states
        .iter()
        .map(|(controller, state)| match (state, arguments.json) {
            (Some(state), false) => for_people(state, &all),
            (None, false) => absent(controller),
            (Some(state), true) => format!("{}\n", json(state, &all)),
            (None, true) => {
                let left = default_of(&system_default::users(controller, true));
                format!("{}\n", json!({ "controller": controller.spec.name, "loaded": false, "default_of": left }))
            }
        })
        .chain(of_files)
        .collect())
}

/// What is said of one that was loaded from a file: it publishes nothing of its connections.
fn of_file(controller: &'static Controller, as_json: bool) -> String {
    let default_of = default_of(&system_default::users(controller, true));
    let name = controller.registered;
    if as_json {
        let said = json!({
            "controller": name, "loaded": true, "registered": name, "kept": "pinned", "from_file": true,
            "default_of": default_of,
        });
        return format!("{said}\n");
    }
    let mut text = format!("{name}: loaded from a file, pinned in {}\n", pinned::folder(controller).display());
    if !default_of.is_empty() {
        text += &format!("  default of: {}\n", default_of.join(", "));
    }
    text
}

/// What is said of a controller that is not loaded: a process that was killed may have left it the default.
fn absent(controller: &Controller) -> String {
    let name = controller.spec.name;
    let all = default_of(&system_default::users(controller, true));
    if all.is_empty() {
        return format!("{name}: not loaded\n");
    }
    // What was before is known of one namespace.
    let is_noted = system_default::users(controller, false).len() < all.len();
    let advice = if is_noted {
        format!("`narrowsd cc unload {name}` puts back what was before")
    } else {
        "set another there (net.ipv4.tcp_congestion_control)".to_owned()
    };
    format!("{name}: not loaded, and still the default of {}: {advice}\n", all.join(", "))
}

fn default_of(namespaces: &[Namespace]) -> Vec<String> {
    namespaces.iter().map(Namespace::label).collect()
}

/// A reader sees the file before or after, never half of it.
fn for_people(state: &State, all: &[Namespace]) -> String {
    let (controller, counters) = (state.controller, state.counters);
    let kept = match &state.kept {
        Kept::Pinned => format!("pinned in {}", pinned::folder(controller).display()),
        Kept::Held(holders) if holders.is_empty() => "held by what cannot be seen from here".to_owned(),
        Kept::Held(holders) => {
            format!("held by process {}", holders.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        Kept::Stale => "left behind by a killed process".to_owned(),
    };
    let mut text = format!("{}: registered as {}, {kept}\n", controller.spec.name, controller.registered);
    if !state.default_of.is_empty() {
        text += &format!("  default of: {}\n", default_of(&state.default_of).join(", "));
    }
    text += &format!(
        "  flows: {} now, {} since it was loaded; {} connections were refused ECN; {} flows found no room in the list\n",
        state.flows.len(),
        counters.flows,
        counters.ecn_refused,
        counters.unpublished,
    );
    let defaults = Settings::defaults(controller);
    text += &format!("  parameters: {}\n", changes(&defaults, &state.settings, "all at their defaults", ""));
    for own in &state.own_settings {
        let changed = changes(&state.settings, &own.settings, "the same", "the same but for ");
        text += &format!("  parameters of {}: {changed}\n", own.label());
    }
    text + &table::text(state, all)
}

/// What differs between two settings.
fn changes(from: &Settings, to: &Settings, none: &str, lead: &str) -> String {
    let differing = from.iter().zip(to.iter()).filter(|((_, before), (_, now))| before != now);
    let written: Vec<String> = differing
        .map(|(_, (parameter, value))| format!("{}={}", parameter.name, describe_value(parameter, value)))
        .collect();
    if written.is_empty() { none.to_owned() } else { format!("{lead}{}", written.join(" ")) }
}

fn json(state: &State, all: &[Namespace]) -> Json {
    let controller = state.controller;
    let (kept, holders) = match &state.kept {
        Kept::Pinned => ("pinned", &[][..]),
        Kept::Held(holders) => ("held", &holders[..]),
        Kept::Stale => ("stale", &[][..]),
    };
    let written = |settings: &Settings| -> Map<String, Json> {
        let text = settings.iter().map(|(parameter, value)| (parameter.name, describe_value(parameter, value)));
        text.map(|(name, value)| (name.to_owned(), Json::String(value))).collect()
    };
    let own: Vec<Json> = state
        .own_settings
        .iter()
        .map(|own| {
            json!({
                "netns": own.namespace.as_ref().map(Namespace::label),
                "netns_inode": own.namespace.as_ref().map(|namespace| namespace.inode),
                "netns_cookie": own.cookie,
                "parameters": written(&own.settings),
            })
        })
        .collect();
    json!({
        "controller": controller.spec.name,
        "loaded": true,
        "registered": controller.registered,
        "kept": kept,
        "holders": holders,
        "default_of": default_of(&state.default_of),
        "parameters": written(&state.settings),
        "netns_parameters": own,
        "flows_total": state.counters.flows,
        "ecn_refused_total": state.counters.ecn_refused,
        "unpublished_flows_total": state.counters.unpublished,
        "flows": state.flows.iter().map(|flow| flow_json(controller, flow, all)).collect::<Vec<_>>(),
    })
}

fn flow_json(controller: &Controller, flow: &Flow, all: &[Namespace]) -> Json {
    json!({
        "key": flow.key,
        "cookie": flow.cookie,
        "updated_monotonic_ns": flow.updated_ns,
        "netns": label(all, flow.namespace),
        "netns_inode": flow.namespace,
        "local": flow.local.to_string(),
        "remote": flow.remote.to_string(),
        "ecn": flow.ecn,
        "window_packets": table::scaled(flow.window_q10, 10),
        "threshold_packets": flow.threshold.map(|packets| packets.get()),
        "pacing_bps": flow.pacing.map(|rate| rate.as_bps()),
        "alpha": controller.has_alpha.then(|| table::scaled(flow.alpha_q20, 20)),
        "factor": controller.has_scale.then(|| table::scaled(flow.factor_q10, 10)),
        "step_packets_per_rtt": controller.has_scale.then(|| table::scaled(flow.step_q10, 10)),
        "rtt_base_us": flow.rtt_base.map(|span| span.as_us()),
        "acked_packets": flow.acked.get(),
        "marked_packets": flow.marked.get(),
        "cuts": {
            "ecn": flow.cuts.ecn,
            "delay": flow.cuts.delay,
            "both": flow.cuts.both,
            "loss": flow.cuts.loss,
            "timeout": flow.cuts.timeout,
        },
        "undone": flow.undone,
    })
}
