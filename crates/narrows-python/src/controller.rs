//! Controllers in Python: a class in a file, an object of it for each connection, a call for each event.
//!
//! Python sees seconds, packets, bytes and bits per second, as numbers; what it states is read back after each call.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use narrows_c::{Call, Error, Misbehaved, Source, watch};
use narrows_core::cc::external::{External, Library, Machine};
use narrows_core::cc::{
    Ack, Cause, CongestionControl, Context, Controller, EcnUse, Limit, Lost, Owner, Phase, Sent, Spec,
};
use narrows_core::telemetry::Hop;
use narrows_core::units::{Packets, Rate, Span, Time};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyModule, PyString, PyTuple, PyType, PyTypeMethods};

/// Its largest window and threshold, packets.
const MOST: f64 = (1u64 << 30) as f64;

/// What changes slowly, and the time. Times in seconds, sizes in bytes, windows in packets, rates in bit/s.
#[pyclass(frozen, get_all, name = "Path")]
struct PathFacts {
    now: f64,
    mss: u64,
    packet: u64,
    initial_window: u64,
    line_rate: u64,
    srtt: Option<f64>,
    min_rtt: Option<f64>,
    rto: f64,
    una: u64,
    nxt: u64,
    in_flight: u64,
}

/// What an acknowledgement tells.
#[pyclass(frozen, get_all, name = "Ack")]
struct AckFacts {
    acked: u64,
    marked: u64,
    lost: u64,
    ece: bool,
    rtt: Option<f64>,
    rtt_seq: Option<u64>,
    delivered: u64,
    delivery_rate: Option<f64>,
    app_limited: bool,
    prior_in_flight: u64,
    max_in_flight: u64,
    phase: &'static str,
    limited_by: &'static str,
    may_grow: bool,
}

/// What is sent.
#[pyclass(frozen, get_all, name = "Sent")]
struct SentFacts {
    size: u64,
    idle: Option<f64>,
}

/// A transmission that was found lost.
#[pyclass(frozen, get_all, name = "Lost")]
struct LostFacts {
    segment: u64,
    sent_at: f64,
    in_flight_at_send: u64,
    lost_since_send: u64,
    app_limited: bool,
    delivered: u64,
}

/// What a port wrote into a packet as it began to leave.
#[pyclass(frozen, get_all, name = "Hop")]
struct HopFacts {
    at: f64,
    queue: u64,
    sent: u64,
    rate: u64,
}

fn seconds(span: Span) -> f64 {
    real(span.as_ps()) / 1e12
}

#[allow(clippy::cast_precision_loss, reason = "what Python computes with has 53 bits")]
fn real(value: u64) -> f64 {
    value as f64
}

impl PathFacts {
    fn new(now: Time, path: &narrows_core::cc::Path) -> PathFacts {
        PathFacts {
            now: seconds(now.since(Time::ZERO)),
            mss: path.mss.get(),
            packet: path.packet.get(),
            initial_window: path.initial_window.get(),
            line_rate: path.line_rate.as_bps(),
            srtt: path.srtt.map(seconds),
            min_rtt: path.min_rtt.map(seconds),
            rto: seconds(path.rto),
            una: path.una.get(),
            nxt: path.nxt.get(),
            in_flight: path.in_flight.get(),
        }
    }
}

impl AckFacts {
    fn new(ack: &Ack, path: &narrows_core::cc::Path) -> AckFacts {
        let rate = |sample: &narrows_core::cc::RateSample| {
            let bits = real(sample.delivered.bytes(path.packet).get()) * 8.0;
            (!sample.interval.is_zero()).then(|| bits / seconds(sample.interval))
        };
        AckFacts {
            acked: ack.acked.get(),
            marked: ack.marked.get(),
            lost: ack.lost.get(),
            ece: ack.ece,
            rtt: ack.rtt.map(|sample| seconds(sample.span)),
            rtt_seq: ack.rtt.map(|sample| sample.seq.get()),
            delivered: ack.delivered.get(),
            delivery_rate: ack.delivery.as_ref().and_then(rate),
            app_limited: ack.delivery.is_some_and(|sample| sample.app_limited),
            prior_in_flight: ack.prior_in_flight.get(),
            max_in_flight: ack.max_in_flight.get(),
            phase: match ack.phase {
                Phase::Open => "open",
                Phase::EcnReduction => "ecn-reduction",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
            },
            limited_by: match ack.limited_by {
                Limit::Window => "window",
                Limit::Receiver => "receiver",
                Limit::Application => "application",
                Limit::Pacing => "pacing",
                Limit::NearSource => "near-source",
            },
            may_grow: ack.may_grow(),
        }
    }
}

/// A file's class.
#[derive(Debug)]
struct Class {
    file: String,
    class: Py<PyType>,
    recovery: Owner,
    /// It is told of each packet sent: it has a method of its own.
    is_told_of_sent: bool,
    /// The same of packets found lost.
    is_told_of_lost: bool,
    /// Its calls may take as long as they like.
    may_wait: bool,
    spec: &'static Spec,
}

impl Class {
    /// Tells the watchdog of a call, for as long as what this returns is kept.
    fn begin_call(&self) -> Option<Call> {
        (!self.may_wait).then(Call::begin)
    }
}

thread_local! {
    static SUBSTITUTE: RefCell<Option<Substitute>> = const { RefCell::new(None) };
}

/// A class; the text of a file, and the name of the class in it of which it takes the place.
pub(crate) type Substitute = (Py<PyType>, String, String);

/// From now on runs on this thread use this class in place of another; its calls may wait for an agent's decision.
pub(crate) fn substitute(substitute: Substitute) {
    SUBSTITUTE.set(Some(substitute));
}

/// [`narrows_c::Load`] for Python: executes the file in a module of its own.
pub(crate) fn load(source: &Source, name: Option<&str>) -> Result<Arc<dyn Library>, Error> {
    watch(&source.name);
    Python::attach(|py| {
        let failed = |error: PyErr| Error::Python(told(py, &source.name, &error));
        let substitute = SUBSTITUTE.with_borrow(|substitute| {
            let (class, text, of) = substitute.as_ref()?;
            (*text == source.text && name == Some(of.as_str())).then(|| class.bind(py).clone())
        });
        let may_wait = substitute.is_some();
        let found = substitute.map_or_else(|| find(py, source, name), |class| Ok(Ok(class)));
        let class = found.map_err(failed)?.map_err(|found| match (found.as_slice(), name) {
            ([], _) => {
                Error::Python(format!("`{}` has no class that derives from narrows.controller.Controller", source.name))
            }
            (names, None) => Error::Several { file: source.name.clone(), names: names.join(", ") },
            (names, Some(name)) => {
                Error::Unknown { file: source.name.clone(), name: name.to_owned(), names: names.join(", ") }
            }
        })?;
        for (name, value) in &source.parameters {
            set_parameter(source, &class, name, value)?;
        }
        let lacking = class.getattr("__abstractmethods__").and_then(|names| names.extract::<BTreeSet<String>>());
        if let Some(method) = lacking.map_err(failed)?.first() {
            let name = class.name().map_err(failed)?;
            return Err(Error::Python(format!("{}: {name} has no method {method}", source.name)));
        }
        let is = |attribute: &str| class.getattr(attribute).and_then(|value| value.is_truthy()).map_err(failed);
        let name = class.name().and_then(|name| name.extract::<String>()).map_err(failed)?;
        let ecn = if is("needs_ecn")? { EcnUse::Exact } else { EcnUse::Optional };
        let spec =
            narrows_c::spec(name, "A controller in Python.", ecn, is("needs_delivery_rate")?, is("needs_telemetry")?);
        let recovery = if is("owns_recovery")? { Owner::Controller } else { Owner::Transport };
        let has = |method: &str| {
            let own = base(py).and_then(|base| Ok(!base.getattr(method)?.is(class.getattr(method)?)));
            own.map_err(failed)
        };
        let (is_told_of_sent, is_told_of_lost) = (has("on_sent")?, has("on_lost")?);
        for (method, attribute) in [("on_lost", "needs_delivery_rate"), ("on_telemetry", "needs_telemetry")] {
            if has(method)? && !is(attribute)? {
                let (file, name) = (&source.name, spec.name);
                let sentence = format!("{file}: {name} has {method}, which is called only with {attribute} = True");
                return Err(Error::Python(sentence));
            }
        }
        let file = source.name.clone();
        let class = class.unbind();
        Ok(Arc::new(Class { file, class, recovery, is_told_of_sent, is_told_of_lost, may_wait, spec })
            as Arc<dyn Library>)
    })
}

/// Gives an attribute of the class that is a number, true or false, or a text the experiment's value.
fn set_parameter(source: &Source, class: &Bound<'_, PyType>, name: &str, value: &str) -> Result<(), Error> {
    let failed = |error: PyErr| Error::Python(told(class.py(), &source.name, &error));
    let known = parameters(class).map_err(failed)?;
    let Some((_, present)) = known.iter().find(|(known, _)| known == name) else {
        let known = known.iter().map(|(known, _)| known.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Error::NoParameter { file: source.name.clone(), name: name.to_owned(), known });
    };
    let refused = |expected| Error::NoValue {
        file: source.name.clone(),
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    };
    let set = if present.is_instance_of::<PyBool>() {
        class.setattr(name, value.parse::<bool>().map_err(|_| refused("true or false"))?)
    } else if present.is_instance_of::<PyInt>() {
        class.setattr(name, value.parse::<i64>().map_err(|_| refused("a whole number"))?)
    } else if present.is_instance_of::<PyFloat>() {
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        class.setattr(name, number.ok_or_else(|| refused("a number"))?)
    } else {
        class.setattr(name, value)
    };
    set.map_err(failed)
}

/// Attributes of the class itself, or of one in its file that it derives from, which an experiment may set.
fn parameters<'py>(class: &Bound<'py, PyType>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let own: String = class.getattr("__module__")?.extract()?;
    let mut found: Vec<(String, Bound<'py, PyAny>)> = vec![];
    for above in class.mro() {
        if above.getattr("__module__")?.extract::<String>()? != own {
            continue;
        }
        for entry in above.getattr("__dict__")?.call_method0("items")?.try_iter()? {
            let (name, value): (String, Bound<'py, PyAny>) = entry?.extract()?;
            let is_plain = value.is_instance_of::<PyInt>() // or true or false
                || value.is_instance_of::<PyFloat>()
                || value.is_instance_of::<PyString>();
            if is_plain && !name.starts_with('_') && !found.iter().any(|(known, _)| *known == name) {
                found.push((name, value));
            }
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

type Found<'py> = Result<Bound<'py, PyType>, Vec<String>>;

/// The class of this name, or the only one; otherwise the names of all.
fn find<'py>(py: Python<'py>, source: &Source, name: Option<&str>) -> PyResult<Found<'py>> {
    let text = |text: &str| CString::new(text.replace('\0', " ")).expect("it has no zero byte");
    // A name of its own: of one name Python keeps one module, with what the last run left in it.
    let own = format!("narrows_controller_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    // What it prints is no answer of the command that loads it.
    let away = py.import("contextlib")?.call_method1("redirect_stdout", (py.import("sys")?.getattr("stderr")?,))?;
    away.call_method0("__enter__")?;
    let module = PyModule::from_code(py, &text(&source.text), &text(&source.name), &text(&own));
    away.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    let module = module?;
    let base = base(py)?;
    let mut classes = vec![];
    for (_, value) in module.dict() {
        if let Ok(class) = value.cast_into::<PyType>()
            && class.is_subclass(&base)?
            && !classes.iter().any(|(_, known): &(String, Bound<'_, PyType>)| known.is(&class))
            && class.getattr("__module__")?.extract::<String>()? == own
        {
            classes.push((class.name()?.extract::<String>()?, class));
        }
    }
    let names = || classes.iter().map(|(name, _)| name.clone()).collect();
    let found = match (name, classes.as_slice()) {
        (Some(name), _) => classes.iter().find(|(own, _)| own == name),
        (None, [one]) => Some(one),
        (None, _) => None,
    };
    Ok(found.map(|(_, class)| class.clone()).ok_or_else(names))
}

/// What controllers derive from.
fn base(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    Ok(py.import("narrows.controller")?.getattr("Controller")?.cast_into::<PyType>()?)
}

/// An exception with the file's name and the line of the file where it was raised.
fn told(py: Python<'_>, file: &str, error: &PyErr) -> String {
    let mut line = error.value(py).getattr("lineno").ok().and_then(|line| line.extract::<u32>().ok());
    let mut at = error.traceback(py).map(Bound::into_any);
    while let Some(step) = at.filter(|step| !step.is_none()) {
        let own = step.getattr("tb_frame").and_then(|frame| frame.getattr("f_code")?.getattr("co_filename")?.extract());
        if own.is_ok_and(|own: String| own == file) {
            line = step.getattr("tb_lineno").ok().and_then(|line| line.extract().ok());
        }
        at = step.getattr("tb_next").ok();
    }
    line.map_or_else(|| format!("{file}: {error}"), |line| format!("{file}:{line}: {error}"))
}

impl Library for Class {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn parameters(&self) -> Vec<(String, String)> {
        Python::attach(|py| {
            let text = |(name, value): (String, Bound<'_, PyAny>)| {
                let value =
                    if value.is_instance_of::<PyBool>() { value.to_string().to_lowercase() } else { value.to_string() };
                (name, value)
            };
            parameters(self.class.bind(py)).map_or_else(|_| vec![], |found| found.into_iter().map(text).collect())
        })
    }

    fn build(self: Arc<Class>, context: &Context<'_>, _ecn: bool) -> Controller {
        let spec = self.spec;
        let _call = self.begin_call();
        let object = Python::attach(|py| {
            let made = self.class.bind(py).call1((PathFacts::new(Time::ZERO, context.path),));
            made.map(Bound::unbind).unwrap_or_else(|error| end_run(told(py, &self.file, &error)))
        });
        let mut made = Connection {
            class: self,
            object,
            window: Packets::new(1),
            threshold: Packets::new(u64::MAX),
            pacing: None,
            before: (1.0, f64::INFINITY),
        };
        made.read_back();
        Controller::External(External::new(spec, Box::new(made)))
    }
}

/// Unwinds without a word on standard error: whoever ends the run says it.
fn end_run(message: String) -> ! {
    resume_unwind(Box::new(Misbehaved(message)))
}

/// The controller of one connection.
#[derive(Debug)]
struct Connection {
    class: Arc<Class>,
    object: Py<PyAny>,
    window: Packets,
    threshold: Packets,
    pacing: Option<Rate>,
    /// Window and threshold before the last reduction, as Python has them.
    before: (f64, f64),
}

impl Connection {
    /// Calls a method, then reads what the object states.
    fn call(&mut self, method: &str, arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>) {
        let _call = self.class.begin_call();
        Python::attach(|py| {
            let called = arguments(py).and_then(|arguments| self.object.bind(py).call_method1(method, arguments));
            if let Err(error) = called {
                end_run(told(py, &self.class.file, &error));
            }
        });
        self.read_back();
    }

    fn read_back(&mut self) {
        Python::attach(|py| {
            let object = self.object.bind(py);
            let number = |name: &str| {
                let found = object.getattr(name).and_then(|value| value.extract::<Option<f64>>());
                found.unwrap_or_else(|error| end_run(told(py, &self.class.file, &error)))
            };
            let file = &self.class.file;
            let Some(window) = number("window") else { end_run(format!("{file}: `window` is None")) };
            if !(1.0..=MOST).contains(&window) {
                end_run(format!("{file}: `window` is {window} packets, where 1 to {MOST} are possible"));
            }
            let threshold = number("threshold").unwrap_or(f64::INFINITY);
            if threshold.is_nan() || threshold < 1.0 {
                end_run(format!("{file}: `threshold` is {threshold} packets, where 1 or more are possible"));
            }
            let pacing = number("pacing_rate");
            if let Some(rate) = pacing
                && !(1.0..=1e15).contains(&rate)
            {
                end_run(format!("{file}: `pacing_rate` is {rate} bit/s, where 1 to 1e15 are possible"));
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "judged above")]
            {
                self.window = Packets::new(window as u64);
                self.threshold = Packets::new(if threshold > MOST { u64::MAX } else { threshold as u64 });
                self.pacing = pacing.map(|rate| Rate::from_bps(rate as u64));
            }
        });
    }

    fn remember(&mut self) {
        let _call = self.class.begin_call();
        self.before = Python::attach(|py| {
            let number = |name: &str| self.object.bind(py).getattr(name)?.extract::<f64>();
            let read = number("window").and_then(|window| Ok((window, number("threshold")?)));
            read.unwrap_or_else(|error| end_run(told(py, &self.class.file, &error)))
        });
    }
}

impl Machine for Connection {
    fn copy(&self) -> Box<dyn Machine> {
        let _call = self.class.begin_call();
        let object = Python::attach(|py| {
            let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (self.object.bind(py),)));
            copied.map(Bound::unbind).unwrap_or_else(|error| end_run(told(py, &self.class.file, &error)))
        });
        let Connection { class, window, threshold, pacing, before, .. } = self;
        let (class, threshold) = (Arc::clone(class), *threshold);
        Box::new(Connection { class, object, window: *window, threshold, pacing: *pacing, before: *before })
    }
}

impl CongestionControl for Connection {
    fn recovery(&self) -> Owner {
        self.class.recovery
    }

    fn on_ack(&mut self, ack: &Ack, path: &narrows_core::cc::Path) {
        self.call("on_ack", |py| (AckFacts::new(ack, path), PathFacts::new(ack.now, path)).into_pyobject(py));
    }

    fn on_lost(&mut self, lost: &Lost, path: &narrows_core::cc::Path) {
        if !self.class.is_told_of_lost {
            return;
        }
        let facts = LostFacts {
            segment: lost.segment,
            sent_at: seconds(lost.sent_at.since(Time::ZERO)),
            in_flight_at_send: lost.in_flight_at_send.get(),
            lost_since_send: lost.lost_since_send.get(),
            app_limited: lost.app_limited,
            delivered: lost.delivered.get(),
        };
        self.call("on_lost", |py| (facts, PathFacts::new(lost.now, path)).into_pyobject(py));
    }

    fn on_telemetry(&mut self, hops: &[Hop]) {
        let facts = |hop: &Hop| HopFacts {
            at: seconds(hop.at.since(Time::ZERO)),
            queue: hop.queue.get(),
            sent: hop.sent.get(),
            rate: hop.rate.as_bps(),
        };
        self.call("on_telemetry", |py| (hops.iter().map(facts).collect::<Vec<_>>(),).into_pyobject(py));
    }

    fn on_congestion(&mut self, now: Time, cause: Cause, path: &narrows_core::cc::Path) {
        self.remember();
        let cause = match cause {
            Cause::Loss => "loss",
            Cause::Ecn => "ecn",
        };
        self.call("on_congestion", |py| (cause, PathFacts::new(now, path)).into_pyobject(py));
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, path: &narrows_core::cc::Path) {
        if !repeated {
            self.remember();
        }
        self.call("on_timeout", |py| (repeated, PathFacts::new(now, path)).into_pyobject(py));
        if self.window != Packets::new(1) {
            let file = &self.class.file;
            end_run(format!(
                "{file}: on_timeout leaves a window of {} packets, where 1 is possible",
                self.window.get()
            ));
        }
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &narrows_core::cc::Path) {
        if !self.class.is_told_of_sent {
            return;
        }
        let facts = SentFacts { size: sent.size.get(), idle: sent.idle.map(seconds) };
        self.call("on_sent", |py| (facts, PathFacts::new(now, path)).into_pyobject(py));
    }

    fn on_idle_restart(&mut self, now: Time, idle: Span, path: &narrows_core::cc::Path) {
        self.call("on_idle_restart", |py| (seconds(idle), PathFacts::new(now, path)).into_pyobject(py));
    }

    fn on_undo(&mut self) {
        let before = self.before;
        self.call("on_undo", |py| before.into_pyobject(py));
    }

    fn recall(&mut self, threshold: Packets) {
        self.threshold = threshold;
        let _call = self.class.begin_call();
        Python::attach(|py| {
            let set = self.object.bind(py).setattr("threshold", threshold.get());
            set.unwrap_or_else(|error| end_run(told(py, &self.class.file, &error)));
        });
    }

    fn window(&self) -> Packets {
        self.window
    }

    fn slow_start_threshold(&self) -> Packets {
        self.threshold
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
}
