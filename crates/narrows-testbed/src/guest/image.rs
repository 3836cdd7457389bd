//! Where the guest's kernel is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Names the kernel: the beginning of a release in the cache, `6.12`, or a folder as `dpkg-deb --extract` makes it of a
/// kernel package, with a slash.
const VARIABLE: &str = "NARROWS_GUEST_KERNEL";
/// Unless it does: what experiments are compared with is one kernel, Debian 12's.
const USUAL: &str = "6.1";

/// A kernel and its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The compressed kernel.
    pub kernel: PathBuf,
    /// The folder with `modules.dep`.
    pub modules: PathBuf,
    /// As `uname -r` will say.
    pub release: String,
}

impl Image {
    /// What the kernel was configured with, if it lies beside it: `boot/config-RELEASE`.
    pub fn configuration(&self) -> Option<Vec<u8>> {
        std::fs::read(self.kernel.with_file_name(format!("config-{}", self.release))).ok()
    }
}

/// There is no kernel for the guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Nowhere.
    #[error("there is no kernel {release} for the guest in {}", folder.display())]
    Anywhere {
        /// How its release would begin.
        release: String,
        /// Where it would be.
        folder: PathBuf,
    },
    /// Not where it was said to be.
    #[error("{VARIABLE} names {}, which has no boot/vmlinuz-RELEASE with a lib/modules/RELEASE/modules.dep", folder.display())]
    There {
        /// The folder.
        folder: PathBuf,
    },
}

/// The kernel that `NARROWS_GUEST_KERNEL` names, else the newest 6.1 in the cache: `$XDG_CACHE_HOME/narrows/guest`, or below
/// `~/.cache`.
///
/// # Errors
/// If there is none.
pub fn find() -> Result<Image, Missing> {
    let named = env::var(VARIABLE).ok().filter(|named| !named.is_empty());
    if let Some(folder) = named.as_ref().filter(|named| named.contains('/')).map(PathBuf::from) {
        return newest(images(&folder), "").ok_or(Missing::There { folder });
    }
    let (folder, release) = (cache(), named.as_deref().unwrap_or(USUAL));
    let folders = fs::read_dir(&folder).into_iter().flatten().flatten();
    let found = newest(folders.flat_map(|entry| images(&entry.path())), release);
    found.ok_or_else(|| Missing::Anywhere { folder, release: release.to_owned() })
}

fn cache() -> PathBuf {
    let home = || env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from).join(".cache");
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    base.unwrap_or_else(home).join("narrows/guest")
}

/// The usable kernels below a folder.
fn images(folder: &Path) -> Vec<Image> {
    let entries = fs::read_dir(folder.join("boot")).into_iter().flatten().flatten();
    let image = |kernel: PathBuf| {
        let release = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        let modules = folder.join("lib/modules").join(&release);
        modules.join("modules.dep").exists().then_some(Image { kernel, modules, release })
    };
    entries.filter_map(|entry| image(entry.path())).collect()
}

/// The newest of those whose release begins with these numbers.
fn newest(images: impl IntoIterator<Item = Image>, release: &str) -> Option<Image> {
    let wanted = images.into_iter().filter(|image| numbers(&image.release).starts_with(&numbers(release)));
    // A name without numbers begins no release.
    let wanted = wanted.filter(|_| release.is_empty() || !numbers(release).is_empty());
    wanted.max_by_key(|image| numbers(&image.release))
}

/// The numbers in a release, by which releases are ordered.
fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        let image = |release: &str| Image { kernel: "k".into(), modules: "m".into(), release: release.into() };
        let found = |wanted| {
            let all = ["6.1.0-9-cloud-amd64", "6.12.107+deb12-cloud-amd64", "6.1.0-54-cloud-amd64"].map(image);
            newest(all, wanted).map(|image| image.release)
        };
        assert_eq!(found("6.1").as_deref(), Some("6.1.0-54-cloud-amd64"));
        assert_eq!(found("").as_deref(), Some("6.12.107+deb12-cloud-amd64"));
        assert_eq!(found("6.13"), None);
    }
}
