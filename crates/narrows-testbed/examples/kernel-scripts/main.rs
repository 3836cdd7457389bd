//! Plays the packet scripts of `narrows-core/tests/scripts` on a kernel's TCP, and says which it plays as they are written.
//!
//! ```text
//! kernel-scripts [--host] [NAME…]      in a guest, or on this machine's kernel as root; all scripts, or those whose path has a NAME
//! ```
//!
//! In a guest it must be linked statically: `make kernel-scripts` does so. A script that names no profile is of Linux 4.9: it is
//! played if the model plays it with Linux 6's profile too. One whose line `kernel` says that kernels do something else must fail.
#![allow(missing_docs, unreachable_pub, reason = "a test, which shares its scripts with the model's")]

mod kernel;
#[path = "../../../narrows-core/tests/packet_script/mod.rs"]
mod packet_script;
#[allow(dead_code, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
#[path = "../../../narrows-core/tests/pair/mod.rs"]
mod pair;
mod wire;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

use narrows_core::packet::Segment;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Span, Time};
use narrows_testbed::guest::{self, Boot, GuestError, inside};

use kernel::Kernel;
use packet_script::model::Model;
use packet_script::{Action, End, Outcome, Setting, State, play, read, scripts_below};

/// Scripts that cannot be played on a kernel: docs/explanation/fidelity.md says which. More of them would be a loss that nobody
/// notices.
const MAX_LEFT_OUT: usize = 30;

/// What came of a script on a kernel.
enum Verdict {
    /// It is not played there: why.
    Left(String),
    Plays,
    /// It fails, and says why that is known.
    Differs {
        why: String,
        how: String,
    },
    /// It fails.
    Fails(String),
    /// It plays, and says that it fails.
    PlaysAfterAll(String),
}

/// The model, whose timers may be off as those of a kernel may, and are not compared.
struct Untimed {
    model: Model,
    now: Time,
    /// How far the model's clock is ahead of the script's, ns.
    ahead: i64,
}

impl Untimed {
    fn new(setting: &Setting) -> Result<Untimed, String> {
        Ok(Untimed { model: Model::new(setting)?, now: Time::ZERO, ahead: 0 })
    }
}

impl End for Untimed {
    fn run_until(&mut self, time: Time, by_timer: bool) -> Outcome {
        let model = |ahead| Time::from_ns(time.as_ns().saturating_add_signed(ahead));
        let off = self.model.due().as_ns().cast_signed() - model(self.ahead).as_ns().cast_signed();
        if by_timer && off.unsigned_abs() <= kernel::patience(time.as_ns() - self.now.as_ns()) {
            self.ahead += off;
        }
        self.now = time;
        self.model.run_until(model(self.ahead), by_timer)
    }
    fn act(&mut self, action: Action) -> Outcome {
        self.model.act(action)
    }
    fn take_sent(&mut self) -> Option<(Time, Segment)> {
        self.model.take_sent()
    }
    fn peek_sent(&mut self) -> Option<(Time, Segment)> {
        self.model.peek_sent()
    }
    fn is_now(&self, when: Time, now: Time) -> bool {
        when.as_ns() == now.as_ns().saturating_add_signed(self.ahead)
    }
    fn state(&mut self, of: State) -> Option<String> {
        if matches!(of, State::Timer | State::Pacing) { None } else { self.model.state(of) }
    }
}

/// Linux 6's profile, whose timers do not tick: those of a kernel are not compared so closely.
fn linux_6() -> Setting {
    Setting::of(Profile { clock_tick: Span::ZERO, ..Profile::LINUX_6 })
}

/// Plays one script on the kernel that runs this.
fn judge(text: &str, release: &str) -> Verdict {
    let (setting, _) = match read(text, linux_6()) {
        Ok(read) => read,
        Err(problem) => return Verdict::Fails(problem),
    };
    if let Some(other) = setting.profile_name.as_ref().filter(|name| *name != "linux-6") {
        return Verdict::Left(format!("of {other}"));
    }
    if let Err(why) = kernel::suits(text, &setting) {
        return Verdict::Left(why);
    }
    if let Err(problem) = play(text, linux_6(), Untimed::new) {
        return Verdict::Left(format!("of another profile: {problem}"));
    }
    let opens = text.lines().any(|line| line.starts_with("at ") && line.ends_with(" open"));
    let outcome = thread::scope(|scope| {
        let playing = scope.spawn(|| play(text, linux_6(), |setting| Kernel::new(setting, opens)));
        playing.join().unwrap_or_else(|_| Err("the player panicked".to_owned()))
    });
    let known = setting.kernel_differs.filter(|why| concerns(why, release));
    match (outcome, known) {
        (Ok(untold), _) if untold.iter().any(|state| !matches!(state, State::Timer | State::Pacing)) => {
            Verdict::Fails(format!("the kernel did not tell {untold:?}"))
        }
        (Ok(_), None) => Verdict::Plays,
        (Ok(_), Some(why)) => Verdict::PlaysAfterAll(why),
        // What is no line of the script is no difference between it and the kernel.
        (Err(how), Some(why)) if how.starts_with("line ") => Verdict::Differs { why, how },
        (Err(problem), _) => Verdict::Fails(problem),
    }
}

/// Whether what a script says of kernels concerns this one: `before 6.6 …` older ones alone.
fn concerns(why: &str, release: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> { text.split(['.', '-']).map_while(|word| word.parse().ok()).collect() };
    match why.strip_prefix("before ").and_then(|rest| rest.split_once(' ')) {
        Some((bound, _)) => numbers(release) < numbers(bound),
        None => true,
    }
}

/// Plays scripts, each with its path, and says a line of each: how many were played, and whether all did as they say.
fn play_all<'a>(scripts: impl Iterator<Item = (&'a str, &'a str)>, say: impl Fn(&str)) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let (mut played, mut differing, mut left, mut wrong) = (0, 0, 0, 0);
    for (name, text) in scripts {
        let verdict = judge(text, &release);
        let line = match &verdict {
            Verdict::Left(why) => format!("left     {name}: {why}"),
            Verdict::Plays => format!("plays    {name}"),
            Verdict::Differs { why, how } => format!("differs  {name}: {why} ({how})"),
            Verdict::Fails(how) => format!("FAILS    {name}: {how}"),
            Verdict::PlaysAfterAll(why) => format!("FAILS    {name}: it plays, and should not: {why}"),
        };
        match verdict {
            Verdict::Left(_) => left += 1,
            Verdict::Plays => played += 1,
            Verdict::Differs { .. } => differing += 1,
            Verdict::Fails(_) | Verdict::PlaysAfterAll(_) => wrong += 1,
        }
        say(&line);
    }
    say(&format!("Linux {release}: {played} play, {differing} differ as they say, {left} are left out, {wrong} fail"));
    if left > MAX_LEFT_OUT {
        say(&format!("at most {MAX_LEFT_OUT} are to be left out: what was played before is not any more"));
    }
    wrong == 0 && played > 0 && left <= MAX_LEFT_OUT
}

/// All scripts with these words in their paths, which are made from the folder on.
fn scripts(words: &[String]) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows-core/tests/scripts");
    let read = |path: std::path::PathBuf| {
        let name = path.strip_prefix(&folder).unwrap_or(&path).with_extension("").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("a readable script"))
    };
    let wanted =
        |(name, _): &(String, String)| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    scripts_below(&folder).into_iter().map(read).filter(wanted).collect()
}

/// What separates scripts in the guest's file of them: in no script.
const BETWEEN: char = '\0';
const SCRIPTS: &str = "scripts";
const INSIDE: &str = "inside";

fn in_guest(scripts: &[(String, String)]) -> Result<bool, GuestError> {
    let image = guest::find()?;
    guest::qemu()?;
    let folder = std::env::temp_dir().join(format!("narrows-scripts-{}", std::process::id()));
    let file = |error| GuestError::File { path: folder.clone(), error };
    std::fs::create_dir_all(&folder).map_err(file)?;
    let all: Vec<String> = scripts.iter().flat_map(|(name, text)| [name.clone(), text.clone()]).collect();
    let all = all.join(&BETWEEN.to_string());
    let program = std::env::current_exe().map_err(file)?;
    let boot = Boot {
        image: &image,
        program: &program,
        arguments: &[INSIDE],
        modules: &["tcp_dctcp"],
        files: &[(SCRIPTS, all.as_bytes())],
        folder: &folder,
    };
    let mut heard = |line: &str| match line.strip_prefix(inside::PREFIX) {
        Some("done") => {}
        Some(line) => println!("{line}"),
        None => eprintln!("{line}"),
    };
    let outcome = guest::boot(&boot, &mut heard, &AtomicBool::new(false));
    let _ = std::fs::remove_dir_all(&folder);
    Ok(outcome?.contains_key("passed"))
}

/// The guest's first process.
fn inside_guest() -> ! {
    let played = inside::begin().and_then(|()| {
        let all = inside::given(SCRIPTS).map_err(|error| error.to_string())?;
        let all = String::from_utf8(all).map_err(|error| error.to_string())?;
        let parts: Vec<&str> = all.split(BETWEEN).collect();
        Ok(play_all(parts.chunks_exact(2).map(|pair| (pair[0], pair[1])), inside::say))
    });
    if let Err(problem) = &played {
        inside::say(problem);
    }
    let passed: &[(&str, Vec<u8>)] = if played == Ok(true) { &[("passed", Vec::new())] } else { &[] };
    match inside::deliver(passed) {
        Ok(()) => inside::say("done"),
        Err(error) => inside::say(&format!("the results cannot be delivered: {error}")),
    }
    inside::power_off()
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == [INSIDE] && std::process::id() == 1 {
        inside_guest();
    }
    let on_host = arguments.iter().position(|word| word == "--host").map(|place| arguments.remove(place)).is_some();
    let scripts = scripts(&arguments);
    let passed = if on_host {
        play_all(scripts.iter().map(|(name, text)| (name.as_str(), text.as_str())), |line| println!("{line}"))
    } else {
        match in_guest(&scripts) {
            Ok(passed) => passed,
            Err(error) => {
                eprintln!("{error}");
                // This machine has no guests; what else goes wrong is a failure.
                let lacks = matches!(error, GuestError::NoKernel(_) | GuestError::NoQemu { .. });
                return ExitCode::from(if lacks { 3 } else { 1 });
            }
        }
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
