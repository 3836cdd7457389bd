//! Prefixes that use a controller: added once it is available, removed before it goes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use narrows_kernel::controllers;
use narrows_kernel::registered::is_registered;
use serde::Deserialize;

use super::log::{Level, Log};
use super::unit;

/// An entry of the file: the options of `narrowsd cc route add`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Route {
    prefix: String,
    controller: String,
    #[serde(default)]
    lock: bool,
    table: Option<String>,
}

impl Route {
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether both are of the same route.
    pub(super) fn is_to_what(&self, other: &Route) -> bool {
        (&self.prefix, &self.table) == (&other.prefix, &other.table)
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
    wanted: Vec<Route>,
    added: BTreeSet<Route>,
    /// Refused for a reason that lasts until the file is read anew.
    refused: BTreeSet<Route>,
    /// When those that were refused otherwise are tried again, and what was said then.
    again: Option<Instant>,
    said: BTreeSet<String>,
}

const NAME: &str = "route";
/// A way to the prefix may come later.
const PAUSE: Duration = Duration::from_secs(5);

impl Routes {
    /// All are added, also those that were: what another has changed meanwhile is so again.
    pub(super) fn want(&mut self, routes: Vec<Route>, log: &Log) {
        self.wanted = routes;
        self.added.clear();
        self.refused.clear();
        self.again = None;
        self.said.clear();
        for route in self.wanted.iter().filter(|route| route.waits()) {
            let text = format!("{} waits until {} is loaded", route.prefix, route.controller);
            log.write(Some(NAME), Level::Info, &text);
        }
    }

    /// Whether each was tried that can be.
    pub(super) fn are_settled(&self) -> bool {
        self.again.is_some() || self.wanted.iter().all(|route| self.is_done(route) || route.waits())
    }

    fn is_done(&self, route: &Route) -> bool {
        self.added.contains(route) || self.refused.contains(route)
    }

    /// Adds those whose controller has come.
    pub(super) fn add_where_possible(&mut self, log: &Log) {
        if self.again.is_some_and(|at| at > Instant::now()) {
            return;
        }
        self.again = None;
        let due: Vec<Route> =
            self.wanted.iter().filter(|route| !self.is_done(route) && !route.waits()).cloned().collect();
        for route in due {
            let (code, said) = unit::run_quietly(&route.to_add());
            // The same is said once, not every few seconds.
            if code == Some(0) || self.said.insert(said.clone()) {
                said.lines().for_each(|line| log.write_of_unit(NAME, line));
            }
            match code {
                Some(0) => self.added.insert(route),
                Some(1) | None => {
                    self.again = Some(Instant::now() + PAUSE);
                    continue;
                }
                Some(_) => self.refused.insert(route),
            };
        }
    }

    /// Removes those that are not among these.
    pub(super) fn remove_all_but(&mut self, kept: &[Route], log: &Log) {
        let gone: Vec<Route> = self.added.iter().filter(|route| !kept.contains(route)).cloned().collect();
        for route in gone {
            unit::run(NAME, &route.to_remove(), log);
            self.added.remove(&route);
        }
        self.wanted.retain(|route| kept.contains(route));
    }
}
