//! Names the sources that results depend on, so that runs of another simulator are recognised and made again; and what
//! compiled them, on which counts of instructions depend.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates whose code decides what a run gives.
const CRATES: [&str; 5] = ["narrows-core", "narrows-network", "narrows-results", "narrows-scenario", "narrows-sim"];

fn main() {
    // FNV-1a: it tells versions apart, it guards nothing.
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for name in CRATES {
        for part in ["src", "data"] {
            let folder = Path::new("..").join(name).join(part);
            println!("cargo::rerun-if-changed={}", folder.display());
            // Of `src` the code alone decides; of `data` every distribution does.
            let counts =
                |file: &Path| file.extension().is_some_and(|ext| ext == if part == "src" { "rs" } else { "cdf" });
            for file in files(&folder).into_iter().filter(|file| counts(file)) {
                add(file.display().to_string().replace('\\', "/").as_bytes());
                add(&std::fs::read(&file).expect("a source file can be read"));
            }
        }
    }
    println!("cargo::rustc-env=NARROWS_SOURCES={:08x}", digest >> 32);
    println!("cargo::rustc-env=NARROWS_BUILD={}, {}", compiler(), told("PROFILE"));
}

/// As `rustc --version` has it.
fn compiler() -> String {
    let answer = Command::new(told("RUSTC")).arg("--version").output().expect("the compiler that runs this answers");
    String::from_utf8(answer.stdout).expect("a version is text").trim().to_owned()
}

/// What Cargo tells a build script.
fn told(name: &str) -> String {
    std::env::var(name).expect("Cargo sets it")
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
