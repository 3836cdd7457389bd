//! Who is served first: the emulator, for it is the network; then the hosts' applications, for a host of the plan has a processor
//! of its own; then everything else. Asked for, never insisted on: without the capability, lateness tells.

/// A place in the real-time class, first in, first out: 1–99, the larger the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RealTime(pub u8);

/// Puts the calling thread there, or, if that is not wanted or not allowed, before all others of the usual class; whether it is
/// in the real-time class.
pub(crate) fn ask(real_time: Option<RealTime>) -> bool {
    // Else the kernel may let a thread sleep 50 us longer, to wake it with others.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    if real_time.is_some_and(enter) {
        return true;
    }
    let _ = rustix::process::setpriority_process(None, -20);
    false
}

fn enter(RealTime(priority): RealTime) -> bool {
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority.clamp(1, 99)) };
    #[allow(unsafe_code, reason = "no safe wrapper at hand")]
    // SAFETY: the pointer is to a live structure of the type that the call reads; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    code == 0
}
