//! Packet scripts: timeline in, timeline out, one behaviour per file in `scripts/<mechanism>/`.
//!
//! A script drives one end. Segments are full and numbered from 1; `ack 3` acknowledges 1 to 3, `sack 5-7` reports 5 to 7.
//! Comments before the first statement say what is tested and where it is defined. The grammar is small on purpose:
//!
//! ```text
//! profile linux-4.9            offloads, quick and delayed acknowledgements are as the profile says unless `set`;
//! set initial-window 4         segmentation and receive offload are off unless set
//! controller newreno           default newreno
//! ecn off|classic|exact        default off
//! rtt 10ms                     measured by the handshake before the script begins; `closed` begins without one
//!
//! at 0ms offer 10 segments     runs every timer due before or at that time first
//! at 10ms recv ack 3 sack 5-7 [ece] [echo 4ms] [window 64]      what the network brings
//! at 10ms recv data 2-3 [ce] [cwr] [push|pushed] [stamp 7ms]       the last ends a message, or only a burst
//! at 10ms recv data-at 4294967000          a segment at this wire number; also `wire-ack`, `wire-sack FROM TO`
//! at 10ms flush                a poll of the receive offload is over: what it holds goes up
//! at 10ms                      only lets time pass
//! expect send 1-10 [cwr] [ect|not-ect] [push|not-push] [tag 1]        new segments, in this order, at this time
//! expect resend 1
//! expect ack 3 [dsack 1] [sack 5-7] [ece] [echo 4ms] [ect|not-ect] a bare acknowledgement
//! expect window 10 | phase recovery | outstanding 3 | in-flight 3 | timeouts 1
//! expect bytes 1                              a segment of so many
//! expect syn | syn-ack | opening | established
//! expect timer 210ms | timer none | pacing 5ms | pacing none         absolute times
//! ```
//!
//! Whatever is sent must be expected before time goes on.
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use narrows_core::cc::Phase;
use narrows_core::nic::merge::Merging;
use narrows_core::nic::receive::ReceiveOffload;
use narrows_core::packet::{Ecn, Flags, SackBlocks, Segment, Seq, Tag, timestamp};
use narrows_core::tcp::profile::{BurstSizing, Profile};
use narrows_core::tcp::{EcnMode, Endpoint, Stack};
use narrows_core::units::{Packets, Span, Time};
use pair::{build, stack_for};

const MSS: u64 = 1448;
/// More than any script sends in one moment: a sender that never falls silent fails instead of hanging.
const MAX_IN_A_MOMENT: usize = 10_000;

type Outcome = Result<(), String>;

/// The words of one line.
struct Words<'a>(VecDeque<&'a str>);

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        Words(line.split_whitespace().collect())
    }
    fn next(&mut self) -> Result<&'a str, String> {
        self.0.pop_front().ok_or_else(|| "the line ends too early".to_owned())
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn number(&mut self) -> Result<u64, String> {
        let word = self.next()?;
        word.parse().map_err(|_| format!("`{word}` is no number"))
    }
    fn span(&mut self) -> Result<Span, String> {
        span(self.next()?)
    }
    fn segments(&mut self) -> Result<RangeInclusive<u64>, String> {
        segments(self.next()?)
    }
    fn switch(&mut self) -> Result<bool, String> {
        match self.next()? {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(format!("`{other}` is neither on nor off")),
        }
    }
}

fn span(word: &str) -> Result<Span, String> {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = word[..word.len() - unit.len()].parse().map_err(|_| format!("`{word}` is no time"))?;
    match unit {
        "us" => Ok(Span::from_us(number)),
        "ms" => Ok(Span::from_ms(number)),
        "s" => Ok(Span::from_secs(number)),
        _ => Err(format!("`{word}` is no time")),
    }
}

fn segments(word: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{word}` is no segment"));
    match word.split_once('-') {
        Some((from, to)) => Ok(number(from)?..=number(to)?),
        None => number(word).map(|n| n..=n),
    }
}

/// First byte of segment `number`.
fn start(number: u64) -> Seq {
    Seq::FIRST.plus((number - 1) * MSS)
}

fn number(wire: u32) -> u64 {
    (u64::from(wire) - 1) / MSS + 1
}

fn at(span: Span) -> Time {
    Time::ZERO + span
}

fn show(segment: &Segment) -> String {
    let sack: Vec<_> =
        segment.sack.iter().map(|(from, to)| format!("{}-{}", number(from), number(to).saturating_sub(1))).collect();
    let flags = [(Flags::SYN, "syn "), (Flags::ECE, "ece "), (Flags::CWR, "cwr "), (Flags::PSH, "push ")];
    let flags: String = flags.iter().filter(|(flag, _)| segment.flags.contains(*flag)).map(|(_, name)| *name).collect();
    let what = if segment.length > 0 { format!("segment {}", number(segment.seq)) } else { "ack".to_owned() };
    format!("{what} {flags}ack {} sack [{}]", number(segment.ack).saturating_sub(1), sack.join(" "))
}

/// What a script says before its first moment.
struct Setting {
    stack: Stack,
    controller: String,
    round_trip: Option<Span>,
}

impl Default for Setting {
    fn default() -> Setting {
        let profile = Profile { offload_segments: 1, receive_offload: None, ..Profile::LINUX_4_9 };
        Setting {
            stack: stack_for("newreno", profile, EcnMode::Off),
            controller: "newreno".to_owned(),
            round_trip: Some(Span::from_ms(10)),
        }
    }
}

impl Setting {
    fn read(&mut self, words: &mut Words<'_>) -> Outcome {
        match words.next()? {
            "profile" => {
                let name = words.next()?;
                let named = Profile::NAMED.iter().find(|(known, _)| *known == name);
                let profile = named.ok_or_else(|| format!("no profile `{name}`"))?.1;
                self.stack.profile = Profile { offload_segments: 1, receive_offload: None, ..profile };
            }
            "controller" => {
                self.controller = words.next()?.to_owned();
                let fresh = stack_for(&self.controller, self.stack.profile, self.stack.ecn);
                self.stack = fresh;
            }
            "ecn" => {
                self.stack.ecn = match words.next()? {
                    "off" => EcnMode::Off,
                    "classic" => EcnMode::Classic,
                    "exact" => EcnMode::Exact,
                    other => return Err(format!("no use of ECN is called `{other}`")),
                }
            }
            "rtt" => self.round_trip = Some(words.span()?),
            "closed" => self.round_trip = None,
            "set" => self.set(words)?,
            other => return Err(format!("`{other}` is no setting")),
        }
        Ok(())
    }

    fn set(&mut self, words: &mut Words<'_>) -> Outcome {
        let profile = &mut self.stack.profile;
        let small = |words: &mut Words<'_>| words.number().map(|n| u8::try_from(n).unwrap_or(u8::MAX));
        match words.next()? {
            "initial-window" => profile.initial_window = Packets::new(words.number()?),
            "min-rto" => profile.min_rto = words.span()?,
            "ack-every" => profile.ack_every = small(words)?,
            "clock-tick" => profile.clock_tick = words.span()?,
            "delayed-ack" => profile.delayed_ack = words.span()?,
            "quick-acks" => profile.quick_acks = small(words)?,
            "offload" => profile.offload_segments = small(words)?,
            "offload-waits-while-marked" => {
                let waits = words.switch()?;
                profile.burst_sizing = if waits { BurstSizing::Linux49 } else { BurstSizing::Linux40 };
            }
            "receive-offload" => {
                profile.receive_offload = Some(ReceiveOffload { segments: small(words)?, ..ReceiveOffload::LINUX_4_9 });
            }
            "receive-buffer" => profile.receive_buffer = words.number()?,
            "reassembly-segments" => profile.reassembly_segments = u16::from(small(words)?),
            "tail-loss-probe" => profile.tail_loss_probe = words.switch()?,
            "early-retransmit" => profile.early_retransmit = words.switch()?,
            "restart-after-idle" => profile.restart_after_idle = words.switch()?,
            "undo" => profile.undo = words.switch()?,
            "host-pacing" => {
                let percent = |n| u16::try_from(n).unwrap_or(u16::MAX);
                profile.host_pacing = Some((percent(words.number()?), percent(words.number()?)));
            }
            other => return Err(format!("`{other}` is no part of a profile")),
        }
        Ok(())
    }
}

/// A script being played.
struct Play {
    now: Time,
    end: Endpoint,
    stack: Stack,
    merging: Merging<()>,
    sent: VecDeque<(Time, Segment)>,
    highest_sent: u64,
    offered: u32,
}

impl Play {
    fn new(setting: &Setting) -> Play {
        let stack = setting.stack;
        let controller = build(&setting.controller, &stack, 1);
        let end = match setting.round_trip {
            Some(round_trip) => Endpoint::established(controller, round_trip, &stack),
            None => Endpoint::closed(controller, &stack),
        };
        let (sent, merging) = (VecDeque::new(), Merging::default());
        Play { now: Time::ZERO, end, stack, merging, sent, highest_sent: 0, offered: 0 }
    }

    fn poll(&mut self) -> Outcome {
        while self.end.poll_event().is_some() {}
        let before = self.sent.len();
        while let Some(segment) = self.end.poll_transmit(self.now, &self.stack) {
            self.sent.push_back((self.now, segment));
            if self.sent.len() > before + MAX_IN_A_MOMENT {
                return Err("it sends without end".to_owned());
            }
        }
        let deadline = self.end.deadline();
        if deadline <= self.now && deadline <= self.end.pacing_deadline() {
            return Err(format!("a timer stays due at {deadline}"));
        }
        Ok(())
    }

    /// Runs the timers due up to `until`, which then is the present.
    fn run_until(&mut self, until: Time) -> Outcome {
        loop {
            let next = self.end.deadline().min(self.end.pacing_deadline());
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if self.end.deadline() <= self.now {
                self.end.handle_timeout(self.now, &self.stack);
            }
            self.poll()?;
        }
        self.now = until;
        Ok(())
    }

    fn statement(&mut self, words: &mut Words<'_>) -> Outcome {
        match words.next()? {
            "at" => {
                let time = at(words.span()?);
                if time < self.now {
                    return Err("time runs backwards".to_owned());
                }
                if let Some((when, segment)) = self.sent.front() {
                    return Err(format!("unexpected at {when}: {}", show(segment)));
                }
                self.run_until(time)?;
                if !words.is_empty() {
                    self.act(words)?;
                }
                self.poll()
            }
            "expect" => self.expect(words),
            other => Err(format!("`{other}` is no statement")),
        }
    }

    fn act(&mut self, words: &mut Words<'_>) -> Outcome {
        match words.next()? {
            "offer" => {
                let count = words.number()?;
                self.offered += 1;
                let unit = words.next()?;
                let bytes = if unit.starts_with("segment") { count * MSS } else { count };
                self.end.offer(narrows_core::units::Bytes::new(bytes), Tag(self.offered));
                Ok(())
            }
            "stop" => {
                self.end.stop();
                Ok(())
            }
            "open" => {
                self.end.open(Tag(1));
                Ok(())
            }
            "recv" => self.receive(words),
            "flush" => {
                let mut up = Vec::new();
                self.merging.flush(|(), run| up.push(*run));
                self.hand_up(up)
            }
            other => Err(format!("`{other}` is nothing that can happen")),
        }
    }

    fn receive(&mut self, words: &mut Words<'_>) -> Outcome {
        let mut segment = Segment {
            seq: Seq::FIRST.wire(),
            ack: Seq::FIRST.wire(),
            flags: Flags::ACK,
            window: u16::MAX,
            ..Segment::default()
        };
        let mut data = None;
        match words.next()? {
            "ack" => segment.ack = start(words.number()? + 1).wire(),
            "data" => data = Some(words.segments()?),
            "data-at" => {
                segment.seq = Seq::new(words.number()?).wire();
                segment.length = 1448;
            }
            "syn" => segment.flags = Flags::SYN,
            "syn-ack" => segment.flags = Flags::SYN.with(Flags::ACK),
            other => return Err(format!("`{other}` is no segment")),
        }
        while !words.is_empty() {
            match words.next()? {
                "sack" => {
                    while words.0.front().is_some_and(|word| segments(word).is_ok()) {
                        let range = words.segments()?;
                        segment.sack.push(start(*range.start()), start(range.end() + 1));
                    }
                }
                "ece" => segment.flags = segment.flags.with(Flags::ECE),
                "cwr" => segment.flags = segment.flags.with(Flags::CWR),
                "push" => segment.flags = segment.flags.with(Flags::PSH).with(Flags::END),
                "pushed" => segment.flags = segment.flags.with(Flags::PSH),
                "ce" => segment.ecn = Ecn::Marked,
                "echo" => segment.timestamp_echo = timestamp(at(words.span()?)),
                "stamp" => segment.timestamp = timestamp(at(words.span()?)),
                "window" => segment.window = u16::try_from(words.number()?).unwrap_or(u16::MAX),
                "acks" => segment.ack = start(words.number()? + 1).wire(),
                "wire-sack" => {
                    let (from, to) = (words.number()?, words.number()?);
                    segment.sack.push(Seq::new(from), Seq::new(to));
                }
                "wire-ack" => segment.ack = Seq::new(words.number()?).wire(),
                other => return Err(format!("`{other}` is no part of a segment")),
            }
        }
        let push = segment.flags;
        for number in data.clone().into_iter().flatten() {
            let last = data.as_ref().is_some_and(|range| number == *range.end());
            segment.length = 1448;
            segment.seq = start(number).wire();
            segment.flags =
                if last { push } else { Flags::from_bits(push.bits() & !Flags::PSH.with(Flags::END).bits()) };
            segment.tag = Tag(1);
            self.deliver(&segment)?;
        }
        if data.is_none() {
            self.deliver(&segment)?;
        }
        Ok(())
    }

    /// A segment comes; what the receive offload hands up goes to the end.
    fn deliver(&mut self, segment: &Segment) -> Outcome {
        let mut up = Vec::new();
        match &self.stack.profile.receive_offload {
            Some(config) => self.merging.handle((), segment, config, |(), run| up.push(*run)),
            None => up.push(*segment),
        }
        self.hand_up(up)
    }

    fn hand_up(&mut self, runs: Vec<Segment>) -> Outcome {
        for run in runs {
            self.end.handle_segment(self.now, &run, &self.stack);
            self.poll()?;
        }
        Ok(())
    }

    fn take_sent(&mut self, expected: &str) -> Result<Segment, String> {
        let Some((when, segment)) = self.sent.pop_front() else {
            return Err(format!("expected {expected}, but nothing was sent"));
        };
        if when != self.now {
            return Err(format!("expected {expected} at {}, but {} left at {when}", self.now, show(&segment)));
        }
        Ok(segment)
    }

    fn expect(&mut self, words: &mut Words<'_>) -> Outcome {
        let what = words.next()?;
        let equal = |expected: String, found: String| {
            if expected == found { Ok(()) } else { Err(format!("expected {what} {expected}, found {found}")) }
        };
        let time = |time: Time| if time == Time::NEVER { "none".to_owned() } else { time.to_string() };
        match what {
            "send" | "resend" => self.expect_data(what == "resend", words),
            "ack" => self.expect_ack(words),
            "syn" | "syn-ack" => {
                let segment = self.take_sent(what)?;
                let flags = if what == "syn" { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
                equal(format!("{flags:?}"), format!("{:?}", segment.flags))
            }
            "bytes" => {
                let segment = self.take_sent("a segment")?;
                equal(words.number()?.to_string(), segment.length.to_string())
            }
            "established" | "opening" => {
                equal((what == "established").to_string(), self.end.is_established().to_string())
            }
            "window" => equal(words.number()?.to_string(), self.end.window().get().to_string()),
            "outstanding" => equal(words.number()?.to_string(), self.end.outstanding().to_string()),
            "in-flight" => equal(words.number()?.to_string(), self.end.in_flight().to_string()),
            "timeouts" => equal(words.number()?.to_string(), self.end.tallies().timeouts.to_string()),
            "threshold" => {
                equal(words.number()?.to_string(), self.end.controller().slow_start_threshold().get().to_string())
            }
            "phase" => {
                let phase = match self.end.phase() {
                    Phase::Open => "open",
                    Phase::EcnReduction => "ecn-reduction",
                    Phase::Recovery => "recovery",
                    Phase::Loss => "loss",
                };
                equal(words.next()?.to_owned(), phase.to_owned())
            }
            "timer" | "pacing" => {
                let found = if what == "timer" { self.end.deadline() } else { self.end.pacing_deadline() };
                let word = words.next()?;
                let expected = if word == "none" { Time::NEVER } else { at(span(word)?) };
                equal(time(expected), time(found))
            }
            other => Err(format!("`{other}` cannot be expected")),
        }
    }

    fn expect_data(&mut self, again: bool, words: &mut Words<'_>) -> Outcome {
        let range = words.segments()?;
        let (mut cwr, mut capable, mut push, mut tag) = (false, None, None, None);
        while !words.is_empty() {
            match words.next()? {
                "cwr" => cwr = true,
                "push" => push = Some(true),
                "not-push" => push = Some(false),
                "tag" => tag = Some(words.number()?),
                "ect" => capable = Some(true),
                "not-ect" => capable = Some(false),
                other => return Err(format!("`{other}` is no part of a segment")),
            }
        }
        for expected in range {
            let segment = self.take_sent(&format!("segment {expected}"))?;
            if segment.length == 0 || segment.seq != start(expected).wire() {
                return Err(format!("expected segment {expected}, found {}", show(&segment)));
            }
            if (expected <= self.highest_sent) != again {
                let found = if again { "for the first time" } else { "again" };
                return Err(format!("segment {expected} was sent {found}"));
            }
            if segment.flags.contains(Flags::CWR) != cwr {
                return Err(format!("segment {expected}: {}", show(&segment)));
            }
            if push.is_some_and(|push| push != segment.flags.contains(Flags::PSH)) {
                return Err(format!("segment {expected}: {}", show(&segment)));
            }
            if tag.is_some_and(|tag| tag != u64::from(segment.tag.0)) {
                return Err(format!("segment {expected} has {:?}", segment.tag));
            }
            if capable.is_some_and(|capable| capable != (segment.ecn == Ecn::Capable)) {
                return Err(format!("segment {expected} is {:?}", segment.ecn));
            }
            self.highest_sent = self.highest_sent.max(expected);
        }
        Ok(())
    }

    fn expect_ack(&mut self, words: &mut Words<'_>) -> Outcome {
        let mut expected = Segment { ack: start(words.number()? + 1).wire(), ..Segment::default() };
        let mut echo = None;
        let mut blocks = SackBlocks::NONE;
        while !words.is_empty() {
            match words.next()? {
                "sack" | "dsack" => {
                    while words.0.front().is_some_and(|word| segments(word).is_ok()) {
                        let range = words.segments()?;
                        blocks.push(start(*range.start()), start(range.end() + 1));
                    }
                }
                "ece" => expected.flags = Flags::ECE,
                "ect" => expected.ecn = Ecn::Capable,
                "not-ect" => expected.ecn = Ecn::NotCapable,
                "echo" => echo = Some(timestamp(at(words.span()?))),
                other => return Err(format!("`{other}` is no part of an acknowledgement")),
            }
        }
        expected.sack = blocks;
        let found = self.take_sent("an acknowledgement")?;
        let same = found.length == 0
            && found.ack == expected.ack
            && found.sack == expected.sack
            && found.ecn == expected.ecn
            && found.flags.contains(Flags::ECE) == expected.flags.contains(Flags::ECE)
            && echo.is_none_or(|echo| echo == found.timestamp_echo);
        if same {
            Ok(())
        } else {
            Err(format!("expected {}, found {} echo {}", show(&expected), show(&found), found.timestamp_echo))
        }
    }
}

fn play(text: &str) -> Result<(), String> {
    if !text.starts_with("# ") {
        return Err("the first line must say what is tested".to_owned());
    }
    let mut setting = Setting::default();
    let mut playing: Option<Play> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut words = Words::of(line);
        let begins = matches!(words.0.front(), Some(&"at" | &"expect"));
        let outcome = match &mut playing {
            None if !begins => setting.read(&mut words),
            _ => playing.get_or_insert_with(|| Play::new(&setting)).statement(&mut words),
        };
        outcome
            .and_then(|()| if words.is_empty() { Ok(()) } else { Err(format!("what is `{}`?", words.0[0])) })
            .map_err(|problem| format!("line {}, `{line}`: {problem}", index + 1))?;
    }
    match playing.and_then(|play| play.sent.front().copied()) {
        Some((when, segment)) => Err(format!("at the end: unexpected at {when}: {}", show(&segment))),
        None => Ok(()),
    }
}

fn scripts_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of scripts") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(scripts_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_script_plays_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let scripts = scripts_below(&folder);
    assert!(scripts.len() >= 15, "{} scripts", scripts.len());
    let mut problems = Vec::new();
    for path in scripts {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        if let Err(problem) = play(&text) {
            problems.push(format!("{}: {problem}", path.strip_prefix(&folder).unwrap_or(&path).display()));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_deviation_that_names_a_script_has_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../../docs/deviations.toml")).expect("the deviations");
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("script = \"").and_then(|rest| rest.strip_suffix('"')) {
            assert!(root.join("tests/scripts").join(name).is_file(), "no script {name}");
        }
    }
}

#[test]
fn a_script_that_is_wrong_fails() {
    for (text, problem) in [
        ("at 0ms", "the first line"),
        ("# x\nat 0ms offer 2 segments\nexpect send 1", "unexpected"),
        ("# x\nat 0ms offer 1 segments\nexpect send 2", "expected segment 2"),
        ("# x\nat 0ms offer 1 segments\nexpect send 1\nat 1s", "unexpected"),
        ("# x\nat 1ms\nat 0ms", "backwards"),
        ("# x\nexpect window 11", "expected window 11, found 10"),
        ("# x\nat 0ms recv ack 0 sideways", "no part of a segment"),
    ] {
        let found = play(text).expect_err(text);
        assert!(found.contains(problem), "{text}: {found}");
    }
}
