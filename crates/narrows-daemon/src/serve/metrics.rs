//! Metrics over HTTP, in the text format of Prometheus: those of controllers, edge routers and the near-source loop, and whether
//! each unit works.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::config::{NEAR_SOURCE_UNIT, near_source_metrics};
use crate::failure::Failure;
use crate::metrics::{Metric, Metrics};
use crate::{bridge, cc};

/// More than the head of any request that is meant for here.
const MAX_HEAD: usize = 8_192;
/// Who does not ask, or does not take the answer, is let go.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers at a time: one more is refused.
const MOST: usize = 8;
/// What was told is told again for so long: who asks often costs no more.
const FRESH: Duration = Duration::from_secs(1);

const WORKS: Metric = Metric("narrows_unit_up", "gauge", "Whether the unit's process works.");
const RESTARTS: Metric =
    Metric("narrows_unit_restarts_total", "counter", "How often the unit was started again, by itself or by a reload.");

const ROUTE: Metric = Metric("narrows_route_up", "gauge", "Whether the route to this prefix names its controller.");
const RELOADED: Metric =
    Metric("narrows_reload_successful", "gauge", "Whether the file could be used when it was read last.");
const COMPLETE: Metric = Metric("narrows_metrics_complete", "gauge", "Whether the state of this part could be read.");

/// What is told of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitState {
    pub(super) works: bool,
    pub(super) restarts: u64,
}

/// What is told of the service.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    pub(super) units: BTreeMap<String, UnitState>,
    /// By prefix, whether it is in force.
    pub(super) routes: BTreeMap<String, bool>,
    pub(super) is_reloaded: bool,
}

/// What the service writes, and answers read.
pub(super) type Shared = Arc<Mutex<States>>;

/// Answers until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    asked: SocketAddr,
    bound: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// # Errors
    /// Code 2 where the address cannot be had.
    pub(super) fn start(address: SocketAddr, states: Shared, folder: PathBuf) -> Result<Server, Failure> {
        let cannot = |error: io::Error| {
            Failure::input(format!("metrics cannot be told at {address}: {error}"))
                .help("name an address of this host and a free port")
        };
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let told_text = Arc::new(Told { states, folder, last: Mutex::default() });
        let thread = thread::spawn(move || {
            let busy = Arc::new(());
            for stream in listener.incoming() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                // Each answer holds a copy, however it ends.
                if Arc::strong_count(&busy) > MOST {
                    continue;
                }
                let (told_text, busy) = (Arc::clone(&told_text), Arc::clone(&busy));
                thread::spawn(move || {
                    // Who asked may be gone.
                    let _ = answer(stream, &told_text);
                    drop(busy);
                });
            }
        });
        Ok(Server { asked: address, bound, stop, thread: Some(thread) })
    }

    /// As it was asked for.
    pub(super) const fn address(&self) -> SocketAddr {
        self.asked
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It waits for a connection, which may as well be this one.
        if TcpStream::connect_timeout(&self.bound, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// What is told, and was told last.
struct Told {
    states: Shared,
    folder: PathBuf,
    last: Mutex<Option<(Instant, String)>>,
}

impl Told {
    fn text(&self) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((at, text)) if at.elapsed() < FRESH => text.clone(),
            _ => {
                let text = self.read();
                *last = Some((Instant::now(), text.clone()));
                text
            }
        }
    }

    /// Each part by itself: what cannot be read hides no other.
    fn read(&self) -> String {
        let mut metrics = Metrics::default();
        let States { units, routes, is_reloaded } = self.states.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let real = |yes: bool| if yes { 1.0 } else { 0.0 };
        metrics.add(&RELOADED, &[], real(is_reloaded));
        for (prefix, works) in routes {
            metrics.add(&ROUTE, &[("prefix", prefix)], real(works));
        }
        let near_source_works = units.get(NEAR_SOURCE_UNIT).is_some_and(|state| state.works);
        for (name, state) in units {
            let labels = [("unit", name)];
            metrics.add(&WORKS, &labels, real(state.works));
            #[allow(clippy::cast_precision_loss, reason = "counts stay below 2⁵³")]
            metrics.add(&RESTARTS, &labels, state.restarts as f64);
        }
        let mut rest = String::new();
        for (part, read) in [("controllers", cc::metrics()), ("bridges", bridge::metrics())] {
            metrics.add(&COMPLETE, &[("part", part.to_owned())], real(read.is_ok()));
            rest += &read.unwrap_or_default();
        }
        if near_source_works {
            // The loop writes its own, every second.
            rest += &fs::read_to_string(near_source_metrics(&self.folder)).unwrap_or_default();
        }
        metrics.text() + &rest
    }
}

fn answer(mut stream: TcpStream, told: &Told) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let asked = asked(&mut stream, until)?;
    let (status, body) = match &asked {
        None => ("400 Bad Request", "GET /metrics\n".to_owned()),
        Some((method, _)) if !["GET", "HEAD"].contains(&method.as_str()) => {
            ("405 Method Not Allowed\r\nAllow: GET, HEAD", "GET /metrics\n".to_owned())
        }
        Some((_, path)) if path == "/metrics" => ("200 OK", told.text()),
        Some(_) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    if asked.is_none_or(|(method, _)| method != "HEAD") {
        stream.write_all(body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)?;
    // What is unread when it is closed would undo the answer.
    let mut piece = [0; 1_024];
    while read_until(&mut stream, until, &mut piece)? > 0 {}
    Ok(())
}

/// Reads what there is; nothing once it is too late.
fn read_until(stream: &mut TcpStream, until: Instant, piece: &mut [u8]) -> io::Result<usize> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(0);
    }
    stream.set_read_timeout(Some(left))?;
    stream.read(piece)
}

/// The method and the path that are asked for; `None` where that is not HTTP.
fn asked(stream: &mut TcpStream, until: Instant) -> io::Result<Option<(String, String)>> {
    let mut head = vec![];
    let mut piece = [0; 1_024];
    loop {
        let count = read_until(stream, until, &mut piece)?;
        head.extend_from_slice(&piece[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.and_then(|path| path.split('?').next());
                return Ok(request.method.zip(path).map(|(method, path)| (method.to_owned(), path.to_owned())));
            }
            Ok(httparse::Status::Partial) if count > 0 && head.len() < MAX_HEAD => {}
            _ => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers and closes");
        answer
    }

    #[test]
    fn what_is_not_asked_for_is_refused_and_the_port_is_given_back() {
        let server = Server::start("127.0.0.1:0".parse().unwrap(), Shared::default(), PathBuf::new()).unwrap();
        let address = server.bound;
        let first_line = |request: &str| ask(address, request).lines().next().unwrap().to_owned();
        assert_eq!(first_line("GET / HTTP/1.1\r\nHost: here\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(first_line("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
        assert!(ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"), "no body");
        assert_eq!(first_line("\x16\x03\x01 no HTTP\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        assert_eq!(
            first_line(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(2 * MAX_HEAD))),
            "HTTP/1.1 400 Bad Request"
        );
        // Who says nothing, or little at a time, is in nobody's way, and is let go.
        let mut silent: Vec<TcpStream> = (0..MOST / 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        let begin = Instant::now();
        assert_eq!(first_line("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
        while silent[0].write_all(b"G").is_ok() && begin.elapsed() < 3 * PATIENCE {
            thread::sleep(Duration::from_millis(50));
        }
        assert!(begin.elapsed() < 2 * PATIENCE);
        drop(server);
        TcpListener::bind(address).expect("nobody has the port any more");
    }
}
