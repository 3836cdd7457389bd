//! Prefixes that use a controller: added once it is available, removed before it goes.

use std::collections::BTreeSet;

use narrows_kernel::controllers;
use narrows_kernel::registered::is_registered;
use serde::Deserialize;

use super::log::Log;
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

    pub(super) fn to_add(&self) -> Vec<String> {
        ["cc", "route", "add"].into_iter().chain(self.given()).map(str::to_owned).collect()
    }

    fn to_remove(&self) -> Vec<String> {
        let words = ["cc", "route", "remove", self.prefix.as_str()];
        words.into_iter().chain(self.table.iter().flat_map(|table| ["--table", table])).map(str::to_owned).collect()
    }

    /// Whether the kernel would take it now.
    fn is_possible(&self) -> bool {
        is_registered(controllers::find(&self.controller).map_or(&self.controller, |known| known.registered))
    }
}

/// Those that are wanted, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Routes {
    wanted: Vec<Route>,
    added: BTreeSet<Route>,
    /// Refused once, and not tried again before the file is read anew.
    refused: BTreeSet<Route>,
}

const NAME: &str = "route";

impl Routes {
    pub(super) fn want(&mut self, routes: Vec<Route>) {
        self.wanted = routes;
        self.refused.clear();
    }

    /// Whether nothing more is to be expected but what waits for its controller.
    pub(super) fn are_settled(&self) -> bool {
        self.wanted.iter().all(|route| self.is_done(route) || !route.is_possible())
    }

    fn is_done(&self, route: &Route) -> bool {
        self.added.contains(route) || self.refused.contains(route)
    }

    /// Adds those whose controller has come.
    pub(super) fn add_where_possible(&mut self, log: &Log) {
        let due: Vec<Route> =
            self.wanted.iter().filter(|route| !self.is_done(route) && route.is_possible()).cloned().collect();
        for route in due {
            let to = if unit::run(NAME, &route.to_add(), log) { &mut self.added } else { &mut self.refused };
            to.insert(route);
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
