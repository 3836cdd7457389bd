//! A run as a handle: it goes on in a thread of its own; Python polls, cancels or joins.

use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use narrows_plan::Plan;
use narrows_results::{Results, capture};
use narrows_sim::{Progress, Ran, Selection, Wanted, hold_ns, read_ns};
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

use crate::controller::{self, Substitute};
use crate::experiments::{BadInput, plan_of, sources};
use crate::tables::{Table, table};

pyo3::create_exception!(_native, Cancelled, PyException, "The run was cancelled before its end.");

/// How long a calibration is good for. It takes some hundred milliseconds, more than a short run.
const CALIBRATION_LASTS: Duration = Duration::from_secs(60);

/// What the two threads share.
#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    now_ns: AtomicU64,
    end_ns: AtomicU64,
    packet_hops: AtomicU64,
}

/// A finished run.
#[pyclass(frozen, name = "Results")]
pub(crate) struct Outcome {
    plan: Plan,
    results: Results,
    manifest: String,
}

#[pymethods]
impl Outcome {
    /// A table of the results: `flows`, `requests`, `ports` or `series`.
    fn table(&self, name: &str) -> PyResult<Table> {
        table(name, &self.plan, &self.results)
    }

    /// Packets of a traced run at the ports of these names, as a capture file.
    fn write_capture(&self, py: Python<'_>, path: PathBuf, ports: Vec<String>) -> PyResult<()> {
        let links = &self.plan.network.links;
        let port = |name: &String| {
            let found = (0..).zip(links).find(|(_, link)| link.name == *name).map(|(number, _)| number);
            found.ok_or_else(|| PyValueError::new_err(format!("the network has no port {name}")))
        };
        let ports = ports.iter().map(port).collect::<PyResult<Vec<u32>>>()?;
        let written = py.detach(|| {
            let out = BufWriter::new(File::create(path)?);
            capture::write(&self.plan, &self.results.trace, &ports, out)
        });
        Ok(written?)
    }

    /// What the run was and what it cost, as JSON.
    fn manifest(&self) -> &str {
        &self.manifest
    }
}

type Worker = JoinHandle<Result<Option<Outcome>, String>>;

/// A run that goes on.
#[pyclass(frozen)]
pub(crate) struct Run {
    shared: Arc<Shared>,
    worker: Mutex<Option<Worker>>,
}

#[pymethods]
impl Run {
    /// Simulated nanoseconds, nanoseconds at the end, packets serialised so far.
    fn progress(&self) -> (u64, u64, u64) {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        (read(&self.shared.now_ns), read(&self.shared.end_ns), read(&self.shared.packet_hops))
    }

    /// Asks the run to stop soon.
    fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Waits for the end, the interpreter released.
    fn join(&self, py: Python<'_>) -> PyResult<Outcome> {
        let worker = self.worker.lock().expect("no thread panics while it holds this").take();
        let worker = worker.ok_or_else(|| PyRuntimeError::new_err("a run is joined once"))?;
        match py.detach(|| worker.join()) {
            Ok(Ok(Some(outcome))) => Ok(outcome),
            Ok(Ok(None)) => Err(Cancelled::new_err("the run was cancelled")),
            Ok(Err(refused)) => Err(PyValueError::new_err(refused)),
            Err(payload) => Err(match payload.downcast::<narrows_c::Misbehaved>() {
                Ok(controller) => BadInput::new_err(format!("error: {}\n  help: mend the controller", controller.0)),
                Err(_) => PyRuntimeError::new_err("the simulator failed; the message is on standard error"),
            }),
        }
    }
}

/// Starts a run of a plan, given as JSON, on up to `threads` threads; with a [`Substitute`] on one.
#[pyfunction]
#[pyo3(signature = (plan_json, seed, *, threads=1, substitute=None))]
pub(crate) fn start(plan_json: &str, seed: u64, threads: u32, substitute: Option<Substitute>) -> PyResult<Run> {
    let plan = plan_of(plan_json)?;
    let shared = Arc::new(Shared::default());
    let for_worker = Arc::clone(&shared);
    let simulation = move || {
        let threads = if substitute.is_some() { 1 } else { threads };
        if let Some(substitute) = substitute {
            controller::substitute(substitute);
        }
        simulate(plan, seed, How::On(threads), &for_worker)
    };
    let worker = thread::Builder::new()
        .name("simulation".into())
        .spawn(simulation)
        .map_err(|error| PyRuntimeError::new_err(format!("no thread for the run: {error}")))?;
    Ok(Run { shared, worker: Mutex::new(Some(worker)) })
}

/// Starts a run of a plan again with a trace of these flows, or of all: a JSON list of `workload`, `start_ns`, `source`,
/// `destination`, as in `flows`, and `earlier`, how many rows before it have the same four.
#[pyfunction]
#[pyo3(signature = (plan_json, seed, flows=None))]
pub(crate) fn trace(plan_json: &str, seed: u64, flows: Option<&str>) -> PyResult<Run> {
    let plan = plan_of(plan_json)?;
    let selection = match flows {
        None => Selection::All,
        Some(flows) => Selection::Flows(wanted(&plan, flows).map_err(PyValueError::new_err)?),
    };
    let shared = Arc::new(Shared::default());
    let for_worker = Arc::clone(&shared);
    let worker = thread::Builder::new()
        .name("simulation".into())
        .spawn(move || simulate(plan, seed, How::Traced(selection), &for_worker))
        .map_err(|error| PyRuntimeError::new_err(format!("no thread for the run: {error}")))?;
    Ok(Run { shared, worker: Mutex::new(Some(worker)) })
}

/// Flows as results name them, as the simulator knows them.
fn wanted(plan: &Plan, flows: &str) -> Result<Vec<Wanted>, String> {
    #[derive(serde::Deserialize)]
    struct Row {
        workload: String,
        start_ns: u64,
        source: String,
        destination: String,
        earlier: u32,
    }
    let rows: Vec<Row> = serde_json::from_str(flows).map_err(|error| error.to_string())?;
    let node = |name: &str| {
        let found = (0..).zip(&plan.network.nodes).find(|(_, node)| node.name == name);
        found.map(|(number, _)| number).ok_or_else(|| format!("the network has no node {name}"))
    };
    let row = |row: &Row| {
        let traffic = (0..).zip(&plan.traffic).find(|(_, traffic)| traffic.name == row.workload);
        let traffic =
            traffic.map(|(number, _)| number).ok_or_else(|| format!("there is no traffic {}", row.workload))?;
        let (source, destination) = (node(&row.source)?, node(&row.destination)?);
        Ok(Wanted { traffic, start_ns: row.start_ns, source, destination, earlier: row.earlier })
    };
    rows.iter().map(row).collect()
}

/// Nanoseconds per hold on this machine, now.
#[pyfunction]
pub(crate) fn calibrate(py: Python<'_>) -> f64 {
    py.detach(hold_ns)
}

/// Nanoseconds per read along a random chain through 8 MB of memory on this machine, now.
#[pyfunction]
pub(crate) fn calibrate_memory(py: Python<'_>) -> f64 {
    py.detach(read_ns)
}

/// Nanoseconds per hold on this machine, at most a minute ago.
fn recent_hold_ns() -> f64 {
    static LAST: Mutex<Option<(Instant, f64)>> = Mutex::new(None);
    let mut last = LAST.lock().expect("no thread panics while it holds this");
    match *last {
        Some((when, hold)) if when.elapsed() < CALIBRATION_LASTS => hold,
        _ => last.insert((Instant::now(), hold_ns())).1,
    }
}

/// How a run is made.
enum How {
    /// On up to so many threads.
    On(u32),
    /// With a trace of these flows.
    Traced(Selection),
}

fn simulate(plan: Plan, seed: u64, how: How, shared: &Shared) -> Result<Option<Outcome>, String> {
    let wall = Instant::now();
    let observer = |progress: Progress| {
        shared.now_ns.store(progress.now.as_ns(), Ordering::Relaxed);
        shared.end_ns.store(progress.end.as_ns(), Ordering::Relaxed);
        shared.packet_hops.store(progress.packet_hops, Ordering::Relaxed);
        if shared.cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ran = match how {
        How::On(threads) => narrows_sim::run(&plan, seed, threads, observer),
        How::Traced(selection) => narrows_sim::run_traced(&plan, seed, selection, observer),
    };
    let ran = ran.map_err(|error| error.to_string())?;
    let Some(Ran { results, cpu_ns, threads }) = ran else { return Ok(None) };
    let wall_ns = u64::try_from(wall.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let cpu_ns = cpu_ns.unwrap_or(wall_ns);
    shared.now_ns.store(results.ended_ns, Ordering::Relaxed);
    shared.packet_hops.store(results.packet_hops, Ordering::Relaxed);
    let hold = recent_hold_ns();
    let per_hop = real(cpu_ns) / real(results.packet_hops.max(1));
    let manifest = json!({
        "version": sources().version(&plan),
        "sources": sources().of(&plan),
        "plan_hash": plan.hash(),
        "seed": seed,
        "threads": threads,
        "simulated_ns": results.ended_ns,
        "packet_hops": results.packet_hops,
        "events": results.events,
        "cpu_ns": cpu_ns,
        "wall_ns": wall_ns,
        "hold_ns": hold,
        "ns_per_packet_hop": per_hop,
        "holds_per_packet_hop": per_hop / hold,
    });
    Ok(Some(Outcome { manifest: manifest.to_string(), plan, results }))
}

#[allow(clippy::cast_precision_loss, reason = "counts stay below 2⁵³")]
fn real(value: u64) -> f64 {
    value as f64
}
