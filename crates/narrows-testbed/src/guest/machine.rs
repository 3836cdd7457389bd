//! The machine: QEMU, started, watched and ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::image::{Image, Missing};
use super::inside::PREFIX;
use super::{initramfs, modules};

/// What runs guests. Another one can be named.
const PROGRAM: &str = "qemu-system-x86_64";
const PROGRAM_VARIABLE: &str = "NARROWS_QEMU";
/// Room for results, bytes. The file is sparse: it takes what is written.
const DISK_BYTES: u64 = 4 << 30;
const MEMORY: &str = "1024";
/// How often a guest is looked after.
const LOOK: Duration = Duration::from_millis(50);
/// A guest that says nothing for so long, real time, hangs.
const SILENCE: Duration = Duration::from_secs(180);
/// Last lines of the console that are shown when a guest dies.
const LAST_LINES: usize = 12;
/// The devices of the guest's hosts.
const ALWAYS: [&str; 1] = ["tun"];
/// The driver of its disk. It is loaded after the work: when a disk answers is up to this machine, and chance.
const DISK: [&str; 2] = ["virtio_pci", "virtio_blk"];

/// What to boot.
#[derive(Clone, Copy, Debug)]
pub struct Boot<'a> {
    /// The kernel.
    pub image: &'a Image,
    /// The first and only program: static, for nothing else is in the guest.
    pub program: &'a Path,
    /// Its arguments, without white space.
    pub arguments: &'a [&'a str],
    /// Modules to load beside those that every guest needs; those that the kernel does not know are left out.
    pub modules: &'a [&'a str],
    /// Files that it finds in `/files`.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Where temporary files go; it exists.
    pub folder: &'a Path,
}

/// Why a guest gave no results.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// There is no QEMU.
    #[error("{program} does not run: {error}")]
    NoQemu {
        /// What was tried.
        program: String,
        /// What came of it.
        error: io::Error,
    },
    /// There is no kernel.
    #[error(transparent)]
    NoKernel(#[from] Missing),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The guest ended without having said that it was done.
    #[error("the guest died; the last it said was\n{console}")]
    Died {
        /// The end of its console.
        console: String,
    },
    /// It says nothing any more.
    #[error("the guest hangs: it has said nothing for {} s; the last it said was\n{console}", seconds)]
    Hangs {
        /// How long.
        seconds: u64,
        /// The end of its console.
        console: String,
    },
    /// It was told to stop.
    #[error("the guest was stopped")]
    Stopped,
}

fn file(path: &Path) -> impl Fn(io::Error) -> GuestError + '_ {
    move |error| GuestError::File { path: path.to_owned(), error }
}

/// QEMU's name and version.
///
/// # Errors
/// [`GuestError::NoQemu`].
pub fn qemu() -> Result<String, GuestError> {
    let program = program();
    let said = Command::new(&program).arg("--version").output();
    let said = said.map_err(|error| GuestError::NoQemu { program: program.to_string_lossy().into_owned(), error })?;
    Ok(String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_owned())
}

fn program() -> OsString {
    std::env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| PROGRAM.into())
}

/// Boots a guest and waits for its end: the files that it left. `heard` is told each line that it says, `stop` ends it.
///
/// # Errors
/// If it cannot be started, dies or hangs. Nothing is left behind in any case.
pub fn boot(
    boot: &Boot<'_>,
    heard: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<BTreeMap<String, Vec<u8>>, GuestError> {
    let machine = Files { folder: boot.folder };
    let wanted: Vec<&str> = ALWAYS.iter().chain(boot.modules).copied().collect();
    let modules = modules::files(&boot.image.modules, &wanted).map_err(file(&boot.image.modules))?;
    let disk_modules = modules::files(&boot.image.modules, &DISK).map_err(file(&boot.image.modules))?;
    let archive = machine.archive();
    let to = File::create(&archive).map_err(file(&archive))?;
    initramfs::write(io::BufWriter::new(to), boot.program, (&modules, &disk_modules), boot.files)
        .map_err(file(&archive))?;
    let disk = machine.disk();
    File::create(&disk).and_then(|created| created.set_len(DISK_BYTES)).map_err(file(&disk))?;
    File::create(machine.console()).map_err(file(&machine.console()))?;

    let program = program();
    let mut command = Command::new(&program);
    command.args(arguments(boot, &machine)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Interrupting us at a terminal is for us to pass on.
    command.process_group(0);
    #[allow(unsafe_code, reason = "a child that outlives us would run on for ever")]
    // SAFETY: one system call between fork and exec, which allocates nothing.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).map_err(Into::into)
        });
    }
    let child = command.spawn();
    let child = child.map_err(|error| GuestError::NoQemu { program: program.to_string_lossy().into_owned(), error })?;
    watch(Running(child), &machine, heard, stop)?;
    results(&disk).map_err(file(&disk))
}

/// The files of one machine; removed with this value.
struct Files<'a> {
    folder: &'a Path,
}

impl Files<'_> {
    fn archive(&self) -> PathBuf {
        self.folder.join("guest.initramfs")
    }
    fn disk(&self) -> PathBuf {
        self.folder.join("guest.disk")
    }
    fn console(&self) -> PathBuf {
        self.folder.join("guest.console")
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        for path in [self.archive(), self.disk(), self.console()] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command line. `-nodefaults` and a console into a file: no device may wait for this machine. `qboot` is a firmware that
/// never halts; the usual one does while it waits for devices.
fn arguments(boot: &Boot<'_>, machine: &Files<'_>) -> Vec<OsString> {
    let kernel = format!(
        // One instruction a nanosecond: no mitigation that only costs, no address and no number from outside.
        "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=0 nokaslr norandmaps tsc=reliable idle=poll \
         rdinit=/{} -- {}",
        initramfs::INIT,
        boot.arguments.join(" ")
    );
    let path = |option: &str, path: PathBuf, more: &str| {
        let mut text = OsString::from(option);
        // A comma in a value is written twice.
        text.push(path.to_string_lossy().replace(',', ",,"));
        text.push(more);
        text
    };
    let mut arguments: Vec<OsString> = [
        "-no-user-config -nodefaults -M q35 -bios qboot.rom -accel tcg,thread=single -icount shift=0,sleep=off -smp 1",
        "-cpu max,-rdrand,-rdseed,-erms,-fsrm -rtc base=2026-01-01,clock=vm -seed 42 -no-reboot",
        "-vga none -net none -display none -monitor none -device virtio-blk-pci,drive=results",
    ]
    .iter()
    .flat_map(|line| line.split(' '))
    .map(OsString::from)
    .collect();
    arguments.extend(["-m".into(), MEMORY.into(), "-kernel".into(), boot.image.kernel.clone().into()]);
    arguments.extend(["-initrd".into(), machine.archive().into(), "-append".into(), kernel.into()]);
    arguments.extend(["-chardev".into(), path("file,id=console,path=", machine.console(), "")]);
    arguments.extend(["-serial".into(), "chardev:console".into()]);
    arguments.extend([
        "-drive".into(),
        path("if=none,id=results,format=raw,cache=unsafe,werror=report,file=", machine.disk(), ""),
    ]);
    arguments
}

/// Waits for the guest's end, and passes on what it says.
fn watch(
    mut running: Running,
    machine: &Files<'_>,
    heard: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<(), GuestError> {
    let path = machine.console();
    let mut console = File::open(&path).map_err(file(&path))?;
    let (mut said, mut told, mut last) = (Vec::new(), 0, Instant::now());
    let mut done = false;
    loop {
        let ended = running.0.try_wait().map_err(file(Path::new(PROGRAM)))?;
        // After having looked whether it ended: so its last words are heard.
        let before = said.len();
        console.read_to_end(&mut said).map_err(file(&path))?;
        if said.len() > before {
            last = Instant::now();
        }
        while let Some(end) = said[told..].iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&said[told..told + end]).trim_end().to_owned();
            told += end + 1;
            done |= line.strip_prefix(PREFIX) == Some("done");
            heard(&line);
        }
        if let Some(status) = ended {
            return if done { Ok(()) } else { Err(died(&mut running.0, &said, status.to_string())) };
        }
        if stop.load(Ordering::Relaxed) {
            return Err(GuestError::Stopped);
        }
        if last.elapsed() > SILENCE {
            return Err(GuestError::Hangs { seconds: SILENCE.as_secs(), console: last_lines(&said) });
        }
        thread::sleep(LOOK);
    }
}

fn died(child: &mut Child, said: &[u8], status: String) -> GuestError {
    let mut complaint = String::new();
    if let Some(mut stream) = child.stderr.take() {
        let _ = stream.read_to_string(&mut complaint);
    }
    let [said, rest] =
        [said.to_vec(), [complaint.as_bytes(), b"\n", status.as_bytes()].concat()].map(|it| last_lines(&it));
    let console = format!("{said}\n{rest}");
    GuestError::Died { console }
}

/// The end of what was said, readable and indented.
fn last_lines(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<String> = text.lines().map(clean).filter(|line| !line.trim().is_empty()).collect();
    // What the kernel prints of a panic, its stack for one, says less than what came before it.
    let is_end = |line: &String| ["BUG: ", "Oops: ", "Kernel panic"].iter().any(|sign| line.contains(sign));
    let end = lines.iter().position(is_end).map_or(lines.len(), |end| end + 1);
    let last = &lines[end.saturating_sub(LAST_LINES)..end];
    last.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// What the guest wrote to its disk.
fn results(disk: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut disk = File::open(disk)?;
    disk.seek(SeekFrom::Start(0))?;
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(io::BufReader::new(disk)).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(name, bytes);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_few_readable_and_indented() {
        let said: String = (0..40).map(|line| format!("\x1b[0mline {line}\r\n\n")).collect();
        let shown = last_lines(said.as_bytes());
        assert_eq!(shown.lines().count(), LAST_LINES);
        assert!(shown.ends_with("line 39") && shown.starts_with("    ") && !shown.contains('\x1b'));
        let panicked = format!("why\n[1.0] Kernel panic - not syncing\n{said}");
        assert_eq!(last_lines(panicked.as_bytes()), "    why\n    [1.0] Kernel panic - not syncing");
    }
}
