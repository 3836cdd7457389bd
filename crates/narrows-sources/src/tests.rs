use super::Sources;
use super::code::words;

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
        ("enum E { #[error(\"bad\")] Bad }", "enum E { #[error(\"worse\")] Bad }"),
        ("const S: S = S { about: \"A.\", n: 1 };", "const S: S = S { about: \"B.\", n: 1 };"),
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
        ("#[cfg(test)] mod t { } fn f() { 1 }", "#[cfg(test)] mod t { } fn f() { 2 }"),
        ("#[cfg(unix)] fn f() { 1 }", "#[cfg(unix)] fn f() { 2 }"),
        ("const S: S = S { name: \"a\" };", "const S: S = S { name: \"b\" };"),
        ("mod a { fn f() { 1 } }", "mod a { fn f() { 2 } }"),
    ] {
        assert!(!same(before, after), "{before} | {after}");
    }
    assert_ne!(words("a.h", "int a = 1;"), words("a.h", "int a = 2;"));
}

/// The engine and two controllers, of which one uses the other.
#[test]
fn an_edited_component_changes_its_own_digest_and_those_that_name_it() {
    let folder = std::env::temp_dir().join(format!("narrows-sources-{}", std::process::id()));
    let write = |path: &str, text: &str| {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().expect("it has one")).expect("a folder for the test");
        std::fs::write(file, text).expect("a file for the test");
    };
    let sources = Sources {
        crates: &["core"],
        without: &["core/src/live"],
        but: &["core/src/live/limit.rs"],
        folders: &[("cc", "core/src/cc")],
        shared: &["settings"],
        single: &[("queue/drr", "core/src/queue/drr")],
    };
    let digests = || sources.digests(&folder);
    for (path, text) in [
        ("narrows-core/src/lib.rs", "pub mod cc;"),
        ("narrows-core/src/cc/mod.rs", "registry! { reno::Reno }"),
        ("narrows-core/src/cc/settings.rs", "fn s() {}"),
        ("narrows-core/src/cc/reno.rs", "fn reno() { 1 }"),
        ("narrows-core/src/cc/reno/tests.rs", "fn t() {}"),
        ("narrows-core/src/cc/dctcp.rs", "use super::reno; fn alpha() { 1 }"),
        ("narrows-core/src/queue/drr.rs", "fn d() { 1 }"),
        ("narrows-core/src/live/walk.rs", "fn w() { 1 }"),
        ("narrows-core/src/live/limit.rs", "fn l() { 1 }"),
    ] {
        write(path, text);
    }
    let (engine, components) = digests();
    let names: Vec<&str> = components.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cc/dctcp", "cc/reno", "queue/drr"]);
    for (path, text, changes) in [
        ("narrows-core/src/cc/dctcp.rs", "use super::reno; fn alpha() { 2 }", &["cc/dctcp"][..]),
        ("narrows-core/src/cc/reno.rs", "fn reno() { 2 }", &["cc/dctcp", "cc/reno"]),
        ("narrows-core/src/queue/drr.rs", "fn d() { 2 }", &["queue/drr"]),
        ("narrows-core/src/cc/mod.rs", "registry! { reno::Reno, dctcp::Dctcp }", &[]),
        ("narrows-core/src/live/walk.rs", "fn w() { 2 }", &[]),
        ("narrows-core/src/cc/settings.rs", "fn s() { 2 }", &["engine"]),
        ("narrows-core/src/live/limit.rs", "fn l() { 2 }", &["engine"]),
    ] {
        let before = std::fs::read_to_string(folder.join(path)).expect("written above");
        write(path, text);
        let (engine_now, now) = digests();
        let mut changed: Vec<&str> = components
            .iter()
            .zip(&now)
            .filter(|(one, other)| one != other)
            .map(|((name, _), _)| name.as_str())
            .collect();
        changed.extend((engine != engine_now).then_some("engine"));
        assert_eq!(changed, changes, "{path}");
        write(path, &before);
    }
    std::fs::remove_dir_all(&folder).expect("it was made above");
}
