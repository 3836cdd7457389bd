//! Controllers that outlive the process that loaded them: pins in a folder of a bpf file system.

use crate::controllers::{self, Controller};
use crate::error::Error;
use crate::maps::{Maps, NAMES};
use libbpf_rs::{MapCore, MapHandle};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The registration, one of these two.
pub(crate) const LINK: &str = "link";
pub(crate) const PLAIN: &str = "plain";

/// The type of a bpf file system, as the kernel states it.
const BPF_FS_MAGIC: rustix::fs::FsWord = 0xcafe_4a11;

/// Where controllers are pinned unless told otherwise, a folder each. It goes with the last of them.
const ROOT: &str = "/sys/fs/bpf/narrows";

/// Where a controller is pinned unless told otherwise: `/sys/fs/bpf/narrows/<name>`.
pub fn folder(controller: &Controller) -> PathBuf {
    Path::new(ROOT).join(controller.spec.name)
}

/// The names of controllers that were compiled from files and are pinned, in the order of the alphabet.
pub fn of_files() -> Vec<String> {
    let folders = fs::read_dir(ROOT).into_iter().flatten().filter_map(Result::ok);
    let pinned = folders.filter(|entry| is_registration(&entry.path()));
    let names = pinned.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| controllers::find(name).is_err()).collect();
    names.sort();
    names
}

/// Whether a registration is pinned in `folder`.
pub fn is_registration(folder: &Path) -> bool {
    [LINK, PLAIN].iter().any(|name| folder.join(name).exists())
}

/// Removes pins without a registration, which a process leaves that was killed while it pinned, and says whether there
/// were any. The process must be gone.
///
/// # Errors
/// [`Error::File`].
pub fn remove_partial(folder: &Path) -> Result<bool, Error> {
    let is_partial = folder.exists() && !is_registration(folder);
    if is_partial {
        remove(folder)?;
    }
    Ok(is_partial)
}

/// The maps of a controller that was pinned in `folder`, by this process or another.
///
/// # Errors
/// [`Error::NotPinned`], [`Error::OtherVersion`], [`Error::NoPrivileges`], [`Error::Bpf`].
pub fn open(controller: &'static Controller, folder: &Path) -> Result<Maps, Error> {
    if !is_registration(folder) {
        return Err(Error::NotPinned { controller: controller.spec.name, folder: folder.to_owned() });
    }
    Maps::open(controller, |name| {
        MapHandle::from_pinned_path(folder.join(name)).map_err(|source| Error::of("open a pin", source))
    })
}

/// Unregisters what is pinned in `folder` and removes the folder.
///
/// # Errors
/// [`Error::NotPinned`], [`Error::NoPrivileges`], [`Error::File`], [`Error::Bpf`].
pub fn unload(controller: &'static Controller, folder: &Path) -> Result<(), Error> {
    let plain = folder.join(PLAIN);
    if plain.exists() {
        let map = MapHandle::from_pinned_path(&plain).map_err(|source| Error::of("open a pin", source))?;
        map.delete(&0_u32.to_ne_bytes()).map_err(|source| Error::of("unregister the controller", source))?;
    } else if !folder.join(LINK).exists() {
        return Err(Error::NotPinned { controller: controller.spec.name, folder: folder.to_owned() });
    }
    // A link ends with its last pin.
    remove(folder)
}

/// Whether anything of a controller is pinned there.
pub(crate) fn is_in_use(folder: &Path) -> bool {
    NAMES.into_iter().chain([LINK, PLAIN]).any(|name| folder.join(name).exists())
}

/// Pins can be made in a bpf file system alone: `folder`, or where it is to be made, must be in one.
///
/// # Errors
/// [`Error::NoBpfFileSystem`], [`Error::File`].
pub fn check_file_system(folder: &Path) -> Result<(), Error> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    let system = rustix::fs::statfs(there).map_err(|error| Error::file(there)(error.into()))?;
    if system.f_type == BPF_FS_MAGIC { Ok(()) } else { Err(Error::NoBpfFileSystem { folder: folder.to_owned() }) }
}

/// Removes the pins and their folder; those that are not there are no error.
pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    for name in NAMES.into_iter().chain([LINK, PLAIN]) {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(&path)(error)),
            _ => {}
        }
    }
    fs::remove_dir(folder).map_err(Error::file(folder))?;
    if folder.parent() == Some(Path::new(ROOT)) {
        // It stays while it holds others.
        let _ = fs::remove_dir(ROOT);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_other_files_is_said_to_have_them() {
        let folder = std::env::temp_dir().join(format!("narrows-pins-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mine"), "").unwrap();
        let error = remove(&folder).expect_err("it is not empty");
        assert_eq!(error.help().as_deref(), Some("remove what else is in it, and try again"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
