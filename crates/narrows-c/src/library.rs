//! A compiled file in this process.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::os::unix::{Library as Shared, RTLD_LOCAL, RTLD_NOW};
use narrows_core::cc::external::{self, External};
use narrows_core::cc::{Context, Controller, EcnUse, Spec};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::connection::Connection;
use crate::ops::{NEEDS_ECN, Ops};
use crate::socket::{LAYOUT, Socket};
use crate::{Error, Misbehaved, Source, compile, language, watchdog};

/// Sections in which libbpf looks for controllers.
const SECTIONS: [&str; 2] = [".struct_ops", ".struct_ops.link"];

/// A controller that is loaded: its functions, and the file's own variables, which all of its connections share.
#[derive(Debug)]
pub struct Library {
    pub(crate) file: String,
    pub(crate) ops: *const Ops,
    pub(crate) now_ns: *mut u64,
    pub(crate) current: *mut *mut Socket,
    pub(crate) free_storage: unsafe extern "C-unwind" fn(*mut Socket),
    pub(crate) copy_storage: unsafe extern "C-unwind" fn(*mut Socket),
    /// `cong_control` has the arguments that it had before Linux 6.10.
    pub(crate) is_before_6_10: bool,
    spec: &'static Spec,
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
        let bytes = fs::read(&made).map_err(|error| failed(error.to_string()))?;
        let symbols = controllers(&bytes).map_err(|error| failed(error.to_string()))?;
        let shared = load_anew(&made).map_err(failed)?;
        let found = |symbol: &String| {
            // SAFETY: the section holds structures of this type alone: `is_laid_out` says that they are as here.
            unsafe { shared.get::<*const Ops>(symbol.as_bytes()) }.map(|pointer| *pointer)
        };
        // SAFETY: `runtime.c` has this array, of as many numbers.
        let layout = unsafe { shared.get::<*const [u32; LAYOUT.len()]>(b"narrows_layout").map(|array| **array) };
        let layout = layout.map_err(|error| failed(error.to_string()))?;
        if layout.map(|number| number as usize) != LAYOUT {
            return Err(failed(format!("its structures are laid out as {layout:?}, and not as {LAYOUT:?}")));
        }
        let mut all: Vec<*const Ops> =
            symbols.iter().map(found).collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))?;
        watchdog::watch(&source.name);
        let pointer = |symbol: &str| failed(format!("it has no {symbol}"));
        // SAFETY: `runtime.c` has it, of this type.
        unsafe {
            let fail = shared.get::<*mut Fail>(b"narrows_fail").map_err(|_| pointer("narrows_fail"))?;
            **fail = crate::connection::fail;
        }
        // SAFETY: `kernel.h` gives a module this function, which registers the controller, and `runtime.c` this variable.
        unsafe {
            if let Ok(init) = shared.get::<unsafe extern "C-unwind" fn() -> i32>(b"narrows_init") {
                let _call = watchdog::Call::begin();
                match catch_unwind(|| init()) {
                    Ok(0) => {}
                    Ok(refused) => return Err(failed(format!("its module_init returns {refused}"))),
                    Err(fault) => {
                        let fault =
                            fault.downcast::<Misbehaved>().map_or_else(|_| "it fails".to_owned(), |fault| fault.0);
                        return Err(failed(format!("its module_init ends with a fault: {fault}")));
                    }
                }
                all.extend(shared.get::<*const *const Ops>(b"narrows_registered").ok().map(|registered| **registered));
            }
        }
        // SAFETY: they are in the library's memory.
        let complete =
            all.into_iter().filter(|ops| !ops.is_null() && unsafe { (**ops).is_complete() }).collect::<Vec<_>>();
        let ops = chosen(&source.name, name, &complete)?;
        let spec = spec(unsafe { &*ops });
        // SAFETY: `runtime.c` has them, with these types.
        unsafe {
            Ok(Library {
                file: source.name.clone(),
                ops,
                now_ns: *shared.get(b"narrows_now_ns").map_err(|_| pointer("narrows_now_ns"))?,
                current: *shared.get(b"narrows_current").map_err(|_| pointer("narrows_current"))?,
                free_storage: *shared.get(b"narrows_storage_free").map_err(|_| pointer("narrows_storage_free"))?,
                copy_storage: *shared.get(b"narrows_storage_copy").map_err(|_| pointer("narrows_storage_copy"))?,
                is_before_6_10: source.is_before_6_10(),
                spec,
                _shared: shared,
            })
        }
    }

    pub(crate) fn ops(&self) -> &Ops {
        // SAFETY: the library's memory stays as long as `self`.
        unsafe { &*self.ops }
    }
}

impl external::Library for Library {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn build(self: Arc<Library>, context: &Context<'_>, ecn: bool) -> Controller {
        let spec = self.spec;
        Controller::External(External::new(spec, Box::new(Connection::new(self, context, ecn))))
    }
}

type Fail = unsafe extern "C-unwind" fn(*const std::ffi::c_char, u32, *const std::ffi::c_char);

/// The symbols of controllers, in the order of their names.
fn controllers(bytes: &[u8]) -> object::Result<Vec<String>> {
    let file = object::File::parse(bytes)?;
    let is_theirs = |name: object::Result<&str>| name.is_ok_and(|name| SECTIONS.contains(&name));
    let sections: Vec<_> = file.sections().filter(|section| is_theirs(section.name())).map(|it| it.index()).collect();
    let own = file.symbols().filter(|it| {
        it.size() == size_of::<Ops>() as u64 && it.section_index().is_some_and(|at| sections.contains(&at))
    });
    let mut names = own.map(|symbol| symbol.name().map(ToOwned::to_owned)).collect::<object::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Under a name of its own: the loader keeps one copy of each file, with its variables as the last run left them.
fn load_anew(made: &Path) -> Result<Shared, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let copy = made.with_file_name(format!(".{}-{number}.so", std::process::id()));
    fs::copy(made, &copy).map_err(|error| error.to_string())?;
    // SAFETY: it has no initialisers but those of the C library.
    let loaded = unsafe { Shared::open(Some(&copy), RTLD_NOW | RTLD_LOCAL) };
    let _ = fs::remove_file(&copy);
    loaded.map_err(|error| error.to_string())
}

fn chosen(file: &str, name: Option<&str>, complete: &[*const Ops]) -> Result<*const Ops, Error> {
    // SAFETY: they are in the library's memory.
    let name_of = |ops: &*const Ops| unsafe { (**ops).name() };
    let names = || complete.iter().map(name_of).collect::<Vec<_>>().join(", ");
    let file = file.to_owned();
    match (name, complete) {
        (_, []) => Err(Error::NoController(file)),
        (None, [one]) => Ok(*one),
        (None, _) => Err(Error::Several { file, names: names() }),
        (Some(name), _) => complete.iter().find(|ops| name_of(ops) == name).copied().ok_or_else(|| Error::Unknown {
            file,
            name: name.to_owned(),
            names: names(),
        }),
    }
}

fn spec(ops: &Ops) -> &'static Spec {
    let ecn = if ops.flags & NEEDS_ECN == 0 { EcnUse::Optional } else { EcnUse::Exact };
    language::spec(ops.name(), "A controller in C.", ecn, ops.cong_control.is_some())
}
