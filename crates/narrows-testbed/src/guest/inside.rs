//! What the program does in the guest before and after its work, as the kernel's first process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::fsync;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};

use super::initramfs::{FILES, LAST_MODULES, MODULES};

/// What lines for the machine begin with.
pub const PREFIX: &str = "narrows: ";
/// The virtual disk for results.
const DISK: &str = "/dev/vda";

/// Makes the guest usable: file systems, modules, and a processor that never halts.
///
/// # Errors
/// If the kernel refuses something; with what it was.
pub fn begin() -> Result<(), String> {
    let file_systems =
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("bpf", "/sys/fs/bpf")];
    for (kind, folder) in file_systems {
        mount(kind, folder, kind, MountFlags::empty(), None).map_err(|error| format!("{folder}: {error}"))?;
    }
    load(MODULES)?;
    thread::Builder::new()
        .name("never-halt".into())
        .spawn(never_halt)
        .map(drop)
        .map_err(|error| format!("the thread that keeps the processor from halting: {error}"))
}

/// Loads the modules of a folder, in the order of their names.
fn load(folder: &str) -> Result<(), String> {
    let entries = fs::read_dir(Path::new("/").join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    let mut modules: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    modules.sort_unstable();
    for path in modules {
        let loaded = File::open(&path).and_then(|module| finit_module(&module, c"", 0).map_err(Into::into));
        loaded.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// A file that the guest was given.
///
/// # Errors
/// If it was not.
pub fn given(name: &str) -> io::Result<Vec<u8>> {
    fs::read(Path::new("/").join(FILES).join(name))
}

/// Writes files to the virtual disk, for good.
///
/// # Errors
/// If the disk is too small, or not there.
pub fn deliver(files: &[(&str, Vec<u8>)]) -> io::Result<()> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes.as_slice())?;
    }
    load(LAST_MODULES).map_err(io::Error::other)?;
    let mut disk = File::options().write(true).open(DISK)?;
    disk.write_all(&archive.into_inner()?)?;
    fsync(&disk)?;
    Ok(())
}

/// Says a line to who watches the guest.
pub fn say(line: &str) {
    println!("{PREFIX}{line}");
}

/// Ends the guest.
pub fn power_off() -> ! {
    let _ = reboot(RebootCommand::PowerOff);
    // Without a way to switch off, the first process' end does it: the kernel is told to end then.
    std::process::exit(0)
}

/// Runs when nothing else would. A processor that halts leaves the clock to another thread of QEMU, and with it the order of
/// things to chance.
fn never_halt() {
    let idle = libc::sched_param { sched_priority: 0 };
    #[allow(unsafe_code, reason = "no safe wrapper at hand")]
    // SAFETY: the pointer is to a live structure of the type that the call reads; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const idle) };
    assert_eq!(code, 0, "every thread may ask for the idle class");
    loop {
        nothing();
    }
}

/// Instructions that QEMU translates to none: of all, they pass virtual time fastest.
#[cfg(target_arch = "x86_64")]
fn nothing() {
    #[allow(unsafe_code, reason = "there is no other way to say nothing at length")]
    // SAFETY: it does nothing, to nothing.
    unsafe {
        core::arch::asm!(".rept 3800", "nop", ".endr", options(nomem, nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn nothing() {
    core::hint::black_box(());
}
