//! A controller of somebody's own, `struct tcp_congestion_ops` in C for BPF: compiled by clang, loaded and registered.
//!
//! The file is the one that the simulator runs, unchanged. It is compiled with the simulator's `vmlinux.h`, whose fields are
//! relocated to where the running kernel has them, and with libbpf's headers.

use std::fs;
use std::path::Path;
use std::process::Command;

use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, MapType, Object, ObjectBuilder, libbpf_sys};
use narrows_c::{Named, Source};

use crate::controllers::Controller;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::loaded::Registration;
use crate::{pinned, said};

/// Of a map: what is registered by it is held by links (`BPF_F_LINK`).
const BY_LINKS: u32 = 1 << 13;
/// Headers of libbpf that programs include.
const OF_LIBBPF: [&str; 5] = ["bpf_helpers.h", "bpf_helper_defs.h", "bpf_tracing.h", "bpf_endian.h", "bpf_core_read.h"];

/// A compiled file, with the controller in it that was chosen.
#[derive(Debug)]
pub struct Program {
    object: Vec<u8>,
    symbol: String,
    /// As the kernel will know it.
    pub controller: &'static Controller,
}

impl Program {
    /// Compiles a file; of several controllers in it the one called `name`.
    ///
    /// # Errors
    /// If clang is not there or refuses it, or it has no such controller or parameter.
    pub fn compile(source: &Source, name: Option<&str>) -> Result<Program, narrows_c::Error> {
        refuse_bitfields(source)?;
        let mut object = object_of(source)?;
        if let Some((name, _)) = narrows_c::set_constants(source, &mut object)?.into_iter().next() {
            let known = "its global `const volatile` numbers alone".to_owned();
            return Err(narrows_c::Error::NoParameter { file: source.name.clone(), name: name.to_owned(), known });
        }
        Program::compiled(&source.name, object, name)
    }

    /// What [`compile`](Program::compile) made of a file, perhaps on another machine.
    ///
    /// # Errors
    /// If it has no such controller.
    pub fn compiled(file: &str, object: Vec<u8>, name: Option<&str>) -> Result<Program, narrows_c::Error> {
        let file = || file.to_owned();
        let loading = |message: String| narrows_c::Error::Loading { file: file(), message };
        let found = narrows_c::named(&object).map_err(|error| loading(error.to_string()))?;
        let names = || found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let Named { symbol, name, needs_ecn } = match (name, &found[..]) {
            (_, []) => return Err(narrows_c::Error::NoController(file())),
            (None, [one]) => one,
            (None, _) => return Err(narrows_c::Error::Several { file: file(), names: names() }),
            (Some(name), _) => found.iter().find(|one| one.name == name).ok_or_else(|| narrows_c::Error::Unknown {
                file: file(),
                name: name.to_owned(),
                names: names(),
            })?,
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
            return Err(loading(format!("{name:?} is no name: letters, digits, `_`, `-` and `.` are")));
        }
        let controller = Controller::of_file(name, *needs_ecn);
        Ok(Program { symbol: symbol.clone(), controller, object })
    }

    /// The compiled file.
    pub fn object(&self) -> &[u8] {
        &self.object
    }
}

/// Bitfields are relocated where they are read by libbpf's macro, and elsewhere not: another kernel's bit would be read.
fn refuse_bitfields(source: &Source) -> Result<(), narrows_c::Error> {
    const FIELDS: [&str; 1] = ["is_cwnd_limited"];
    let is_read =
        |line: &str, field: &str| line.contains(&format!("->{field}")) || line.contains(&format!(").{field}"));
    for (file, text) in std::iter::once((&source.name, &source.text)).chain(&source.others) {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(field) = FIELDS.iter().find(|field| is_read(line, field)) {
                let messages = format!(
                    "{file}:{number}: error: `{field}` is a bitfield, which the kernel has elsewhere: read it by \
                     tcp_is_cwnd_limited(sk) or BPF_CORE_READ_BITFIELD(tp, {field})"
                );
                return Err(narrows_c::Error::DoesNotCompile { file: source.name.clone(), messages });
            }
        }
    }
    Ok(())
}

/// In a folder of its own, which is removed afterwards.
fn object_of(source: &Source) -> Result<Vec<u8>, narrows_c::Error> {
    let failed = |error| narrows_c::Error::Io { file: source.name.clone(), error };
    if let Some(name) =
        std::iter::once(&source.name).chain(source.others.keys()).find(|name| !narrows_c::is_plain(name))
    {
        return Err(failed(std::io::Error::other(format!("{name:?} is no name of a file"))));
    }
    let folder = tempfile::Builder::new().prefix("narrows-bpf-").tempdir().map_err(failed)?;
    let within = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        fs::write(path, text)
    };
    let libbpf = libbpf_sys::API_HEADERS.iter().filter(|(name, _)| OF_LIBBPF.contains(name));
    let libbpf = libbpf.map(|(name, text)| (format!("kit/bpf/{name}"), *text));
    let kit = narrows_c::BPF_HEADERS.iter().map(|(name, text)| (format!("kit/{name}"), *text));
    let own = std::iter::once((&source.name, &source.text)).chain(&source.others);
    let own = own.map(|(name, text)| (name.clone(), text.as_str()));
    for (name, text) in libbpf.chain(kit).chain(own) {
        within(&name, text).map_err(failed)?;
    }
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let before = source.is_before_6_10().then_some("-DNARROWS_CONG_CONTROL_BEFORE_6_10");
    let done = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11", "-Werror=implicit-function-declaration"])
        .args(before)
        .args(["-I", "kit", "-c", "-o", "kit/controller.bpf.o", &source.name])
        .current_dir(folder.path())
        .env("LC_ALL", "C")
        .output()
        .map_err(|_| narrows_c::Error::NoCompiler(clang.clone()))?;
    if !done.status.success() {
        let messages = String::from_utf8_lossy(&done.stderr).trim_end().to_owned();
        return Err(narrows_c::Error::DoesNotCompile { file: source.name.clone(), messages });
    }
    fs::read(folder.path().join("kit/controller.bpf.o")).map_err(failed)
}

/// A controller from a file that this process loaded. Dropping it unregisters it, unless it is pinned.
#[derive(Debug)]
pub struct FromFile {
    /// Before the object, whose map a plain registration is deleted from.
    link: Link,
    object: Object,
    registration: Registration,
    symbol: String,
}

impl FromFile {
    /// Loads and registers it, for every network namespace.
    ///
    /// # Errors
    /// [`Error::NoBtf`], [`Error::KernelTooOld`], [`Error::NoPrivileges`], [`Error::NameTaken`], [`Error::Rejected`].
    pub fn load(program: &Program) -> Result<FromFile, Error> {
        said::listen();
        let registration = if Kernel::probe()?.has_links { Registration::Link } else { Registration::Plain };
        let name = program.controller.registered;
        let refused = |source| Error::refused(name, source);
        let mut open = ObjectBuilder::default().open_memory(&program.object).map_err(refused)?;
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let is_chosen = map.name().to_string_lossy() == program.symbol;
            map.set_autocreate(is_chosen).map_err(refused)?;
            let flags = if registration == Registration::Link { BY_LINKS } else { 0 };
            map.set_map_flags(flags).map_err(refused)?;
        }
        let mut object = open.load().map_err(refused)?;
        let table = object.maps_mut().find(|map| map.name().to_string_lossy() == program.symbol);
        let mut table = table.expect("it is in the object, as its symbol is");
        let link = table.attach_struct_ops().map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => Error::NameTaken { name },
            _ => Error::of("register the controller", source),
        })?;
        Ok(FromFile { link, object, registration, symbol: program.symbol.clone() })
    }

    /// Pins the registration in `folder`, which is made in a bpf file system: then it outlives this process, until
    /// [`pinned::unload`].
    ///
    /// # Errors
    /// As of a controller of the table; nothing of it stays pinned then, and the controller is unregistered.
    pub fn pin(mut self, folder: &Path) -> Result<(), Error> {
        if pinned::is_in_use(folder) {
            return Err(Error::AlreadyPinned { folder: folder.to_owned() });
        }
        pinned::check_file_system(folder)?;
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let pinned = match self.registration {
            Registration::Link => self.link.pin(folder.join(pinned::LINK)),
            Registration::Plain => {
                let mut maps = self.object.maps_mut();
                let table = maps.find(|map| map.name().to_string_lossy() == self.symbol).expect("it was registered");
                MapHandle::try_from(&table).and_then(|mut map| map.pin(folder.join(pinned::PLAIN)))
            }
        };
        if let Err(source) = pinned {
            let _ = pinned::remove(folder);
            return Err(Error::of("pin", source));
        }
        if self.registration == Registration::Plain {
            self.link.disconnect();
        }
        Ok(())
    }
}
