//! A route as `ip --details --oneline route show` prints it, made such as `ip route replace` takes it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::prefix::{self, Prefix};
use crate::failure::Failure;

/// What is shown of a route's state and cannot be given [ip-route(8)].
const SHOWN_ONLY: [&str; 9] =
    ["linkdown", "dead", "offload", "trap", "offload_failed", "rt_offload", "rt_trap", "pervasive", "unresolved"];
/// Kinds of routes; only the first leads anywhere.
const KINDS: [&str; 10] =
    ["unicast", "blackhole", "unreachable", "prohibit", "throw", "local", "broadcast", "anycast", "multicast", "nat"];
/// Who makes routes that nobody needs to keep as they are: the kernel itself, and people.
const STATIC: [&str; 3] = ["kernel", "boot", "static"];

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Entry(Vec<String>);

impl Entry {
    /// From a line.
    pub(super) fn read(line: &str) -> Entry {
        let words = line.split(|letter: char| letter.is_whitespace() || letter == '\\');
        let kept = words.filter(|word| !word.is_empty() && !SHOWN_ONLY.contains(word));
        let mut words: Vec<String> = kept.map(str::to_owned).collect();
        // Always shown as locked, which it becomes by being given.
        if let Some(at) = words.iter().position(|word| word == "rto_min")
            && words.get(at + 1).is_some_and(|word| word == "lock")
        {
            words.remove(at + 1);
        }
        // A nexthop by its number is shown with what it is, which must not be given beside it.
        if words.iter().any(|word| word == "nhid") {
            if let Some(at) = words.iter().position(|word| word == "nexthop") {
                words.truncate(at);
            }
            for key in ["via", "dev"] {
                if let Some(at) = words.iter().position(|word| word == key) {
                    words.drain(at..words.len().min(at + 2));
                }
            }
        }
        Entry(words)
    }

    /// Whether a line is of a route that packets of no type of service take, and whose way is there.
    pub(super) fn is_usual(line: &str) -> bool {
        let mut words = line.split_whitespace();
        let has_several = line.contains("nexthop");
        !words.any(|word| ["tos", "dsfield"].contains(&word) || (word == "dead" && !has_several))
    }

    /// Where its destination stands: behind its kind, if that is told.
    fn at_destination(&self) -> usize {
        usize::from(self.0.first().is_some_and(|word| KINDS.contains(&word.as_str())))
    }

    /// Its destination; `default` is that of the family asked for.
    fn destination(&self, v6: bool) -> Option<Prefix> {
        match self.0.get(self.at_destination())?.as_str() {
            "default" if v6 => prefix::parse("::/0").ok(),
            text => prefix::parse(text).ok(),
        }
    }

    /// How many bits of its destination count.
    pub(super) fn length(&self, v6: bool) -> Option<u8> {
        self.destination(v6).map(|prefix| prefix.length())
    }

    /// Whether it is to this prefix, and to no larger one.
    pub(super) fn is_to(&self, prefix: &Prefix) -> bool {
        self.destination(prefix.is_v6()).as_ref() == Some(prefix)
    }

    fn value(&self, key: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == key)?;
        self.0.get(at + 1).map(String::as_str)
    }

    /// Of routes to one prefix that with the lowest is used.
    pub(super) fn metric(&self) -> u32 {
        self.value("metric").and_then(|metric| metric.parse().ok()).unwrap_or(0)
    }

    /// The controller that it names.
    pub(super) fn controller(&self) -> Option<&str> {
        let at = self.0.iter().position(|word| word == "congctl")?;
        let is_locked = self.0.get(at + 1).is_some_and(|word| word == "lock");
        self.0.get(at + 1 + usize::from(is_locked)).map(String::as_str)
    }

    /// Whether connections may not choose another.
    pub(super) fn is_locked(&self) -> bool {
        let at = self.0.iter().position(|word| word == "congctl");
        at.is_some_and(|at| self.0.get(at + 1).is_some_and(|word| word == "lock"))
    }

    /// Whether a daemon made it that may make it anew.
    pub(super) fn is_of_a_daemon(&self) -> bool {
        self.value("proto").is_some_and(|proto| !STATIC.contains(&proto))
    }

    /// Refuses what cannot be given back as it was, or leads nowhere. `is_exact`: the route itself would be changed.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check_usable(&self, prefix: &Prefix, is_exact: bool) -> Result<(), Failure> {
        if self.0.iter().any(|word| word == "encap") {
            let sentence = format!(
                "the route to {prefix} puts packets into others, which cannot be given back as it is shown: {self}"
            );
            return Err(
                Failure::failed(sentence).help("name the controller in the command that makes the route: congctl NAME")
            );
        }
        if self.0.first().is_some_and(|word| KINDS[1..].contains(&word.as_str())) {
            return Err(Failure::failed(format!("the route to {prefix} leads nowhere: {self}")));
        }
        if is_exact && (self.value("proto") == Some("ra") || self.0.iter().any(|word| word == "expires")) {
            let sentence = format!("a router advertises the route to {prefix}, and would replace it: {self}");
            return Err(Failure::failed(sentence).help("change a smaller prefix, or make the route yourself"));
        }
        Ok(())
    }

    /// The same way to a part of its destination.
    pub(super) fn to(&self, prefix: &Prefix) -> Entry {
        let mut words = self.0.clone();
        let at = self.at_destination();
        words[at] = prefix.to_string();
        if let Some(at) = words.iter().position(|word| word == "expires") {
            words.drain(at..words.len().min(at + 2));
        }
        // Made by an administrator, so that daemons leave it alone.
        if let Some(proto) = words.iter().position(|word| word == "proto")
            && let Some(name) = words.get_mut(proto + 1)
        {
            "static".clone_into(name);
        }
        Entry(words)
    }

    /// The same, and no controller.
    pub(super) fn without_controller(&self) -> Entry {
        let mut words = self.0.clone();
        if let Some(at) = words.iter().position(|word| word == "congctl") {
            let is_locked = words.get(at + 1).is_some_and(|word| word == "lock");
            words.drain(at..words.len().min(at + 2 + usize::from(is_locked)));
        }
        Entry(words)
    }

    /// The same with this controller, which stands before the ways of a route that has several.
    pub(super) fn with_controller(&self, name: &str, lock: bool) -> Entry {
        let mut words = self.without_controller().0;
        let at = words.iter().position(|word| word == "nexthop").unwrap_or(words.len());
        let given = ["congctl"].into_iter().chain(lock.then_some("lock")).chain([name]).map(str::to_owned);
        words.splice(at..at, given);
        Entry(words)
    }

    /// Whether both say the same: the kernel lists what a route has in an order of its own.
    pub(super) fn is_same(&self, other: &Entry) -> bool {
        let sorted = |entry: &Entry| {
            let mut words = entry.0.clone();
            words.sort_unstable();
            words
        };
        sorted(self) == sorted(other)
    }

    pub(super) fn words(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str =
        "unicast default via 192.0.2.254 dev d0 proto boot scope global src 192.0.2.1 metric 100 mtu 1400 ";
    const SEVERAL: &str = "unicast 2001:db8:1::/48 proto boot scope global metric 1024 pref medium\\\tnexthop via 2001:db8::2 dev d0 weight 1 linkdown \\\tnexthop via 2001:db8::3 dev d0 weight 1 ";

    fn prefix(text: &str) -> Prefix {
        prefix::parse(text).unwrap()
    }

    #[test]
    fn a_controller_is_added_and_replaced() {
        let entry = Entry::read(DEFAULT);
        let made = entry.with_controller("narrows_gemini", false);
        assert_eq!(made.to_string(), format!("{} congctl narrows_gemini", DEFAULT.trim()));
        assert_eq!(made.controller(), Some("narrows_gemini"));
        let locked = made.with_controller("cubic", true);
        assert_eq!(locked.to_string(), format!("{} congctl lock cubic", DEFAULT.trim()));
        assert_eq!(locked.controller(), Some("cubic"));
        assert_eq!(locked.with_controller("narrows_gemini", false), made);
        let several = Entry::read(SEVERAL).with_controller("bbr", false).to_string();
        assert!(
            several.contains("pref medium congctl bbr nexthop via 2001:db8::2 dev d0 weight 1 nexthop"),
            "{several}"
        );
    }

    #[test]
    fn a_part_of_its_destination_goes_the_same_way() {
        let entry = Entry::read(DEFAULT);
        assert!(entry.is_to(&prefix("default")) && !entry.is_to(&prefix("0.0.0.0/1")));
        assert_eq!((entry.length(false), entry.metric()), (Some(0), 100));
        let part = entry.to(&prefix("198.51.100.0/24"));
        let expected = "unicast 198.51.100.0/24 via 192.0.2.254 dev d0 proto static scope global src 192.0.2.1 metric 100 mtu 1400";
        assert_eq!(part.to_string(), expected);
        assert_eq!(Entry::read("192.0.2.0/24 dev d0").to(&prefix("192.0.2.8/29")).to_string(), "192.0.2.8/29 dev d0");
    }

    #[test]
    fn what_would_not_stay_or_leads_nowhere_is_refused() {
        let to = prefix("::/0");
        assert!(Entry::read(SEVERAL).check_usable(&to, true).is_ok());
        for line in [
            "unicast default via fe80::1 dev d0 proto ra scope global metric 100 expires 1795sec pref medium",
            "unreachable default dev lo proto static metric 4294967295 error -101 pref medium",
        ] {
            Entry::read(line).check_usable(&to, true).expect_err(line);
        }
        // A part of what is advertised gets a route of its own, which does not expire.
        let advertised = Entry::read(
            "unicast default via fe80::1 dev d0 proto ra scope global metric 100 expires 1795sec pref medium",
        );
        let part = prefix("2001:db8:5::/48");
        assert!(advertised.check_usable(&part, false).is_ok());
        let expected = "unicast 2001:db8:5::/48 via fe80::1 dev d0 proto static scope global metric 100 pref medium";
        assert_eq!(advertised.to(&part).to_string(), expected);
        let of = |proto: &str| Entry::read(&format!("default via 192.0.2.2 dev d0 proto {proto}")).is_of_a_daemon();
        assert_eq!(["dhcp", "bird", "static", "boot"].map(of), [true, true, false, false]);
    }

    #[test]
    fn what_is_shown_otherwise_than_it_is_given_is_given_as_it_must() {
        for (shown, given) in [
            ("default via 192.0.2.2 dev d0 rto_min lock 5ms", "default via 192.0.2.2 dev d0 rto_min 5ms"),
            ("default nhid 5 via 192.0.2.2 dev d0 proto bgp metric 20", "default nhid 5 proto bgp metric 20"),
            ("default nhid 7 proto bgp \\ nexthop via 192.0.2.2 dev d0 weight 1", "default nhid 7 proto bgp"),
        ] {
            assert_eq!(Entry::read(shown).to_string(), given);
        }
        assert!(
            !Entry::is_usual("10.3.0.0/16 tos 0x10 via 192.0.2.3 dev d0")
                && !Entry::is_usual("default dev d0 dead linkdown")
        );
        assert!(Entry::is_usual(DEFAULT) && Entry::is_usual("default \\ nexthop dev d0 dead \\ nexthop dev d1"));
    }
}
