//! From a file to a shared library, by the machine's own compiler. What was made is kept, by a digest of all that went into it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use narrows_core::cc::external::is_python;
use sha2::{Digest, Sha256};

use crate::Error;

/// Files that are compiled with every controller: their names and texts.
macro_rules! kit {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("kit/", $name)))),*] };
}
const KIT: &[(&str, &str)] = kit![
    "runtime.c",
    "include/vmlinux.h",
    "include/kernel.h",
    "include/narrows.h",
    "include/narrows_parameter.h",
    "include/bpf_tcp_helpers.h",
    "include/bpf_tracing_net.h",
    "include/bpf/bpf_core_read.h",
    "include/bpf/bpf_helpers.h",
    "include/bpf/bpf_tracing.h",
    "include/linux/bpf.h",
    "include/linux/stddef.h",
    "include/linux/tcp.h",
    "include/linux/types.h",
];
/// Those of them that stand in the place of the kernel's own where a file is compiled to BPF.
pub const BPF_HEADERS: &[(&str, &str)] = &[
    ("vmlinux.h", include_str!("kit/include/vmlinux.h")),
    ("bpf_tcp_helpers.h", include_str!("kit/include/bpf_tcp_helpers.h")),
    ("bpf_tracing_net.h", include_str!("kit/include/bpf_tracing_net.h")),
    ("errno.h", include_str!("kit/bpf/errno.h")),
    ("linux/bpf.h", include_str!("kit/include/linux/bpf.h")),
    ("linux/stddef.h", include_str!("kit/include/linux/stddef.h")),
    ("linux/tcp.h", include_str!("kit/include/linux/tcp.h")),
    ("linux/types.h", include_str!("kit/include/linux/types.h")),
];
/// As the kernel is compiled where it matters: integers wrap, and pointers of different types may meet. Divisions by zero are
/// found, with their line; a run that one ends unwinds through the file's functions.
const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fexceptions",
    "-fsanitize=integer-divide-by-zero",
    "-fno-sanitize-recover=integer-divide-by-zero",
    "-Werror=implicit-function-declaration",
    "-ffp-contract=off",
];
const LINKED: &[&str] = &["-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic"];
/// Of the C library, if the file uses it.
const MATHEMATICS: &str = "-lm";
const COMPILERS: &[&str] = &["clang", "gcc", "cc"];
/// Where they are, beside the controller's own files.
pub(crate) const KIT_FOLDER: &str = "narrows-kit";
const LIBRARY: &str = "controller.so";
/// Has the controller's text: it alone begins as a module.
const MAIN: &str = "narrows-main.c";
/// Headers of the kernel that its controllers include: each is `kernel.h`.
const KERNEL: &[&str] = &[
    "asm/div64.h",
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/inet.h",
    "linux/inet_diag.h",
    "linux/init.h",
    "linux/jiffies.h",
    "linux/kernel.h",
    "linux/math64.h",
    "linux/minmax.h",
    "linux/mm.h",
    "linux/module.h",
    "linux/random.h",
    "linux/sched/clock.h",
    "linux/skbuff.h",
    "linux/slab.h",
    "linux/win_minmax.h",
    "net/tcp.h",
];

/// A controller's file, and the files beside it that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As messages name it: the name of the file, without its folder.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// Other files by name: headers, and what these declare.
    pub others: BTreeMap<String, String>,
    /// Values of its parameters, as one writes them; the others have the file's own.
    pub parameters: BTreeMap<String, String>,
}

impl Source {
    /// Reads with `read` the files beside the first that it includes by `#include "…"`, and for each header `x.h` the file `x.c`;
    /// those that are not there are the compiler's own, or its to report.
    pub fn gather(name: String, text: String, mut read: impl FnMut(&str) -> Option<String>) -> Source {
        // Line ends of another system would be other bytes of the same text.
        let plain = |text: String| text.replace("\r\n", "\n");
        let text = plain(text);
        let mut others = BTreeMap::new();
        let mut wanted = if is_python(&name) { vec![] } else { included(&text) };
        while let Some(file) = wanted.pop() {
            if file == name
                || others.contains_key(&file)
                || KIT.iter().any(|(own, _)| *own == format!("include/{file}"))
            {
                continue;
            }
            let Some(found) = read(&file).map(plain) else { continue };
            wanted.extend(included(&found));
            wanted.extend(file.strip_suffix(".h").map(|stem| format!("{stem}.c")));
            others.insert(file, found);
        }
        Source { name, text, others, parameters: BTreeMap::new() }
    }

    /// Whether its `cong_control` has the arguments of before Linux 6.10.
    pub fn is_before_6_10(&self) -> bool {
        // From then on the parameter before the sample is a number: `int flag`.
        let follows_a_number = |before: &str| {
            let parameter = before.trim_end().strip_suffix(',').and_then(|before| before.rsplit([',', '(']).next());
            parameter.is_some_and(|parameter| parameter.trim_start().starts_with("int "))
        };
        let is_after =
            |text: &String| text.match_indices("const struct rate_sample").any(|(at, _)| follows_a_number(&text[..at]));
        !std::iter::once(&self.text).chain(self.others.values()).any(is_after)
    }
}

/// The file of this path as it is now, and those beside it.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Source, Error> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let text =
        fs::read_to_string(path).map_err(|error| Error::Unreadable { file: path.display().to_string(), error })?;
    Ok(Source::gather(name, text, |other| fs::read_to_string(path.with_file_name(other)).ok()))
}

/// A name that is that of a file in a folder, and nothing else to a compiler: plans may come from anywhere.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['-', '.', '@'])
        && !name.contains(['/', '\\', '"'])
        && !name.contains(char::is_control)
}

/// The names in `#include "…"`.
fn included(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line
            .trim_start()
            .strip_prefix('#')?
            .trim_start()
            .strip_prefix("include")?
            .trim_start()
            .strip_prefix('"')?;
        let (name, _) = rest.split_once('"')?;
        // Only beside it: whoever gave the file gave this folder.
        is_plain(name).then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// Compiles the file, unless that was done before; the path of the library.
///
/// # Errors
/// If there is no compiler, or it refuses the file, or nothing can be written.
pub fn compile(source: &Source) -> Result<PathBuf, Error> {
    let failed = |error| Error::Io { file: source.name.clone(), error };
    if let Some(name) = std::iter::once(&source.name).chain(source.others.keys()).find(|name| !is_plain(name)) {
        return Err(failed(io::Error::other(format!("{name:?} is no name of a file"))));
    }
    let (compiler, version) = compiler()?;
    let folder = cache().join(digest(source, &version));
    let library = folder.join(LIBRARY);
    if library.is_file() {
        return Ok(library);
    }
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let unique = format!(".{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let under_way = cache().join(unique);
    write_all(&under_way, source).map_err(failed)?;
    let made = run(&compiler, &under_way, source);
    if made.is_ok() && !library.is_file() {
        // What an interrupted run may have left.
        let _ = fs::remove_dir_all(&folder);
    }
    if made.is_ok() && fs::rename(&under_way, &folder).is_err() && !library.is_file() {
        let error = io::Error::other(format!("`{}` cannot be renamed", under_way.display()));
        let _ = fs::remove_dir_all(&under_way);
        return Err(failed(error));
    }
    let _ = fs::remove_dir_all(&under_way);
    made.map(|()| library)
}

fn run(compiler: &OsString, folder: &Path, source: &Source) -> Result<(), Error> {
    let file = || source.name.clone();
    let tell = |arguments: &mut Command| {
        let done = arguments.current_dir(folder).env("LC_ALL", "C").output();
        let done = done.map_err(|error| Error::Io { file: file(), error })?;
        let messages = || String::from_utf8_lossy(&done.stderr).trim_end().to_owned();
        if done.status.success() { Ok(()) } else { Err(Error::DoesNotCompile { file: file(), messages: messages() }) }
    };
    let runtime = format!("{KIT_FOLDER}/runtime.c");
    let others = source.others.keys().filter(|name| name.ends_with(".c")).map(String::as_str);
    let mut objects = vec![];
    for (number, unit) in [MAIN, &runtime].into_iter().chain(others).enumerate() {
        let object = format!("{number}.o");
        let before = source.is_before_6_10().then_some("-DNARROWS_CONG_CONTROL_BEFORE_6_10");
        let include = format!("{KIT_FOLDER}/include");
        tell(Command::new(compiler).args(FLAGS).args(before).args(["-I", &include, "-c", "-o", &object, unit]))?;
        objects.push(object);
    }
    // Without the checks of divisions: a compiler's own functions for them are not needed.
    tell(Command::new(compiler).args(LINKED).args(["-o", LIBRARY]).args(objects).arg(MATHEMATICS))
}

fn write_all(folder: &Path, source: &Source) -> io::Result<()> {
    let main = format!("#define NARROWS_MAIN\n#line 1 \"{}\"\n{}", source.name, source.text);
    let own = [(MAIN, main.as_str())].into_iter();
    let others = source.others.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let kernel: Vec<String> = KERNEL.iter().map(|name| format!("include/{name}")).collect();
    let kernel = kernel.iter().map(|name| (name.as_str(), "#include <kernel.h>\n"));
    let kit = folder.join(KIT_FOLDER);
    let write = |folder: &Path, (name, text): (&str, &str)| {
        let path = folder.join(name);
        let above = path.parent().unwrap_or(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        fs::write(path, text)
    };
    KIT.iter().copied().chain(kernel).try_for_each(|file| write(&kit, file))?;
    others.chain(own).try_for_each(|file| write(folder, file))
}

/// The variable `CC`, or the first that is installed; with what it says of its version.
fn compiler() -> Result<(OsString, Vec<u8>), Error> {
    static FOUND: OnceLock<(OsString, Vec<u8>)> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let version = |name: &OsString| Command::new(name).arg("--version").output().ok().filter(|it| it.status.success());
    let answers = |name: OsString| version(&name).map(|done| (name, done.stdout));
    let found = match std::env::var_os("CC").filter(|name| !name.is_empty()) {
        Some(name) => answers(name.clone()).ok_or_else(|| Error::NoCompiler(format!("CC={}", name.display())))?,
        None => {
            let found = COMPILERS.iter().find_map(|name| answers(name.into()));
            found.ok_or_else(|| Error::NoCompiler(COMPILERS.join(", ")))?
        }
    };
    Ok(FOUND.get_or_init(|| found).clone())
}

/// The compiler that compiles files in C.
///
/// # Errors
/// If there is none.
pub fn compiler_name() -> Result<String, Error> {
    compiler().map(|(name, _)| name.to_string_lossy().into_owned())
}

/// Where libraries are kept: `$XDG_CACHE_HOME/narrows`, `~/.cache/narrows`, or a folder for temporary files of this process alone.
fn cache() -> PathBuf {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    let base = absolute("XDG_CACHE_HOME").or_else(home);
    let base = base.unwrap_or_else(|| std::env::temp_dir().join(format!("narrows-{}", std::process::id())));
    base.join("narrows").join("controllers")
}

fn digest(source: &Source, version: &[u8]) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(version);
    for part in FLAGS
        .iter()
        .chain(LINKED)
        .chain(&[MATHEMATICS])
        .chain(KERNEL)
        .copied()
        .chain(KIT.iter().flat_map(|(name, text)| [*name, *text]))
    {
        add(part.as_bytes());
    }
    for (name, text) in std::iter::once((&source.name, &source.text)).chain(&source.others) {
        add(name.as_bytes());
        add(text.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
