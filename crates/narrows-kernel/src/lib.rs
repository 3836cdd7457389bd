//! The controllers of `narrows-core` in the running Linux kernel, as eBPF `struct_ops` programs: nothing is patched and no
//! module is built.
//!
//! Each algorithm is two files in `src/bpf`: `<name>.core.h`, its arithmetic and state in pure C, compared step by step
//! with the Rust controller (`tests/twins.rs`), and `<name>.bpf.c`, the kernel's hooks around it.
//!
//! # Life of a controller
//! 1. [`controllers::find`] names it; [`Settings`] holds its parameters, with the ranges that its `Spec` states.
//! 2. [`Loaded::load`] opens the object, fills in the parameters, loads and registers it as `narrows_<name>`. Any socket,
//!    route (`ip route … congctl`) or namespace may then choose it; it never becomes the default by itself.
//! 3. [`Maps::set`] changes parameters while flows live; [`Maps::flows`] and [`Maps::counters`] tell how they fare.
//! 4. Dropping [`Loaded`], or the process' end in any way, removes the registration from Linux 6.4 on;
//!    [`Loaded::pin`] lets it outlive the process, until [`pinned::unload`]. Before 6.4 a killed process leaves it behind:
//!    [`registered::remove_stale`]. Connections that use a controller keep its code until they end.
//!
//! # Connections of others
//! [`Connections::all`] finds the TCP connections that processes of this host have open, and [`Connection::socket`] lends
//! one: whoever limits connections from beside them, as the near-source loop does, needs both.
//!
//! # Two interfaces as one wire
//! [`bridge::Joined`] joins them by programs that stay when the process goes, and hands TCP packets to the process while it lives.
//!
//! # Kernels
//! Linux 6.1 and later with BTF. What differs is read from the kernel's own types, [`Kernel::probe`].

pub mod bridge;
pub mod connections;
pub mod controllers;
pub mod error;
pub mod from_file;
pub mod kernel;
pub mod loaded;
pub mod maps;
pub mod namespace;
pub mod parameters;
pub mod pinned;
pub mod record;
pub mod registered;
mod said;

pub use connections::{Connection, Connections};
pub use controllers::Controller;
pub use error::Error;
pub use from_file::FromFile;
pub use kernel::Kernel;
pub use loaded::{Loaded, Options, Registration};
pub use maps::Maps;
pub use namespace::{Namespace, cookie_here};
pub use parameters::Settings;
pub use record::{Counters, Cuts, Flow};
pub use registered::Registered;
