//! The kernel's routes, asked for and changed through `ip`, whose language is also that of the notes.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use super::entry::Entry;
use super::note::Note;
use super::prefix::Prefix;
use crate::failure::Failure;

/// The routes of a table that have to do with a prefix.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) prefix: Prefix,
}

impl Table {
    const fn family(&self) -> &'static str {
        if self.prefix.is_v6() { "-6" } else { "-4" }
    }

    /// Refuses destinations for which the machine decides before it looks at this table: its own, and those that are many.
    ///
    /// # Errors
    /// Code 2; and as [`Table::entries`].
    pub(super) fn check_not_local(&self) -> Result<(), Failure> {
        let local = Table { name: "local".to_owned(), prefix: self.prefix };
        let before = local.show("match")?;
        let decides = |entry: &Entry| entry.length(self.prefix.is_v6()).is_some_and(|length| length > 0);
        if self.name == "local" || self.prefix.is_never_remote() || before.iter().any(decides) {
            let sentence = format!("{}: no connection to another machine takes such a route", self.prefix);
            return Err(Failure::input(sentence).help("name a prefix that other machines are in"));
        }
        Ok(())
    }

    /// How a person would list the routes.
    pub(super) fn listing(&self) -> String {
        format!("`ip {} route show table {}` lists them", self.family(), self.name)
    }

    /// The routes to this prefix itself.
    ///
    /// # Errors
    /// If `ip` is not there or fails.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        self.show("exact")
    }

    /// The route that packets to this prefix take, as the kernel chooses: the longest prefix, then the lowest metric.
    ///
    /// # Errors
    /// As [`Table::entries`].
    pub(super) fn covering(&self) -> Result<Option<Entry>, Failure> {
        let all = self.show("match")?;
        let longest = all.iter().filter_map(|entry| entry.length(self.prefix.is_v6())).max();
        let of_it = all.into_iter().filter(|entry| entry.length(self.prefix.is_v6()) == longest);
        Ok(of_it.min_by_key(Entry::metric))
    }

    fn show(&self, how: &str) -> Result<Vec<Entry>, Failure> {
        let prefix = self.prefix.to_string();
        let arguments = ["-details", "-oneline", "route", "show", "table", &self.name, "to", how, &prefix];
        let lines = self.run(&arguments)?;
        let usual = lines.lines().filter(|line| Entry::is_usual(line));
        // What is told beside routes has no destination.
        Ok(usual.map(Entry::read).filter(|entry| entry.length(self.prefix.is_v6()).is_some()).collect())
    }

    /// Makes a route, or replaces that of the same prefix and metric.
    ///
    /// # Errors
    /// Code 3 where the caller may not, 1 if the kernel refuses it.
    pub(super) fn replace(&self, entry: &Entry) -> Result<(), Failure> {
        self.run(&self.arguments("replace", entry)).map(drop)
    }

    /// Removes a route.
    ///
    /// # Errors
    /// As [`Table::replace`].
    pub(super) fn delete(&self, entry: &Entry) -> Result<(), Failure> {
        self.run(&self.arguments("delete", entry)).map(drop)
    }

    fn arguments<'a>(&'a self, verb: &'a str, entry: &'a Entry) -> Vec<&'a str> {
        let words = entry.words().iter().map(String::as_str);
        // The table before the ways of a route that has several.
        let at = entry.words().iter().position(|word| word == "nexthop").unwrap_or(entry.words().len());
        let mut arguments: Vec<&str> = ["route", verb].into_iter().chain(words).collect();
        arguments.splice(at + 2..at + 2, ["table", self.name.as_str()]);
        // Of a nexthop with a number the kernel takes the metrics that are there, the controller among them, where none is given.
        if verb == "replace" && arguments.contains(&"nhid") && !arguments.contains(&"advmss") {
            arguments.extend(["advmss", "0"]);
        }
        arguments
    }

    /// As a person would type it.
    pub(super) fn command(&self, verb: &str, entry: &Entry) -> String {
        format!("ip {} {}", self.family(), self.arguments(verb, entry).join(" "))
    }

    /// What gives back what was.
    pub(super) fn undo(&self, note: &Note) -> String {
        match &note.before {
            Some(before) => self.command("replace", before),
            None => self.command("delete", &note.made.without_controller()),
        }
    }

    fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        let output = Command::new("ip").arg(self.family()).args(arguments).env("LC_ALL", "C").output();
        let output = output.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::environment("there is no `ip` here").help("install iproute2"),
            _ => Failure::failed(format!("ip: {error}")),
        })?;
        if output.status.signal().is_some() {
            let sentence = format!("ip {} {}: it crashed", self.family(), arguments.join(" "));
            return Err(Failure::failed(sentence).help(
                "some versions of iproute2 cannot show a route that locks a controller that is not loaded: load it",
            ));
        }
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        // A table that has no route yet is none for `ip`.
        if said.contains("FIB table does not exist") {
            return Ok(String::new());
        }
        if said.contains("is wrong: table id") || said.contains("is wrong: invalid table") {
            let sentence = format!("there is no routing table {}", self.name);
            return Err(Failure::input(sentence).help("give its number, or a name in /etc/iproute2/rt_tables"));
        }
        let sentence = format!("ip {} {}: {said}", self.family(), arguments.join(" "));
        if said.contains("Operation not permitted") {
            return Err(Failure::environment(sentence).help("run as root of this network namespace"));
        }
        Err(Failure::failed(sentence))
    }
}
