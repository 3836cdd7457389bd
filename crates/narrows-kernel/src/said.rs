//! What libbpf says while it works, kept for error messages instead of going to standard error.

use std::sync::{Mutex, Once, PoisonError};

/// Lines kept: the end of a verifier's log is where the reason stands.
const MOST: usize = 40;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Forgets what was said before; from now on it is kept.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, keep)));
    });
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn keep(_: libbpf_rs::PrintLevel, text: String) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.extend(text.lines().map(str::to_owned));
    let surplus = lines.len().saturating_sub(MOST);
    lines.drain(..surplus);
}

/// What was said since [`listen`].
pub(crate) fn lines() -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
