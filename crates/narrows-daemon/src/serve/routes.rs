//! Prefixes that use a controller: added once it is available, looked at from then on, removed before it goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use narrows_kernel::controllers;
use narrows_kernel::registered::is_registered;
use serde::Deserialize;

use super::log::{Level, Log};
use super::unit;
use crate::cc::{IN_FORCE, canonical};

/// An entry of the file: the options of `narrowsd cc route add`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Route {
    prefix: String,
    controller: String,
    #[serde(default)]
    lock: bool,
    #[serde(default, deserialize_with = "name_or_number")]
    table: Option<String>,
}

fn name_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(name) => Ok(Some(name)),
        toml::Value::Integer(number) => Ok(Some(number.to_string())),
        _ => Err(serde::de::Error::custom("a table has a name or a number")),
    }
}

impl Route {
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn controller(&self) -> &str {
        &self.controller
    }

    fn canonical(&self) -> Option<(String, String)> {
        canonical(&self.prefix, self.table.as_deref())
    }

    /// Whether both are of the same route.
    pub(super) fn is_to_what(&self, other: &Route) -> bool {
        self.canonical() == other.canonical()
    }

    /// What follows `cc route add`.
    pub(super) fn given(&self) -> Vec<&str> {
        let mut words = vec![self.prefix.as_str(), self.controller.as_str()];
        words.extend(self.lock.then_some("--lock"));
        words.extend(self.table.iter().flat_map(|table| ["--table", table]));
        words
    }

    pub(super) fn to_add(&self) -> Vec<&str> {
        ["cc", "route", "add"].into_iter().chain(self.given()).collect()
    }

    fn to_remove(&self) -> Vec<&str> {
        let words = ["cc", "route", "remove", self.prefix.as_str()];
        words.into_iter().chain(self.table.iter().flat_map(|table| ["--table", table])).collect()
    }

    /// The name by which the kernel knows the controller.
    fn registered(&self) -> &str {
        controllers::find(&self.controller).map_or(&self.controller, |known| known.registered)
    }

    /// Whether there is something to wait for: ours are loaded by somebody. Of the kernel's own `add` says whether there are such.
    fn waits(&self) -> bool {
        controllers::find(&self.controller).is_ok_and(|known| !is_registered(known.registered))
    }
}

/// Those that are wanted, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Routes {
    wanted: BTreeMap<Route, State>,
    /// Those that were changed for this service, and how: what is to be undone.
    made: BTreeMap<Route, Made>,
    looked: Option<Instant>,
    /// What the last look failed with.
    failed: String,
    /// Whether what an earlier service has left was told.
    is_begun: bool,
}

/// How a route was made.
#[derive(Clone, Debug, Default)]
struct Made {
    /// As `ip` writes it; empty until the first look.
    written: String,
    /// Whether the prefix had a route before.
    is_exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Is to be added, once its controller is there.
    Due,
    Added,
    /// Is tried again then; this was said of it.
    Again(Instant, String),
    /// Was added, and is not in force any more, for this reason.
    Lost(String),
    /// Refused for a reason that lasts until the file is read anew.
    Refused,
}

const NAME: &str = "route";
/// A way to the prefix may come later, and another program may change a route.
const PAUSE: Duration = Duration::from_secs(5);

impl Routes {
    /// All are added, also those that were: what another has changed meanwhile is so again.
    pub(super) fn want(&mut self, routes: Vec<Route>, log: &Log) {
        if !std::mem::replace(&mut self.is_begun, true) {
            tell_what_is_left(&routes, log);
        }
        for route in routes.iter().filter(|route| route.waits()) {
            let text = format!("{} waits until {} is loaded", route.prefix, route.controller);
            log.write(Some(NAME), Level::Info, &text);
        }
        let state = |route: &Route| match self.wanted.get(route) {
            // What is said of it is known.
            Some(State::Again(_, said)) => State::Again(Instant::now(), said.clone()),
            Some(State::Added) => State::Again(Instant::now(), String::new()),
            _ => State::Due,
        };
        self.wanted = routes.into_iter().map(|route| (route.clone(), state(&route))).collect();
    }

    /// Whether each was tried that can be.
    pub(super) fn are_settled(&self) -> bool {
        self.wanted.iter().all(|(route, state)| *state != State::Due || route.waits())
    }

    /// By prefix, whether it is in force.
    pub(super) fn states(&self) -> BTreeMap<String, bool> {
        self.wanted.iter().map(|(route, state)| (route.prefix.clone(), *state == State::Added)).collect()
    }

    /// Adds those whose controller has come.
    pub(super) fn add_where_possible(&mut self, log: &Log) {
        for (route, state) in &mut self.wanted {
            let known = match state {
                State::Due => None,
                State::Again(at, said) if *at <= Instant::now() => Some(said.clone()),
                _ => continue,
            };
            if route.waits() {
                continue;
            }
            let (code, said) = add(route);
            if code == Some(0) {
                self.made.entry(route.clone()).or_default();
                self.looked = None;
            }
            *state = match code {
                Some(0) => State::Added,
                Some(2 | 3) => State::Refused,
                _ => State::Again(Instant::now() + PAUSE, said.clone()),
            };
            // What is as before is not said.
            if said.contains(ALREADY) && known.is_some() || known.as_ref() == Some(&said) {
                continue;
            }
            let told = said.trim_end().replacen("error: ", &format!("error: {}: ", route.prefix), 1);
            log.write_of_unit(NAME, &told);
            if matches!(state, State::Again(..)) {
                log.write(Some(NAME), Level::Info, &format!("{} is tried again", route.prefix));
            }
        }
    }

    /// Looks whether those that were added are as they were made. A link that goes down takes its routes along, and other programs
    /// replace them: what leads there again without the controller gets it again, and anything else is only told.
    pub(super) fn look(&mut self, log: &Log) {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= PAUSE);
        let was_added = |state: &State| matches!(state, State::Added | State::Lost(_));
        if !is_due || !self.wanted.values().any(was_added) {
            return;
        }
        self.looked = Some(Instant::now());
        let listed = match listed() {
            Ok(listed) => listed,
            Err(said) => {
                if self.failed != said {
                    log.write_of_unit(NAME, said.trim_end());
                }
                self.failed = said;
                return;
            }
        };
        self.failed.clear();
        for (route, state) in self.wanted.iter_mut().filter(|(_, state)| was_added(state)) {
            let found = listed.iter().find(|one| route.canonical() == one.canonical());
            // Somebody else may have undone it, and made it for another controller.
            let (found, said) = match found {
                None => (None, RESTORED.to_owned()),
                Some(one) if one.controller != route.registered() => {
                    (None, format!("made for {} by `narrowsd cc route add`", one.controller))
                }
                Some(one) => (Some(one), one.state.clone()),
            };
            let known = match found {
                Some(one) => {
                    let made = Made { written: one.made.clone(), is_exact: one.before.is_some() };
                    self.made.insert(route.clone(), made.clone());
                    Some(made)
                }
                None => self.made.remove(route),
            };
            let prefix = &route.prefix;
            if said == IN_FORCE {
                if *state != State::Added {
                    log.write(Some(NAME), Level::Info, &format!("the route to {prefix} is in force again"));
                    *state = State::Added;
                }
                continue;
            }
            if !route.waits() && known.is_some_and(|made| would_be(route, &made)) {
                log.write(Some(NAME), Level::Warning, &format!("the route to {prefix}: {said}; it is added again"));
                *state = State::Again(Instant::now(), String::new());
            } else if *state != State::Lost(said.clone()) {
                let why =
                    if route.waits() { "" } else { "; another than before leads there, or none: a reload takes it" };
                log.write(Some(NAME), Level::Warning, &format!("the route to {prefix}: {said}{why}"));
                *state = State::Lost(said);
            }
        }
    }

    /// Removes those that are not among these, and of the kept ones those whose controller goes.
    pub(super) fn remove_all_but(&mut self, kept: &[Route], goes: impl Fn(&str) -> bool, log: &Log) {
        self.wanted.retain(|route, state| {
            let (is_kept, is_left) = (kept.contains(route), goes(&route.controller));
            if self.made.contains_key(route) && (!is_kept || is_left) {
                unit::run(NAME, &route.to_remove(), log);
                self.made.remove(route);
                *state = State::Due;
            }
            is_kept
        });
    }
}

/// What `cc route add` says where nothing is to be done, and where an earlier service has left another controller there.
const ALREADY: &str = " already\n";
const CHANGED: &str = "has been changed already";

/// Of a route that was added and is not listed.
const RESTORED: &str = "restored by `narrowsd cc route remove`";

/// Adds one; what another service has left of it goes first.
fn add(route: &Route) -> (Option<i32>, String) {
    let added = unit::run_quietly(&route.to_add());
    if added.0 == Some(1) && added.1.contains(CHANGED) && unit::run_quietly(&route.to_remove()).0 == Some(0) {
        return unit::run_quietly(&route.to_add());
    }
    added
}

/// Whether `cc route add` would make it lead where it led when it was made. A prefix that had a route gets none of its own instead.
fn would_be(route: &Route, made: &Made) -> bool {
    let (code, said) = unit::run_quietly(&[route.to_add(), vec!["--dry-run"]].concat());
    let Some((_, command)) = said.lines().next().and_then(|line| line.split_once(" replace ")) else { return false };
    let gets_own = said.lines().nth(1).is_some_and(|undo| undo.contains(" route delete "));
    code == Some(0) && way(command) == way(&made.written) && !(made.is_exact && gets_own)
}

/// A route in `ip`'s language, without who made it, the table that it is in, and what only the command needs.
fn way(written: &str) -> String {
    let mut words = written.split_whitespace();
    let mut kept = vec![];
    while let Some(word) = words.next() {
        match word {
            "proto" | "table" => drop(words.next()),
            word => kept.push(word),
        }
    }
    let all = kept.join(" ");
    all.strip_suffix(" advmss 0").map_or(all.clone(), str::to_owned)
}

/// What `cc route list` says of a route.
#[derive(Debug, Deserialize)]
struct Listed {
    prefix: String,
    table: String,
    controller: String,
    state: String,
    before: Option<String>,
    made: String,
}

impl Listed {
    fn canonical(&self) -> Option<(String, String)> {
        canonical(&self.prefix, Some(&self.table))
    }
}

/// The routes that were changed; or what the command says where it fails.
fn listed() -> Result<Vec<Listed>, String> {
    let (code, said) = unit::run_quietly(&["cc", "route", "list", "--json"]);
    match serde_json::from_str(&said) {
        Ok(listed) if code == Some(0) => Ok(listed),
        _ => Err(said),
    }
}

/// Routes that were changed before and that the file does not have: a service that was killed leaves them.
fn tell_what_is_left(routes: &[Route], log: &Log) {
    let listed = match listed() {
        Ok(listed) => listed,
        Err(said) => return log.write_of_unit(NAME, said.trim_end()),
    };
    for one in listed {
        if !routes.iter().any(|route| route.canonical() == one.canonical()) {
            let Listed { prefix, table, controller, .. } = one;
            let sentence = format!(
                "that to {prefix} (table {table}) names {controller} and is not in the file; narrowsd cc route remove restores it"
            );
            log.write(Some(NAME), Level::Warning, &sentence);
        }
    }
}
