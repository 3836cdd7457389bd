//! Names the sources that results depend on, so that runs of another simulator are recognised and made again; and what
//! compiled them, on which counts of instructions depend.

use std::process::Command;

/// Crates whose code decides what a run gives.
const CRATES: [&str; 5] = ["core", "network", "results", "scenario", "sim"];

fn main() {
    println!("cargo::rustc-env=NARROWS_SOURCES={}", narrows_sources::digest(&CRATES, &[], &[]));
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
