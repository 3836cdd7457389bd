//! Which language a file's controller is in, by the end of its name: C here, Python where somebody in this process runs it.

use std::sync::{Arc, Mutex, OnceLock};

use narrows_core::cc::external::{Library, is_python};
use narrows_core::cc::{EcnUse, Kernel, Spec};

use crate::{Error, Source, library};

/// Loads a file anew, so that its variables have their first values; of several controllers the one of this name.
pub type Load = fn(&Source, Option<&str>) -> Result<Arc<dyn Library>, Error>;

static PYTHON: OnceLock<Load> = OnceLock::new();

/// From now on this loads files whose names end in `.py`.
pub fn run_python_with(load: Load) {
    PYTHON.get_or_init(|| load);
}

/// Loads a file anew, so that its variables have their first values; of several controllers the one called `name`.
///
/// # Errors
/// If it does not compile, has no such controller, or cannot be loaded; for Python if nobody here runs it.
pub fn load(source: &Source, name: Option<&str>) -> Result<Arc<dyn Library>, Error> {
    if !is_python(&source.name) {
        return Ok(Arc::new(library::Library::new(source, name)?));
    }
    let python = PYTHON.get().ok_or_else(|| Error::NoPython(source.name.clone()))?;
    python(source, name)
}

/// What a file's controller is, without running it. Remembered: a sweep asks for each of its plans.
///
/// # Errors
/// As [`load`].
pub fn inspect(source: &Source, name: Option<&str>) -> Result<&'static Spec, Error> {
    type Known = Mutex<Vec<(Source, Option<String>, &'static Spec)>>;
    static KNOWN: Known = Mutex::new(vec![]);
    let is_same = |(of, called, _): &&(Source, Option<String>, _)| of == source && called.as_deref() == name;
    if let Some((.., spec)) = KNOWN.lock().expect("nobody panics while holding it").iter().find(is_same) {
        return Ok(spec);
    }
    // Not held while loading: Python's lock may be another's, who waits for this one.
    let spec = load(source, name)?.spec();
    KNOWN.lock().expect("nobody panics while holding it").push((source.clone(), name.map(ToOwned::to_owned), spec));
    Ok(spec)
}

/// One for each name, use of ECN and of rates: specs live as long as the process.
pub fn spec(
    name: String,
    about: &'static str,
    ecn: EcnUse,
    needs_delivery_rate: bool,
    needs_telemetry: bool,
) -> &'static Spec {
    static SPECS: Mutex<Vec<&'static Spec>> = Mutex::new(vec![]);
    let mut specs = SPECS.lock().expect("nobody panics while holding it");
    let is_same = |spec: &&&Spec| {
        (spec.name, spec.about, spec.ecn) == (&*name, about, ecn)
            && (spec.needs_delivery_rate, spec.needs_telemetry) == (needs_delivery_rate, needs_telemetry)
    };
    if let Some(known) = specs.iter().find(is_same) {
        return known;
    }
    let name: &'static str = name.leak();
    let made: &'static Spec = Box::leak(Box::new(Spec {
        name,
        title: name,
        about,
        source: "",
        ecn,
        kernel: Kernel::None,
        needs_delivery_rate,
        needs_every_ack: false,
        needs_telemetry,
        draws: false,
        ordered: &[],
        parameters: &[],
    }));
    specs.push(made);
    made
}
