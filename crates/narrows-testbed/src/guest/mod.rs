//! The virtual-time guest: a stock Linux kernel in QEMU, whose clock counts instructions. What happens in it does not depend
//! on how fast or how busy this machine is, and it needs no privilege here.
//!
//! ```text
//! boot(program, files) ─ initramfs: the program, kernel modules, files ─▶ QEMU ─ inside::begin ─ the program ─ inside::deliver ─▶ virtual disk ─▶ files
//! ```
//!
//! The program is one static binary, which the kernel starts as its first process: there is no other in the guest.
//!
//! # Why runs repeat
//! One instruction is one nanosecond (`-icount shift=0,sleep=off`), nothing comes in from outside, and whatever is random
//! is seeded. Two things would still depend on this machine.
//! - When the processor halts, QEMU's main loop jumps the clock to the next timer, on a thread of its own, and now and then
//!   before the last instructions are counted. So the processor never halts: the firmware is qboot and not the usual one, the
//!   kernel polls while it boots (`idle=poll`), and then a thread runs that does nothing whenever nothing else would ([`inside`]).
//! - A disk answers when it does. So its driver is loaded when the work is done.

mod image;
mod initramfs;
pub mod inside;
mod machine;
mod modules;

pub use image::{Image, Missing, find};
pub use machine::{Boot, GuestError, boot, qemu};
