//! The table of what can be loaded.

use crate::error::Error;
use narrows_core::cc::{Owner, Spec};

/// A controller that has a twin in the kernel.
#[derive(Debug)]
pub struct Controller {
    /// Name, texts and parameters, as the simulator's.
    pub spec: &'static Spec,
    /// The name under which the kernel knows it, at most 15 characters: for `TCP_CONGESTION`, `ip route … congctl` and the
    /// sysctl `net.ipv4.tcp_congestion_control`.
    pub registered: &'static str,
    /// Who moves the window in recovery: with [`Owner::Controller`] the program has the kernel's `cong_control`.
    pub recovery: Owner,
    /// Whether it makes the kernel negotiate ECN.
    pub needs_ecn: bool,
    /// Whether its flows publish α.
    pub has_alpha: bool,
    /// Whether its flows publish F and h.
    pub has_scale: bool,
    /// The compiled program.
    pub(crate) object: &'static [u8],
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}
pub(crate) use object;

/// Every controller, in the order of the alphabet. The build script writes a line for each `src/bpf/<name>.bpf.c` beside which
/// there is a `<name>.core.h`.
pub const CONTROLLERS: &[Controller] = include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

/// The controller whose [`Spec`] has this name, or that is registered by it.
///
/// # Errors
/// [`Error::UnknownController`].
pub fn find(name: &str) -> Result<&'static Controller, Error> {
    CONTROLLERS.iter().find(|controller| name == controller.spec.name || name == controller.registered).ok_or_else(
        || Error::UnknownController {
            name: name.to_owned(),
            known: CONTROLLERS.iter().map(|controller| controller.spec.name).collect(),
        },
    )
}
