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

use clap::{Args, Subcommand};
use narrows_kernel::registered::is_registered;
use serde_json::json;

use super::{named, say};
use crate::failure::Failure;
use crate::lock;
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
    /// Show the routes that were changed, and whether they still are as `add` made them
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Which destinations: 192.0.2.0/24, 2001:db8::/32, `default` or ::/0. Without a route of its own the prefix gets one
    #[arg(value_parser = prefix::parse)]
    prefix: Prefix,
    /// A controller of Narrows that is loaded, or any that this kernel has, such as cubic
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
    let _lock = lock::take_routes()?;
    let notes = Notes::here()?;
    if notes.find(prefix, &way.table).is_some() {
        return Err(Failure::failed(format!("the route to {prefix} has been changed already"))
            .help(format!("narrowsd cc route remove {prefix}")));
    }
    let table = Table { name: way.table.clone(), prefix: *prefix };
    let covering = table.covering()?.ok_or_else(|| {
        Failure::failed(format!("no route of the table {} leads to {prefix}", way.table)).help("`ip route` lists them")
    })?;
    covering.check_usable(prefix)?;
    let is_exact = covering.is_to(prefix);
    if is_exact && covering.controller() == Some(&registered) {
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
    if covering.is_of_a_daemon() {
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
        let sentence = format!("the kernel did not take the route to {prefix} as it was given");
        return Err(Failure::failed(sentence).help(format!("narrowsd cc route remove {prefix}; it is now: {made}")));
    }
    let how = if is_exact { "" } else { ", by a route of its own" };
    say(&format!("new connections to {prefix} use {registered}{how}\n"));
    Ok(())
}

fn remove(arguments: &Remove) -> Result<(), Failure> {
    let Remove { prefix, way } = arguments;
    let _lock = lock::take_routes()?;
    let notes = Notes::here()?;
    let note = notes.find(prefix, &way.table).ok_or_else(|| {
        Failure::failed(format!("no route to {prefix} was changed in the table {}", way.table))
            .help("`narrowsd cc route list` lists those that were")
    })?;
    let table = Table { name: way.table.clone(), prefix: *prefix };
    let is_ours = is_ours(note, &table.entries()?);
    if way.dry_run {
        let command = if is_ours { table.undo(note) } else { "nothing: the route was changed since".to_owned() };
        say(&format!("would run:  {command}\n"));
        return Ok(());
    }
    if is_ours {
        match &note.before {
            Some(before) => table.replace(before)?,
            // The kernel knows no names of controllers that are not loaded, and finds the route without.
            None => table.delete(&note.made.without_controller())?,
        }
    }
    notes.without(note).write()?;
    say(&match (is_ours, &note.before) {
        (true, Some(before)) => format!("the route to {prefix} is as it was: {before}\n"),
        (true, None) => format!("the route of its own to {prefix} is removed\n"),
        (false, _) => format!("the route to {prefix} was changed since by another, and is left as it is\n"),
    });
    Ok(())
}

fn list(arguments: &List) -> Result<(), Failure> {
    let notes = Notes::here()?;
    let mut all = Vec::new();
    for note in notes.all() {
        let prefix = prefix::parse(&note.prefix).map_err(Failure::failed)?;
        let entries = Table { name: note.table.clone(), prefix }.entries()?;
        let state = if !is_ours(note, &entries) {
            "changed since by another"
        } else if is_registered(&note.controller) {
            "in force"
        } else {
            "not in force: the controller is not loaded"
        };
        all.push((note, state));
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
        say("no route was changed\n");
    } else {
        for (note, state) in all {
            say(&format!("{} uses {} (table {}): {state}\n", note.prefix, note.controller, note.table));
        }
    }
    Ok(())
}

/// Whether the route is as `add` made it. The kernel does not show a controller that is not loaded.
fn is_ours(note: &Note, entries: &[Entry]) -> bool {
    let bare = note.made.without_controller();
    let is_unloaded = !is_registered(&note.controller);
    entries.iter().any(|entry| entry.is_same(&note.made) || (is_unloaded && entry.is_same(&bare)))
}

/// The routes that `add` made with this controller: prefix, and label of the network namespace.
pub(super) fn of_controller(registered: &str) -> Vec<(String, String)> {
    let notes = note::everywhere().into_iter().filter(|(_, note)| note.controller == registered);
    notes.map(|(label, note)| (note.prefix, label)).collect()
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
    let controller = ours?;
    let name = controller.spec.name;
    Err(Failure::failed(format!("{name} is not loaded")).help(format!("narrowsd cc load {name}")))
}
