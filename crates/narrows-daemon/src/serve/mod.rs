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
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use narrows_kernel::registered::is_registered;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::{lock, namespaces, service};
use config::Config;
use log::{Level, Log};
use metrics::{Server, Shared};
use routes::Routes;
use unit::{Event, Hub, Running};

/// Looks at signals, routes and units that wait to be started again.
const LOOK: Duration = Duration::from_millis(100);
/// Units have so long to end in order.
const END: Duration = Duration::from_secs(10);
/// An address that cannot be had now may come.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file; narrowsd-file.md of the documentation has all keys
    #[arg(long, value_name = "FILE", default_value = "/etc/narrows/narrowsd.toml")]
    config: PathBuf,
    /// Only check the file, and print what would be run
    #[arg(long)]
    check: bool,
}

/// Performs the command.
///
/// # Errors
/// Code 2 where the file cannot be used, 1 where another service runs in this network namespace.
pub(crate) fn perform(arguments: &Arguments) -> Result<(), Failure> {
    let config = Config::read(&arguments.config)?;
    // Relative paths in the file begin there.
    std::env::set_current_dir(config.folder()).map_err(|error| lock::unusable(config.folder(), &error))?;
    if arguments.check {
        config.check(|_| false)?;
        for warning in config.check_routes(is_registered)? {
            eprintln!("warning: {warning}");
        }
        print!("{}", config.described());
        return Ok(());
    }
    let asked = Asked::default();
    for (signal, what) in [(SIGINT, &asked.stop), (SIGTERM, &asked.stop), (SIGHUP, &asked.reload)] {
        signal_hook::flag::register(signal, Arc::clone(what)).map_err(Failure::failed)?;
    }
    let folder = Path::new(lock::FOLDER).join(format!("serve-{}", namespaces::own().unwrap_or_default()));
    let Some(_lock) = lock::try_take(&folder.with_extension("lock"))? else {
        let help = "`systemctl reload narrowsd` has it read its file anew; --check only checks the file";
        return Err(Failure::failed("another `narrowsd serve` runs in this network namespace").help(help));
    };
    unit::own_folder(&folder).map_err(|error| lock::unusable(&folder, &error))?;
    let (events, heard) = mpsc::channel();
    let mut service = Service {
        path: std::path::absolute(&arguments.config).unwrap_or_else(|_| arguments.config.clone()),
        units: BTreeMap::new(),
        routes: Routes::default(),
        states: Shared::default(),
        hub: Hub { events, log: Log::new(config.log), folder: folder.clone(), processes: 0 },
        server: None,
        wanted: None,
        again: None,
        is_reloaded: true,
    };
    service.follow(config);
    service.run(&heard, &asked);
    service.end();
    let _ = fs::remove_dir_all(&folder);
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
    units: BTreeMap<String, Running>,
    routes: Routes,
    states: Shared,
    hub: Hub,
    server: Option<Server>,
    /// Where metrics are to be told, and when that is tried again.
    wanted: Option<SocketAddr>,
    again: Option<Instant>,
    /// Whether the file could be used when it was read last.
    is_reloaded: bool,
}

impl Service {
    /// Until it is told to stop.
    fn run(&mut self, events: &Receiver<Event>, asked: &Asked) {
        let mut is_ready = false;
        while !asked.stop.load(Ordering::Relaxed) {
            if asked.reload.swap(false, Ordering::Relaxed) {
                self.reload();
            }
            let mut event = events.recv_timeout(LOOK).ok();
            while let Some(one) = event.take() {
                self.hear(one);
                event = events.try_recv().ok();
            }
            for unit in self.units.values_mut() {
                unit.start_if_due(&mut self.hub);
            }
            self.routes.look(&self.hub.log);
            self.routes.add_where_possible(&self.hub.log);
            self.listen();
            self.publish();
            if !is_ready && self.units.values().all(Running::is_settled) && self.routes.are_settled() {
                is_ready = true;
                self.hub.log.write(None, Level::Info, "ready");
                if let Err(error) = service::ready() {
                    let sentence = format!("the service manager was not told: {error}");
                    self.hub.log.write(None, Level::Warning, &sentence);
                }
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Ready(name, number) => {
                if let Some(unit) = self.units.get_mut(&name) {
                    unit.ready(number);
                }
            }
            Event::Ended(name, number, status) => {
                if let Some(unit) = self.units.get_mut(&name) {
                    unit.ended(number, status, &self.hub.log);
                }
            }
        }
    }

    fn publish(&self) {
        let units = self.units.iter().map(|(name, unit)| (name.clone(), unit.state())).collect();
        let states = metrics::States { units, routes: self.routes.states(), is_reloaded: self.is_reloaded };
        *self.states.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = states;
    }

    /// Tells metrics where they are wanted; the address of before is kept until that can be had.
    fn listen(&mut self) {
        let Some(wanted) = self.wanted else {
            self.server = None;
            return;
        };
        let listens = self.server.as_ref().map(Server::address);
        if listens == Some(wanted) || self.again.is_some_and(|again| again > Instant::now()) {
            return;
        }
        // One port on one address and on all of them cannot be had at the same time.
        if listens.is_some_and(|listens| listens.port() == wanted.port()) {
            self.server = None;
        }
        match Server::start(wanted, Arc::clone(&self.states), self.hub.folder.clone()) {
            Ok(server) => {
                self.hub.log.write(None, Level::Info, &format!("metrics at http://{wanted}/metrics"));
                (self.server, self.again) = (Some(server), None);
            }
            Err(failure) => {
                if self.again.replace(Instant::now() + PAUSE).is_none() {
                    let sentence = format!("{failure}; it is tried again");
                    self.hub.log.write(None, Level::Warning, &sentence);
                }
            }
        }
    }

    /// The file has changed: what it says is done, or, if it cannot be used, nothing.
    fn reload(&mut self) {
        let read = Config::read(&self.path).and_then(|config| {
            // Who works is not ended for what cannot work.
            config.check(|name| self.units.get(name).is_some_and(|unit| unit.state().works))?;
            Ok(config)
        });
        self.is_reloaded = read.is_ok();
        match read {
            Ok(config) => {
                self.hub.log.set(config.log);
                self.hub.log.write(None, Level::Info, "the configuration is read anew");
                self.follow(config);
            }
            Err(failure) => self.hub.log.write(None, Level::Error, &format!("{failure}\nnothing was changed")),
        }
    }

    /// Makes what runs into what the file says. What is as before goes on.
    fn follow(&mut self, mut config: Config) {
        (self.wanted, self.again) = (config.metrics, None);
        let goes = |controller: &str| {
            let name = format!("controller.{controller}");
            self.units.contains_key(&name) && !config.units.contains_key(&name)
        };
        self.routes.remove_all_but(&config.routes, goes, &self.hub.log);
        let ends =
            |name: &String, unit: &Running| config.units.get(name).is_none_or(|wanted| unit.must_end_for(wanted));
        let end: Vec<String> =
            self.units.iter().filter(|(name, unit)| ends(name, unit)).map(|(name, _)| name.clone()).collect();
        let ended = |units: &mut BTreeMap<String, Running>| {
            for name in &end {
                units[name].terminate();
            }
            let until = Instant::now() + END;
            units.iter_mut().filter(|(name, _)| end.contains(name)).for_each(|(_, unit)| unit.wait(until));
        };
        ended(&mut self.units);
        self.units.retain(|name, _| {
            let stays = config.units.contains_key(name);
            if !stays {
                self.hub.log.write(Some(name), Level::Info, "is no longer in the file");
            }
            stays
        });
        for (name, wanted) in std::mem::take(&mut config.units) {
            match self.units.get_mut(&name) {
                Some(unit) => unit.become_(wanted, &self.hub.log),
                None => {
                    self.units.insert(name.clone(), Running::new(name, wanted));
                }
            }
        }
        self.routes.want(config.routes, &self.hub.log);
    }

    /// Ends all units in order; the routes first, which name controllers.
    fn end(mut self) {
        self.routes.remove_all_but(&[], |_| false, &self.hub.log);
        self.units.values().for_each(Running::terminate);
        let until = Instant::now() + END;
        self.units.values_mut().for_each(|unit| unit.wait(until));
        self.hub.log.write(None, Level::Info, "ended");
    }
}
