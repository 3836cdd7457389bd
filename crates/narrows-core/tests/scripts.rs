//! Packet scripts, played on our own end of a connection: see [`packet_script`].
#![allow(missing_docs, reason = "tests")]

#[allow(unreachable_pub, reason = "a kernel's end is driven by it too")]
mod packet_script;
#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;

use std::path::Path;

use packet_script::model::Model;
use packet_script::{Setting, play, read, scripts_below};

#[test]
fn every_script_plays_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let scripts = scripts_below(&folder);
    assert!(scripts.len() >= 15, "{} scripts", scripts.len());
    let mut problems = Vec::new();
    for path in scripts {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        if let Err(problem) = play(&text, Setting::default(), Model::new) {
            problems.push(format!("{}: {problem}", path.strip_prefix(&folder).unwrap_or(&path).display()));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_deviation_that_names_a_script_has_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../../docs/deviations.toml")).expect("the deviations");
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("script = \"").and_then(|rest| rest.strip_suffix('"')) {
            assert!(root.join("tests/scripts").join(name).is_file(), "no script {name}");
        }
    }
}

/// What kernels do otherwise is not hidden in a script.
#[test]
fn what_kernels_do_otherwise_is_told() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/explanation/fidelity.md")).expect("the page");
    let mut differing = 0;
    for path in scripts_below(&root.join("tests/scripts")) {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        let (setting, _) = read(&text, Setting::default()).expect("a script");
        if setting.kernel_differs.is_some() {
            let name = path.strip_prefix(root.join("tests/scripts")).expect("below").with_extension("");
            assert!(page.contains(&format!("`{}`", name.display())), "{} is not on the page", name.display());
            differing += 1;
        }
    }
    assert!(differing > 0);
}

#[test]
fn a_script_that_is_wrong_fails() {
    for (text, problem) in [
        ("at 0ms", "the first line"),
        ("# x\nat 0ms offer 2 segments\nexpect send 1", "unexpected"),
        ("# x\nat 0ms offer 1 segments\nexpect send 2", "expected segment 2"),
        ("# x\nat 0ms offer 1 segments\nexpect send 1\nat 1s", "unexpected"),
        ("# x\nat 1ms\nat 0ms", "backwards"),
        ("# x\nexpect window 11", "expected window 11, found 10"),
        ("# x\nat 0ms recv ack 0 sideways", "no part of a segment"),
    ] {
        let found = play(text, Setting::default(), Model::new).expect_err(text);
        assert!(found.contains(problem), "{text}: {found}");
    }
}
