//! Nothing stays behind.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use narrows_testbed::namespace::{Claim, Namespace, sweep};
use narrows_testbed::tun::Tun;

use crate::support::machine;

fn names() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").expect("a claim makes it");
    entries.filter_map(|entry| entry.expect("a folder can be read").file_name().into_string().ok()).collect()
}

#[test]
fn namespaces_are_removed_at_the_end_and_after_a_panic() {
    let Some(_turn) = machine("removing namespaces") else { return };
    let claim = Claim::new().unwrap();
    let namespace = Namespace::create(&claim, "a/../b").unwrap();
    let name = namespace.name().to_owned();
    assert_eq!(name, format!("narrows-{}-a_.._b", claim.id()));
    assert!(names().contains(&name));
    assert!(Namespace::create(&claim, "a/../b").is_err(), "a host is made once");
    assert_eq!(sweep().unwrap(), Vec::<String>::new(), "what a living run holds is no leftover");
    assert!(names().contains(&name));
    drop(namespace);
    assert!(!names().contains(&name));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _namespace = Namespace::create(&claim, "a").unwrap();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(!names().iter().any(|name| name.contains(claim.id())));
}

/// Set for the process that is killed.
const VICTIM: &str = "NARROWS_TESTBED_VICTIM";

/// Not a test of its own: the process that `what_a_killed_run_left_is_swept` starts and kills.
#[test]
fn a_victim_waits_to_be_killed() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let claim = Claim::new().unwrap();
    let namespace = Namespace::create(&claim, "victim").unwrap();
    let _device = namespace.enter(|| Tun::open(0, 1_500)).unwrap();
    fs::write(std::env::var_os(VICTIM).unwrap(), namespace.name()).unwrap();
    thread::sleep(Duration::from_secs(30));
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_killed_run_left_is_swept() {
    let Some(_turn) = machine("sweeping leftovers") else { return };
    let told = std::env::temp_dir().join(format!("narrows-victim-{}", std::process::id()));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::a_victim_waits_to_be_killed"])
        .env(VICTIM, &told)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let killed = Killed(child);
    let begun = Instant::now();
    let name = loop {
        assert!(begun.elapsed() < Duration::from_secs(10), "the victim does not come up");
        match fs::read_to_string(&told) {
            Ok(name) if !name.is_empty() => break name,
            _ => thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(sweep().unwrap(), Vec::<String>::new());
    drop(killed);
    fs::remove_file(told).unwrap();
    assert!(names().contains(&name), "a killed process leaves its names");
    assert_eq!(sweep().unwrap(), std::slice::from_ref(&name));
    assert!(!names().contains(&name));
    assert_eq!(sweep().unwrap(), Vec::<String>::new());
}
