//! Files that hold a secret.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use narrows_wire::Key;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// More than a key and blanks around it.
const MAX_BYTES: u16 = 4_096;

/// Reads a key that its owner alone can read, and that is root's or the caller's.
///
/// # Errors
/// Code 2, with what to do.
pub(crate) fn read(path: &Path) -> Result<Key, Failure> {
    let cannot = |sentence: String, help: &str| Failure::input(format!("{}: {sentence}", path.display())).help(help);
    let draw = "one of those who share it draws it, (umask 077; openssl rand -hex 32 > the.key), and the others copy that file";
    let mut file = fs::File::open(path).map_err(|error| {
        let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
        cannot(error.to_string(), if denied { "run it as who owns the key, root" } else { draw })
    })?;
    let known = file.metadata().map_err(|error| cannot(error.to_string(), draw))?;
    if !known.is_file() {
        return Err(cannot("this is no file".to_owned(), "name the file with the key"));
    }
    if known.permissions().mode() & 0o077 != 0 {
        return Err(cannot("others than its owner may read this key".to_owned(), "chmod 600 it, and draw it anew"));
    }
    if known.uid() != 0 && known.uid() != rustix::process::geteuid().as_raw() {
        return Err(cannot("this key is another user's, who can speak for whoever has it".to_owned(), draw));
    }
    // Of its full size from the beginning: what grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::from(MAX_BYTES)));
    file.by_ref()
        .take(u64::from(MAX_BYTES))
        .read_to_end(&mut bytes)
        .map_err(|error| cannot(error.to_string(), draw))?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| cannot("a key is text, 64 hexadecimal digits; this is binary".to_owned(), draw))?;
    Key::parse(text).map_err(|error| cannot(error.to_string(), draw))
}
