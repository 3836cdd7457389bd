//! Compiles every `src/bpf/*.bpf.c` with clang to a BPF object. A program beside which there is a core of the same name,
//! `<name>.core.h`, is a controller: it gets its line in the table of what can be loaded, and its core is compiled with the
//! host's compiler too, for the twin test.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-changed=tests/live/mark.bpf.c");
    println!("cargo::rerun-if-changed=tests/twins/host.c");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(cargo_says("OUT_DIR"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").output().is_err() {
        fail(&format!(
            "`{clang}` does not run, and BPF programs are compiled with it; \
             on Debian: apt install clang libelf-dev zlib1g-dev pkg-config"
        ));
    }
    let names = programs();
    for name in &names {
        compile(&clang, &Path::new("src/bpf").join(format!("{name}.bpf.c")), &out);
    }
    compile(&clang, Path::new("tests/live/mark.bpf.c"), &out);
    let controllers: Vec<_> = names.into_iter().filter(|name| core_header(name).exists()).collect();
    write(&out.join("controllers.rs"), &table(&controllers));
    write(&out.join("twins.c"), &twins(&controllers));
    compile_twins(&out);
}

/// The programs' names, in the order of the alphabet.
fn programs() -> Vec<String> {
    let files = fs::read_dir("src/bpf").expect("the folder is part of the package");
    let mut names: Vec<String> = files
        .filter_map(|file| file.expect("a folder of this package").file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".bpf.c").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn core_header(name: &str) -> PathBuf {
    Path::new("src/bpf").join(format!("{name}.core.h"))
}

fn compile(clang: &str, source: &Path, out: &Path) {
    let name = source.file_name().expect("it has one").to_string_lossy().replace(".bpf.c", ".bpf.o");
    let compiled = libbpf_cargo::SkeletonBuilder::new()
        .source(source)
        .obj(out.join(name))
        .clang(clang)
        .clang_args(["-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter"])
        .build();
    if let Err(error) = compiled {
        fail(&format!("{} does not compile: {error:#}", source.display()));
    }
}

/// The table of `controllers.rs`. What a controller does in the kernel is read from its program: the flags and hooks that it
/// registers, and the fields of its record that it sets.
fn table(controllers: &[String]) -> String {
    let mut table = "&[\n".to_owned();
    for name in controllers {
        let program = fs::read_to_string(format!("src/bpf/{name}.bpf.c")).expect("it was compiled");
        let program = without_comments(&program);
        let owner = if program.contains(".cong_control =") { "Controller" } else { "Transport" };
        let _ = writeln!(
            table,
            "Controller {{ spec: &narrows_core::cc::{name}::SPEC, registered: \"narrows_{name}\", recovery: Owner::{owner}, \
             needs_ecn: {}, has_alpha: {}, has_scale: {}, object: object!(\"{name}\") }},",
            program.contains("TCP_CONG_NEEDS_ECN"),
            program.contains("alpha_q20 ="),
            program.contains("factor_q10 ="),
        );
    }
    table + "]\n"
}

/// C without its comments, every run of blanks one space.
fn without_comments(source: &str) -> String {
    let mut rest = source;
    let mut code = String::new();
    while let Some(begin) = rest.find("/*") {
        code.push_str(&rest[..begin]);
        rest = rest[begin..].split_once("*/").map_or("", |(_, behind)| behind);
    }
    code.push_str(rest);
    let lines = code.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The C of the twin test: every core's header, and the core behind pointers.
fn twins(controllers: &[String]) -> String {
    let mut source = String::new();
    for name in controllers {
        let _ = writeln!(source, "#include \"{name}.core.h\"");
    }
    source.push_str("#include \"host.c\"\n");
    for name in controllers {
        let upper = name.to_uppercase();
        let _ = writeln!(source, "TWIN({name}, {upper}_PARAMETERS, {upper}_STATE)");
    }
    source.push_str("const struct twin *const twins[] = {");
    for name in controllers {
        let _ = write!(source, " &twin_{name},");
    }
    source + " 0 };\n"
}

/// The cores as a static library that only the tests are linked with.
fn compile_twins(out: &Path) {
    cc::Build::new()
        .file(out.join("twins.c"))
        .include("src/bpf")
        .include("tests/twins")
        .std("gnu11")
        .extra_warnings(true)
        .flag("-Wno-unused-parameter")
        .cargo_metadata(false)
        .compile("narrows_twins");
    println!("cargo::rustc-link-arg-tests={}", out.join("libnarrows_twins.a").display());
}

fn cargo_says(variable: &str) -> String {
    std::env::var(variable).expect("Cargo sets it")
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("Cargo's folder for what is built can be written");
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={reason}");
    exit(1);
}
