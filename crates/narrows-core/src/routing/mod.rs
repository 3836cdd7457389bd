//! Which of several equally short ways a switch gives a packet: *routing policies*, one file each, one line here.
//!
//! A policy is asked at switches that have a choice, of each packet that comes there. It says a number, and the switch takes
//! the way that this number selects among those which lead to the packet's host. Without a policy a switch selects by the
//! hash of the packet's flow (ECMP), which is no state and so no machine.
//!
//! # Adding a routing policy
//! One file: its `SPEC`; a `Config` with `new` and `values`; a type with `build` and `select`; its tests. Its `mod` and one
//! line in the `registry!` below. Experiments, errors, the schema and the documents follow the `SPEC`.

use alloc::vec::Vec;

use crate::component::{Settings, Spec, Value};
use crate::rng::{SmallStream, mix};
use crate::units::Time;

pub mod flowlet;
pub mod rehash;
pub mod spray;

/// What switches do without a policy: no machine, and no parameters.
pub const ECMP: Spec = Spec {
    name: "ecmp",
    about: "Each flow keeps the path that its hash selects from the equally short ones; the default.",
    source: "[RFC 2992]",
    parameters: &[],
};

/// What a policy knows of its switch beyond its own parameters.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// A stream of its own.
    pub stream: SmallStream,
    /// What ECMP mixes into the hash of a flow at this switch.
    pub salt: u64,
}

/// What ECMP makes of a flow's hash at a switch with this salt.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the upper half of 64 bits")]
pub fn salted(hash: u32, salt: u64) -> u32 {
    (mix(u64::from(hash) ^ salt) >> 32) as u32
}

macro_rules! registry {
    ($($module:ident :: $policy:ident),* $(,)?) => {
        /// Every policy's [`Spec`], in the order of the registry.
        pub const SPECS: &[Spec] = &[$($module::SPEC),*];

        /// A routing policy and its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
        #[allow(missing_docs, reason = "a variant is its policy's configuration")]
        pub enum RoutingConfig {
            $($policy($module::Config),)*
        }

        impl RoutingConfig {
            /// The policy called `name` with these values; `None` if there is none, a sentence if they do not go together.
            pub fn new(name: &str, settings: &Settings<'_>) -> Option<Result<RoutingConfig, &'static str>> {
                $(if name == $module::SPEC.name {
                    return Some($module::Config::new(settings).map(RoutingConfig::$policy));
                })*
                None
            }
            /// What the policy is.
            pub const fn spec(&self) -> &'static Spec {
                match self { $(RoutingConfig::$policy(_) => &$module::SPEC,)* }
            }
            /// The module of its machine, which versions of results name.
            pub const fn module(&self) -> &'static str {
                match self { $(RoutingConfig::$policy(_) => stringify!($module),)* }
            }
            /// A value for each parameter of its [`Spec`].
            pub fn values(&self) -> Vec<Value> {
                match self { $(RoutingConfig::$policy(config) => config.values(),)* }
            }
        }

        /// Any policy, of one switch.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "a variant is its policy, held by value")]
        pub enum Routing {
            $($policy($module::$policy),)*
        }

        impl Routing {
            /// The policy that `config` states.
            pub fn new(config: &RoutingConfig, context: Context) -> Routing {
                match config {
                    $(RoutingConfig::$policy(config) => Routing::$policy($module::$policy::build(config, context)),)*
                }
            }

            /// A number for a packet of the flow with this key and this hash, which has come now: all 32 bits count alike,
            /// and the same number selects the same of the same ways.
            pub fn select(&mut self, now: Time, flow: u64, hash: impl FnOnce() -> u32) -> u32 {
                match self { $(Routing::$policy(policy) => policy.select(now, flow, hash),)* }
            }
        }
    };
}

registry! {
    spray::Spray,
    flowlet::Flowlet,
    rehash::Rehash,
}
