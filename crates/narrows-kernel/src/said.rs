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

/// Why the verifier refuses a program, and at which line of its source, if its log says so: the reason is the last line before its
/// statistics.
pub(crate) fn reason(said: &[String]) -> Option<String> {
    let end = said.iter().rposition(|line| line.starts_with("processed "))?;
    let log = &said[..end];
    let why = log.last().filter(|why| !why.starts_with("libbpf: "))?;
    let place = log.iter().rev().find_map(|line| line.strip_prefix(';')?.rsplit_once(" @ "));
    Some(place.map_or_else(|| why.clone(), |(_, place)| format!("{place}: {why}")))
}

/// What was said since [`listen`].
pub(crate) fn lines() -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line_of_the_verifiers_log_with_its_source() {
        let log = "libbpf: prog 'one_init': BPF program load failed: -EACCES\n\
                   libbpf: prog 'one_init': -- BEGIN PROG LOAD LOG --\n\
                   0: R1=ctx() R10=fp0\n\
                   ; void BPF_PROG(one_init, struct sock *sk) @ one.bpf.c:19\n\
                   0: (b7) r2 = 1296                     ; R2=1296\n\
                   ; own[24] = 7; @ one.bpf.c:21\n\
                   5: (7b) *(u64 *)(r3 +192) = r2\n\
                   no write support to tcp_sock at off 1488\n\
                   processed 6 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n\
                   -- END PROG LOAD LOG --\n\
                   libbpf: prog 'one_init': failed to load: -EACCES";
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let expected = "one.bpf.c:21: no write support to tcp_sock at off 1488";
        assert_eq!(reason(&lines(log)).as_deref(), Some(expected));
        let without_source = "the sequence of 8193 jumps is too complex.\nprocessed 98369 insns";
        assert_eq!(reason(&lines(without_source)).as_deref(), Some("the sequence of 8193 jumps is too complex."));
        assert_eq!(reason(&lines("libbpf: failed to load object 'one'")), None);
    }
}
