//! The text format of Prometheus. Base units: seconds, bits, packets.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::failure::Failure;

/// A metric: name, type, and what it is.
pub(crate) struct Metric(pub(crate) &'static str, pub(crate) &'static str, pub(crate) &'static str);

/// The lines of each metric, which must stand together; metrics in the order of their first lines.
#[derive(Default)]
pub(crate) struct Metrics(Vec<(&'static str, String)>);

impl Metrics {
    /// A value with these labels.
    pub(crate) fn add(&mut self, metric: &Metric, labels: &[(&str, String)], value: f64) {
        let Metric(name, kind, about) = metric;
        let at = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((*name, format!("# HELP {name} {about}\n# TYPE {name} {kind}\n")));
            self.0.len() - 1
        });
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // Writing to a text never fails.
        let _ = writeln!(self.0[at].1, "{name}{labels} {value}");
    }

    /// All of them.
    pub(crate) fn text(self) -> String {
        self.0.into_iter().map(|(_, lines)| lines).collect()
    }
}

/// A label's value: a namespace may have any name that a file may have.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Writes a file that readers see as it was or as it is, never in between.
///
/// # Errors
/// Code 1 with the file's name.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    // The folder may be another's, who must not choose what is written to.
    let _ = fs::remove_file(&new);
    let made = fs::OpenOptions::new().write(true).create_new(true).custom_flags(libc::O_NOFOLLOW).open(&new);
    let written = made.and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        let failure = Failure::failed(format_args!("{}: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::NotFound => failure.help("name a file in a folder that is there"),
            _ => failure,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
