//! The table of what can be loaded.

use crate::error::Error;
use narrows_core::cc::{EcnUse, Owner, Spec};

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

impl Controller {
    /// One that is not in the table: compiled from a file, and registered under this name, which the file gave it.
    pub fn of_file(name: &str, needs_ecn: bool) -> &'static Controller {
        let ecn = if needs_ecn { EcnUse::Exact } else { EcnUse::Optional };
        let spec = narrows_c::spec(name.to_owned(), "A controller in C.", ecn, false, false);
        // A process has as many of these as it is told names.
        Box::leak(Box::new(Controller {
            spec,
            registered: spec.name,
            recovery: Owner::Transport,
            needs_ecn,
            has_alpha: false,
            has_scale: false,
            object: &[],
        }))
    }

    /// Whether it was compiled from a file, and so publishes nothing of its connections.
    pub fn is_of_file(&self) -> bool {
        self.object.is_empty()
    }
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
