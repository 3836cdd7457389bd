//! The table of what can be loaded: one line per controller.

use crate::error::Error;
use narrows_core::cc::{CongestionControl, Owner, Spec, dctcp, gemini, newreno, vegas};

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

/// Every controller.
pub const CONTROLLERS: &[Controller] = &[
    Controller {
        spec: &newreno::SPEC,
        registered: "narrows_newreno",
        recovery: newreno::NewReno::RECOVERY,
        needs_ecn: true,
        has_alpha: false,
        has_scale: false,
        object: object!("newreno"),
    },
    Controller {
        spec: &vegas::SPEC,
        registered: "narrows_vegas",
        recovery: vegas::Vegas::RECOVERY,
        needs_ecn: false,
        has_alpha: false,
        has_scale: false,
        object: object!("vegas"),
    },
    Controller {
        spec: &dctcp::SPEC,
        registered: "narrows_dctcp",
        recovery: dctcp::Dctcp::RECOVERY,
        needs_ecn: true,
        has_alpha: true,
        has_scale: false,
        object: object!("dctcp"),
    },
    Controller {
        spec: &gemini::SPEC,
        registered: "narrows_gemini",
        recovery: gemini::Gemini::RECOVERY,
        needs_ecn: true,
        has_alpha: true,
        has_scale: true,
        object: object!("gemini"),
    },
];

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
