//! `narrowsd cc route`: has connections to a prefix use a controller, by the route to it, and gives back what was.
//!
//! | part | what it does |
//! |---|---|
//! | `prefix` | which destinations |
//! | `entry` | a line of `ip route show`, which is also what `ip route replace` takes |
//! | `routes` | asks and changes the kernel's table, through `ip` |
//! | `note` | what was before, in `/run/narrows` |

mod entry;
mod note;
mod prefix;
mod routes;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use narrows_kernel::controllers::CONTROLLERS;
use narrows_kernel::registered::{available, is_registered};
use narrows_scenario::Problem;
use serde_json::json;

use super::{named, say};
use crate::failure::Failure;
use crate::lock::{self, Lock};
use entry::Entry;
use note::{Note, Notes};
use prefix::Prefix;
use routes::Table;

/// What to do with routes of this network namespace.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make new connections to a prefix use a controller; the route is otherwise as it was
    Add(Add),
    /// Restore what was before `add`
    Remove(Remove),
    /// Show the routes of this network namespace that were changed, and whether they still are as `add` made them
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Which destinations: 192.0.2.0/24, 2001:db8::/32, `default` or ::/0. Without a route of its own the prefix gets one
    #[arg(value_parser = prefix::parse)]
    prefix: Prefix,
    /// A controller of Narrows that is loaded, or another that is available now, such as cubic
    controller: String,
    /// Connections may not choose another
    #[arg(long)]
    lock: bool,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// As it was given to `add`
    #[arg(value_parser = prefix::parse)]
    prefix: Prefix,
    #[command(flatten)]
    way: Way,
}

/// How a table is named that has several names.
fn usual(table: &str) -> &str {
    match table {
        "254" => "main",
        "253" => "default",
        "255" => "local",
        other => other,
    }
}

/// What `list` says of a route that is as `add` made it.
pub(crate) const IN_FORCE: &str = "in force";

/// A route as it is told from others, whatever way it is written; nothing of what is no prefix.
pub(crate) fn canonical(prefix: &str, table: Option<&str>) -> Option<(String, String)> {
    Some((prefix::parse(prefix).ok()?.to_string(), usual(table.unwrap_or("main")).to_owned()))
}

fn option(table: &str) -> String {
    if table == "main" { String::new() } else { format!(" --table {table}") }
}

impl Way {
    fn usual(&self) -> Way {
        Way { table: usual(&self.table).to_owned(), dry_run: self.dry_run }
    }

    fn option(&self) -> String {
        option(&self.table)
    }

    /// The right to change routes. Who only looks needs none, and leaves no file.
    fn lock(&self) -> Result<Option<Lock>, Failure> {
        if self.dry_run { Ok(None) } else { lock::take_routes().map(Some) }
    }
}

#[derive(Debug, Args)]
struct Way {
    /// The routing table
    #[arg(long, value_name = "TABLE", default_value = "main")]
    table: String,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// For programs
    #[arg(long)]
    json: bool,
}

pub(super) fn perform(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Add(arguments) => add(arguments),
        Verb::Remove(arguments) => remove(arguments),
        Verb::List(arguments) => list(arguments),
    }
}

fn add(arguments: &Add) -> Result<(), Failure> {
    let Add { prefix, controller, lock, way } = arguments;
    let registered = registered(controller)?;
    let _lock = way.lock()?;
    let way = &way.usual();
    let notes = Notes::here()?;
    let table = Table { name: way.table.clone(), prefix: *prefix };
    table.check_not_local()?;
    if let Some(note) = notes.find(prefix, &way.table)
        && is_ours(note, &table.entries()?)
    {
        if note.controller == registered && note.made.is_locked() == *lock {
            say(&format!("new connections to {prefix} use {registered} already\n"));
            return Ok(());
        }
        return Err(Failure::failed(format!("the route to {prefix} has been changed already"))
            .help(format!("narrowsd cc route remove {prefix}{}", way.option())));
    }
    // A note of a route that is another now is of no use any more.
    let notes = notes.find(prefix, &way.table).map_or_else(|| notes.clone(), |note| notes.without(note));
    let covering = table.covering()?.ok_or_else(|| {
        Failure::failed(format!("no route of the table {} leads to {prefix}", way.table)).help(table.listing())
    })?;
    let is_exact = covering.is_to(prefix);
    covering.check_usable(prefix, is_exact)?;
    if is_exact && covering.controller() == Some(&registered) && !lock {
        return Err(Failure::failed(format!("the route to {prefix} names {registered} already")));
    }
    let base = if is_exact { covering.clone() } else { covering.to(prefix) };
    let made = base.with_controller(&registered, *lock);
    let note = Note {
        prefix: prefix.to_string(),
        table: way.table.clone(),
        controller: registered.clone(),
        before: is_exact.then(|| covering.clone()),
        made: made.clone(),
    };
    if way.dry_run {
        say(&format!("would run:  {}\n", table.command("replace", &made)));
        say(&format!("to undo it: {}\n", table.undo(&note)));
        return Ok(());
    }
    if covering.is_of_a_daemon() && !is_exact {
        eprintln!(
            "warning: the route of its own does not follow what a daemon makes of the one that it is copied from: {covering}"
        );
    } else if covering.is_of_a_daemon() {
        eprintln!(
            "warning: a routing or address daemon made this route, and may replace it: `narrowsd cc route list` says so"
        );
    }
    // First the note: who is killed in between leaves one too many.
    notes.with(note.clone()).write()?;
    if let Err(failure) = table.replace(&made) {
        notes.write()?;
        return Err(failure);
    }
    if !table.entries()?.iter().any(|entry| entry.is_same(&made)) {
        undo(&table, &note)?;
        notes.write()?;
        let sentence = format!("the kernel did not take the route to {prefix} as it was given; it is as it was before");
        return Err(Failure::failed(sentence).help(format!("this was given: {made}")));
    }
    let how = if is_exact { "" } else { ", by a route of its own" };
    say(&format!("new connections to {prefix} use {registered}{how}\n"));
    Ok(())
}

fn remove(arguments: &Remove) -> Result<(), Failure> {
    let Remove { prefix, way } = arguments;
    let _lock = way.lock()?;
    let way = &way.usual();
    let notes = Notes::here()?;
    let note = notes.find(prefix, &way.table).ok_or_else(|| {
        Failure::failed(format!("no route to {prefix} was changed in the table {}", way.table))
            .help("`narrowsd cc route list` lists those that were")
    })?;
    let table = Table { name: way.table.clone(), prefix: *prefix };
    let entries = match table.entries() {
        // `ip` may not be able to show it: see its error.
        Err(failure) if !is_registered(&note.controller) => {
            eprintln!("warning: {failure}");
            vec![note.made.clone()]
        }
        entries => entries?,
    };
    let is_ours = is_ours(note, &entries);
    if way.dry_run {
        let command = if is_ours { table.undo(note) } else { "nothing: the route was changed since".to_owned() };
        say(&format!("would run:  {command}\n"));
        return Ok(());
    }
    if is_ours {
        undo(&table, note)?;
    }
    notes.without(note).write()?;
    say(&match (is_ours, &note.before) {
        (true, Some(before)) => format!("the route to {prefix} is as it was: {before}\n"),
        (true, None) => format!("the route of its own to {prefix} is removed\n"),
        (false, _) if entries.is_empty() => format!("the route to {prefix} is gone: nothing is to be undone\n"),
        (false, _) => format!("the route to {prefix} was changed since by another, and is left as it is\n"),
    });
    Ok(())
}

fn list(arguments: &List) -> Result<(), Failure> {
    let notes = Notes::here()?;
    let mut all = Vec::new();
    for note in notes.all() {
        let prefix = prefix::parse(&note.prefix).map_err(Failure::failed)?;
        let is_loaded = is_registered(&note.controller);
        let entries = match (Table { name: note.table.clone(), prefix }).entries() {
            Err(_) if !is_loaded => vec![note.made.clone()],
            Err(failure) => {
                all.push((note, format!("not known: {}", failure.parts().1)));
                continue;
            }
            Ok(entries) => entries,
        };
        let state = if entries.is_empty() {
            "gone: its link was down, or another removed it"
        } else if !is_ours(note, &entries) {
            "changed since by another"
        } else if is_loaded {
            IN_FORCE
        } else {
            "not in force: the controller is not loaded"
        };
        all.push((note, state.to_owned()));
    }
    if arguments.json {
        let all: Vec<_> = all
            .iter()
            .map(|(note, state)| {
                json!({
                    "prefix": note.prefix, "table": note.table, "controller": note.controller, "state": state,
                    "before": note.before.as_ref().map(Entry::to_string), "made": note.made.to_string(),
                })
            })
            .collect();
        say(&format!("{}\n", serde_json::to_string_pretty(&all).expect("texts")));
    } else if all.is_empty() {
        let elsewhere: BTreeSet<String> = note::everywhere()?.into_iter().map(|(label, _)| label).collect();
        let labels = elsewhere.into_iter().collect::<Vec<_>>().join(", ");
        let others = if labels.is_empty() { String::new() } else { format!("; some were in {labels}") };
        say(&format!("no route was changed in this network namespace{others}\n"));
    } else {
        for (note, state) in all {
            say(&format!("{} uses {} (table {}): {state}\n", note.prefix, note.controller, note.table));
        }
    }
    Ok(())
}

/// Gives back what was before. The kernel knows no names of controllers that are not loaded: a route that named one gets none, which
/// is said, and one that is to go is found without.
fn undo(table: &Table, note: &Note) -> Result<(), Failure> {
    match &note.before {
        None => table.delete(&note.made.without_controller()),
        Some(before) => match before.controller().filter(|name| !is_registered(name)) {
            None => table.replace(before),
            Some(name) => {
                eprintln!("warning: {name}, which the route named before, is not loaded: it names none now");
                table.replace(&before.without_controller())
            }
        },
    }
}

/// Whether the route is as `add` made it. The kernel does not show a controller that is not loaded.
fn is_ours(note: &Note, entries: &[Entry]) -> bool {
    let bare = note.made.without_controller();
    let is_unloaded = !is_registered(&note.controller);
    entries.iter().any(|entry| entry.is_same(&note.made) || (is_unloaded && entry.is_same(&bare)))
}

/// A route that `add` made.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    /// With the table if it is another than the main one.
    pub(super) prefix: String,
    /// By which name the kernel knows it.
    pub(super) controller: String,
    /// Of the network namespace.
    pub(super) label: String,
}

/// The routes that `add` made, in every network namespace.
///
/// # Errors
/// If notes cannot be read.
pub(super) fn everywhere() -> Result<Vec<Changed>, Failure> {
    Ok(note::everywhere()?.into_iter().map(|(label, note)| changed(label, &note, &note.controller)).collect())
}

/// Those of them with this controller, or that will name it again.
///
/// # Errors
/// As [`everywhere`].
pub(super) fn of_controller(registered: &str) -> Result<Vec<Changed>, Failure> {
    let names = |note: &Note| {
        let before = note.before.as_ref().and_then(Entry::controller);
        note.controller == registered || before == Some(registered)
    };
    let notes = note::everywhere()?.into_iter().filter(|(_, note)| names(note));
    Ok(notes.map(|(label, note)| changed(label, &note, registered)).collect())
}

fn changed(label: String, note: &Note, controller: &str) -> Changed {
    let prefix = format!("{}{}", note.prefix, option(&note.table));
    Changed { prefix, controller: controller.to_owned(), label }
}

/// There is no controller of this name.
fn unknown(name: &str) -> Failure {
    let ours = CONTROLLERS.iter().map(|controller| controller.spec.name.to_owned());
    let known: Vec<String> = ours.chain(available().into_iter().filter(|name| named(name).is_err())).collect();
    let first = guess(name, &known).unwrap_or_else(|| format!("there are: {}", known.join(", ")));
    let help = format!("{first}; a module of the kernel is there after modprobe tcp_{name}");
    Failure::input(format!("unknown controller `{name}`")).help(help)
}

/// Which of these may be meant by a name that is none.
pub(crate) fn guess(name: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let problem = Problem::unknown_name("controller", name, known);
    problem.help().filter(|help| help.starts_with("did you mean")).map(str::to_owned)
}

/// The name by which the kernel knows a controller.
fn registered(name: &str) -> Result<String, Failure> {
    let ours = named(name);
    if let Ok(controller) = &ours
        && is_registered(controller.registered)
    {
        return Ok(controller.registered.to_owned());
    }
    if is_registered(name) {
        return Ok(name.to_owned());
    }
    let Ok(controller) = ours else {
        return Err(unknown(name));
    };
    let name = controller.spec.name;
    Err(Failure::failed(format!("{name} is not loaded")).help(format!("narrowsd cc load {name}")))
}
