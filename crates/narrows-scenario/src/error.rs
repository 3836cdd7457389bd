//! What can be wrong with an experiment: typed problems, where they stand, and a way out.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::suggest::nearest;

/// What is wrong. `Display` is one sentence; [`help`](Problem::help) is what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot read `{}`: {}", path.display(), reason(*kind))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        kind: std::io::ErrorKind,
    },
    /// A FIFO, a device or a socket.
    #[error("`{}` is not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text.
    #[error("`{}` is not UTF-8 text", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// A file reference leaves the experiment's folder.
    #[error("`{path}` is outside the experiment's folder")]
    OutsideFolder {
        /// As written.
        path: String,
    },
    /// Not TOML, or a value of the wrong shape.
    #[error("{sentence}")]
    Malformed {
        /// What the reader says.
        sentence: String,
        /// What to do about it, if the reader knows.
        help: Option<String>,
    },
    /// A key that means nothing here.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// As written.
        key: String,
        /// What may stand here.
        known: Vec<String>,
    },
    /// A name that is none of those known.
    #[error("unknown {what} `{name}`")]
    UnknownName {
        /// What it should name.
        what: &'static str,
        /// As written.
        name: String,
        /// What there is; empty if that would not help.
        known: Vec<String>,
    },
    /// A path that leads nowhere.
    #[error("the path `{path}` leads nowhere: {what} has no `{segment}`")]
    UnknownPath {
        /// As written.
        path: String,
        /// What was reached.
        what: String,
        /// What it does not have.
        segment: String,
        /// What it has.
        known: Vec<String>,
    },
    /// A sweep sets a value, or a part of it, on two axes or twice on one.
    #[error("the sweep sets `{path}` {}", again(path, earlier))]
    SetTwice {
        /// As written.
        path: String,
        /// The one before it, which is the same, lies in it, or holds it.
        earlier: String,
    },
    /// A needed key is absent.
    #[error("`{key}` is missing")]
    Missing {
        /// The key.
        key: &'static str,
        /// What to write.
        example: &'static str,
    },
    /// Not exactly one of several keys.
    #[error("{what} needs exactly one of {}", list(keys))]
    OneOf {
        /// What needs it.
        what: &'static str,
        /// The keys.
        keys: &'static [&'static str],
    },
    /// A key that another makes meaningless.
    #[error("`{key}` means nothing {place}")]
    NotHere {
        /// The key.
        key: &'static str,
        /// Where: `beside \`long\``.
        place: &'static str,
    },
    /// Outside its range.
    #[error("{what} is {value}, outside {least} to {most}")]
    OutOfRange {
        /// What.
        what: String,
        /// As written.
        value: String,
        /// Least allowed.
        least: String,
        /// Most allowed.
        most: String,
    },
    /// More than a bound that protects the machine.
    #[error("{what}: {value} is more than the {most} that are allowed")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many.
        value: u64,
        /// How many are allowed.
        most: u64,
    },
    /// More connections than a host can number.
    #[error("host `{host}` would open about {connections} connections, and {most} are allowed")]
    TooManyConnections {
        /// Its name.
        host: String,
        /// How many, of all traffic.
        connections: u64,
        /// How many are allowed.
        most: u64,
    },
    /// Zero where something is needed.
    #[error("{what} is zero")]
    Zero {
        /// What.
        what: &'static str,
    },
    /// A buffer that cannot hold a packet.
    #[error("{what} of {bytes} B holds not one packet of 1500 B")]
    NoRoomForAPacket {
        /// Which buffer.
        what: &'static str,
        /// Its size.
        bytes: u64,
    },
    /// A class of a port that cannot hold a packet.
    #[error("one of {classes} equal shares of the buffer of `{port}` holds not one packet of 1500 B")]
    NoRoomForAClass {
        /// The first such port.
        port: String,
        /// How many classes share it.
        classes: u64,
    },
    /// Ports with classes, and ports with congestion points.
    #[error("`{port}` serves several classes and `{sampled}` has a congestion point: one network cannot have both yet")]
    ClassesAndPoints {
        /// The first port with a scheduler.
        port: String,
        /// The first port with a congestion point.
        sampled: String,
    },
    /// A class that a port does not have.
    #[error("class {class} has no queue at `{port}`, which serves {classes} classes")]
    NoSuchClass {
        /// As written.
        class: u8,
        /// The first such port.
        port: String,
        /// How many it has.
        classes: usize,
    },
    /// A component's parameter of the wrong kind.
    #[error("parameter `{parameter}` of `{component}` is {expected}")]
    WrongKind {
        /// The component.
        component: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What it is: `a length of time such as "5ms"`.
        expected: String,
    },
    /// A line of a distribution.
    #[error("{file}:{line}: {fault}")]
    Distribution {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        fault: CdfFault,
    },
    /// A line of a list of flows.
    #[error("{file}:{line}: {fault}")]
    FlowLine {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        fault: FlowFault,
    },
    /// No host is called so.
    #[error("no host matches `{pattern}`")]
    NoSuchHost {
        /// As written.
        pattern: String,
        /// Hosts that there are.
        known: Vec<String>,
    },
    /// No link is called so.
    #[error("no link matches `{pattern}`")]
    NoSuchLink {
        /// As written.
        pattern: String,
        /// Links that there are.
        known: Vec<String>,
    },
    /// Nobody is left to send or to receive.
    #[error("nobody can send to anybody: {why}")]
    NoPairs {
        /// Why.
        why: &'static str,
    },
    /// No path between two hosts that exchange data.
    #[error("no path leads from `{from}` to `{to}`")]
    Unreachable {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
    /// A load of links that no flow crosses.
    #[error("no flow of this traffic crosses `{of}`")]
    NotCrossed {
        /// The links.
        of: String,
    },
    /// Two things of one name.
    #[error("two {what} are called `{name}`")]
    Duplicate {
        /// What they are.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// Nothing is compared.
    #[error("there is no [[arm]]")]
    NoArms,
    /// An arm leaves a traffic without a controller.
    #[error("no controller is named for the traffic `{traffic}`")]
    NoController {
        /// The traffic.
        traffic: String,
    },
    /// A controller that needs ECN is denied it.
    #[error("`{controller}` cannot run without ECN")]
    NeedsEcn {
        /// The controller.
        controller: &'static str,
    },
    /// Ends before it begins.
    #[error("{what} ends at {end}, not after its start at {start}")]
    EndsBeforeStart {
        /// What.
        what: &'static str,
        /// When it begins.
        start: String,
        /// When it ends.
        end: String,
    },
    /// Would not fit the machine.
    #[error("a run of scheme `{arm}` would need about {needed} of memory, and {allowed} are allowed")]
    TooLargeForMemory {
        /// The arm.
        arm: String,
        /// Estimate.
        needed: String,
        /// Limit of the caller.
        allowed: String,
    },
    /// A caller's `--set` or `--seeds` that cannot be read.
    #[error("`{text}` is not {expected}")]
    BadOverride {
        /// As given.
        text: String,
        /// What is.
        expected: &'static str,
    },
}

/// What is wrong with a line of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CdfFault {
    /// Not two numbers.
    #[error("a line is a size in bytes and a cumulative probability")]
    NotTwoNumbers,
    /// A size below the one before.
    #[error("sizes must not go down")]
    SizesGoDown,
    /// A probability below the one before.
    #[error("cumulative probabilities must not go down")]
    ProbabilitiesGoDown,
    /// The last probability is neither 1 nor 100.
    #[error("the last cumulative probability must be 1 (or 100)")]
    DoesNotEndAtOne,
    /// Too long, or a size too large.
    #[error("a distribution has at most 10000 points, and sizes of at most 10 TB")]
    TooLarge,
    /// All sizes are zero.
    #[error("every size is zero")]
    Empty,
}

/// What is wrong with a line of a list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowFault {
    /// Not six columns.
    #[error("a line is `source destination priority port bytes start-seconds`")]
    Columns,
    /// A host number out of range, or twice the same.
    #[error("hosts are two different numbers below the number of hosts")]
    Hosts,
    /// The first line's count is wrong.
    #[error("the first line states how many flows follow, at most 1000000")]
    Count,
}

impl Problem {
    /// What to do about it: one line.
    pub fn help(&self) -> Option<String> {
        let or_list = |name: &str, known: &[String], what: &str| match nearest(name, known) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if known.is_empty() => None,
            None => Some(format!("{what}: {}", shortened(known))),
        };
        match self {
            Problem::Unreadable { kind: std::io::ErrorKind::IsADirectory, .. } => {
                Some("give the path of an experiment file".to_owned())
            }
            Problem::Unreadable { .. } => Some("check the path and the rights".to_owned()),
            Problem::NotRegular { .. } => Some("save it as a file first".to_owned()),
            Problem::NotUtf8 { .. } => Some("save it as UTF-8".to_owned()),
            Problem::OutsideFolder { .. } => {
                Some("put the file beside the experiment and name it relatively".to_owned())
            }
            Problem::Malformed { help, .. } => Some(
                help.clone()
                    .unwrap_or_else(|| "docs/reference/experiment-file.md shows what may stand here".to_owned()),
            ),
            Problem::UnknownKey { key, known } => or_list(key, known, "what may stand here"),
            Problem::UnknownName { name, known, .. } => or_list(name, known, "there are"),
            Problem::UnknownPath { segment, known, .. } => or_list(segment, known, "it has"),
            Problem::SetTwice { .. } => {
                Some("leave it to one axis; an axis \"a, b\" sets both to the same values".to_owned())
            }
            Problem::Missing { example, .. } => Some(format!("write `{example}`")),
            Problem::OneOf { .. } => Some("write one of them and no other".to_owned()),
            Problem::NotHere { .. } => Some("take it away".to_owned()),
            Problem::OutOfRange { least, most, .. } => Some(format!("choose a value from {least} to {most}")),
            Problem::TooManyConnections { .. } => {
                Some("choose a smaller pool, fewer hosts, a lower load or an earlier end".to_owned())
            }
            Problem::TooMany { .. } => Some("make the experiment smaller, or split it".to_owned()),
            Problem::Zero { .. } => Some("choose a value above zero".to_owned()),
            Problem::NoRoomForAPacket { .. } => Some("make it larger; a useful one holds many packets".to_owned()),
            Problem::NoRoomForAClass { .. } => {
                Some("make its limit or its pool larger, or have fewer classes".to_owned())
            }
            Problem::ClassesAndPoints { .. } => {
                Some("set `scheduler = \"fifo\"`, or `congestion-point = \"none\"`".to_owned())
            }
            Problem::NoSuchClass { classes, .. } => {
                Some(format!("classes count from 0: choose one up to {}, or state more `weights`", classes - 1))
            }
            Problem::WrongKind { component, .. } => Some(format!("`narrows show {component}` lists its parameters")),
            Problem::Distribution { fault, .. } => Some(
                match fault {
                    CdfFault::DoesNotEndAtOne => "end the table with the largest size and probability 1",
                    _ => "write it like `10000 0.15`, ascending",
                }
                .to_owned(),
            ),
            Problem::FlowLine { .. } => Some("write it like `0 5 3 100 1000000 0.01`".to_owned()),
            Problem::NoSuchHost { pattern, known } => or_list(pattern, known, "hosts"),
            Problem::NoSuchLink { pattern, known } => or_list(pattern, known, "links"),
            Problem::NoPairs { .. } => {
                Some("choose senders and receivers with `between`, or with `from` and `to`".to_owned())
            }
            Problem::Unreachable { .. } => Some("add a link between their switches".to_owned()),
            Problem::NotCrossed { .. } => Some("name links that its flows cross".to_owned()),
            Problem::Duplicate { .. } => Some("rename one of them".to_owned()),
            Problem::NoArms => Some("add one: [[arm]] with `name = \"DCTCP\"` and `cc = \"dctcp\"`".to_owned()),
            Problem::NoController { .. } => {
                Some("give the scheme (`[[arm]]`), the traffic or the whole file a `cc`".to_owned())
            }
            Problem::NeedsEcn { .. } => Some("take `ecn = false` away".to_owned()),
            Problem::EndsBeforeStart { .. } => Some("move the end after the start".to_owned()),
            Problem::TooLargeForMemory { .. } => {
                Some("lower the load, the run's end, the buffers or the number of hosts".to_owned())
            }
            Problem::BadOverride { .. } => Some("write --set path=value, --seeds 1..10".to_owned()),
        }
    }
}

fn reason(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::NotFound => "there is no such file",
        std::io::ErrorKind::PermissionDenied => "permission is denied",
        std::io::ErrorKind::FileTooLarge => "it is too large",
        std::io::ErrorKind::IsADirectory => "it is a folder",
        _ => "reading fails",
    }
}

/// How a path and an earlier one of the sweep are in each other's way.
fn again(path: &str, earlier: &str) -> String {
    if path == earlier { "twice".to_owned() } else { format!("and, before it, `{earlier}`: one holds the other") }
}

fn list(keys: &[&str]) -> String {
    let quoted: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The first few names of a list.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 24;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// A problem and the bytes of the text that cause it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) problem: Problem,
    pub(crate) span: Range<usize>,
}

impl Problem {
    /// This problem, caused by these bytes.
    pub(crate) fn at(self, span: &Range<usize>) -> Box<Fault> {
        Box::new(Fault { problem: self, span: span.clone() })
    }
}

/// Result of everything that judges located text. Boxed: errors are rare and large.
pub(crate) type Judged<T> = Result<T, Box<Fault>>;

/// The text of an experiment, and after it the caller's overrides.
#[derive(Debug)]
pub(crate) struct Source {
    /// As shown to people.
    pub(crate) name: String,
    /// The file, a newline, and each override on a line.
    pub(crate) text: String,
    /// Where the overrides begin.
    pub(crate) overrides: usize,
}

/// A problem with its place. `Display` is `file:line:column: sentence`; [`render`](Error::render) adds the line and help.
#[derive(Clone, Debug)]
pub struct Error {
    problem: Problem,
    span: Range<usize>,
    source: Arc<Source>,
}

impl Error {
    pub(crate) fn new(fault: Fault, source: Arc<Source>) -> Error {
        let end = fault.span.end.min(source.text.len());
        let start = fault.span.start.min(end);
        Error { problem: fault.problem, span: start..end, source }
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Whether a place in the text is known.
    fn placed(&self) -> bool {
        !self.span.is_empty()
    }

    /// Line and column, from 1, columns in characters; `None` if the problem is with the file as a whole.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        if !self.placed() {
            return None;
        }
        let from = if self.span.start >= self.source.overrides { self.source.overrides } else { 0 };
        let before = &self.source.text[from..floor_boundary(&self.source.text, self.span.start)];
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        Some((before.matches('\n').count() + 1, column))
    }

    /// Name of the file, or `--set`.
    fn file(&self) -> &str {
        if self.placed() && self.span.start >= self.source.overrides { "--set" } else { &self.source.name }
    }

    /// Place, sentence, the offending line underlined, and help.
    pub fn render(&self) -> String {
        use fmt::Write;
        let mut out = format!("{self}\n");
        if let Some((number, column)) = self.line_and_column() {
            let text = &self.source.text;
            let start = floor_boundary(text, self.span.start);
            let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
            let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
            let line = text[line_start..line_end].trim_end();
            let marked_end = floor_boundary(text, self.span.end.min(line_start + line.len()));
            let width = text.get(start..marked_end).map_or(1, |marked| marked.chars().count()).max(1);
            let (line, column, width) = around(line, column - 1, width);
            let number = number.to_string();
            let gutter = " ".repeat(number.len());
            let indent: String = line.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let _ = writeln!(out, "{gutter} |\n{number} | {line}\n{gutter} | {indent}{}", "^".repeat(width));
        }
        if let Some(help) = self.problem.help() {
            let _ = writeln!(out, "help: {}", shown(&help));
        }
        // The text is not ours: what would steer a terminal is shown as a replacement character.
        let steers = |character: char| character.is_control() && !"\n\t".contains(character);
        out.chars().map(|character| if steers(character) { '\u{fffd}' } else { character }).collect()
    }
}

/// Characters of a line, or of a sentence, that are shown at most.
const MAX_SHOWN: usize = 200;

/// What is shown of a line of which `width` characters from `column` on are marked, and where the mark is in it.
fn around(line: &str, column: usize, width: usize) -> (String, usize, usize) {
    let from = if column + width <= MAX_SHOWN { 0 } else { column.saturating_sub(MAX_SHOWN / 4) };
    let mut rest = line.chars().skip(from);
    let shown: String = rest.by_ref().take(MAX_SHOWN).collect();
    let (before, after) = (if from > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    let width = width.min(MAX_SHOWN - (column - from));
    (format!("{before}{shown}{after}"), column - from + before.chars().count(), width)
}

/// A sentence, without its middle if it is long: it may quote a name of any length.
fn shown(sentence: &str) -> String {
    let length = sentence.chars().count();
    if length <= 2 * MAX_SHOWN {
        return sentence.to_owned();
    }
    let (head, tail) = (sentence.chars().take(MAX_SHOWN), sentence.chars().skip(length - MAX_SHOWN));
    head.chain(['…']).chain(tail).collect()
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file())?;
        if let Some((line, column)) = self.line_and_column() {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", shown(&self.problem.to_string()))
    }
}

impl std::error::Error for Error {}

impl miette::Diagnostic for Error {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source.text)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        self.placed().then(|| {
            let label = miette::LabeledSpan::new_with_span(None, self.span.clone());
            Box::new(std::iter::once(label)) as Box<dyn Iterator<Item = miette::LabeledSpan>>
        })
    }
}
