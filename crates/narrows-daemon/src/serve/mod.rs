//! `narrowsd serve`: everything that a configuration file says this host runs, each a process of its own, with one log and
//! metrics over HTTP.
//!
//! | part | what it does |
//! |---|---|
//! | `config` | the file, as command lines of this program |
//! | `unit` | one process: started, read, restarted |
//! | `routes` | prefixes that use a controller, once it is loaded |
//! | `metrics` | what is told over HTTP |
//! | `log` | lines of text or JSON |

mod config;
mod log;
mod metrics;
mod routes;
mod unit;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::service;
use config::Config;
use log::{Level, Log};
use metrics::Server;
use routes::Routes;
use unit::{Event, Running};

/// Looks at signals, routes and units that wait to be started again.
const LOOK: Duration = Duration::from_millis(100);
/// Units have so long to end in order.
const END: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file: docs/reference/narrowsd-file.md
    #[arg(long, value_name = "FILE", default_value = "/etc/narrows/narrowsd.toml")]
    config: PathBuf,
    /// Only check the file, and print what would be run
    #[arg(long)]
    check: bool,
}

/// Names and states of units, as metrics tell them.
type States = Arc<Mutex<BTreeMap<String, metrics::UnitState>>>;

/// Performs the command.
///
/// # Errors
/// Code 2 where the file cannot be used or the address of metrics cannot be had.
pub(crate) fn perform(arguments: &Arguments) -> Result<(), Failure> {
    let config = Config::read(&arguments.config)?;
    if arguments.check {
        print!("{}", config.described());
        return Ok(());
    }
    let (send, events) = mpsc::channel();
    let asked = Asked::default();
    for (signal, what) in [(SIGINT, &asked.stop), (SIGTERM, &asked.stop), (SIGHUP, &asked.reload)] {
        signal_hook::flag::register(signal, Arc::clone(what)).map_err(Failure::failed)?;
    }
    let states = States::default();
    let server = config.metrics.map(|address| Server::start(address, Arc::clone(&states))).transpose()?;
    let log = Log::new(config.log);
    let mut service = Service {
        path: arguments.config.clone(),
        log,
        units: BTreeMap::new(),
        routes: Routes::default(),
        states,
        send,
        server,
    };
    service.follow(config);
    service.run(&events, &asked);
    service.end();
    Ok(())
}

/// What signals ask for.
#[derive(Debug, Default)]
struct Asked {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

/// What runs now.
struct Service {
    path: PathBuf,
    log: Log,
    units: BTreeMap<String, Running>,
    routes: Routes,
    states: States,
    send: Sender<Event>,
    server: Option<Server>,
}

impl Service {
    /// Until it is told to stop.
    fn run(&mut self, events: &Receiver<Event>, asked: &Asked) {
        let mut is_ready = false;
        while !asked.stop.load(Ordering::Relaxed) {
            if asked.reload.swap(false, Ordering::Relaxed) {
                self.reload();
            }
            match events.recv_timeout(LOOK) {
                Ok(Event::Ready(name, number)) => {
                    if let Some(unit) = self.units.get_mut(&name).filter(|unit| unit.number() == number) {
                        unit.ready();
                    }
                }
                Ok(Event::Ended(name, number, status)) => {
                    if let Some(unit) = self.units.get_mut(&name).filter(|unit| unit.number() == number) {
                        unit.ended(status, &self.log);
                    }
                }
                Err(_) => {} // nothing has happened
            }
            let now = Instant::now();
            for unit in self.units.values_mut() {
                unit.start_if_due(now, &self.send, &self.log);
            }
            self.routes.add_where_possible(&self.log);
            self.publish();
            if !is_ready && self.units.values().all(Running::is_settled) && self.routes.are_settled() {
                is_ready = true;
                self.log.write(None, Level::Info, "ready");
                if let Err(error) = service::ready() {
                    self.log.write(None, Level::Warning, &format!("the service manager was not told: {error}"));
                }
            }
        }
    }

    fn publish(&self) {
        let states = self.units.iter().map(|(name, unit)| (name.clone(), unit.state())).collect();
        *self.states.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = states;
    }

    /// The file has changed: what it says is done, or, if it cannot be used, nothing.
    fn reload(&mut self) {
        match Config::read(&self.path) {
            Ok(config) => {
                self.log.set(config.log);
                self.log.write(None, Level::Info, "the configuration is read anew");
                let listens = self.server.as_ref().map(Server::address);
                if listens != config.metrics {
                    // The old address first: the new one may be the same port on all addresses.
                    self.server = None;
                    match config.metrics.map(|address| Server::start(address, Arc::clone(&self.states))).transpose() {
                        Ok(server) => self.server = server,
                        Err(failure) => self.log.write(None, Level::Error, &failure.to_string()),
                    }
                }
                self.follow(config);
            }
            Err(failure) => {
                let sentence = format!("{failure}\nnothing was changed");
                self.log.write(None, Level::Error, &sentence);
            }
        }
    }

    /// Makes what runs into what the file says. What is as before goes on.
    fn follow(&mut self, config: Config) {
        self.routes.remove_all_but(&config.routes, &self.log);
        let gone: Vec<String> = self.units.keys().filter(|name| !config.units.contains_key(*name)).cloned().collect();
        for name in gone {
            if let Some(unit) = self.units.remove(&name) {
                self.log.write(Some(&name), Level::Info, "is no longer in the file");
                unit.end(END);
            }
        }
        for (name, wanted) in config.units {
            match self.units.get_mut(&name) {
                Some(unit) => unit.become_(wanted, END, &self.log),
                None => {
                    self.units.insert(name.clone(), Running::new(name, wanted));
                }
            }
        }
        self.routes.want(config.routes);
    }

    /// Ends all units in order; the routes first, which name controllers.
    fn end(mut self) {
        self.routes.remove_all_but(&[], &self.log);
        for unit in self.units.values() {
            unit.terminate();
        }
        let until = Instant::now() + END;
        for unit in std::mem::take(&mut self.units).into_values() {
            unit.end(until.saturating_duration_since(Instant::now()));
        }
        self.log.write(None, Level::Info, "ended");
    }
}
