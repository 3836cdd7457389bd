//! A compiled file in this process.

use std::fs;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::os::unix::{Library as Shared, RTLD_LOCAL, RTLD_NOW};
use narrows_core::cc::external::{self, External, Machine};
use narrows_core::cc::{Context, Controller, EcnUse, Spec};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::connection::Connection;
use crate::ops::{NEEDS_ECN, Ops};
use crate::plain::{self, Plain};
use crate::socket::{LAYOUT, Socket};
use crate::{Error, Misbehaved, Source, compile, language, parameters, watchdog};

/// Sections in which libbpf looks for controllers.
const SECTIONS: [&str; 2] = [".struct_ops", ".struct_ops.link"];

/// A controller's functions: of Linux's interface, or of the plain one.
#[derive(Clone, Copy, Debug)]
enum Hooks {
    Linux(*const Ops),
    Plain(*const plain::Hooks),
}

impl Hooks {
    fn name(self) -> String {
        // SAFETY: they are in the library's memory.
        unsafe {
            match self {
                Hooks::Linux(ops) => (*ops).name(),
                Hooks::Plain(hooks) => (*hooks).name(),
            }
        }
    }

    fn is_complete(self) -> bool {
        !matches!(self, Hooks::Linux(ops) if ops.is_null()) && self.lacks().is_none()
    }

    /// Its name, and what it must have and has not.
    fn lacks(self) -> Option<(String, &'static str)> {
        // SAFETY: they are in the library's memory, or nowhere.
        unsafe {
            match self {
                Hooks::Linux(ops) if ops.is_null() => None,
                Hooks::Linux(ops) => (*ops).lacks().map(|lacks| ((*ops).name(), lacks)),
                Hooks::Plain(hooks) => (*hooks).lacks().map(|lacks| ((*hooks).name(), lacks)),
            }
        }
    }

    fn spec(self) -> &'static Spec {
        // SAFETY: they are in the library's memory.
        let (is_exact, needs_rate, needs_telemetry) = unsafe {
            match self {
                Hooks::Linux(ops) => ((*ops).flags & NEEDS_ECN != 0, (*ops).cong_control.is_some(), false),
                Hooks::Plain(hooks) => ((*hooks).needs_ecn, (*hooks).needs_delivery_rate, (*hooks).needs_telemetry),
            }
        };
        let ecn = if is_exact { EcnUse::Exact } else { EcnUse::Optional };
        language::spec(self.name(), "A controller in C.", ecn, needs_rate, needs_telemetry)
    }
}

/// A controller that is loaded: its functions, and the file's own variables, which all of its connections share.
#[derive(Debug)]
pub struct Library {
    pub(crate) file: String,
    hooks: Hooks,
    pub(crate) now_ns: *mut u64,
    pub(crate) stream: *mut *mut u64,
    pub(crate) free_storage: unsafe extern "C-unwind" fn(*mut Socket),
    pub(crate) copy_storage: unsafe extern "C-unwind" fn(*mut Socket),
    /// `cong_control` has the arguments that it had before Linux 6.10.
    pub(crate) is_before_6_10: bool,
    spec: &'static Spec,
    parameters: Vec<(String, String)>,
    /// Keeps all of these in memory.
    _shared: Shared,
}

// SAFETY: the pointers are to what the library holds as long as it is loaded. Its variables are not guarded: one thread at a time
// may run the connections of a library, which a run sees to.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Compiles a file and loads it anew, so that its variables have their first values; of several controllers the one called
    /// `name`.
    ///
    /// # Errors
    /// As [`compile`]; if it has no such controller, or cannot be loaded.
    pub fn new(source: &Source, name: Option<&str>) -> Result<Library, Error> {
        let made = compile(source)?;
        let failed = |message: String| Error::Loading { file: source.name.clone(), message };
        let mut bytes = fs::read(&made).map_err(|error| failed(error.to_string()))?;
        let symbols = controllers(&bytes).map_err(|error| failed(error.to_string()))?;
        let of_modules = parameters::set_constants(source, &mut bytes)?;
        let shared = load_anew(&made, &bytes).map_err(failed)?;
        let found = |symbol: &String| {
            // SAFETY: the section holds structures of this type alone: `is_laid_out` says that they are as here.
            unsafe { shared.get::<*const Ops>(symbol.as_bytes()) }.map(|pointer| *pointer)
        };
        // SAFETY: `runtime.c` has this array, of as many numbers.
        let layout = unsafe { shared.get::<*const Layout>(b"narrows_layout").map(|array| **array) };
        let layout = layout.map_err(|error| failed(error.to_string()))?;
        let expected: Vec<usize> = LAYOUT.into_iter().chain(plain::LAYOUT).collect();
        if layout.map(|number| number as usize) != *expected {
            return Err(failed(format!("its structures are laid out as {layout:?}, and not as {expected:?}")));
        }
        let all: Vec<*const Ops> =
            symbols.iter().map(found).collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))?;
        let mut all: Vec<Hooks> = all.into_iter().map(Hooks::Linux).collect();
        watchdog::watch(&source.name);
        let pointer = |symbol: &str| failed(format!("it has no {symbol}"));
        // SAFETY: `runtime.c` has it, of this type.
        unsafe {
            let fail = shared.get::<*mut Fail>(b"narrows_fail").map_err(|_| pointer("narrows_fail"))?;
            **fail = crate::connection::fail;
        }
        let parameters = guarded(source, "setting its parameters", || {
            parameters::set(source, &shared, &of_modules)?;
            parameters::all(source, &shared, &bytes)
        })??;
        // SAFETY: `kernel.h` gives a module this function, which registers the controller, and `runtime.c` this variable.
        unsafe {
            if let Ok(init) = shared.get::<unsafe extern "C-unwind" fn() -> i32>(b"narrows_init") {
                match guarded(source, "its module_init", || init())? {
                    0 => {}
                    refused => return Err(failed(format!("its module_init returns {refused}"))),
                }
                let registered = shared.get::<*const *const Ops>(b"narrows_registered").ok();
                all.extend(registered.map(|registered| Hooks::Linux(**registered)));
            }
        }
        // SAFETY: `runtime.c` has this function, which gives pointers into the library's memory, and none behind the last.
        unsafe {
            let at = shared.get::<unsafe extern "C-unwind" fn(u32) -> *const plain::Hooks>(b"narrows_controller_at");
            let at = at.map_err(|_| pointer("narrows_controller_at"))?;
            all.extend((0..).map(|number| at(number)).take_while(|hooks| !hooks.is_null()).map(Hooks::Plain));
        }
        let (complete, others): (Vec<Hooks>, Vec<Hooks>) = all.into_iter().partition(|hooks| hooks.is_complete());
        if let ([], Some((of, lacks))) = (&complete[..], others.iter().find_map(|hooks| hooks.lacks())) {
            return Err(Error::Incomplete { file: source.name.clone(), name: of, lacks });
        }
        let hooks = chosen(&source.name, name, &complete)?;
        // SAFETY: `runtime.c` has them, with these types.
        unsafe {
            Ok(Library {
                file: source.name.clone(),
                hooks,
                now_ns: *shared.get(b"narrows_now_ns").map_err(|_| pointer("narrows_now_ns"))?,
                stream: *shared.get(b"narrows_stream").map_err(|_| pointer("narrows_stream"))?,
                free_storage: *shared.get(b"narrows_storage_free").map_err(|_| pointer("narrows_storage_free"))?,
                copy_storage: *shared.get(b"narrows_storage_copy").map_err(|_| pointer("narrows_storage_copy"))?,
                is_before_6_10: source.is_before_6_10(),
                spec: hooks.spec(),
                parameters,
                _shared: shared,
            })
        }
    }
}

impl external::Library for Library {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn parameters(&self) -> Vec<(String, String)> {
        self.parameters.clone()
    }

    fn build(self: Arc<Library>, context: &Context<'_>, ecn: bool) -> Controller {
        let spec = self.spec;
        let machine: Box<dyn Machine> = match self.hooks {
            Hooks::Linux(ops) => Box::new(Connection::new(self, ops, context, ecn)),
            Hooks::Plain(hooks) => Box::new(Plain::new(self, hooks, context)),
        };
        Controller::External(External::new(spec, machine))
    }
}

/// `narrows_layout` of `runtime.c`: of Linux's structures, then of the plain interface.
type Layout = [u32; LAYOUT.len() + plain::LAYOUT.len()];
/// Calls a function of the file's while it is loaded; a fault of it is told.
fn guarded<T>(source: &Source, what: &str, of: impl FnOnce() -> T) -> Result<T, Error> {
    let _call = watchdog::Call::begin();
    catch_unwind(AssertUnwindSafe(of)).map_err(|fault| {
        let fault = fault.downcast::<Misbehaved>().map_or_else(|_| "it fails".to_owned(), |fault| fault.0);
        Error::Loading { file: source.name.clone(), message: format!("{what} ends with a fault: {fault}") }
    })
}

type Fail = unsafe extern "C-unwind" fn(*const std::ffi::c_char, u32, *const std::ffi::c_char);

/// The symbols of controllers, in the order of their names.
fn controllers(bytes: &[u8]) -> object::Result<Vec<String>> {
    Ok(named(bytes)?.into_iter().map(|controller| controller.symbol).collect())
}

/// A `struct tcp_congestion_ops` of a compiled file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name of its variable.
    pub symbol: String,
    /// Its name for Linux.
    pub name: String,
    /// Whether it needs ECN.
    pub needs_ecn: bool,
}

/// The controllers of Linux's interface in a library or an object for BPF, in the order of their variables' names.
///
/// # Errors
/// If the file is none of the two.
pub fn named(bytes: &[u8]) -> object::Result<Vec<Named>> {
    let file = object::File::parse(bytes)?;
    let mut found = vec![];
    for section in file.sections().filter(|section| section.name().is_ok_and(|name| SECTIONS.contains(&name))) {
        let own = |it: &object::Symbol<'_, '_>| {
            it.size() == size_of::<Ops>() as u64 && it.section_index() == Some(section.index())
        };
        for symbol in file.symbols().filter(own) {
            let start = usize::try_from(symbol.address() - section.address()).unwrap_or(usize::MAX);
            let data = section.data()?.get(start..).and_then(|rest| rest.get(..size_of::<Ops>())).unwrap_or_default();
            let text = data.get(offset_of!(Ops, name)..offset_of!(Ops, owner)).unwrap_or_default();
            let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
            let flags = data.get(offset_of!(Ops, flags)..).and_then(|rest| rest.first_chunk()).copied();
            found.push(Named {
                symbol: symbol.name()?.to_owned(),
                name: String::from_utf8_lossy(text).into_owned(),
                needs_ecn: flags.is_some_and(|flags| u32::from_le_bytes(flags) & NEEDS_ECN != 0),
            });
        }
    }
    found.sort_by(|one, other| one.symbol.cmp(&other.symbol));
    Ok(found)
}

/// Under a name of its own: the loader keeps one copy of each file, with its variables as the last run left them.
fn load_anew(made: &Path, bytes: &[u8]) -> Result<Shared, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let copy = made.with_file_name(format!(".{}-{number}.so", std::process::id()));
    fs::write(&copy, bytes).map_err(|error| error.to_string())?;
    // SAFETY: it has no initialisers but those of the C library.
    let loaded = unsafe { Shared::open(Some(&copy), RTLD_NOW | RTLD_LOCAL) };
    let _ = fs::remove_file(&copy);
    loaded.map_err(|error| error.to_string())
}

fn chosen(file: &str, name: Option<&str>, complete: &[Hooks]) -> Result<Hooks, Error> {
    let names = || complete.iter().map(|hooks| hooks.name()).collect::<Vec<_>>().join(", ");
    let file = file.to_owned();
    match (name, complete) {
        (_, []) => Err(Error::NoController(file)),
        (None, [one]) => Ok(*one),
        (None, _) => Err(Error::Several { file, names: names() }),
        (Some(name), _) => complete.iter().find(|hooks| hooks.name() == name).copied().ok_or_else(|| Error::Unknown {
            file,
            name: name.to_owned(),
            names: names(),
        }),
    }
}
