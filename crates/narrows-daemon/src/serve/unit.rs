//! One process of the service: started, read, and started again when it ends by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal};

use super::config::{self, Unit};
use super::log::{Level, Log};
use super::metrics::UnitState;

/// What the service hears. Numbers are of processes, of which no two have the same.
#[derive(Debug)]
pub(super) enum Event {
    /// The unit's process works.
    Ready(String, u64),
    /// It has ended.
    Ended(String, u64, ExitStatus),
}

/// What units need of the service.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) events: Sender<Event>,
    pub(super) log: Log,
    /// Where processes say that they work; nobody else may write there.
    pub(super) folder: PathBuf,
    /// How many processes there were.
    pub(super) processes: u64,
}

/// What ended by itself is started again after so long, twice as long each time that it has not come to work, and this at most.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// A process that does not say within this time that it works is not waited for.
const BEGIN: Duration = Duration::from_secs(30);
/// Commands that change something may wait for each other for so long.
const CHANGE: Duration = Duration::from_secs(20);
/// Wrong input, and a machine that lacks something, do not get better by themselves.
const LASTING: [i32; 2] = [2, 3];
/// This program, whatever has become of its file meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// A unit and its process.
#[derive(Debug)]
pub(super) struct Running {
    name: String,
    unit: Unit,
    stage: Stage,
    process: Option<Process>,
    starts: u64,
    pause: Duration,
    /// Files that it reads have changed while it was starting.
    stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Is to be started, for the first time or again.
    Due(Instant),
    /// Since then.
    Starting(Instant),
    Works,
    /// Not before the file is read anew.
    Failed,
}

#[derive(Debug)]
struct Process {
    number: u64,
    handle: OwnedFd,
    waiter: JoinHandle<()>,
}

impl Running {
    /// Not started yet.
    pub(super) fn new(name: String, unit: Unit) -> Running {
        Running { name, unit, stage: Stage::Due(Instant::now()), process: None, starts: 0, pause: PAUSE, stale: false }
    }

    /// Whether it works, or has been tried: what does not work is tried again for as long as it takes.
    pub(super) fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Works | Stage::Failed => true,
            Stage::Due(_) => self.starts > 0,
            Stage::Starting(since) => since.elapsed() > BEGIN,
        }
    }

    pub(super) fn state(&self) -> UnitState {
        UnitState { works: self.stage == Stage::Works, restarts: self.starts.saturating_sub(1) }
    }

    fn is_of(&self, number: u64) -> bool {
        self.process.as_ref().is_some_and(|process| process.number == number)
    }

    /// A process says that it works.
    pub(super) fn ready(&mut self, number: u64) {
        if self.is_of(number) && matches!(self.stage, Stage::Starting(_)) {
            self.stage = Stage::Works;
            self.pause = PAUSE;
            if std::mem::take(&mut self.stale) {
                self.signal(Signal::HUP);
            }
        }
    }

    pub(super) fn start_if_due(&mut self, hub: &mut Hub) {
        let now = Instant::now();
        if !matches!(self.stage, Stage::Due(at) if at <= now) {
            return;
        }
        self.starts += 1;
        hub.processes += 1;
        self.stage = Stage::Starting(now);
        match Process::start(&self.name, &self.unit, hub) {
            Ok(process) => self.process = Some(process),
            Err(error) => {
                hub.log.write(Some(&self.name), Level::Error, &format!("it cannot be started: {error}"));
                self.stage = Stage::Due(now + self.longer_pause());
            }
        }
    }

    /// A process has ended by itself.
    pub(super) fn ended(&mut self, number: u64, status: ExitStatus, log: &Log) {
        if !self.is_of(number) {
            return;
        }
        self.process = None;
        self.stale = false;
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with code {code}"),
            (None, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
        };
        if status.code().is_some_and(|code| LASTING.contains(&code)) {
            self.stage = Stage::Failed;
            log.write(Some(&self.name), Level::Error, &format!("{how}; it is not started again before a reload"));
        } else {
            let pause = self.longer_pause();
            self.stage = Stage::Due(Instant::now() + pause);
            let sentence = format!("{how}; it is started again in {} s", pause.as_secs());
            log.write(Some(&self.name), Level::Warning, &sentence);
        }
    }

    /// How long it is left alone now; the next time longer.
    fn longer_pause(&mut self) -> Duration {
        let next = (2 * self.pause).min(MAX_PAUSE);
        std::mem::replace(&mut self.pause, next)
    }

    /// Whether its process cannot go on with what the file says now. What failed is tried again.
    pub(super) fn must_end_for(&self, wanted: &Unit) -> bool {
        let live = |unit: &Unit| Unit { parameters: BTreeMap::new(), ..unit.clone() };
        let is_same = live(wanted) == live(&self.unit);
        match self.stage {
            Stage::Works => !is_same,
            Stage::Failed => true,
            Stage::Due(_) | Stage::Starting(_) => *wanted != self.unit,
        }
    }

    /// The file says something else, or the same again. Where its process could not go on, it has ended.
    pub(super) fn become_(&mut self, wanted: Unit, log: &Log) {
        let was = std::mem::replace(&mut self.unit, wanted);
        if self.process.is_none() {
            if self.starts > 0 && was != self.unit {
                log.write(Some(&self.name), Level::Info, "is started anew: the file says something else of it");
            }
            let shares = |of: &[String; 2]| self.unit.ends.iter().flatten().any(|end| of.contains(end));
            if let Some(of) = was.ends.filter(|of| self.unit.ends.as_ref() != Some(of) && shares(of)) {
                // The kernel joins the interfaces of before, of which one is wanted for another pair.
                run(&self.name, &["bridge", "remove", "--inside", &of[0], "--outside", &of[1]], log);
            }
            self.stage = Stage::Due(Instant::now());
            return;
        }
        if was.parameters != self.unit.parameters && !self.set(&was, log) {
            // Tried again by the next reload.
            self.unit.parameters = was.parameters;
        }
        // Its file of senders may be another. While it is not known whether it has read it, it is told later.
        if self.name == config::NEAR_SOURCE_UNIT {
            self.stale = self.stage != Stage::Works;
            if !self.stale {
                self.signal(Signal::HUP);
            }
        }
    }

    /// A loaded controller's parameters change while its connections live; what is no longer in the file is the default.
    fn set(&self, was: &Unit, log: &Log) -> bool {
        let Some(controller) = self.name.strip_prefix("controller.") else { return true };
        let absent = was.parameters.keys().filter(|key| !self.unit.parameters.contains_key(*key));
        let defaults = absent.filter_map(|key| Some((key.clone(), config::default_of(controller, key)?)));
        let all = self.unit.parameters.clone().into_iter().chain(defaults);
        let sets: Vec<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
        let words = ["cc", "set", controller].into_iter().chain(sets.iter().map(String::as_str));
        let is_set = run(&self.name, &words.collect::<Vec<_>>(), log) == Some(0);
        if is_set {
            log.write(Some(&self.name), Level::Info, &format!("is set: {}", sets.join(" ")));
        }
        is_set
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            let _ = pidfd_send_signal(&process.handle, signal);
        }
    }

    /// Asks it to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until it has ended, by force from then on.
    pub(super) fn wait(&mut self, until: Instant) {
        let Some(Process { handle, waiter, .. }) = self.process.take() else { return };
        while !waiter.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        if !waiter.is_finished() {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
        let _ = waiter.join();
        self.stale = false;
    }
}

impl Process {
    fn start(name: &str, unit: &Unit, hub: &Hub) -> io::Result<Process> {
        let number = hub.processes;
        // The process says here that it works, as to a service manager; its end is said here too.
        let place = hub.folder.join(number.to_string());
        let socket = UnixDatagram::bind(&place)?;
        let mut command = Command::new(PROGRAM);
        command
            .arg0("narrowsd")
            .args(unit.command_line(&hub.folder))
            .env("NOTIFY_SOCKET", &place)
            .current_dir(&unit.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: one system call, which may be made between fork and exec.
        unsafe {
            // A service that is killed leaves none behind: each ends in order, which the kernel asks for.
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        let mut child = command.spawn()?;
        // Nobody has waited for it: the number is still its own.
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let readers = [
            child.stdout.take().map(|stream| read(name, stream, &hub.log)),
            child.stderr.take().map(|stream| read(name, stream, &hub.log)),
        ];
        let (told, unit_name) = (hub.events.clone(), name.to_owned());
        thread::spawn(move || {
            let mut message = [0; 64];
            while let Ok(length) = socket.recv(&mut message) {
                if message[..length].starts_with(b"READY=1") {
                    let _ = told.send(Event::Ready(unit_name.clone(), number));
                } else if message[..length] == *ENDED {
                    return;
                }
            }
        });
        let (told, unit_name) = (hub.events.clone(), name.to_owned());
        let waiter = thread::spawn(move || {
            let Ok(status) = child.wait() else { return };
            let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(ENDED, &place));
            let _ = fs::remove_file(&place);
            for reader in readers.into_iter().flatten() {
                let _ = reader.join();
            }
            let _ = told.send(Event::Ended(unit_name, number, status));
        });
        Ok(Process { number, handle, waiter })
    }
}

const ENDED: &[u8] = b"ENDED";

/// What follows a line so soon, and begins with a blank, belongs to it.
const TOGETHER: Duration = Duration::from_millis(50);

/// Logs what a process prints: a message with its lines of help, excerpts or numbers is one event.
fn read(name: &str, stream: impl Read + Send + 'static, log: &Log) -> JoinHandle<()> {
    let (name, log) = (name.to_owned(), log.clone());
    let (send, lines) = mpsc::channel::<String>();
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { return };
            if send.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        while let Ok(mut message) = lines.recv() {
            let mut next = lines.recv_timeout(TOGETHER).ok();
            while let Some(line) = next.take() {
                if line.starts_with(' ') {
                    message += &format!("\n{line}");
                } else {
                    log.write_of_unit(&name, &std::mem::replace(&mut message, line));
                }
                next = lines.recv_timeout(TOGETHER).ok();
            }
            log.write_of_unit(&name, &message);
        }
    })
}

/// Runs a command of this program to its end, and logs what it says; its code, if it ended by itself in time.
pub(super) fn run(name: &str, words: &[&str], log: &Log) -> Option<i32> {
    let (code, said) = run_quietly(words);
    if !said.is_empty() {
        log.write_of_unit(name, said.trim_end());
    }
    code
}

/// The same, with what it says.
pub(super) fn run_quietly(words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.arg0("narrowsd").args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (None, format!("error: {error}\n")),
    };
    let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let waiter = thread::spawn(move || child.wait_with_output());
    let until = Instant::now() + CHANGE;
    while !waiter.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(2));
    }
    let is_late = !waiter.is_finished();
    if let (true, Ok(handle)) = (is_late, handle) {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    let Ok(Ok(output)) = waiter.join() else { return (None, "error: it cannot be waited for\n".to_owned()) };
    let mut said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if is_late {
        said += &format!("error: narrowsd {} did not end in {} s\n", words.join(" "), CHANGE.as_secs());
    }
    (output.status.code(), said)
}

/// A folder for the sockets of a service, empty, that nobody else may look into.
///
/// # Errors
/// If it cannot be made.
pub(super) fn own_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    // What a killed one left.
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::DirBuilder::new().recursive(false).mode(0o700).create(path)
}
