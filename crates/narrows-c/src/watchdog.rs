//! A hook that does not return ends the process, with the file's name: nothing else could end its run.

use std::sync::Mutex;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest time that one call may take.
const LIMIT: Duration = Duration::from_secs(10);
/// What the process ends with.
const NO_RETURN: i32 = 70;
/// In the environment of processes whose parent tells why they ended.
const IN_WORKER: &str = "NARROWS_WORKER";
/// Even between calls, odd during one: each adds two.
static CALLS: AtomicU64 = AtomicU64::new(0);
static FILES: Mutex<Vec<String>> = Mutex::new(vec![]);

/// From now on calls are watched; messages name the file.
pub fn watch(file: &str) {
    static STARTED: Once = Once::new();
    let mut files = FILES.lock().expect("nobody panics while holding it");
    if !files.iter().any(|known| known == file) {
        files.push(file.to_owned());
    }
    drop(files);
    STARTED.call_once(|| {
        // Without it a hook that loops goes on until somebody stops the run, which is no reason not to run.
        let _ = std::thread::Builder::new().name("watchdog".to_owned()).spawn(look);
    });
}

fn look() {
    let mut before = 0;
    loop {
        std::thread::sleep(LIMIT / 2);
        let now = CALLS.load(Ordering::Relaxed);
        let passed = std::mem::replace(&mut before, now);
        if now % 2 == 1 && now == passed {
            std::thread::sleep(LIMIT / 2);
            if CALLS.load(Ordering::Relaxed) == now {
                let files = FILES.lock().map(|files| files.clone()).unwrap_or_default();
                // The parent of a worker says it, with the run.
                if std::env::var_os(IN_WORKER).is_none() {
                    eprintln!("error: {}: a call has not returned for {LIMIT:?}", files.join(" or "));
                }
                std::process::exit(NO_RETURN);
            }
        }
    }
}

/// Marks a call until it is dropped.
#[derive(Debug)]
pub struct Call;

impl Call {
    /// A call begins.
    pub fn begin() -> Call {
        CALLS.store(CALLS.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        Call
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.store((CALLS.load(Ordering::Relaxed) | 1) + 1, Ordering::Relaxed);
    }
}
