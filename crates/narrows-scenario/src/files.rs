//! Reading files that are not ours: bounded, UTF-8, and only beside the experiment.

use std::io::Read;
use std::path::{Component, Path};

use crate::error::{Judged, Problem};
use crate::experiment::located::Located;

/// Largest file that is read, bytes.
const LARGEST: u64 = 64 << 20;
/// Largest experiment, bytes.
pub(crate) const LARGEST_EXPERIMENT: u64 = 4 << 20;

/// The text of a file of at most so many bytes; messages name it so.
pub(crate) fn read(path: &Path, shown: &Path, most: u64) -> Result<String, Problem> {
    let unreadable = |kind| Problem::unreadable(shown, kind);
    // Opening a FIFO would wait for a writer, so its kind is looked at first.
    let kind = std::fs::metadata(path).map_err(|error| unreadable(error.kind()))?;
    if kind.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory));
    }
    if !kind.is_file() {
        let sentence = format!("`{}` is not a regular file", shown.display());
        return Err(Problem::new(sentence, "save it as a file first"));
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.kind()))?;
    let mut bytes = vec![];
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.kind()))?;
    if bytes.len() as u64 > most {
        return Err(unreadable(std::io::ErrorKind::FileTooLarge));
    }
    let not_text = |_| Problem::new(format!("`{}` is not UTF-8 text", shown.display()), "save it as UTF-8");
    String::from_utf8(bytes).map_err(not_text)
}

/// The text of a file beside the experiment, or in a folder beside it. Links that lead out of the folder are refused.
pub(crate) fn beside(folder: Option<&Path>, reference: &Located<String>) -> Judged<String> {
    let outside = || {
        let sentence = format!("`{}` is outside the experiment's folder", reference.value);
        Problem::new(sentence, "put the file beside the experiment and name it relatively").at(&reference.span)
    };
    let relative = Path::new(&reference.value);
    let plain = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    let Some(folder) = folder else { return Err(outside()) };
    if !relative.components().all(plain) {
        return Err(outside());
    }
    let path = folder.join(relative);
    let unreadable = |error: std::io::Error| Problem::unreadable(relative, error.kind()).at(&reference.span);
    let (home, target) = (folder.canonicalize().map_err(unreadable)?, path.canonicalize().map_err(unreadable)?);
    if !target.starts_with(&home) {
        return Err(outside());
    }
    read(&target, relative, LARGEST).map_err(|problem| problem.at(&reference.span))
}
