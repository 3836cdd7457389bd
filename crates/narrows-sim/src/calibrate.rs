//! What this machine is worth: the unit in which costs are compared between machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use narrows_core::rng::SmallStream;

/// Entries of the hold loop.
const PENDING: u64 = 10_000;
const HOLDS: u32 = 400_000;

/// Cache lines of the chain of reads: 8 MB, more than a second-level cache holds.
const LINES: u32 = 1 << 17;
/// Numbers of 4 bytes in a cache line.
const IN_LINE: usize = 16;
const READS: u32 = 1 << 20;

/// Nanoseconds per *hold*: pop the earliest of 10,000 pending 16-byte entries of a binary heap and push it back at a
/// random later time. Processor time, as the costs that are divided by it; the median of five loops.
pub fn hold_ns() -> f64 {
    let mut random = SmallStream::new(1);
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..PENDING).map(|entry| Reverse((random.below(1 << 20), entry))).collect();
    median_ns(HOLDS, || {
        let Reverse((time, entry)) = heap.pop().expect("the heap keeps its entries");
        heap.push(Reverse((time + 1 + random.below(1 << 20), entry)));
    })
}

/// Nanoseconds per *read*: of memory whose place only the read before says, along a random chain through the cache lines of
/// 8 MB. What misses cost a workload whose state fits no second-level cache. Processor time; the median of five loops.
pub fn read_ns() -> f64 {
    let mut random = SmallStream::new(1);
    // A random permutation that is one cycle, so that the chain comes through all lines [Sattolo 1986].
    let mut order: Vec<u32> = (0..LINES).collect();
    for place in 1..LINES {
        let other = usize::try_from(random.below(u64::from(place))).expect("it is below `place`");
        order.swap(place as usize, other);
    }
    let mut memory = vec![0_u32; LINES as usize * IN_LINE];
    order.iter().enumerate().for_each(|(place, next)| memory[place * IN_LINE] = *next);
    let mut at = 0;
    median_ns(READS, || at = black_box(memory[at as usize * IN_LINE]))
}

/// Nanoseconds of processor time for a step, from the median of five loops.
fn median_ns(steps: u32, mut step: impl FnMut()) -> f64 {
    let mut loops: Vec<f64> = (0..5)
        .map(|_| {
            let (wall, cpu) = (Instant::now(), thread_cpu_ns());
            (0..steps).for_each(|_| step());
            let spent = thread_cpu_ns().zip(cpu).map(|(after, before)| Duration::from_nanos(after - before));
            spent.unwrap_or_else(|| wall.elapsed()).as_secs_f64() * 1e9 / f64::from(steps)
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
