use std::fs;
use std::path::PathBuf;

use super::Sources;
use super::code::{modules, words};
use super::lock::externals;

fn same(one: &str, other: &str) -> bool {
    words("a.rs", one) == words("a.rs", other)
}

#[test]
fn what_people_read_does_not_count() {
    for (before, after) in [
        ("fn f() { 1 }", "// why\nfn f() {\n    1 /* that */\n}"),
        ("fn f() { 1 }", "//! A module.\n\n/// Says one.\nfn f() { 1 }"),
        ("fn f() { 1 }", "fn f() { 1 }\n#[cfg(test)]\nmod tests { fn g() { 2 } }"),
        ("fn f() { 1 }", "#[cfg(test)]\n#[path = \"x.rs\"]\npub mod guide;\nfn f() { 1 }"),
        ("fn f() { assert!(a, \"no\"); }", "fn f() { assert!(a, \"never\"); }"),
        ("fn f() { x.expect(\"here\").y() }", "fn f() { x.expect(\"there\").y() }"),
        ("fn f() { x.expect(\"here\") }", "fn f() {\n    x.expect(\n        \"over there\",\n    )\n}"),
        ("const S: S = S { n: 1, about: \"A.\" };", "const S: S = S {\n    n: 1,\n    about: \"Longer.\",\n};"),
        ("enum E { #[error(\"bad\")] Bad }", "enum E { #[error(\"worse\")] Bad }"),
        ("const S: S = S { about: \"A.\", n: 1 };", "const S: S = S { about: \"B.\", n: 1 };"),
        (
            "parameters! { \"k\": Kind::Size, Value::Auto, (1, 9), \"where.\"; }",
            "parameters! { \"k\": Kind::Size, Value::Auto, (1, 9), \"where it is held\"; }",
        ),
        (
            "row! { R of rs, |row, run| {} size: u64, \"bytes\", \"To send.\"; node, NONE, \"It.\" = \"n\"; }",
            "row! { R of rs, |row, run| {} size: u64, \"bytes\", \"Sent.\"; node, NONE, \"Who.\" = \"n\"; }",
        ),
        ("pub mod a; registry! { a::A }", "pub mod a; pub(crate) mod b; mod c; registry! { a::A, b::B }"),
    ] {
        assert!(same(before, after), "{before} | {after}");
    }
    assert_eq!(words("a.h", "int a; /* x\ny */ int b; // c\nint d;"), words("a.h", "int a; int b;\n\nint d;"));
}

#[test]
fn what_decides_counts() {
    for (before, after) in [
        ("fn f() { 1 }", "fn f() { 2 }"),
        ("fn f() { named(\"arrivals\") }", "fn f() { named(\"sizes\") }"),
        ("fn f() { assert!(a, \"no\"); }", "fn f() { assert!(b, \"no\"); }"),
        ("fn f() { x.expect(\"here\").y() }", "fn f() { x.expect(\"here\").z() }"),
        ("fn f() { x.expect(\"here\"); }", "fn f() { x; }"),
        ("parameters! { \"k\": A, (1, 9), \"K.\"; }", "parameters! { \"k\": A, (1, 8), \"K.\"; }"),
        ("parameters! { \"k\": A, (1, 9), \"K.\"; }", "parameters! { \"l\": A, (1, 9), \"K.\"; }"),
        ("row! { a: u64, \"bytes\", \"A.\"; }", "row! { a: u64, \"packets\", \"A.\"; }"),
        ("row! { a, NONE, \"A.\" = \"n\"; }", "row! { a, NONE, \"A.\" = \"m\"; }"),
        ("fn f() { (1) }", "fn f() { (1,) }"),
        ("fn f() { call(a, \"A.\"); }", "fn f() { call(a, \"B.\"); }"),
        ("#[cfg(test)] mod t { } fn f() { 1 }", "#[cfg(test)] mod t { } fn f() { 2 }"),
        ("#[cfg(unix)] fn f() { 1 }", "#[cfg(unix)] fn f() { 2 }"),
        ("const S: S = S { name: \"a\" };", "const S: S = S { name: \"b\" };"),
        ("mod a { fn f() { 1 } }", "mod a { fn f() { 2 } }"),
    ] {
        assert!(!same(before, after), "{before} | {after}");
    }
    assert_ne!(words("a.h", "int a = 1;"), words("a.h", "int a = 2;"));
}

/// The project's own declarations of tables, columns and parameters. Names, units and choices are a word or two.
#[test]
fn no_description_of_a_declaration_counts() {
    for path in ["results/src/rows.rs", "results/src/tables.rs", "core/src/cc/gemini.rs", "core/src/queue/aqm/pie.rs"] {
        let text = fs::read_to_string(format!("../narrows-{path}")).expect("a source of the project");
        let sentences: Vec<String> =
            words(path, &text).into_iter().filter(|word| word.split(' ').count() > 2).collect();
        assert!(text.lines().any(|line| line.split(' ').count() > 2 && line.contains('"')), "{path} declares nothing");
        assert!(sentences.is_empty(), "{path}: {sentences:?}");
    }
}

#[test]
fn modules_are_what_paths_name() {
    for (text, names) in [
        ("use super::reno;", true),
        ("pub use crate::cc::{vegas, reno as base};", true),
        ("fn f() { super::reno::grow() }", true),
        ("use super::*; fn f() -> reno::Window { 1 }", true),
        ("struct S { reno: u64 } fn f(s: &S) { s.reno = 1; }", false),
        ("fn reno() {} fn f() { let reno = self.reno(); }", false),
    ] {
        assert_eq!(modules(&words("a.rs", text)).contains("reno"), names, "{text}");
    }
    assert!(modules(&words("a.h", "#include \"reno.core.h\"\nint a;")).contains("reno"));
    assert!(!modules(&words("a.h", "int reno; int a = reno;")).contains("reno"));
}

#[test]
fn external_crates_count_by_the_versions_that_are_used_at_run_time() {
    let manifest = "[package]\nname = \"narrows-core\"\n\n[dependencies]\nlibm.workspace = true\n\
                    narrows-wire.workspace = true\nrustix = { workspace = true }\n\n[dev-dependencies]\n\
                    insta.workspace = true\n\n[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n";
    let package = |name: &str, version: &str, rest: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{rest}\n")
    };
    let depends = "dependencies = [\n \"insta\",\n \"libc\",\n \"libm\",\n \"narrows-wire\",\n \"rustix 1.1.0\",\n]\n";
    let lock = "version = 4\n\n".to_owned()
        + &package("insta", "1.49.0", "")
        + &package("libc", "0.2.180", "")
        + &package("libm", "0.2.16", "")
        + &package("narrows-core", "0.1.0", depends)
        + &package("narrows-wire", "0.1.0", "dependencies = [\n \"sha2\",\n]\n")
        + &package("rustix", "0.38.0", "")
        + &package("rustix", "1.1.0", "dependencies = [\n \"libc\",\n]\n");
    assert_eq!(externals("narrows-core", manifest, &lock), ["libc 0.2.180", "libm 0.2.16", "rustix 1.1.0"]);
}

/// A folder with the crate `core`, removed with this value.
struct Checkout(PathBuf);

impl Checkout {
    fn new(test: &str) -> Checkout {
        let checkout = Checkout(std::env::temp_dir().join(format!("narrows-sources-{test}-{}", std::process::id())));
        checkout.write("crates/narrows-core/Cargo.toml", "[dependencies]\nlibm = \"0.2\"\n");
        checkout.write("Cargo.lock", &lock("0.2.15"));
        checkout
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().expect("it has one")).expect("a folder for the test");
        fs::write(file, text).expect("a file for the test");
    }

    /// What an edit changes: names of components, and `engine`. The edit is undone.
    fn changed(&self, sources: &Sources<'_>, path: &str, text: &str) -> Vec<String> {
        let digests = || sources.digests(&self.0.join("crates"));
        let (engine, components) = digests();
        let before = fs::read_to_string(self.0.join(path)).expect("written before");
        self.write(path, text);
        let (engine_now, now) = digests();
        self.write(path, &before);
        let pairs = components.iter().zip(&now).filter(|(one, other)| one != other);
        let mut changed: Vec<String> = pairs.map(|((name, _), _)| name.clone()).collect();
        changed.extend((engine != engine_now).then(|| "engine".to_owned()));
        changed
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("it was made before");
    }
}

fn lock(libm: &str) -> String {
    format!(
        "[[package]]\nname = \"libm\"\nversion = \"{libm}\"\n\n\
         [[package]]\nname = \"narrows-core\"\nversion = \"0.1.0\"\ndependencies = [\n \"libm\",\n]\n"
    )
}

/// The engine, and controllers of which one uses another.
#[test]
fn an_edited_component_changes_its_own_digest_and_those_that_name_it() {
    let checkout = Checkout::new("component");
    let sources = Sources {
        crates: &["core"],
        without: &["core/src/live"],
        but: &["core/src/live/limit.rs"],
        folders: &[("cc", "core/src/cc"), ("queue/aqm", "core/src/queue/aqm")],
        shared: &["settings"],
        single: &[("queue/pfc", "core/src/queue/pfc")],
    };
    for (path, text) in [
        ("build.rs", "fn main() { 1 }"),
        ("src/lib.rs", "pub mod cc;"),
        ("src/cc/mod.rs", "registry! { reno::Reno }"),
        ("src/cc/settings.rs", "fn s() {}"),
        ("src/cc/reno.rs", "fn reno() { 1 }"),
        ("src/cc/reno/tests.rs", "fn t() {}"),
        ("src/cc/dctcp.rs", "use super::reno; fn alpha() { 1 }"),
        ("src/cc/vegas.rs", "struct Vegas { threshold: u64 } fn f(v: Vegas) { v.threshold }"),
        ("src/queue/aqm/threshold.rs", "fn t() { 1 }"),
        ("src/queue/pfc.rs", "fn d() { 1 }"),
        ("src/live/walk.rs", "fn w() { 1 }"),
        ("src/live/limit.rs", "fn l() { 1 }"),
    ] {
        checkout.write(&format!("crates/narrows-core/{path}"), text);
    }
    let (_, components) = sources.digests(&checkout.0.join("crates"));
    let names: Vec<&str> = components.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cc/dctcp", "cc/reno", "cc/vegas", "queue/aqm/threshold", "queue/pfc"]);
    for (path, text, changes) in [
        ("src/cc/dctcp.rs", "use super::reno; fn alpha() { 2 }", &["cc/dctcp"][..]),
        ("src/cc/reno.rs", "fn reno() { 2 }", &["cc/dctcp", "cc/reno"]),
        ("src/queue/aqm/threshold.rs", "fn t() { 2 }", &["queue/aqm/threshold"]),
        ("src/queue/pfc.rs", "fn d() { 2 }", &["queue/pfc"]),
        ("src/cc/mod.rs", "registry! { reno::Reno, dctcp::Dctcp }", &[]),
        ("src/live/walk.rs", "fn w() { 2 }", &[]),
        ("src/cc/settings.rs", "fn s() { 2 }", &["engine"]),
        ("src/live/limit.rs", "fn l() { 2 }", &["engine"]),
        ("build.rs", "fn main() { 2 }", &["engine"]),
    ] {
        assert_eq!(checkout.changed(&sources, &format!("crates/narrows-core/{path}"), text), changes, "{path}");
    }
    assert_eq!(checkout.changed(&sources, "Cargo.lock", &lock("0.2.16")), ["engine"]);
    let unrelated = lock("0.2.15") + "\n[[package]]\nname = \"insta\"\nversion = \"1.0.0\"\n";
    assert!(checkout.changed(&sources, "Cargo.lock", &unrelated).is_empty());
}
