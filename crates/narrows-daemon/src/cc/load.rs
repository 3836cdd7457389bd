//! `narrowsd cc load`: pins a controller and returns, or holds it in the foreground until it is told to end.

use std::path::Path;

use clap::Args;
use narrows_kernel::from_file::Program;
use narrows_kernel::registered::{self, is_registered};
use narrows_kernel::{Controller, Error, FromFile, Kernel, Loaded, Options, Settings, controllers, pinned};

use super::unload::refuse_what_is_elsewhere;
use super::{assignment, named, refused, route, say, system_default};
use crate::failure::Failure;
use crate::lock;
use crate::service::{self, Ending};

/// Who takes over where the other end refused ECN: the first that this kernel has.
const FALLBACKS: [&str; 2] = ["cubic", "reno"];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which controller: `narrowsd cc list` names them; or a file in C for BPF, `mine.bpf.c`, which clang compiles
    name: String,
    /// Of several controllers in a file, this one
    #[arg(long, value_name = "NAME")]
    controller: Option<String>,
    /// A parameter of every namespace, as `t=5ms`; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Who takes over connections whose other end refused ECN; `none` leaves them [default: cubic]
    #[arg(long, value_name = "NAME")]
    fallback: Option<String>,
    /// Hold it until Ctrl-C or SIGTERM; it ends with this process however that ends (Linux 6.4 and later)
    #[arg(long)]
    foreground: bool,
    /// Make it the default of this network namespace, until it is unloaded
    #[arg(long)]
    default: bool,
}

/// What is about to be loaded.
enum Wanted {
    OfTable(&'static Controller, Settings, Options),
    OfFile(Program),
}

/// What this process holds.
enum Held {
    OfTable(Loaded),
    OfFile(FromFile),
}

impl Wanted {
    fn new(arguments: &Arguments) -> Result<Wanted, Failure> {
        if arguments.name.ends_with(".c") {
            return of_file(arguments).map(Wanted::OfFile);
        }
        if arguments.controller.is_some() {
            return Err(
                Failure::input("--controller chooses one of a file's controllers").help("give the file: mine.bpf.c")
            );
        }
        let controller = named(&arguments.name)?;
        let mut settings = Settings::defaults(controller);
        assignment::apply(controller, &mut settings, &arguments.sets)?;
        let options = Options { fallback: Some(fallback(arguments.fallback.as_deref())?), ..Options::default() };
        Ok(Wanted::OfTable(controller, settings, options))
    }

    fn controller(&self) -> &'static Controller {
        match self {
            Wanted::OfTable(controller, ..) => controller,
            Wanted::OfFile(program) => program.controller,
        }
    }

    fn load(&self) -> Result<Held, Error> {
        match self {
            Wanted::OfTable(controller, settings, options) => {
                Loaded::load_with(controller, settings, options).map(Held::OfTable)
            }
            Wanted::OfFile(program) => FromFile::load(program).map(Held::OfFile),
        }
    }
}

impl Held {
    fn pin(self, folder: &Path) -> Result<(), Error> {
        match self {
            Held::OfTable(loaded) => loaded.pin(folder).map(drop),
            Held::OfFile(loaded) => loaded.pin(folder),
        }
    }
}

/// Compiles a file, with the parameters that are given.
fn of_file(arguments: &Arguments) -> Result<Program, Failure> {
    if arguments.fallback.is_some() {
        let sentence = "--fallback is for the controllers of `narrowsd cc list`: a file's own does what it does";
        return Err(Failure::input(sentence));
    }
    let mut source = narrows_c::read(Path::new(&arguments.name)).map_err(|error| match error {
        narrows_c::Error::Unreadable { .. } => Failure::input(&error).help("give the path of a file in C for BPF"),
        _ => refused::by_compiler(&error),
    })?;
    for set in &arguments.sets {
        let Some((name, value)) = set.split_once('=') else {
            return Err(Failure::input(format!("--set {set}: no `=`")).help("write it as --set cap=20"));
        };
        if source.parameters.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::input(format!("`{name}` is given twice")).help("give it once"));
        }
    }
    let program = Program::compile(&source, arguments.controller.as_deref());
    let program = program.map_err(|error| refused::by_compiler(&error))?;
    let name = program.controller.registered;
    match controllers::find(name) {
        Ok(_) => Err(Failure::input(format!(
            "{} calls its controller {name}, as one of narrowsd's own is called",
            arguments.name
        ))
        .help("give it another `.name`")),
        Err(_) => Ok(program),
    }
}

pub(super) fn load(arguments: &Arguments) -> Result<(), Failure> {
    let wanted = Wanted::new(arguments)?;
    let controller = wanted.controller();
    Kernel::probe().map_err(refused::by_kernel)?;

    let lock = lock::take(controller)?;
    // What is told to end from here on is first done, then undone.
    let ending = Ending::hold();
    let folder = pinned::folder(controller);
    // Where pins cannot be seen, what is loaded seems to be left behind.
    if !arguments.foreground {
        pinned::check_file_system(&folder).map_err(refused::by_kernel)?;
    }
    make_room(controller)?;
    let loaded = wanted.load().map_err(refused::by_kernel)?;
    let before = if arguments.default { Some(system_default::take(controller)?) } else { None };
    let held = if arguments.foreground {
        Some(loaded)
    } else if let Err(error) = loaded.pin(&folder) {
        system_default::put_back(controller)?;
        return Err(refused::by_kernel(error));
    } else {
        None
    };
    drop(lock);

    say(&format!("{} is registered as {}\n", controller.spec.name, controller.registered));
    if let Some(before) = before {
        say(&format!("it is the default of this namespace; before it was {before}\n"));
    }
    match held {
        Some(loaded) => hold(controller, loaded, &ending),
        None => Ok(()),
    }
}

/// Until a signal; then it is as it was before.
fn hold(controller: &Controller, loaded: Held, ending: &Ending) -> Result<(), Failure> {
    if let Err(error) = service::ready() {
        eprintln!("warning: the service manager was not told: {error}");
    }
    ending.wait();
    let _lock = lock::take(controller)?;
    let restored = system_default::put_back(controller)?;
    drop(loaded);
    say(&format!("{} is unloaded\n", controller.spec.name));
    for route::Changed { prefix, label, .. } in route::of_controller(controller.registered)? {
        eprintln!(
            "warning: the route to {prefix} in the network namespace {label} names {}, and has no effect until it is loaded again",
            controller.registered
        );
    }
    if let Some(said) = restored {
        say(&format!("{said}\n"));
    }
    Ok(())
}

/// Refuses if it is loaded, and removes what killed processes left of it.
pub(crate) fn make_room(controller: &'static Controller) -> Result<(), Failure> {
    let name = controller.spec.name;
    let folder = pinned::folder(controller);
    if controller.is_of_file() && !pinned::is_registration(&folder) && is_registered(name) {
        // Whoever registered it: the kernel, another program, or a narrowsd in the foreground, which holds it.
        let holders = registered::find(controller).ok().flatten().map_or(vec![], |found| found.holders());
        let taken = Error::NameTaken { name };
        return Err(refused::by_kernel(if holders.is_empty() {
            taken
        } else {
            Error::Held { controller: name, holders }
        }));
    }
    if let Some(found) = registered::find(controller).map_err(refused::by_kernel)? {
        let holders = found.holders();
        if pinned::is_registration(&folder) || !holders.is_empty() {
            let removes = format!("`narrowsd cc unload {name}` removes it");
            let set = format!("`narrowsd cc set {name} key=value` changes it, ");
            let help = if controller.is_of_file() { removes } else { set + &removes };
            return Err(Failure::failed(format_args!("{name} is loaded already")).help(help));
        }
        refuse_what_is_elsewhere(controller, &found)?;
        registered::remove_stale(controller).map_err(refused::by_kernel)?;
    }
    pinned::remove_partial(&folder).map_err(refused::by_kernel)?;
    system_default::put_back(controller)?;
    Ok(())
}

/// The name that the program is told; empty for none.
fn fallback(given: Option<&str>) -> Result<String, Failure> {
    match given {
        Some("none") => Ok(String::new()),
        Some(name) if is_registered(name) => Ok(name.to_owned()),
        Some(name) => {
            let sentence = format!("--fallback {name}: this kernel has no such controller now");
            Err(Failure::input(sentence).help(
                "`sysctl net.ipv4.tcp_available_congestion_control` lists them; modules are loaded with modprobe",
            ))
        }
        None => Ok(FALLBACKS.into_iter().find(|name| is_registered(name)).unwrap_or_default().to_owned()),
    }
}
