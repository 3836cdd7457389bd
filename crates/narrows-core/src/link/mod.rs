//! What happens on a link beside carrying packets: *link functions*, one file each, one line here; and changes of a link
//! at stated times, its [`Schedule`].
//!
//! A function is asked of each packet that has crossed the wire, in their order, and says that it arrives, is lost, or is late.
//! A link has at most one function for each key of an experiment, and they act in the order of the registry: a packet that
//! is lost is not late, too.
//!
//! # Adding a link function
//! One file: its `SPEC`; a `Config` with `new` and `values`; a type with `build` and `decide`; its tests. Its `mod` and one
//! line in the `registry!` below. Experiments, errors, the schema and the documents follow the `SPEC`.

use alloc::vec::Vec;

use crate::component::{Settings, Spec, Value};
use crate::rng::SmallStream;
use crate::units::Span;

pub mod bernoulli;
pub mod gilbert_elliott;
pub mod reorder;
pub mod schedule;

pub use schedule::{Change, Event, Schedule};

/// What a function knows of its link beyond its own parameters.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// A stream of its own.
    pub stream: SmallStream,
}

/// What becomes of a packet at the end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
    /// It arrives so much later, and what comes meanwhile overtakes it.
    Late(Span),
}

/// What a link function does: the key under which an experiment writes it. A link has one of each at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Loses packets.
    Loss,
    /// Delays some, so that others overtake them.
    Reorder,
}

impl Key {
    /// As in experiments; the name of its random streams.
    pub const fn name(self) -> &'static str {
        match self {
            Key::Loss => "loss",
            Key::Reorder => "reorder",
        }
    }
}

macro_rules! registry {
    ($($key:ident $module:ident :: $function:ident),* $(,)?) => {
        /// Every function's key and [`Spec`], in the order of the registry.
        pub const FUNCTIONS: &[(Key, Spec)] = &[$((Key::$key, $module::SPEC)),*];

        /// A function of a link and its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
        #[allow(missing_docs, reason = "a variant is its function's configuration")]
        pub enum FunctionConfig {
            $($function($module::Config),)*
        }

        impl FunctionConfig {
            /// The function called `name` with these values; `None` if there is none, a sentence if they do not go together.
            pub fn new(name: &str, settings: &Settings<'_>) -> Option<Result<FunctionConfig, &'static str>> {
                $(if name == $module::SPEC.name {
                    return Some($module::Config::new(settings).map(FunctionConfig::$function));
                })*
                None
            }
            /// What the function is.
            pub const fn spec(&self) -> &'static Spec {
                match self { $(FunctionConfig::$function(_) => &$module::SPEC,)* }
            }
            /// Under which key an experiment writes it.
            pub const fn key(&self) -> Key {
                match self { $(FunctionConfig::$function(_) => Key::$key,)* }
            }
            /// The module of its machine, which versions of results name.
            pub const fn module(&self) -> &'static str {
                match self { $(FunctionConfig::$function(_) => stringify!($module),)* }
            }
            /// A value for each parameter of its [`Spec`].
            pub fn values(&self) -> Vec<Value> {
                match self { $(FunctionConfig::$function(config) => config.values(),)* }
            }
        }

        /// Any function.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "a variant is its function, held by value")]
        pub enum Function {
            $($function($module::$function),)*
        }

        impl Function {
            /// The function that `config` states.
            pub fn new(config: &FunctionConfig, context: Context) -> Function {
                match config {
                    $(FunctionConfig::$function(config) => {
                        Function::$function($module::$function::build(config, context))
                    })*
                }
            }

            /// Under which key an experiment writes it.
            pub const fn key(&self) -> Key {
                match self { $(Function::$function(_) => Key::$key,)* }
            }

            /// What becomes of a packet that has crossed the wire. Called once for each, in order. Only one that is `exposed`
            /// may be lost, and one that is not leaves a function that loses packets as it is.
            pub fn decide(&mut self, exposed: bool) -> Fate {
                if self.key() == Key::Loss && !exposed {
                    return Fate::Arrives;
                }
                match self { $(Function::$function(function) => function.decide(),)* }
            }
        }
    };
}

registry! {
    Loss bernoulli::Bernoulli,
    Loss gilbert_elliott::GilbertElliott,
    Reorder reorder::Reorder,
}

/// The specs of functions that lose packets.
pub const LOSSES: &[Spec] = &specs::<{ count(Key::Loss) }>(Key::Loss);
/// The specs of functions that reorder them.
pub const REORDERINGS: &[Spec] = &specs::<{ count(Key::Reorder) }>(Key::Reorder);

const fn count(key: Key) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < FUNCTIONS.len() {
        count += (FUNCTIONS[at].0 as u8 == key as u8) as usize;
        at += 1;
    }
    count
}

const fn specs<const N: usize>(key: Key) -> [Spec; N] {
    let mut found = [bernoulli::SPEC; N];
    let (mut at, mut place) = (0, 0);
    while at < FUNCTIONS.len() {
        if FUNCTIONS[at].0 as u8 == key as u8 {
            found[place] = FUNCTIONS[at].1;
            place += 1;
        }
        at += 1;
    }
    found
}
