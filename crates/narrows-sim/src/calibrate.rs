//! What this machine is worth: the unit in which costs are compared between machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use narrows_core::rng::SmallStream;

/// Entries of the hold loop.
const PENDING: u64 = 10_000;
const HOLDS: u32 = 400_000;

/// Nanoseconds per *hold*: pop the earliest of 10,000 pending 16-byte entries of a binary heap and push it back at a
/// random later time. The median of five loops.
pub fn hold_ns() -> f64 {
    let mut random = SmallStream::new(1);
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..PENDING).map(|entry| Reverse((random.below(1 << 20), entry))).collect();
    let mut loops: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..HOLDS {
                let Reverse((time, entry)) = heap.pop().expect("the heap keeps its entries");
                heap.push(Reverse((time + 1 + random.below(1 << 20), entry)));
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(HOLDS)
        })
        .collect();
    loops.sort_by(f64::total_cmp);
    loops[2]
}

/// Nanoseconds that this thread has spent on a processor; `None` where the system does not tell.
pub fn thread_cpu_ns() -> Option<u64> {
    #[cfg(unix)]
    {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(u64::try_from(spent.tv_sec).ok()? * 1_000_000_000 + u64::try_from(spent.tv_nsec).ok()?)
    }
    #[cfg(not(unix))]
    None
}
