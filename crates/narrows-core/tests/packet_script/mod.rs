//! Packet scripts: timeline in, timeline out, one behaviour per file in `tests/scripts/<mechanism>/`.
//!
//! A script drives one end of a connection, ours or a kernel's. Segments are full and numbered from 1; `ack 3` acknowledges
//! 1 to 3, `sack 5-7` reports 5 to 7. Comments before the first statement say what is tested and where it is defined. The
//! grammar is small on purpose:
//!
//! ```text
//! profile linux-4.9            offloads, quick and delayed acknowledgements are as the profile says unless `set`;
//! set initial-window 4         segmentation and receive offload are off unless set
//! controller newreno           default newreno
//! ecn off|classic|exact        default off
//! rtt 10ms                     measured by the handshake before the script begins; `closed` begins without one
//! kernel [before 6.6] …        why a kernel of the profile, or an older one of it, does something else
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

pub mod model;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use narrows_core::nic::receive::ReceiveOffload;
use narrows_core::packet::{Ecn, Flags, SackBlocks, Segment, Seq, Tag, timestamp};
use narrows_core::tcp::EcnMode;
use narrows_core::tcp::profile::{BurstSizing, Profile};
use narrows_core::units::{Packets, Span, Time};

pub const MSS: u16 = 1448;

pub type Outcome = Result<(), String>;

/// What a script drives: one end of a connection.
pub trait End {
    /// Time goes on to `time`, which then is the present. `by_timer`: what the script expects to be sent then is sent by a timer.
    fn run_until(&mut self, time: Time, by_timer: bool) -> Outcome;
    fn act(&mut self, action: Action) -> Outcome;
    /// The next segment that it has sent and no statement has taken yet, and when.
    fn take_sent(&mut self) -> Option<(Time, Segment)>;
    /// The same, which stays there; none is waited for.
    fn peek_sent(&mut self) -> Option<(Time, Segment)>;
    /// Whether something sent at `when` was sent as an answer to what happens `now`.
    fn is_now(&self, when: Time, now: Time) -> bool;
    /// What it says of itself, as scripts say it; `None` if that cannot be told.
    fn state(&mut self, of: State) -> Option<String>;
}

/// What happens to the end.
#[derive(Clone, Debug)]
pub enum Action {
    /// Its application hands over so many bytes, as the message of this tag.
    Offer(u64, Tag),
    /// Its application takes back what was not sent.
    Stop,
    /// Its application opens the connection.
    Open,
    /// The poll of the receive offload is over.
    Flush,
    /// The network brings a segment. Timestamps are milliseconds of the script; zero is none.
    Receive(Segment),
}

/// What can be asked of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Window,
    Threshold,
    Outstanding,
    InFlight,
    Timeouts,
    Phase,
    Established,
    Timer,
    Pacing,
}

/// The words of one line.
pub struct Words<'a>(VecDeque<&'a str>);

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
    fn end(&self) -> Outcome {
        match self.0.front() {
            Some(word) => Err(format!("what is `{word}`?")),
            None => Ok(()),
        }
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
pub fn start(number: u64) -> Seq {
    Seq::FIRST.plus((number - 1) * u64::from(MSS))
}

fn number(wire: u32) -> u64 {
    u64::from(wire.wrapping_sub(1)) / u64::from(MSS) + 1
}

/// A time as scripts' errors show it.
pub fn show_time(time: Time) -> String {
    if time == Time::NEVER { "none".to_owned() } else { time.to_string() }
}

fn equal(what: &str, expected: &str, found: &str) -> Outcome {
    if expected == found { Ok(()) } else { Err(format!("expected {what} {expected}, found {found}")) }
}

fn at(span: Span) -> Time {
    Time::ZERO + span
}

pub fn show(segment: &Segment) -> String {
    let sack: Vec<_> =
        segment.sack.iter().map(|(from, to)| format!("{}-{}", number(from), number(to).saturating_sub(1))).collect();
    let flags = [(Flags::SYN, "syn "), (Flags::ECE, "ece "), (Flags::CWR, "cwr "), (Flags::PSH, "push ")];
    let flags: String = flags.iter().filter(|(flag, _)| segment.flags.contains(*flag)).map(|(_, name)| *name).collect();
    let what = if segment.length > 0 { format!("segment {}", number(segment.seq)) } else { "ack".to_owned() };
    format!("{what} {flags}ack {} sack [{}]", number(segment.ack).saturating_sub(1), sack.join(" "))
}

/// What a script says before its first moment.
#[derive(Clone, Debug)]
pub struct Setting {
    pub profile: Profile,
    pub controller: String,
    pub ecn: EcnMode,
    /// `None`: the connection is not open.
    pub round_trip: Option<Span>,
    /// The parts of the profile that the script sets.
    pub changed: Vec<String>,
    /// Its profile's name, if it says one.
    pub profile_name: Option<String>,
    /// Why a kernel does something else.
    pub kernel_differs: Option<String>,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            profile: Setting::without_offload(Profile::LINUX_4_9),
            controller: "newreno".to_owned(),
            ecn: EcnMode::Off,
            round_trip: Some(Span::from_ms(10)),
            changed: Vec::new(),
            profile_name: None,
            kernel_differs: None,
        }
    }
}

impl Setting {
    /// One of an end with this profile.
    #[allow(dead_code, reason = "for comparisons with kernels")]
    pub fn of(profile: Profile) -> Setting {
        Setting { profile: Setting::without_offload(profile), ..Setting::default() }
    }

    const fn without_offload(profile: Profile) -> Profile {
        Profile { offload_segments: 1, receive_offload: None, ..profile }
    }

    fn read(&mut self, words: &mut Words<'_>) -> Outcome {
        match words.next()? {
            "profile" => {
                let name = words.next()?;
                let named = Profile::NAMED.iter().find(|(known, _)| *known == name);
                self.profile = Setting::without_offload(named.ok_or_else(|| format!("no profile `{name}`"))?.1);
                self.profile_name = Some(name.to_owned());
            }
            "controller" => self.controller = words.next()?.to_owned(),
            "ecn" => {
                self.ecn = match words.next()? {
                    "off" => EcnMode::Off,
                    "classic" => EcnMode::Classic,
                    "exact" => EcnMode::Exact,
                    other => return Err(format!("no use of ECN is called `{other}`")),
                }
            }
            "rtt" => self.round_trip = Some(words.span()?),
            "closed" => self.round_trip = None,
            "kernel" => self.kernel_differs = Some(words.0.drain(..).collect::<Vec<_>>().join(" ")),
            "set" => self.set(words)?,
            other => return Err(format!("`{other}` is no setting")),
        }
        Ok(())
    }

    fn set(&mut self, words: &mut Words<'_>) -> Outcome {
        let profile = &mut self.profile;
        let small = |words: &mut Words<'_>| words.number().map(|n| u8::try_from(n).unwrap_or(u8::MAX));
        let name = words.next()?;
        self.changed.push(name.to_owned());
        match name {
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
struct Play<E> {
    now: Time,
    end: E,
    highest_sent: u64,
    offered: u32,
    not_compared: Vec<State>,
}

impl<E: End> Play<E> {
    /// Plays a statement; `sends`: something is to be sent before the next moment.
    fn statement(&mut self, words: &mut Words<'_>, sends: bool) -> Outcome {
        match words.next()? {
            "at" => {
                let time = at(words.span()?);
                if time < self.now {
                    return Err("time runs backwards".to_owned());
                }
                if let Some((when, segment)) = self.end.peek_sent() {
                    return Err(format!("unexpected at {when}: {}", show(&segment)));
                }
                self.end.run_until(time, words.is_empty() && sends)?;
                self.now = time;
                if words.is_empty() { Ok(()) } else { self.act(words) }
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
                let bytes = if unit.starts_with("segment") { count * u64::from(MSS) } else { count };
                self.end.act(Action::Offer(bytes, Tag(self.offered)))
            }
            "stop" => self.end.act(Action::Stop),
            "open" => self.end.act(Action::Open),
            "recv" => self.receive(words),
            "flush" => self.end.act(Action::Flush),
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
                segment.length = MSS;
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
            segment.length = MSS;
            segment.seq = start(number).wire();
            segment.flags =
                if last { push } else { Flags::from_bits(push.bits() & !Flags::PSH.with(Flags::END).bits()) };
            segment.tag = Tag(1);
            self.end.act(Action::Receive(segment))?;
        }
        if data.is_none() {
            self.end.act(Action::Receive(segment))?;
        }
        Ok(())
    }

    fn take_sent(&mut self, expected: &str) -> Result<Segment, String> {
        let Some((when, segment)) = self.end.take_sent() else {
            return Err(format!("expected {expected}, but nothing was sent"));
        };
        if !self.end.is_now(when, self.now) {
            return Err(format!("expected {expected} at {}, but {} left at {when}", self.now, show(&segment)));
        }
        Ok(segment)
    }

    fn expect(&mut self, words: &mut Words<'_>) -> Outcome {
        let what = words.next()?;
        match what {
            "send" | "resend" => return self.expect_data(what == "resend", words),
            "ack" => return self.expect_ack(words),
            "syn" | "syn-ack" => {
                let segment = self.take_sent(what)?;
                let (syn, ack) = (segment.flags.contains(Flags::SYN), segment.flags.contains(Flags::ACK));
                return if syn && ack == (what == "syn-ack") {
                    Ok(())
                } else {
                    Err(format!("found {}", show(&segment)))
                };
            }
            "bytes" => {
                let (expected, found) = (words.number()?, self.take_sent("a segment")?.length);
                return equal(what, &expected.to_string(), &found.to_string());
            }
            _ => {}
        }
        let (state, expected) = match what {
            "established" | "opening" => (State::Established, (what == "established").to_string()),
            "phase" => (State::Phase, words.next()?.to_owned()),
            "window" => (State::Window, words.number()?.to_string()),
            "threshold" => (State::Threshold, words.number()?.to_string()),
            "outstanding" => (State::Outstanding, words.number()?.to_string()),
            "in-flight" => (State::InFlight, words.number()?.to_string()),
            "timeouts" => (State::Timeouts, words.number()?.to_string()),
            "timer" | "pacing" => {
                let word = words.next()?;
                let time = if word == "none" { Time::NEVER } else { at(span(word)?) };
                (if what == "timer" { State::Timer } else { State::Pacing }, show_time(time))
            }
            other => return Err(format!("`{other}` cannot be expected")),
        };
        match self.end.state(state) {
            Some(found) => equal(what, &expected, &found),
            None => {
                self.not_compared.push(state);
                Ok(())
            }
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

/// Reads a script and plays it on the end that `make` gives for what it says before its first moment, beyond `setting`: the
/// states that its end could not tell.
pub fn play<E: End>(
    text: &str,
    setting: Setting,
    make: impl FnOnce(&Setting) -> Result<E, String>,
) -> Result<Vec<State>, String> {
    if !text.starts_with("# ") {
        return Err("the first line must say what is tested".to_owned());
    }
    let (setting, statements) = read(text, setting)?;
    let mut play =
        Play { now: Time::ZERO, end: make(&setting)?, highest_sent: 0, offered: 0, not_compared: Vec::new() };
    let sends: Vec<bool> = (1..=statements.len()).map(|next| sends_first(&statements[next..])).collect();
    for ((line, mut words), sends) in statements.into_iter().zip(sends) {
        play.statement(&mut words, sends).and_then(|()| words.end()).map_err(|problem| format!("{line}: {problem}"))?;
    }
    match play.end.peek_sent() {
        Some((when, segment)) => Err(format!("at the end: unexpected at {when}: {}", show(&segment))),
        None => Ok(play.not_compared),
    }
}

/// Whether these statements expect something to be sent before their first moment.
fn sends_first(statements: &[(String, Words<'_>)]) -> bool {
    let moment = statements.iter().take_while(|(_, words)| words.0.front() != Some(&"at"));
    let mut expected = moment.filter_map(|(_, words)| words.0.get(1));
    expected.any(|what| ["send", "resend", "ack", "syn", "syn-ack", "bytes"].contains(what))
}

/// What a script says before its first moment, beyond `setting`, and its statements, each with where it is.
pub fn read(text: &str, mut setting: Setting) -> Result<(Setting, Vec<(String, Words<'_>)>), String> {
    let mut statements = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let place = format!("line {}, `{line}`", index + 1);
        let mut words = Words::of(line);
        if statements.is_empty() && !matches!(words.0.front(), Some(&"at" | &"expect")) {
            setting.read(&mut words).and_then(|()| words.end()).map_err(|problem| format!("{place}: {problem}"))?;
        } else {
            statements.push((place, words));
        }
    }
    Ok((setting, statements))
}

/// All scripts in a folder and below it, in order.
pub fn scripts_below(folder: &Path) -> Vec<PathBuf> {
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
