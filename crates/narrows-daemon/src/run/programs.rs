//! A plan's controllers in files, BPF programs, for the kernel that carries it. They are compiled before the run, on this
//! machine: a guest has no compiler.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;

use narrows_c::Source;
use narrows_core::cc::external::is_python;
use narrows_kernel::FromFile;
use narrows_kernel::from_file::Program;
use narrows_plan::Plan;

use crate::cc::make_room;
use crate::failure::Failure;
use crate::{lock, refused};

/// Compiles those of the plan, each once.
///
/// # Errors
/// If one is no BPF program or does not compile, or two would have one name in the kernel.
pub(super) fn compile(plan: &Plan) -> Result<Vec<Program>, Failure> {
    let mut compiled: Vec<Program> = vec![];
    for program in distinct(plan)? {
        if is_python(&program.file) || !program.text.contains("SEC(") {
            let sentence =
                format!("{} is no BPF program, and a kernel runs no other controller in a file", program.file);
            return Err(Failure::input(sentence).help("run it in the simulator"));
        }
        let narrows_plan::Program { file, controller, text, others, parameters, .. } = program.clone();
        let source = Source { name: file, text, others, parameters };
        let program = Program::compile(&source, Some(&controller)).map_err(|error| refused::by_compiler(&error))?;
        compiled.push(program);
    }
    Ok(compiled)
}

/// Those that were compiled for a guest, inside it: `read` gives what was put there by [`name`].
///
/// # Errors
/// If one is not there.
pub(super) fn given(plan: &Plan, read: impl Fn(&str) -> io::Result<Vec<u8>>) -> Result<Vec<Program>, Failure> {
    let all = distinct(plan)?.into_iter().enumerate();
    all.map(|(place, program)| {
        let object = read(&name(place)).map_err(Failure::failed)?;
        Program::compiled(&program.file, object, Some(&program.controller))
            .map_err(|error| refused::by_compiler(&error))
    })
    .collect()
}

/// The name of the file in which a guest finds the object of the program at this place.
pub(super) fn name(place: usize) -> String {
    format!("controller-{place}.bpf.o")
}

/// Loads those that the kernel's `names` mention; they are unloaded with the values.
///
/// # Errors
/// If one cannot be loaded; and if it is told to `stop`.
pub(super) fn load(
    programs: &[Program],
    names: &BTreeMap<String, String>,
    stop: &AtomicBool,
) -> Result<Vec<FromFile>, Failure> {
    let wanted = programs.iter().filter(|program| names.values().any(|name| name == program.controller.registered));
    wanted
        .map(|program| {
            let _lock = lock::take_unless(program.controller, stop)?;
            make_room(program.controller)?;
            FromFile::load(program).map_err(refused::of_file)
        })
        .collect()
}

/// Each program of the plan once, in the order of its traffic.
fn distinct(plan: &Plan) -> Result<Vec<&narrows_plan::Program>, Failure> {
    let mut found: Vec<&narrows_plan::Program> = vec![];
    for program in plan.traffic.iter().filter_map(|traffic| traffic.controller.program.as_ref()) {
        match found.iter().find(|known| known.controller == program.controller) {
            Some(known) if *known == program => {}
            Some(_) => {
                let name = &program.controller;
                let sentence =
                    format!("the plan's traffic uses {name} with different texts or parameters; a kernel has one");
                return Err(Failure::input(sentence).help("give them different names, or run them apart"));
            }
            None => found.push(program),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use narrows_core::tcp::profile::Profile;
    use narrows_plan::{Connections, ControllerChoice, Pattern, Traffic, Transport};

    use super::*;

    fn plan(programs: &[(&str, &str)]) -> Plan {
        let traffic = |&(file, text): &(&str, &str)| {
            let (others, parameters) = (BTreeMap::new(), BTreeMap::new());
            let (file, text) = (file.to_owned(), text.to_owned());
            let program = narrows_plan::Program {
                file,
                controller: "mine".into(),
                text,
                others,
                parameters,
                needs_telemetry: false,
            };
            Traffic {
                name: "web".into(),
                controller: ControllerChoice {
                    name: "mine".into(),
                    values: vec![],
                    ecn: false,
                    program: Some(program),
                },
                profile: Profile::LINUX_6,
                service_class: 0,
                transport: Transport::Tcp,
                connections: Connections::Fresh,
                pattern: Pattern::List(vec![]),
            }
        };
        Plan { traffic: programs.iter().map(traffic).collect(), ..Plan::default() }
    }

    #[test]
    fn only_bpf_programs_are_compiled_for_a_kernel() {
        for (file, text) in [("mine.py", "SEC("), ("mine.c", "#include <narrows.h>"), ("tcp_mine.c", "module_init(f);")]
        {
            let refused = compile(&plan(&[(file, text)])).expect_err("it is none").to_string();
            assert!(refused.starts_with(&format!("{file} is no BPF program, and a kernel runs no other")), "{refused}");
        }
        assert!(compile(&plan(&[])).expect("there is none").is_empty());
    }

    #[test]
    fn a_kernel_has_one_program_of_a_name() {
        let refused = compile(&plan(&[("mine.bpf.c", "SEC(1)"), ("mine.bpf.c", "SEC(2)")])).expect_err("two of a name");
        assert!(refused.to_string().starts_with("the plan's traffic uses mine with different texts"), "{refused}");
        assert_eq!(distinct(&plan(&[("mine.bpf.c", "SEC(1)"), ("mine.bpf.c", "SEC(1)")])).expect("one").len(), 1);
    }
}
