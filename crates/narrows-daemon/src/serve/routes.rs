//! Prefixes that use a controller: added once it is available, removed before it goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use narrows_kernel::controllers;
use narrows_kernel::registered::is_registered;
use serde::Deserialize;

use super::log::{Level, Log};
use super::unit;
use crate::cc::canonical;

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

    /// Whether there is something to wait for: ours are loaded by somebody. Of the kernel's own `add` says whether there are such.
    fn waits(&self) -> bool {
        controllers::find(&self.controller).is_ok_and(|known| !is_registered(known.registered))
    }
}

/// Those that are wanted, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Routes {
    wanted: BTreeMap<Route, State>,
    /// Whether what an earlier service has left was told.
    is_begun: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Is to be added, once its controller is there.
    Due,
    Added,
    /// Is tried again then; this was said of it.
    Again(Instant, String),
    /// Refused for a reason that lasts until the file is read anew.
    Refused,
}

const NAME: &str = "route";
/// A way to the prefix may come later.
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
            *state = match code {
                Some(0) => State::Added,
                Some(2 | 3) => State::Refused,
                _ => State::Again(Instant::now() + PAUSE, said.clone()),
            };
            // What is as before is not said.
            if said.contains(ALREADY) && known.is_some() || known.as_ref() == Some(&said) {
                continue;
            }
            log.write_of_unit(NAME, said.trim_end());
            if matches!(state, State::Again(..)) {
                log.write(Some(NAME), Level::Info, &format!("{} is tried again", route.prefix));
            }
        }
    }

    /// Removes those that are not among these, and of the kept ones those whose controller goes.
    pub(super) fn remove_all_but(&mut self, kept: &[Route], goes: impl Fn(&str) -> bool, log: &Log) {
        self.wanted.retain(|route, state| {
            let (is_kept, is_left) = (kept.contains(route), goes(&route.controller));
            if *state == State::Added && (!is_kept || is_left) {
                unit::run(NAME, &route.to_remove(), log);
                *state = State::Due;
            }
            is_kept
        });
    }
}

/// What `cc route add` says where nothing is to be done, and where an earlier service has left another controller there.
const ALREADY: &str = " already\n";
const CHANGED: &str = "has been changed already";

/// Adds one; what another service has left of it goes first.
fn add(route: &Route) -> (Option<i32>, String) {
    let added = unit::run_quietly(&route.to_add());
    if added.0 == Some(1) && added.1.contains(CHANGED) && unit::run_quietly(&route.to_remove()).0 == Some(0) {
        return unit::run_quietly(&route.to_add());
    }
    added
}

/// Routes that were changed before and that the file does not have: a service that was killed leaves them.
fn tell_what_is_left(routes: &[Route], log: &Log) {
    let (code, said) = unit::run_quietly(&["cc", "route", "list", "--json"]);
    let listed: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap_or_default();
    if code != Some(0) {
        return log.write_of_unit(NAME, said.trim_end());
    }
    for one in listed {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let left = canonical(&text("prefix"), Some(&text("table")));
        if !routes.iter().any(|route| route.canonical() == left) {
            let sentence = format!(
                "that to {} (table {}) names {} and is not in the file; narrowsd cc route remove restores it",
                text("prefix"),
                text("table"),
                text("controller")
            );
            log.write(Some(NAME), Level::Warning, &sentence);
        }
    }
}
