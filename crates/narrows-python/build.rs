//! Names the sources that results depend on, so that runs of another simulator are recognised and made again; and what
//! compiled them, on which counts of instructions depend.

use std::process::Command;

use narrows_sources::Sources;

fn main() {
    Sources {
        crates: &["c", "core", "network", "plan", "results", "sim"],
        // What tests drive controllers with.
        without: &["core/src/cc/harness.rs"],
        but: &[],
        folders: &[
            ("app", "core/src/app"),
            ("cc", "core/src/cc"),
            ("edge", "core/src/edge"),
            ("link", "core/src/link"),
            ("queue/aqm", "core/src/queue/aqm"),
            ("queue/scheduler", "core/src/queue/scheduler"),
            ("routing", "core/src/routing"),
            ("transport", "core/src/transport"),
        ],
        // Flows that begin at given times, the connections of all, and what holds controllers by pointer.
        shared: &["timed", "connection_pool", "external"],
        single: &[
            ("cc/in-c", "c/src"),
            ("queue/congestion_point", "core/src/queue/congestion_point"),
            ("queue/pfc", "core/src/queue/pfc"),
        ],
    }
    .write();
    // What runs a controller in Python, and what such a class may derive from.
    let in_python = narrows_sources::of_files(&[
        "src/controller.rs",
        "../../python/narrows/controller.py",
        "../../python/narrows/learning/interval.py",
        "../../python/narrows/learning/learner.py",
    ]);
    println!("cargo::rustc-env=NARROWS_IN_PYTHON={in_python}");
    println!("cargo::rustc-env=NARROWS_BUILD={}, {}", compiler(), profile());
}

/// As `rustc --version` has it.
fn compiler() -> String {
    let answer = Command::new(told("RUSTC")).arg("--version").output().expect("the compiler that runs this answers");
    String::from_utf8(answer.stdout).expect("a version is text").trim().to_owned()
}

/// The profile's folder below `target`: Cargo's `PROFILE` tells those that inherit `release` by that name.
fn profile() -> String {
    let out = told("OUT_DIR");
    let mut folders = out.rsplit(['/', '\\']);
    let build = folders.by_ref().nth(2);
    assert_eq!(build, Some("build"), "{out} is target/PROFILE/build/PACKAGE/out");
    folders.next().expect("a profile has a folder").to_owned()
}

/// What Cargo tells a build script.
fn told(name: &str) -> String {
    std::env::var(name).expect("Cargo sets it")
}
