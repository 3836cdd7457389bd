//! Programs by name: one file each, one line here.
//!
//! # Adding a generator
//! One file: its `SPEC`, and `write`, which writes the script of one rank, step after step. Its line in the `registry!` below.
//! Experiments, errors, `narrows show program`, `narrows program` and the documents follow the `SPEC`.

use alloc::format;
use alloc::string::String;

use super::schedule::{Builder, MAX_OPERATIONS, Schedule};
use crate::component::{Settings, Spec, Value};

mod script;

use script::Script;

macro_rules! registry {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        /// Every generator's [`Spec`], in the order of the registry.
        pub const SPECS: &[Spec] = &[$($module::SPEC),*];

        /// Writes the script of one rank.
        fn write(name: &str, settings: &Settings<'_>, script: &mut Script<'_>) {
            $(if name == $module::SPEC.name {
                return $module::write(settings, script);
            })*
        }

        /// Whether the values go together; a sentence if they do not.
        fn judge(name: &str, settings: &Settings<'_>) -> Result<(), &'static str> {
            $(if name == $module::SPEC.name {
                return $module::judge(settings);
            })*
            Ok(())
        }
    };
}

registry!(ring_all_reduce, tree_all_reduce, hierarchical_all_reduce, all_to_all, bt, cg, ft, is, mg, pipeline);

/// The generator of this name.
pub fn spec(name: &str) -> Option<&'static Spec> {
    SPECS.iter().find(|spec| spec.name == name)
}

/// The program of this generator with these values, one for each of its parameters.
///
/// # Errors
/// If there is no such generator, or the values do not go together.
pub fn schedule(name: &str, values: &[Value]) -> Result<Schedule, String> {
    let spec = spec(name).ok_or_else(|| format!("there is no program `{name}`"))?;
    if spec.parameters.len() != values.len() {
        return Err(format!("`{name}` has other parameters"));
    }
    let settings = Settings::new(spec.parameters, values);
    judge(name, &settings)?;
    let ranks = count(&settings, "ranks");
    let mut builder = Builder::default();
    for rank in 0..ranks {
        builder.rank(rank);
        write(name, &settings, &mut Script::new(&mut builder, rank, ranks));
        if builder.is_full() {
            return Err(format!("`{name}` has more than {MAX_OPERATIONS} operations with these values"));
        }
    }
    Ok(builder.finish(ranks))
}

/// A count that its range keeps small.
fn count(settings: &Settings<'_>, name: &str) -> u32 {
    u32::try_from(settings.count(name)).expect("its range is below 2³²")
}

/// Bytes of a number of doubles.
const fn doubles(count: u32) -> u64 {
    count as u64 * 8
}
