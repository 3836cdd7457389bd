//! Compiles the programs with clang to BPF objects, and the controllers' cores with the host's compiler too, for the twin
//! test.

use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// One BPF object each, `src/bpf/<name>.bpf.c`: the controllers, what finds connections, and what joins two interfaces.
const PROGRAMS: [&str; 6] = ["newreno", "vegas", "dctcp", "gemini", "connections", "bridge"];

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-changed=tests/live/mark.bpf.c");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(told("OUT_DIR"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").output().is_err() {
        fail(&format!(
            "`{clang}` does not run, and BPF programs are compiled with it; \
             on Debian: apt install clang libelf-dev zlib1g-dev pkg-config"
        ));
    }
    let programs = PROGRAMS.map(|name| Path::new("src/bpf").join(format!("{name}.bpf.c")));
    for source in programs.into_iter().chain([PathBuf::from("tests/live/mark.bpf.c")]) {
        let name = source.file_name().expect("it has one").to_string_lossy().replace(".bpf.c", ".bpf.o");
        let compiled = libbpf_cargo::SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(name))
            .clang(&clang)
            .clang_args(["-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter"])
            .build();
        if let Err(error) = compiled {
            fail(&format!("{} does not compile: {error:#}", source.display()));
        }
    }
    host(&out);
}

/// The cores as a static library that only the tests are linked with.
fn host(out: &Path) {
    cc::Build::new()
        .file("src/bpf/host.c")
        .std("gnu11")
        .extra_warnings(true)
        .flag("-Wno-unused-parameter")
        .cargo_metadata(false)
        .compile("narrows_twins");
    println!("cargo::rustc-link-arg-tests={}", out.join("libnarrows_twins.a").display());
}

/// What Cargo tells a build script.
fn told(name: &str) -> String {
    std::env::var(name).expect("Cargo sets it")
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={reason}");
    exit(1);
}
