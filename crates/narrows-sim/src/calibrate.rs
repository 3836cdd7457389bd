//! What this machine is worth: the unit in which costs are compared between machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use narrows_core::rng::SmallStream;

/// Entries of the hold loop.
const PENDING: u64 = 10_000;
const HOLDS: u32 = 400_000;

/// Nanoseconds per *hold*: pop the earliest of 10,000 pending 16-byte entries of a binary heap and push it back at a
/// random later time. Processor time, as the costs that are divided by it; the median of five loops.
pub fn hold_ns() -> f64 {
    let mut random = SmallStream::new(1);
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..PENDING).map(|entry| Reverse((random.below(1 << 20), entry))).collect();
    let mut loops: Vec<f64> = (0..5)
        .map(|_| {
            let (wall, cpu) = (Instant::now(), thread_cpu_ns());
            for _ in 0..HOLDS {
                let Reverse((time, entry)) = heap.pop().expect("the heap keeps its entries");
                heap.push(Reverse((time + 1 + random.below(1 << 20), entry)));
            }
            let spent = thread_cpu_ns().zip(cpu).map(|(after, before)| Duration::from_nanos(after - before));
            spent.unwrap_or_else(|| wall.elapsed()).as_secs_f64() * 1e9 / f64::from(HOLDS)
        })
        .collect();
    loops.sort_by(f64::total_cmp);
    loops[2]
}

/// Nanoseconds that this thread has spent on a processor; `None` where the system does not tell.
#[cfg(unix)]
pub fn thread_cpu_ns() -> Option<u64> {
    use rustix::time::{ClockId, clock_gettime};

    u64::try_from(Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()?.as_nanos()).ok()
}

/// Nanoseconds that this thread has spent on a processor; `None` where the system does not tell.
#[cfg(not(unix))]
pub fn thread_cpu_ns() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_spends_processor_time_only_while_it_works() {
        let Some(before) = thread_cpu_ns() else { return };
        std::thread::sleep(Duration::from_millis(50));
        let slept = thread_cpu_ns().expect("told before") - before;
        assert!(slept < 25_000_000, "{slept} ns");
        let (wall, cpu) = (Instant::now(), thread_cpu_ns().expect("told before"));
        while thread_cpu_ns().expect("told before") < cpu + 5_000_000 {}
        assert!(
            wall.elapsed() >= Duration::from_millis(4),
            "a thread spends no more than passes, but for the drift of two clocks"
        );
    }
}
