//! Metrics over HTTP, in the text format of Prometheus: those of controllers, edge routers and the near-source loop, and whether
//! each unit works.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::States;
use super::config::near_source_metrics;
use crate::failure::Failure;
use crate::metrics::{Metric, Metrics};
use crate::{bridge, cc};

/// More than the head of any request that is meant for here.
const MAX_HEAD: usize = 8_192;
/// Who does not ask, or does not take the answer, is let go.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers at a time: one more is refused.
const MOST: usize = 8;

const WORKS: Metric = Metric("narrows_unit_up", "gauge", "Whether the unit's process works.");
const RESTARTS: Metric =
    Metric("narrows_unit_restarts_total", "counter", "How often the unit was started again, by itself or by a reload.");

/// What is told of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitState {
    pub(super) works: bool,
    pub(super) restarts: u64,
}

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
    pub(super) fn start(address: SocketAddr, states: States) -> Result<Server, Failure> {
        let cannot = |error: io::Error| {
            Failure::input(format!("metrics cannot be told at {address}: {error}"))
                .help("name an address of this host and a free port")
        };
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let busy = Arc::new(AtomicUsize::new(0));
            for stream in listener.incoming() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if busy.fetch_add(1, Ordering::Relaxed) >= MOST {
                    busy.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (states, busy) = (Arc::clone(&states), Arc::clone(&busy));
                thread::spawn(move || {
                    // Who asked may be gone.
                    let _ = answer(stream, &states);
                    busy.fetch_sub(1, Ordering::Relaxed);
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

fn answer(mut stream: TcpStream, states: &States) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, body) = match path(&mut stream)? {
        Some(path) if path == "/metrics" => match text(states) {
            Ok(text) => ("200 OK", text),
            Err(failure) => ("500 Internal Server Error", format!("{failure}\n")),
        },
        Some(_) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        None => ("400 Bad Request", "GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    // What is unread when it is closed would undo the answer.
    io::copy(&mut stream.take(MAX_HEAD as u64 * 8), &mut io::sink()).map(|_| ())
}

/// What is asked for; `None` where that is not HTTP's GET.
fn path(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = vec![];
    let mut piece = [0; 1_024];
    loop {
        let count = stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.map(|path| path.split('?').next().unwrap_or_default().to_owned());
                return Ok(path.filter(|_| request.method == Some("GET")));
            }
            Ok(httparse::Status::Partial) if count > 0 && head.len() < MAX_HEAD => {}
            _ => return Ok(None),
        }
    }
}

fn text(states: &States) -> Result<String, Failure> {
    let mut metrics = Metrics::default();
    let units: BTreeMap<_, _> = states.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (name, state) in units {
        let labels = [("unit", name)];
        metrics.add(&WORKS, &labels, if state.works { 1.0 } else { 0.0 });
        #[allow(clippy::cast_precision_loss, reason = "counts stay below 2⁵³")]
        metrics.add(&RESTARTS, &labels, state.restarts as f64);
    }
    // The near-source loop writes its own, every second.
    let near_source = fs::read_to_string(near_source_metrics()).unwrap_or_default();
    Ok(metrics.text() + &cc::metrics()? + &bridge::metrics()? + &near_source)
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
        let server = Server::start("127.0.0.1:0".parse().unwrap(), States::default()).unwrap();
        let address = server.bound;
        let first_line = |request| ask(address, request).lines().next().unwrap().to_owned();
        assert_eq!(first_line("GET / HTTP/1.1\r\nHost: here\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(first_line("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        assert_eq!(first_line("\x16\x03\x01 no HTTP\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        assert_eq!(
            first_line(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(2 * MAX_HEAD))),
            "HTTP/1.1 400 Bad Request"
        );
        drop(server);
        TcpListener::bind(address).expect("nobody has the port any more");
    }
}
