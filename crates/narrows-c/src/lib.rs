//! Controllers in C, in the simulator: as one writes them for Linux (`struct tcp_congestion_ops`), or in plain C.
//!
//! [`compile`] makes a shared library of the file, with the headers of `kit/include`, which have the kernel's names for what
//! the simulator knows, and with `kit/runtime.c`, which has the kernel's functions. [`Library`] loads it, sets its parameters,
//! and makes the controller of one connection: one of Linux's interface calls the file's hooks in the kernel's order, one of
//! `narrows.h` calls its functions with the contract's facts.
//!
//! [`load`] takes files in Python, too, where the process has [somebody who runs them](run_python_with).

mod compiler;
mod connection;
mod error;
mod language;
mod library;
mod ops;
mod parameters;
mod plain;
mod socket;
mod watchdog;

pub use compiler::{BPF_HEADERS, Source, compile, compiler_name, is_plain, read};
pub use error::{Error, Misbehaved};
pub use language::{Load, inspect, load, run_python_with, spec};
pub use library::{Library, Named, named};
pub use parameters::set_constants;
pub use watchdog::{Call, watch};
