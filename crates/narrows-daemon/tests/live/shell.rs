//! `narrowsd` as typed in a shell, and what it leaves.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use narrows_kernel::registered;
use serde_json::Value;

pub(crate) const NARROWSD: &str = env!("CARGO_BIN_EXE_narrowsd");
/// For GEMINI, which must be told C: a veth has no rate.
pub(crate) const LOAD: &str = "cc load gemini --set capacity=200Mbps";

/// Code, standard output, standard error.
pub(crate) fn run(line: &str) -> (i32, String, String) {
    ended(&Command::new(NARROWSD).args(line.split(' ')).output().expect("it runs"))
}

pub(crate) fn ended(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// What it prints when it succeeds.
pub(crate) fn good(line: &str) -> String {
    let (code, out, error) = run(line);
    assert_eq!((code, error.as_str()), (0, ""), "narrowsd {line}\n{out}{error}");
    out
}

/// What it says when it ends with this code.
pub(crate) fn refused(line: &str, expected: i32) -> String {
    let (code, out, error) = run(line);
    assert_eq!(code, expected, "narrowsd {line}\n{out}{error}");
    error
}

/// Of one controller.
pub(crate) fn status(name: &str) -> Value {
    serde_json::from_str(&good(&format!("cc status {name} --json"))).expect("it is JSON")
}

/// No registration, no pin, no note; the empty file of the lock stays.
pub(crate) fn nothing_is_left(name: &str) {
    let begin = Instant::now();
    while registered::is_registered(&format!("narrows_{name}")) {
        assert!(begin.elapsed() < Duration::from_secs(2), "{name} stays registered");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!Path::new("/sys/fs/bpf/narrows").exists(), "pins stay");
    assert!(!Path::new(&format!("/run/narrows/{name}.default")).exists(), "a note stays");
    assert_eq!(status(name)["loaded"], serde_json::json!(false));
}
