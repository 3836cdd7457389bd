//! The guest's root file system: an archive that the kernel unpacks into memory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cpio::newc::{self, Builder};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;

/// Where the files are that were asked for.
pub(super) const FILES: &str = "files";
/// Where the modules are, named so that their order is the order of loading; and those that are loaded at the end.
pub(super) const MODULES: &str = "modules";
pub(super) const LAST_MODULES: &str = "last-modules";
/// The program.
pub(super) const INIT: &str = "narrowsd";

/// Writes the archive: the program, the modules to load at the beginning and at the end, the files.
pub(super) fn write(
    to: impl Write,
    program: &Path,
    (modules, last_modules): (&[PathBuf], &[PathBuf]),
    files: &[(&str, &[u8])],
) -> io::Result<()> {
    let mut archive = Archive { to: Some(to), entries: 0 };
    for folder in ["dev", "proc", "sys", "run", "tmp", FILES, MODULES, LAST_MODULES] {
        archive.add(folder, FOLDER, &[])?;
    }
    archive.add(INIT, PROGRAM, &fs::read(program)?)?;
    for (folder, modules) in [(MODULES, modules), (LAST_MODULES, last_modules)] {
        for (place, module) in modules.iter().enumerate() {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            archive.add(&format!("{folder}/{place:03}-{name}"), FILE, &fs::read(module)?)?;
        }
    }
    for (name, bytes) in files {
        archive.add(&format!("{FILES}/{name}"), FILE, bytes)?;
    }
    archive.finish()
}

struct Archive<W> {
    /// Taken while an entry is written.
    to: Option<W>,
    entries: u32,
}

impl<W: Write> Archive<W> {
    fn add(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        // Entries with one number would be taken for links to one file.
        self.entries += 1;
        let size = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let to = self.to.take().expect("put back after each entry");
        let mut entry = Builder::new(name).mode(mode).ino(self.entries).nlink(1).write(to, size);
        entry.write_all(bytes)?;
        self.to = Some(entry.finish()?);
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        newc::trailer(self.to.expect("put back after each entry"))?.flush()
    }
}
