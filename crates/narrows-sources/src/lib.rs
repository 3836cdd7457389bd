//! For build scripts: a name for the sources that results depend on, so that results of other sources are recognised and
//! made again.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// What of a crate decides results, by folder: code, and distributions of sizes.
const COUNTS: [(&str, &[&str]); 2] = [("src", &["rs", "c", "h"]), ("data", &["cdf"])];

/// Eight hexadecimal digits over the sources of these crates, each named without `narrows-`; but not those below the folders
/// `without`, such as `core/src/tcp`, unless it is one of the files `but`. Cargo is told to look at them again when they change.
///
/// # Panics
/// If a source cannot be read, or if it is not called by a build script of one of the project's crates.
pub fn digest(crates: &[&str], without: &[&str], but: &[&str]) -> String {
    // FNV-1a: it tells versions apart, it guards nothing.
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for name in crates {
        for (part, extensions) in COUNTS {
            let folder = Path::new("..").join(format!("narrows-{name}")).join(part);
            println!("cargo::rerun-if-changed={}", folder.display());
            let is_below = |file: &Path, places: &[&str]| {
                places.iter().any(|place| file.starts_with(format!("../narrows-{place}")))
            };
            let left_out = |file: &Path| is_below(file, without) && !is_below(file, but);
            let counts = |file: &Path| {
                !left_out(file) && file.extension().is_some_and(|found| extensions.iter().any(|&ext| found == ext))
            };
            for file in files(&folder).into_iter().filter(|file| counts(file)) {
                add(file.display().to_string().replace('\\', "/").as_bytes());
                add(&std::fs::read(&file).expect("a source file can be read"));
            }
        }
    }
    format!("{:08x}", digest >> 32)
}

/// Every file of a folder that is no test's, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    let is_tests = |path: &Path| path.file_stem().is_some_and(|stem| stem == "tests");
    paths.retain(|path| !is_tests(path));
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
