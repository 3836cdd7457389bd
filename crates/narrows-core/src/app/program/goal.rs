//! Programs as text: GOAL, as LogGOPSim, Schedgen and ATLAHS write it \[LogGOPSim\].
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   a: calc 1000            // nanoseconds
//!   b: send 4096b to 1 tag 7
//!   b requires a            // b starts after the end of a; with irequires, after its start
//! }
//! rank 1 {
//!   c: recv 4096b from 0 tag 7
//! }
//! ```
//!
//! A line is one operation or one dependency. `tag`, `cpu` and `nic` may be left out and are 0 then. A label is of its rank;
//! a dependency may name one that follows. Comments are `// …` and `/* … */`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::check::{self, Flaw};
use super::schedule::{After, Builder, Operation, Schedule};

/// Most ranks of a program.
pub const MAX_RANKS: u32 = 4096;
/// What numbers are, in messages.
const RANK: &str = "a rank";
const TAG: &str = "a tag";
/// Longest computation, nanoseconds: a day.
const MAX_CALC: u64 = 86_400_000_000_000;
/// Largest message, bytes.
const MAX_MESSAGE: u64 = 10_000_000_000_000;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: u32,
    /// What: a clause.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

type Parsed<T> = Result<T, Fault>;

/// Reads a program and checks that it can end.
///
/// # Errors
/// If a line cannot be read, a label or a rank is unknown, a message has no counterpart, or operations wait for each other.
pub fn read(text: &str) -> Parsed<Schedule> {
    let mut reader = Reader { text, at: 0, line: 1, lines: Vec::new(), blocks: BTreeMap::new() };
    let (schedule, lines) = reader.program()?;
    check::check(&schedule).map_err(|flaw| told(&flaw, &schedule, text, &lines))?;
    Ok(schedule)
}

/// A flaw in the words of the text: labels where operations have them, else lines.
fn told(flaw: &Flaw, schedule: &Schedule, text: &str, lines: &[u32]) -> Fault {
    let line = |operation: u32| lines[operation as usize];
    let name = |operation: u32| {
        let number = line(operation);
        let written = text.lines().nth(number as usize - 1).unwrap_or_default();
        let label = written.split_once(':').map(|(label, _)| label.trim());
        let label = label.filter(|label| !label.is_empty() && label.bytes().all(is_label));
        label.map_or_else(|| format!("line {number}"), |label| format!("`{label}`"))
    };
    flaw.tell(schedule, &line, &name)
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// Digits, and the letters that follow them at once.
    Number(&'a str),
    Mark(char),
    End,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    /// By operation.
    lines: Vec<u32>,
    /// Where each rank's block begins.
    blocks: BTreeMap<u32, (usize, u32)>,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, what: impl Into<String>, help: impl Into<String>) -> Parsed<T> {
        Err(Fault { line: self.line, what: what.into(), help: help.into() })
    }

    /// Passes blanks and comments up to the end of the line.
    fn skip(&mut self) -> Parsed<()> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
            self.at += blank;
            let rest = &rest[blank..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return self.fail("a comment does not end", "close it with `*/`");
                };
                self.line += super::schedule::count(rest[..end].matches('\n').count());
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    /// The next token of the line; [`Token::End`] at its end, which is not passed.
    fn next(&mut self) -> Parsed<Token<'a>> {
        self.skip()?;
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next().filter(|&first| first != '\n') else { return Ok(Token::End) };
        let length = rest.bytes().position(|byte| !is_label(byte)).unwrap_or(rest.len());
        let (token, length) = match first {
            '-' if rest[1..].starts_with(|digit: char| digit.is_ascii_digit()) => {
                let digits = rest[1..].bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len() - 1);
                (Token::Number(&rest[..=digits]), digits + 1)
            }
            digit if digit.is_ascii_digit() => (Token::Number(&rest[..length]), length),
            _ if length > 0 => (Token::Word(&rest[..length]), length),
            mark => (Token::Mark(mark), mark.len_utf8()),
        };
        self.at += length;
        Ok(token)
    }

    /// To the next line; false at the end of the text.
    fn next_line(&mut self) -> bool {
        let more = self.at < self.text.len();
        self.at += usize::from(more);
        self.line += u32::from(more);
        more
    }

    fn end_of_line(&mut self) -> Parsed<()> {
        match self.next()? {
            Token::End => Ok(()),
            token => self.fail(format!("unexpected {}", shown(token)), "write one operation or dependency on a line"),
        }
    }

    fn mark(&mut self, mark: char, example: &str) -> Parsed<()> {
        match self.next()? {
            Token::Mark(found) if found == mark => Ok(()),
            token => self.fail(format!("expected `{mark}`, found {}", shown(token)), format!("write `{example}`")),
        }
    }

    /// A whole number up to `most`, which `what` is.
    fn number(&mut self, what: &str, unit: &str, most: u64) -> Parsed<u64> {
        let token = self.next()?;
        let Token::Number(text) = token else {
            return self.fail(format!("expected {what}, found {}", shown(token)), "write a whole number");
        };
        if text.starts_with('-') {
            let help = if matches!(what, RANK | TAG) {
                "ranks and tags that match any are not supported"
            } else {
                "write a whole number"
            };
            return self.fail(format!("{what} is negative: {text}"), help);
        }
        let Some(digits) = text.strip_suffix(unit) else {
            return self
                .fail(format!("`{text}` cannot be {what}"), format!("end it with `{unit}`, as in `1024{unit}`"));
        };
        match digits.parse::<u64>() {
            Ok(number) if number <= most => Ok(number),
            Err(_) if !digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.fail(format!("`{text}` cannot be {what}"), "write a whole number")
            }
            _ => self.fail(format!("{what} is {digits}, more than {most}"), "make it smaller"),
        }
    }

    fn u32(&mut self, what: &str, most: u32) -> Parsed<u32> {
        Ok(self.number(what, "", most.into())?.try_into().expect("bounded"))
    }

    /// The whole text: ranks in any order, made in theirs.
    fn program(&mut self) -> Parsed<(Schedule, Vec<u32>)> {
        let ranks = self.find_blocks()?;
        let mut builder = Builder::default();
        for (rank, (at, line)) in core::mem::take(&mut self.blocks) {
            (self.at, self.line) = (at, line);
            builder.rank(rank);
            self.block(&mut builder, rank, ranks)?;
        }
        Ok((builder.finish(ranks), core::mem::take(&mut self.lines)))
    }

    /// Finds where the ranks' blocks begin.
    fn find_blocks(&mut self) -> Parsed<u32> {
        let mut ranks = None;
        loop {
            match (self.next()?, ranks) {
                (Token::End, _) => {
                    if !self.next_line() {
                        break;
                    }
                }
                (Token::Word("num_ranks"), None) => match self.u32("the number of ranks", MAX_RANKS)? {
                    0 => return self.fail("the number of ranks is zero", "state how many ranks there are"),
                    stated => ranks = Some(stated),
                },
                (Token::Word("num_ranks"), Some(_)) => {
                    return self.fail("`num_ranks` is stated again", "state it once, first");
                }
                (Token::Word("rank"), Some(ranks)) => {
                    let rank = self.u32(RANK, u32::MAX)?;
                    if rank >= ranks {
                        return self.fail(format!("rank {rank} is not below num_ranks {ranks}"), "ranks count from 0");
                    }
                    self.mark('{', "rank 0 {")?;
                    if let Some((_, line)) = self.blocks.insert(rank, (self.at, self.line)) {
                        return self
                            .fail(format!("rank {rank} has a block already, at line {line}"), "write each rank once");
                    }
                    self.pass_block()?;
                }
                (Token::Word("rank"), None) => {
                    return self.fail("a rank before `num_ranks`", "begin with `num_ranks N`");
                }
                (token, _) => {
                    return self
                        .fail(format!("expected `num_ranks` or `rank`, found {}", shown(token)), "write `rank 0 {`");
                }
            }
        }
        match ranks {
            Some(ranks) => Ok(ranks),
            None => self.fail("`num_ranks` is missing", "begin with `num_ranks N`"),
        }
    }

    /// Passes a block up to its end.
    fn pass_block(&mut self) -> Parsed<()> {
        let begun = self.line;
        loop {
            let rest = &self.text[self.at..];
            let Some(next) = rest.find(['}', '\n', '/', '{']) else {
                self.line = begun;
                return self.fail("the rank's block does not end", "close it with `}`");
            };
            self.at += next;
            match rest.as_bytes()[next] {
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                b'{' => return self.fail("a block within a block", "close the rank's block with `}` first"),
                b'\n' => {
                    self.next_line();
                }
                _ => {
                    let at = self.at;
                    self.skip()?;
                    self.at += usize::from(self.at == at);
                }
            }
        }
    }

    /// The lines of one rank.
    fn block(&mut self, builder: &mut Builder, rank: u32, ranks: u32) -> Parsed<()> {
        let mut labels: BTreeMap<&'a str, u32> = BTreeMap::new();
        let mut waits: Vec<(&'a str, &'a str, After, u32)> = Vec::new();
        loop {
            match self.next()? {
                Token::End => {
                    self.next_line();
                }
                Token::Mark('}') => break,
                Token::Word(word @ ("calc" | "send" | "recv")) => {
                    self.operation(word, builder, rank, ranks)?;
                }
                Token::Word(label) => match self.next()? {
                    Token::Mark(':') => {
                        let Token::Word(word) = self.next()? else {
                            return self
                                .fail(format!("no operation follows `{label}:`"), "write `calc`, `send` or `recv`");
                        };
                        let number = self.operation(word, builder, rank, ranks)?;
                        if let Some(first) = labels.insert(label, number) {
                            let line = self.lines[first as usize];
                            return self
                                .fail(format!("the label `{label}` is in use since line {line}"), "give each its own");
                        }
                    }
                    Token::Word(word @ ("requires" | "irequires")) => {
                        let on = self.next()?;
                        let Token::Word(on) = on else {
                            return self.fail(format!("expected a label, found {}", shown(on)), "write `b requires a`");
                        };
                        let after = if word == "requires" { After::End } else { After::Start };
                        waits.push((label, on, after, self.line));
                        self.end_of_line()?;
                    }
                    token => {
                        let what =
                            format!("expected `:`, `requires` or `irequires` after `{label}`, found {}", shown(token));
                        return self.fail(what, "write `a: calc 100` or `b requires a`");
                    }
                },
                token => {
                    return self.fail(format!("expected an operation, found {}", shown(token)), "write `a: calc 100`");
                }
            }
        }
        for (operation, on, after, line) in waits {
            let number = |label: &str| {
                labels.get(label).copied().ok_or_else(|| Fault {
                    line,
                    what: format!("rank {rank} has no operation labelled `{label}`"),
                    help: "a dependency names two operations of its own rank".into(),
                })
            };
            builder.requires(number(operation)?, number(on)?, after);
        }
        Ok(())
    }

    fn operation(&mut self, word: &str, builder: &mut Builder, rank: u32, ranks: u32) -> Parsed<u32> {
        let (preposition, amount) = match word {
            "calc" => (None, self.number("the time of a computation", "", MAX_CALC)?),
            "send" => (Some("to"), self.number("the size of a message", "b", MAX_MESSAGE)?),
            "recv" => (Some("from"), self.number("the size of a message", "b", MAX_MESSAGE)?),
            other => return self.fail(format!("unknown operation `{other}`"), "write `calc`, `send` or `recv`"),
        };
        let mut peer = rank;
        if let Some(preposition) = preposition {
            match self.next()? {
                Token::Word(found) if found == preposition => {}
                token => {
                    let help = format!("write `{word} 1024b {preposition} 3`");
                    return self.fail(format!("expected `{preposition}`, found {}", shown(token)), help);
                }
            }
            peer = self.u32(RANK, u32::MAX)?;
            if peer >= ranks {
                return self.fail(format!("rank {peer} is not below num_ranks {ranks}"), "ranks count from 0");
            }
            if peer == rank {
                let what = format!("rank {rank} would exchange a message with itself");
                return self.fail(what, "a copy within a rank is a computation: write `calc`");
            }
        }
        let [mut tag, mut cpu, mut nic] = [None; 3];
        loop {
            let (place, name, most) = match self.next()? {
                Token::End => break,
                Token::Word("tag") if word != "calc" => (&mut tag, TAG, u32::MAX),
                Token::Word("cpu") => (&mut cpu, "a cpu", 255),
                Token::Word("nic") => (&mut nic, "a nic", 255),
                token => {
                    let what = format!("unexpected {} after `{word}`", shown(token));
                    return self.fail(what, "`tag`, `cpu` and `nic` may follow, each with a number");
                }
            };
            let twice = place.is_some();
            *place = Some(self.u32(name, most)?);
            if twice {
                return self.fail(format!("{name} is stated twice"), "state it once");
            }
        }
        let cpu = u8::try_from(cpu.unwrap_or(0)).expect("at most 255");
        let tag = tag.unwrap_or(0);
        self.lines.push(self.line);
        Ok(match word {
            "calc" => builder.calc(amount, cpu),
            "send" => builder.send(amount, peer, tag, cpu),
            _ => builder.recv(amount, peer, tag, cpu),
        })
    }
}

fn shown(token: Token<'_>) -> String {
    match token {
        Token::Word(text) | Token::Number(text) => format!("`{}`", text.chars().take(40).collect::<String>()),
        Token::Mark(mark) => format!("`{}`", mark.escape_debug()),
        Token::End => "the end of the line".to_string(),
    }
}

impl fmt::Display for Schedule {
    /// As GOAL, in the style of Schedgen; operations are `l1`, `l2` … of their rank.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "num_ranks {}", self.ranks())?;
        let mut waits: Vec<(u32, u32, After)> = Vec::new();
        for rank in 0..self.ranks() {
            let operations = self.of_rank(rank);
            let label = |operation: u32| operation - operations.start + 1;
            waits.clear();
            for on in operations.clone() {
                waits.extend(self.dependants(on).map(|(one, after)| (one, on, after)));
            }
            waits.sort_unstable();
            let mut waits = waits.iter().peekable();
            writeln!(f, "\nrank {rank} {{")?;
            for operation in operations.clone() {
                write!(f, "l{}: ", label(operation))?;
                let amount = self.amount(operation);
                match self.operation(operation) {
                    Operation::Calc(_) => write!(f, "calc {amount}")?,
                    Operation::Send(_, channel) => {
                        let channel = self.channels()[channel as usize];
                        write!(f, "send {amount}b to {}", channel.destination)?;
                        tag(f, channel.tag)?;
                    }
                    Operation::Recv(channel) => {
                        let channel = self.channels()[channel as usize];
                        write!(f, "recv {amount}b from {}", channel.source)?;
                        tag(f, channel.tag)?;
                    }
                }
                match self.cpu(operation) {
                    0 => {}
                    cpu => write!(f, " cpu {cpu}")?,
                }
                f.write_char('\n')?;
                // One that follows is named when both are known, as other readers want it.
                while let Some((one, on, after)) = waits.next_if(|(one, on, _)| (*one).max(*on) <= operation) {
                    let word = if *after == After::End { "requires" } else { "irequires" };
                    writeln!(f, "l{} {word} l{}", label(*one), label(*on))?;
                }
            }
            for (one, on, after) in waits {
                let word = if *after == After::End { "requires" } else { "irequires" };
                writeln!(f, "l{} {word} l{}", label(*one), label(*on))?;
            }
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}

fn tag(f: &mut fmt::Formatter<'_>, tag: u32) -> fmt::Result {
    if tag == 0 { Ok(()) } else { write!(f, " tag {tag}") }
}
