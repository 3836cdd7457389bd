//! One process of the service: started, read, and started again when it ends by itself.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::config::{self, Unit};
use super::log::{Level, Log};
use super::metrics::UnitState;

/// What the service hears.
#[derive(Debug)]
pub(super) enum Event {
    /// A unit's process of this number works.
    Ready(String, u64),
    /// It has ended.
    Ended(String, u64, ExitStatus),
}

/// What ended by itself is started again after so long.
const PAUSE: Duration = Duration::from_secs(1);
/// Wrong input, and a machine that lacks something, do not get better by themselves.
const LASTING: [i32; 2] = [2, 3];

/// A unit and its process.
#[derive(Debug)]
pub(super) struct Running {
    name: String,
    unit: Unit,
    /// How many processes it has had.
    number: u64,
    stage: Stage,
    process: Option<Process>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Is to be started, or started again.
    Due(Instant),
    Starting,
    Works,
    /// Not before the file changes.
    Failed,
}

#[derive(Debug)]
struct Process {
    pid: Pid,
    waiter: JoinHandle<()>,
}

impl Running {
    /// Not started yet.
    pub(super) fn new(name: String, unit: Unit) -> Running {
        Running { name, unit, number: 0, stage: Stage::Due(Instant::now()), process: None }
    }

    /// Which process of it is the present one.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether it works, or will not without help.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.stage, Stage::Works | Stage::Failed)
    }

    pub(super) fn state(&self) -> UnitState {
        UnitState { works: self.stage == Stage::Works, restarts: self.number.saturating_sub(1) }
    }

    pub(super) fn ready(&mut self) {
        self.stage = Stage::Works;
    }

    pub(super) fn start_if_due(&mut self, now: Instant, events: &Sender<Event>, log: &Log) {
        if !matches!(self.stage, Stage::Due(at) if at <= now) {
            return;
        }
        self.number += 1;
        self.stage = Stage::Starting;
        match Process::start(&self.name, self.number, &self.unit, events, log) {
            Ok(process) => self.process = Some(process),
            Err(error) => {
                log.write(Some(&self.name), Level::Error, &format!("it cannot be started: {error}"));
                self.stage = Stage::Due(now + PAUSE);
            }
        }
    }

    /// Its process has ended by itself.
    pub(super) fn ended(&mut self, status: ExitStatus, log: &Log) {
        self.process = None;
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with code {code}"),
            (None, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
        };
        if status.code().is_some_and(|code| LASTING.contains(&code)) {
            self.stage = Stage::Failed;
            log.write(Some(&self.name), Level::Error, &format!("{how}; it is not started again before a reload"));
        } else {
            self.stage = Stage::Due(Instant::now() + PAUSE);
            log.write(Some(&self.name), Level::Warning, &format!("{how}; it is started again"));
        }
    }

    /// The file says something else, or the same again: what failed is then tried again.
    pub(super) fn become_(&mut self, unit: Unit, patience: Duration, log: &Log) {
        let was = std::mem::replace(&mut self.unit, unit);
        if was.arguments == self.unit.arguments && was.folder == self.unit.folder && self.stage == Stage::Works {
            if was.parameters != self.unit.parameters {
                self.set(&was, log);
            }
            if self.name == config::NEAR_SOURCE_UNIT
                && let Some(process) = &self.process
            {
                // Its file of senders may be another.
                let _ = kill_process(process.pid, Signal::HUP);
            }
            return;
        }
        if was == self.unit && self.stage != Stage::Failed {
            return;
        }
        if self.process.is_some() {
            log.write(Some(&self.name), Level::Info, "is started anew, as the file says");
        }
        self.end_process(patience);
        self.stage = Stage::Due(Instant::now());
    }

    /// A loaded controller's parameters change while its connections live; what is no longer in the file is the default.
    fn set(&self, was: &Unit, log: &Log) {
        let Some(controller) = self.name.strip_prefix("controller.") else { return };
        let absent = was.parameters.keys().filter(|key| !self.unit.parameters.contains_key(*key));
        let defaults = absent.filter_map(|key| Some((key.clone(), config::default_of(controller, key)?)));
        let sets =
            self.unit.parameters.clone().into_iter().chain(defaults).map(|(key, value)| format!("{key}={value}"));
        let arguments: Vec<String> = ["cc", "set", controller].map(str::to_owned).into_iter().chain(sets).collect();
        run(&self.name, &arguments, log);
    }

    /// Asks it to end.
    pub(super) fn terminate(&self) {
        if let Some(process) = &self.process {
            let _ = kill_process(process.pid, Signal::TERM);
        }
    }

    /// Ends it in order, or, after so long, by force.
    pub(super) fn end(mut self, patience: Duration) {
        self.end_process(patience);
    }

    fn end_process(&mut self, patience: Duration) {
        self.terminate();
        // What its process says from here on is of one that is no more.
        self.number += 1;
        let Some(Process { pid, waiter }) = self.process.take() else { return };
        let until = Instant::now() + patience;
        while !waiter.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        if !waiter.is_finished() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = waiter.join();
    }
}

impl Process {
    fn start(name: &str, number: u64, unit: &Unit, events: &Sender<Event>, log: &Log) -> std::io::Result<Process> {
        // The process says here that it works, as to a service manager; its end is said here too.
        let place = format!("narrowsd-{}-{name}-{number}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&place)?)?;
        let mut command = Command::new(env::current_exe()?);
        command
            .args(unit.command_line())
            .env("NOTIFY_SOCKET", format!("@{place}"))
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
        let pid = Pid::from_child(&child);
        let readers = [
            child.stdout.take().map(|stream| read(name, stream, log)),
            child.stderr.take().map(|stream| read(name, stream, log)),
        ];
        let (told, unit_name) = (events.clone(), name.to_owned());
        thread::spawn(move || {
            let mut message = [0; 64];
            if socket.recv(&mut message).is_ok_and(|length| message[..length].starts_with(b"READY=1")) {
                let _ = told.send(Event::Ready(unit_name, number));
            }
        });
        let (told, unit_name) = (events.clone(), name.to_owned());
        let waiter = thread::spawn(move || {
            let Ok(status) = child.wait() else { return };
            if let Ok(address) = SocketAddr::from_abstract_name(&place) {
                let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(b"ENDED", &address));
            }
            for reader in readers.into_iter().flatten() {
                let _ = reader.join();
            }
            let _ = told.send(Event::Ended(unit_name, number, status));
        });
        Ok(Process { pid, waiter })
    }
}

/// Logs what a process prints.
fn read(name: &str, stream: impl Read + Send + 'static, log: &Log) -> JoinHandle<()> {
    let (name, log) = (name.to_owned(), log.clone());
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { return };
            log.write_of_unit(&name, String::from_utf8_lossy(&line).trim_end());
        }
    })
}

/// Runs a command of this program to its end, and logs what it says; whether it succeeded.
pub(super) fn run(name: &str, arguments: &[String], log: &Log) -> bool {
    let output =
        env::current_exe().and_then(|program| Command::new(program).args(arguments).stdin(Stdio::null()).output());
    match output {
        Ok(output) => {
            for line in String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).lines() {
                log.write_of_unit(name, line);
            }
            output.status.success()
        }
        Err(error) => {
            log.write(Some(name), Level::Error, &error.to_string());
            false
        }
    }
}
