//! Names the sources that results depend on: live runs of another version are recognised and made again.

/// Crates whose code decides what a live run gives.
const CRATES: [&str; 9] = ["core", "network", "scenario", "results", "tables", "kernel", "testbed", "wire", "daemon"];
/// Transport and controllers of a live run are the kernel's.
const WITHOUT: [&str; 2] = ["core/src/tcp", "core/src/cc"];
/// The limit beside them is ours in both worlds.
const BUT: [&str; 1] = ["core/src/tcp/near_source.rs"];

fn main() {
    println!("cargo::rustc-env=NARROWS_SOURCES={}", narrows_sources::digest(&CRATES, &WITHOUT, &BUT));
}
