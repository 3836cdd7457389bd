//! What can be wrong with an experiment: typed problems, where they stand, and a way out.

use std::fmt::{self, Display};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::suggest::nearest;

/// Keys that were, and what to write now.
const FORMER: &[(&str, &str)] = &[
    (
        "receive-offload-segments",
        "write `receive-offload = \"off\"` for 1, and `receive-offload = { custom = { segments = 8 } }` for another number",
    ),
    (
        "receive-offload-gap",
        "what one poll of the adapter finds is merged; its interrupts: `receive-offload = { custom = { interrupt-gap = \"50us\" } }`",
    ),
];

/// Keys of the file itself that people look for in its tables.
const OF_THE_FILE: &[&str] = &["title", "routing", "cc", "ecn"];

/// What is wrong. `Display` is one sentence; [`help`](Problem::help) is what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{sentence}")]
pub struct Problem {
    sentence: String,
    help: Option<String>,
    /// The component of whose parameter it is.
    component: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(sentence: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem { sentence: sentence.into(), help: Some(help.into()), component: None }
    }

    /// Not TOML, or a value of the wrong shape: the sentence is the reader's.
    pub(crate) fn malformed(sentence: impl Into<String>) -> Problem {
        Problem::new(sentence, "docs/reference/experiment-file.md shows what is allowed here")
    }

    /// A key of earlier versions, and what to write in its place.
    fn former(key: &str) -> Option<Problem> {
        let (_, help) = FORMER.iter().find(|(former, _)| *former == key)?;
        Some(Problem::new(format!("the key `{key}` is no more"), *help))
    }

    /// A name that is none of those known: the nearest helps, or else all of them under this heading.
    fn unlisted(sentence: String, name: &str, known: impl IntoIterator<Item: AsRef<str>>, heading: &str) -> Problem {
        let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
        let help = match nearest(name, &known) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if known.is_empty() => None,
            None => Some(format!("{heading}: {}", shortened(&known))),
        };
        Problem { sentence, help, component: None }
    }

    pub(crate) fn unknown_key(key: &str, known: Vec<String>) -> Problem {
        let heading = if OF_THE_FILE.contains(&key) {
            format!("`{key}` stands at the top of the file, before the first table; allowed here")
        } else {
            "allowed here".to_owned()
        };
        let unlisted = || Problem::unlisted(format!("unknown key `{key}`"), key, known, &heading);
        Problem::former(key).unwrap_or_else(unlisted)
    }

    /// A name that is none of those known; there may be none, if they would not help.
    pub fn unknown_name(what: &str, name: &str, known: impl IntoIterator<Item: AsRef<str>>) -> Problem {
        Problem::unlisted(format!("unknown {what} `{name}`"), name, known, "there are")
    }

    /// A path to no key: what was reached, and what it does not have.
    pub(crate) fn unknown_path(path: &str, what: &str, segment: &str, known: Vec<String>) -> Problem {
        let sentence = format!("the path `{path}` does not exist: {what} has no `{segment}`");
        Problem::former(segment).unwrap_or_else(|| Problem::unlisted(sentence, segment, known, "it has"))
    }

    /// No host or no link is called so.
    pub(crate) fn no_such(what: &str, pattern: &str, known: Vec<String>) -> Problem {
        Problem::unlisted(format!("no {what} matches `{pattern}`"), pattern, known, &format!("{what}s"))
    }

    pub(crate) fn unreadable(path: &Path, kind: ErrorKind) -> Problem {
        let help = match kind {
            ErrorKind::IsADirectory => "give the path of an experiment file",
            _ => "check the path and the permissions",
        };
        Problem::new(format!("cannot read `{}`: {}", path.display(), reason(kind)), help)
    }

    pub(crate) fn missing(key: &str, example: &str) -> Problem {
        Problem::new(format!("`{key}` is missing"), format!("write `{example}`"))
    }

    pub(crate) fn one_of(what: &str, keys: &[&str]) -> Problem {
        Problem::new(format!("{what} needs exactly one of {}", list(keys)), "write one of them and no other")
    }

    /// A key that another rules out: `with \`long\``.
    pub(crate) fn not_here(key: &str, place: &str) -> Problem {
        Problem::new(format!("`{key}` is not allowed {place}"), "remove it")
    }

    pub(crate) fn out_of_range(
        what: impl Display,
        value: impl Display,
        least: impl Display,
        most: impl Display,
    ) -> Problem {
        let (least, most) = (least.to_string(), most.to_string());
        if least == most {
            return Problem::new(
                format!("{what} is {value}, where only {least} is possible"),
                format!("write {least}"),
            );
        }
        let help = format!("choose a value from {least} to {most}");
        Problem::new(format!("{what} is {value}, outside {least} to {most}"), help)
    }

    /// More than a bound that protects the machine.
    pub(crate) fn too_many(what: &str, value: u64, most: u64) -> Problem {
        let sentence = format!("{what}: {value} is more than the {most} that are allowed");
        Problem::new(sentence, "make the experiment smaller, or split it")
    }

    pub(crate) fn zero(what: &str) -> Problem {
        Problem::new(format!("{what} is zero"), "choose a value above zero")
    }

    /// A buffer that cannot hold a packet.
    pub(crate) fn no_room(what: &str, bytes: u64) -> Problem {
        let sentence = format!("{what} of {bytes} B holds not one packet of 1500 B");
        Problem::new(sentence, "make it larger; a useful one holds many packets")
    }

    /// A component's parameter of the wrong kind; what it is: `a length of time such as "5ms"`.
    pub(crate) fn wrong_kind(component: &'static str, parameter: &str, expected: &str) -> Problem {
        let sentence = format!("parameter `{parameter}` of `{component}` is {expected}");
        let problem = Problem::new(sentence, format!("`narrows show {component}` lists its parameters"));
        Problem { component: Some(component), ..problem }
    }

    /// A line of a file.
    pub(crate) fn in_line(file: &str, line: usize, fault: &str, help: &str) -> Problem {
        Problem::new(format!("{file}:{line}: {fault}"), help)
    }

    /// Nobody is left to send or to receive.
    pub(crate) fn no_pairs(why: &str) -> Problem {
        let help = "choose senders and receivers with `between`, or with `from` and `to`";
        Problem::new(format!("nobody can send to anybody: {why}"), help)
    }

    /// Two things of one name.
    pub(crate) fn duplicate(what: &str, name: impl Display) -> Problem {
        Problem::new(format!("two {what} are called `{name}`"), "rename one of them")
    }

    /// No time is left to measure in.
    pub(crate) fn warmup_too_long(warmup: impl Display, end: impl Display) -> Problem {
        let sentence = format!("`warmup` ({warmup}) must be below `run.end` ({end})");
        Problem::new(sentence, "shorten the warm-up, or let the run end later")
    }

    pub(crate) fn ends_before_start(what: &str, start: impl Display, end: impl Display) -> Problem {
        let sentence = format!("{what} ends at {end}, not after its start at {start}");
        Problem::new(sentence, "move the end after the start")
    }

    /// A caller's `--set` that cannot be read.
    pub(crate) fn bad_override(text: &str, expected: &str) -> Problem {
        Problem::new(format!("`{text}` is not {expected}"), "write --set path=value")
    }

    /// What to do about it: one line.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The component that has no such value of a parameter: what lists its parameters is the caller's to say.
    pub fn component(&self) -> Option<&'static str> {
        self.component
    }

    /// This problem, caused by these bytes.
    pub(crate) fn at(self, span: &Range<usize>) -> Box<Fault> {
        Box::new(Fault { problem: self, span: span.clone() })
    }
}

fn reason(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::PermissionDenied => "permission is denied",
        ErrorKind::FileTooLarge => "it is too large",
        ErrorKind::IsADirectory => "it is a folder",
        _ => "reading fails",
    }
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
            let _ = writeln!(out, "help: {}", shown(help));
        }
        // The text is not ours: what would steer a terminal is shown as a replacement character.
        let steers = |character: char| character.is_control() && !"\n\t".contains(character);
        out.chars().map(|character| if steers(character) { '\u{fffd}' } else { character }).collect()
    }
}

/// Characters of a line, or of a sentence, that are shown at most.
const MAX_SHOWN: usize = 200;
/// Lines of what a compiler says that are shown at most.
const MAX_LINES: usize = 40;

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
    // What a compiler says: each line is short enough or not.
    if sentence.contains('\n') {
        let lines = sentence.lines().take(MAX_LINES).map(shown).collect::<Vec<_>>();
        let more = if sentence.lines().nth(MAX_LINES).is_some() { "\n…" } else { "" };
        return lines.join("\n") + more;
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
        self.problem.help().map(|help| Box::new(help) as Box<dyn Display>)
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
