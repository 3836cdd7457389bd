//! Which module files must be loaded, in which order, as `modules.dep` has it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files of these modules and of all that they need, each after those that it needs. A name that the kernel has built
/// in, or does not know, adds nothing: who uses it will hear.
pub(super) fn files(modules: &Path, names: &[&str]) -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string(modules.join("modules.dep"))?;
    Ok(order(&text, names).into_iter().map(|file| modules.join(file)).collect())
}

fn order<'a>(dependencies: &'a str, names: &[&str]) -> Vec<&'a str> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let needs: BTreeMap<&str, (&str, &str)> = lines.map(|(file, needed)| (name(file), (file, needed))).collect();
    let mut files = Vec::new();
    for wanted in names {
        let Some(&(file, needed)) = needs.get(wanted) else { continue };
        // What comes last is needed first.
        for file in needed.split_whitespace().rev().chain([file]) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files
}

/// As the kernel calls it: `kernel/net/tun.ko.xz` is `tun`.
fn name(file: &str) -> &str {
    let file = file.rsplit('/').next().unwrap_or(file);
    file.split('.').next().unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first_and_once() {
        let dependencies = "kernel/virtio.ko:\n\
            kernel/ring.ko: kernel/virtio.ko\n\
            kernel/pci.ko.xz: kernel/ring.ko kernel/virtio.ko\n\
            kernel/blk.ko: kernel/ring.ko kernel/virtio.ko\n";
        let order = order(dependencies, &["pci", "cubic", "blk"]);
        assert_eq!(order, ["kernel/virtio.ko", "kernel/ring.ko", "kernel/pci.ko.xz", "kernel/blk.ko"]);
    }
}
