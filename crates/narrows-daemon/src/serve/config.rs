//! The configuration file: what this host runs. An entry's keys are the options of the command that it stands for, so that
//! what is refused, and why, is the command line's.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use narrows_kernel::{Settings, controllers};
use narrows_scenario::{Problem, parameter_value};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::log::Format;
use super::routes::Route;
use crate::failure::Failure;
use crate::{bridge, cc, key, near_source};

/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

const EXAMPLE: &str =
    "packages have an example in /usr/share/doc/narrowsd/examples, and narrowsd-file.md beside it has all keys";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Document {
    #[serde(default)]
    log: Format,
    metrics: Option<SocketAddr>,
    #[serde(default)]
    controller: BTreeMap<String, Spanned<Entry>>,
    near_source: Option<Spanned<Entry>>,
    #[serde(default)]
    bridge: BTreeMap<String, Spanned<Entry>>,
    #[serde(default)]
    route: Vec<Spanned<Route>>,
}

/// Keys and values, with their places.
type Entry = BTreeMap<String, Spanned<Value>>;

/// What the file says.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) log: Format,
    /// Where metrics are told.
    pub(super) metrics: Option<SocketAddr>,
    /// By name: `controller.gemini`, `near-source`, `bridge.paris`.
    pub(super) units: BTreeMap<String, Unit>,
    pub(super) routes: Vec<Route>,
    folder: PathBuf,
}

/// A process that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Of `narrowsd`.
    pub(super) arguments: Vec<String>,
    /// Parameters of a controller, which may change while it is loaded.
    pub(super) parameters: BTreeMap<String, String>,
    /// The interfaces that an edge router joins.
    pub(super) ends: Option<[String; 2]>,
    /// What is in the files with its secrets, in no way that betrays them: another secret is another edge router.
    pub(super) secrets: Vec<Option<[u8; 16]>>,
    /// Where relative paths begin.
    pub(super) folder: PathBuf,
}

impl Unit {
    /// The whole command line of a service that has this folder.
    pub(super) fn command_line(&self, folder: &Path) -> Vec<String> {
        let sets = self.parameters.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]);
        let mut words: Vec<String> = self.arguments.iter().cloned().chain(sets).collect();
        if self.arguments[0] == NEAR_SOURCE_UNIT {
            let metrics = near_source_metrics(folder).display().to_string();
            words.extend(["--metrics".to_owned(), metrics, "--every".to_owned(), "1".to_owned()]);
        }
        words
    }
}

/// A kind of entry.
struct Kind {
    /// The command that it stands for.
    command: &'static [&'static str],
    /// Keys that are not for the file, as `serve` sees to what they do.
    own: &'static [&'static str],
    /// The key of parameters of a controller.
    parameters: Option<&'static str>,
}

const CONTROLLER: Kind = Kind { command: &["cc", "load"], own: &["foreground", "controller"], parameters: Some("set") };
const NEAR_SOURCE: Kind = Kind { command: &["near-source"], own: &["metrics", "every"], parameters: None };
const BRIDGE: Kind = Kind { command: &["bridge"], own: &["metrics", "every"], parameters: None };

const ROUTE: &[&str] = &["cc", "route", "add"];

/// What the command line says after a wrong value, and a file's reader cannot do.
const ASIDE: &str = "For more information, try '--help'.";

/// The unit of the near-source loop.
pub(super) const NEAR_SOURCE_UNIT: &str = "near-source";

/// Where the near-source loop's metrics are written.
pub(super) fn near_source_metrics(folder: &Path) -> PathBuf {
    folder.join("near-source.prom")
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// Code 2, with the line.
    pub(super) fn read(path: &Path) -> Result<Config, Failure> {
        let cannot = |sentence: String| Failure::input(format!("{}: {sentence}", path.display())).help(EXAMPLE);
        let known = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
        if !known.is_file() || known.len() > MAX_BYTES {
            return Err(cannot("this is no file of at most 1 MiB".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
        // Not of what a link leads to: where a folder of files is replaced by another, the path stays.
        let folder = std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_owned));
        Config::parse(&text, &path.display().to_string(), folder.as_deref().unwrap_or(Path::new("/")))
    }

    fn parse(text: &str, file: &str, folder: &Path) -> Result<Config, Failure> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let said = error.to_string();
            let help = match () {
                () if said.contains("expected a sequence") => "write [[route]]: there may be several",
                () if said.contains("socket address") => "write an address and a port, as \"127.0.0.1:9936\"",
                () => EXAMPLE,
            };
            Failure::input(format!("{file}: {}", said.trim_end())).help(help)
        })?;
        let reading = Reading { text, file, folder };
        let mut units = BTreeMap::new();
        for (name, table) in &document.controller {
            let heading = format!("[controller.{name}]");
            let unit = reading.unit(&CONTROLLER, &heading, table, &[name, "--foreground"], &[])?;
            reading.check_parameters(&heading, reading.line(table.span().start), name, &unit.parameters)?;
            units.insert(format!("controller.{name}"), unit);
        }
        if let Some(table) = &document.near_source {
            let unit = reading.unit(&NEAR_SOURCE, "[near-source]", table, &[], &[])?;
            units.insert(NEAR_SOURCE_UNIT.to_owned(), unit);
        }
        for (name, table) in &document.bridge {
            let unit = reading.unit(&BRIDGE, &format!("[bridge.{name}]"), table, &[], &[("name", name)])?;
            units.insert(format!("bridge.{name}"), unit);
        }
        let twice = |of: &dyn Fn(&Unit) -> Vec<String>| {
            let mut seen: BTreeMap<String, &String> = BTreeMap::new();
            units.iter().find_map(|(name, unit)| {
                let found = of(unit).into_iter().find_map(|one| Some((seen.insert(one.clone(), name)?, one)));
                found.map(|(other, one)| (other.clone(), name.clone(), one))
            })
        };
        if let Some((one, other, interface)) = twice(&|unit| unit.ends.iter().flatten().cloned().collect()) {
            let sentence = format!("{file}: {one} and {other} both join {interface}");
            return Err(Failure::input(sentence).help("an interface is of one edge router"));
        }
        let default = |unit: &Unit| unit.arguments.iter().filter(|word| *word == "--default").cloned().collect();
        if let Some((one, other, _)) = twice(&default) {
            let sentence = format!("{file}: {one} and {other} are both to be the default");
            return Err(Failure::input(sentence).help("a network namespace has one"));
        }
        let mut routes: Vec<Route> = vec![];
        for route in document.route {
            let line = reading.line(route.span().start);
            let route = route.into_inner();
            reading.check(ROUTE, &route.given(), "[[route]]", line, &Entry::new())?;
            if routes.iter().any(|other| other.is_to_what(&route)) {
                let sentence = format!("there is another for {}", route.prefix());
                return Err(reading.cannot("[[route]]", line, &sentence, Some("a prefix uses one controller")));
            }
            routes.push(route);
        }
        Ok(Config { log: document.log, metrics: document.metrics, units, routes, folder: folder.to_owned() })
    }

    /// Where relative paths begin.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether each unit could be started so, as far as that can be known without starting it. Of those that `run` also their
    /// interfaces must be there.
    ///
    /// # Errors
    /// The first that could not.
    pub(super) fn check(&self, runs: impl Fn(&str) -> bool) -> Result<(), Failure> {
        for (name, unit) in &self.units {
            let words = unit.command_line(Path::new(""));
            let parsed = crate::Arguments::try_parse_from(std::iter::once("narrowsd".to_owned()).chain(words));
            let checked = match parsed.map(|parsed| parsed.command) {
                Ok(crate::Command::Bridge(arguments)) => bridge::check(&arguments),
                Ok(crate::Command::NearSource(arguments)) => near_source::check(&arguments),
                _ => Ok(()),
            };
            if let Err(failure) = checked {
                let (code, sentence, help) = failure.parts();
                if code == 2 || runs(name) {
                    return Err(Failure::new(2, format!("{name}: {sentence}"), help));
                }
            }
        }
        Ok(())
    }

    /// Whether the controllers of routes are there, or come with this file; what else is to be said of them.
    ///
    /// # Errors
    /// Code 2 where a name is nearly that of one of ours.
    pub(super) fn check_routes(&self, is_registered: impl Fn(&str) -> bool) -> Result<Vec<String>, Failure> {
        let ours: Vec<&str> = controllers::CONTROLLERS.iter().map(|controller| controller.spec.name).collect();
        let mut warnings = vec![];
        for route in &self.routes {
            let (name, heading) = (route.controller(), format!("[[route]] {}", route.prefix()));
            let known = controllers::find(name).ok();
            if is_registered(known.map_or(name, |known| known.registered)) {
                continue;
            }
            match known {
                Some(known) if self.units.contains_key(&format!("controller.{}", known.spec.name)) => {}
                Some(_) => {
                    warnings.push(format!("{heading}: waits until {name} is loaded, which this file does not do"))
                }
                None => match cc::guess(name, &ours) {
                    Some(help) => {
                        return Err(Failure::input(format!("{heading}: unknown controller `{name}`")).help(help));
                    }
                    None => warnings.push(format!(
                        "{heading}: the controller {name} is not available now: load it before the service starts, or reload then"
                    )),
                },
            }
        }
        Ok(warnings)
    }

    /// What would be run, a command on a line.
    pub(super) fn described(&self) -> String {
        let line = |words: Vec<String>| {
            let quoted = |word: String| if word.contains(' ') { format!("'{word}'") } else { word };
            format!("narrowsd {}\n", words.into_iter().map(quoted).collect::<Vec<_>>().join(" "))
        };
        let units = self.units.values().map(|unit| line(unit.command_line(Path::new("FOLDER"))));
        let routes = self.routes.iter().map(|route| line(route.to_add().into_iter().map(str::to_owned).collect()));
        let metrics = self.metrics.map(|address| format!("metrics at http://{address}/metrics\n"));
        let all: String = units.chain(routes).chain(metrics).collect();
        if all.is_empty() { "nothing would be run\n".to_owned() } else { all }
    }
}

/// The file while it is read.
struct Reading<'a> {
    text: &'a str,
    file: &'a str,
    folder: &'a Path,
}

impl Reading<'_> {
    /// An entry as a command line: `given` follows the command, and each of `usual` is an option unless the entry has it.
    fn unit(
        &self,
        kind: &Kind,
        heading: &str,
        table: &Spanned<Entry>,
        given: &[&str],
        usual: &[(&str, &str)],
    ) -> Result<Unit, Failure> {
        let heading_line = self.line(table.span().start);
        let options = options(kind.command);
        let mut arguments: Vec<String> = kind.command.iter().chain(given).map(|&word| word.to_owned()).collect();
        for (key, value) in usual.iter().filter(|(key, _)| !table.get_ref().contains_key(*key)) {
            arguments.extend([format!("--{key}"), (*value).to_owned()]);
        }
        let mut parameters = BTreeMap::new();
        for (key, value) in table.get_ref() {
            let (line, value) = (self.line(value.span().start), value.as_ref());
            let names = options.iter().map(|(name, _)| name.as_str()).filter(|name| !kind.own.contains(name));
            if !names.clone().any(|name| name == key) {
                let problem = Problem::unknown_name("key", key, names);
                return Err(self.cannot(heading, line, &problem.to_string(), problem.help()));
            }
            let takes_value = options.iter().any(|(name, takes_value)| name == key && *takes_value);
            match value {
                Value::Table(table) if kind.parameters == Some(key) => {
                    for (key, value) in table {
                        let value = self.scalar(heading, line, key, value)?;
                        parameters.insert(key.clone(), value);
                    }
                }
                _ if kind.parameters == Some(key) => {
                    let sentence = format!("{key} is a table, as {{ t = \"2ms\" }}");
                    return Err(self.cannot(heading, line, &sentence, None));
                }
                Value::Boolean(yes) if !takes_value => arguments.extend(yes.then(|| format!("--{key}"))),
                _ if !takes_value => {
                    return Err(self.cannot(heading, line, &format!("{key} is true or false"), None));
                }
                Value::Boolean(_) => {
                    return Err(self.cannot(heading, line, &format!("{key} is a text or a number"), None));
                }
                value => arguments.extend([format!("--{key}"), self.scalar(heading, line, key, value)?]),
            }
        }
        let text = |key: &str| Some(table.get_ref().get(key)?.as_ref().as_str()?.to_owned());
        let ends = text("inside").zip(text("outside")).map(|(inside, outside)| [inside, outside]);
        let files = ["key", "other-key"].iter().filter_map(|key| table.get_ref().get(*key)?.as_ref().as_str());
        let secret = |file: &str| Some(key::read(&self.folder.join(file)).ok()?.tag(b"which of them it is"));
        let secrets = files.map(secret).collect();
        let unit = Unit { arguments, parameters, ends, secrets, folder: self.folder.to_owned() };
        let words = unit.command_line(Path::new(""));
        let rest: Vec<&str> = words.iter().skip(kind.command.len()).map(String::as_str).collect();
        self.check(kind.command, &rest, heading, heading_line, table.get_ref())?;
        Ok(unit)
    }

    /// Of a place in the file.
    fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    /// Whether there is such a controller, and it takes these parameters.
    fn check_parameters(
        &self,
        heading: &str,
        line: usize,
        name: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let names = controllers::CONTROLLERS.iter().map(|controller| controller.spec.name);
        let wrong = |problem: Problem| self.cannot(heading, line, &problem.to_string(), problem.help());
        let refused =
            |error: narrows_kernel::Error| self.cannot(heading, line, &error.to_string(), error.help().as_deref());
        let found = controllers::find(name).map_err(|_| wrong(Problem::unknown_name("controller", name, names)))?;
        let mut settings = Settings::defaults(found);
        for (key, value) in parameters {
            let value = parameter_value(found.spec, key, value).map_err(wrong)?;
            settings.set(key, value).map_err(refused)?;
        }
        settings.check().map_err(refused)
    }

    fn scalar(&self, heading: &str, line: usize, key: &str, value: &Value) -> Result<String, Failure> {
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(value.to_string()),
            _ => {
                let sentence = format!("{key} is a text, a number, true or false");
                Err(self.cannot(heading, line, &sentence, None))
            }
        }
    }

    /// Whether the command line takes this.
    fn check(
        &self,
        command: &[&str],
        words: &[&str],
        heading: &str,
        line: usize,
        entry: &Entry,
    ) -> Result<(), Failure> {
        let Err(error) = crate::Arguments::try_parse_from([&["narrowsd"], command, words].concat()) else {
            return Ok(());
        };
        let said = error.render().to_string();
        let sentences: Vec<&str> = said.lines().take_while(|line| !line.starts_with("Usage:")).map(str::trim).collect();
        let sentence = sentences.join(" ");
        let sentence = sentence.trim().trim_start_matches("error: ").trim_end_matches(ASIDE).trim();
        // The option that it speaks of, if that is the file's.
        let named = entry.iter().find(|(key, _)| sentence.contains(&format!("'--{key} ")));
        let line = named.map_or(line, |(_, value)| self.line(value.span().start));
        let help = format!("its keys are the options of `narrowsd {} --help`", command.join(" "));
        Err(self.cannot(heading, line, sentence, Some(&help)))
    }

    fn cannot(&self, heading: &str, line: usize, sentence: &str, help: Option<&str>) -> Failure {
        Failure::input(format!("{}:{line}: {heading}: {sentence}", self.file)).help(help.unwrap_or(EXAMPLE))
    }
}

/// The long options of a command, and whether they take a value.
fn options(command: &[&str]) -> Vec<(String, bool)> {
    let mut found = crate::Arguments::command();
    for name in command {
        found = found.find_subcommand(name).cloned().unwrap_or(found);
    }
    let known =
        found.get_arguments().filter_map(|one| Some((one.get_long()?.to_owned(), one.get_action().takes_values())));
    known.filter(|(name, _)| name != "help").collect()
}

/// The default of a controller's parameter, as one writes it.
pub(super) fn default_of(controller: &str, parameter: &str) -> Option<String> {
    let known = controllers::find(controller).ok()?;
    let found = known.spec.parameters.iter().find(|found| found.name == parameter)?;
    Some(narrows_scenario::describe_value(found, found.default))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Config, String> {
        Config::parse(text, "narrowsd.toml", Path::new("/etc/narrows")).map_err(|failure| failure.to_string())
    }

    const WHOLE: &str = r#"
log = "json"
metrics = "127.0.0.1:9136"

[controller.gemini]
set = { capacity = "10Gbps", t = "2ms", ecn = true }

[near-source]
senders = "senders.toml"

[bridge.paris]
inside = "eth1"
outside = "eth0"
peer = "frankfurt"
key = "bridge.key"
rate = "10Gbps"
tunnel = 3

[[route]]
prefix = "10.2.0.0/16"
controller = "gemini"
"#;

    #[test]
    fn an_entry_is_a_command_line() {
        let config = parsed(WHOLE).expect("all is good");
        insta::assert_snapshot!(config.described());
        assert_eq!(config.log, Format::Json);
        assert_eq!(config.units["bridge.paris"].folder, Path::new("/etc/narrows"));
    }

    #[test]
    fn the_example_of_the_package_is_good() {
        let text = include_str!("../../packaging/examples/narrowsd.toml");
        assert_eq!(parsed(text).expect("it is good").units.len(), 0, "all of it is a comment");
        let all: String = text.lines().map(|line| format!("{}\n", line.strip_prefix('#').unwrap_or(line))).collect();
        let config = parsed(&all.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n"));
        let config = config.expect("what is commented out is good");
        assert_eq!(config.units.keys().collect::<Vec<_>>(), ["bridge.paris", "controller.gemini", "near-source"]);
        assert_eq!(config.routes.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = [
            "lgo = \"json\"",
            "log = \"xml\"",
            "metrics = \"9136\"",
            "\n[controller.gemni]",
            "\n[controller.gemini]\nst = { t = \"2ms\" }",
            "\n[controller.gemini]\nforeground = true",
            "\n[controller.gemini]\nset = { t = [1] }",
            "\n[controller.gemini]\nset = \"t=2ms\"",
            "\n[controller.gemini]\nfallback = false",
            "\n[controller.gemini]\ndefault = \"yes\"",
            "\n[controller.vegas]\nset = { alpha = \"8pkt\", beta = \"4pkt\" }",
            "[bridge.paris]\ninside = \"eth1\"",
            "[near-source]\nsenders = \"a\"\nline-rate = \"fast\"",
            "[[route]]\nprefix = \"10.2.0.0/40\"\ncontroller = \"gemini\"",
            "[route]\nprefix = \"10.2.0.0/16\"\ncontroller = \"gemini\"",
            "[[route]]\nprefix = \"10.2.0.0/16\"\ncontroller = \"gemini\"\ntable = 254\n[[route]]\nprefix = \"10.2.0.0/16\"\ncontroller = \"cubic\"",
            "[controller.vegas]\ndefault = true\n[controller.dctcp]\ndefault = true",
            "[bridge.a]\ninside = \"eth1\"\noutside = \"eth0\"\npeer = \"x\"\nkey = \"k\"\nrate = \"1Gbps\"\n[bridge.b]\ninside = \"eth2\"\noutside = \"eth0\"\npeer = \"x\"\nkey = \"k\"\nrate = \"1Gbps\"",
            "[[route]]\nprefix = \"10.2.0.0/16\"\ncontroller = \"gemini\"\n[[route]]\nprefix = \"10.2.0.0/16\"\ncontroller = \"cubic\"",
        ];
        let said: Vec<String> = wrong.iter().map(|text| format!("{}\n", parsed(text).expect_err(text))).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn controllers_of_routes_are_checked() {
        let checked = |name: &str, more: &str| {
            let text = format!("[[route]]\nprefix = \"10.2.0.0/16\"\ncontroller = \"{name}\"\n{more}");
            let config = parsed(&text).expect("the command line knows no names");
            config.check_routes(|name| name == "reno").map_err(|failure| failure.to_string())
        };
        assert_eq!(checked("gemini", "[controller.gemini]"), Ok(vec![]));
        let waits = checked("gemini", "[controller.vegas]").expect("somebody may load it");
        assert_eq!(waits, ["[[route]] 10.2.0.0/16: waits until gemini is loaded, which this file does not do"]);
        assert_eq!(checked("reno", ""), Ok(vec![]));
        let later = checked("veno", "").expect("modprobe may bring it");
        assert_eq!(
            later,
            [
                "[[route]] 10.2.0.0/16: the controller veno is not available now: load it before the service starts, or reload then"
            ]
        );
        let refused = checked("gemnii", "[controller.gemini]").expect_err("there is none");
        assert!(refused.contains("[[route]] 10.2.0.0/16: unknown controller `gemnii`"), "{refused}");
        assert!(refused.contains("did you mean `gemini`?"), "{refused}");
    }

    /// Lines of the whole file gone, doubled and elsewhere, and bits of it changed: `PROPTEST_CASES` says how many files.
    fn faulty() -> impl Strategy<Value = String> {
        let fault = (0..5_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<char>());
        prop::collection::vec(fault, 1..4).prop_map(|faults| {
            let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
            for (kind, one, other, letter) in faults {
                let (line, target) = (one.index(lines.len()), other.index(lines.len()));
                let mut letters: Vec<char> = lines[line].chars().collect();
                let at = other.index(letters.len() + 1);
                match kind {
                    0 if lines.len() > 1 => drop(lines.remove(line)),
                    1 => lines.insert(target, lines[line].clone()),
                    2 => lines.swap(line, target),
                    3 => {
                        letters.insert(at, letter);
                        lines[line] = letters.into_iter().collect();
                    }
                    _ => {
                        letters.truncate(at);
                        lines[line] = letters.into_iter().collect();
                    }
                }
            }
            lines.join("\n")
        })
    }

    proptest! {
        #[test]
        fn a_file_with_faults_is_read_or_refused_with_its_name_and_help(text in faulty()) {
            match Config::parse(&text, "narrowsd.toml", Path::new("/etc/narrows")) {
                Ok(config) => {
                    prop_assert!(!config.described().is_empty());
                    prop_assert!(config.units.values().all(|unit| !unit.arguments.is_empty()));
                }
                Err(failure) => {
                    let (code, sentence, help) = failure.parts();
                    prop_assert_eq!(code, 2);
                    prop_assert!(sentence.starts_with("narrowsd.toml:"), "{}", sentence);
                    prop_assert!(help.is_none_or(|help| !help.is_empty()), "{}", failure);
                }
            }
        }
    }

    #[test]
    fn a_default_is_written_as_it_is_read() {
        for controller in controllers::CONTROLLERS {
            for parameter in controller.spec.parameters {
                let name = controller.spec.name;
                let Some(text) = default_of(name, parameter.name).filter(|text| text != "required") else { continue };
                let read = parameter_value(controller.spec, parameter.name, &text);
                assert!(read.is_ok_and(|value| value == parameter.default), "{name} {}: {text}", parameter.name);
            }
        }
    }
}
