//! Programs as experiments write them.

use std::fmt::Write;

use narrows_core::app::program::Program;
use narrows_plan::{Connections, Kind, Pattern, Plan};

use super::*;

const RIGHT: &str = r#"[topology.star]
hosts = 4

[[traffic]]
name = "app"
program = { goal = "ping.goal" }

[[arm]]
name = "it"
cc = "cubic"

[run]
end = "1s"
"#;

fn beside(text: &str) -> Result<Experiment, Box<Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments");
    expand_in(Some(&folder), text, &Overrides::default(), &Limits::default())
}

fn with(program: &str) -> String {
    RIGHT.replacen("program = { goal = \"ping.goal\" }", program, 1)
}

fn program(plan: &Plan) -> &Program {
    let Pattern::App(Kind::Program(program)) = &plan.traffic[0].pattern else { panic!("it is a program") };
    program
}

#[test]
fn a_text_travels_with_its_plan() {
    let plan = beside(RIGHT).unwrap().plans.remove(0);
    assert_eq!((&program(&plan).hosts[..], plan.traffic[0].connections), (&[0, 1][..], Connections::InOrder));
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains("l1: calc 1000"), "{json}");
    let again: Plan = serde_json::from_str(&json).unwrap();
    assert_eq!((&again, again.hash()), (&plan, plan.hash()));
    let broken = json.replace("l1: calc 1000", "l1: calc ten");
    assert!(serde_json::from_str::<Plan>(&broken).is_err());
}

#[test]
fn a_generator_stands_in_its_plan_by_its_values() {
    let ring = with(
        "program = { generate = { ring-all-reduce = { ranks = 4, bytes = \"1MB\" } }, hosts = [\"h4\", \"h1\", \"h2\", \"h3\"], sigma = \"5%\", start = \"3ms\" }",
    );
    let plan = plans(&ring).remove(0);
    assert_eq!((&program(&plan).hosts[..], program(&plan).sigma), (&[3, 0, 1, 2][..], 3_277));
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains("ring-all-reduce") && !json.contains("send"), "{json}");
    let again: Plan = serde_json::from_str(&json).unwrap();
    assert_eq!((&again, again.hash()), (&plan, plan.hash()));
    assert!(may_draw(&plan));
    assert!(!may_draw(&plans(&ring.replace(", sigma = \"5%\"", ""))[0]));
    assert!(plan.components().contains("app/program"));
}

#[test]
fn what_programs_differ_in_is_told() {
    let arms = "[[arm]]\nname = \"a\"\ncc = \"cubic\"\n\n[[arm]]\nname = \"b\"\ncc = \"cubic\"\nset = { \"traffic.app.program.generate.ring-all-reduce.bytes\" = \"2MB\" }\n";
    let text = with("program = { generate = { ring-all-reduce = { ranks = 4, bytes = \"1MB\" } } }");
    let text = text.replace("[[arm]]\nname = \"it\"\ncc = \"cubic\"\n", arms);
    let plans = plans(&text);
    let told = crate::differences::differences(&plans.iter().collect::<Vec<_>>());
    let told: Vec<_> = told.into_iter().map(|told| (told.path, told.values)).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "traffic.app.program.bytes");
}

#[test]
fn programs_that_cannot_run_are_refused_with_their_place() {
    let mut all = String::new();
    for program in [
        "program = {}",
        "program = { goal = \"ping.goal\", generate = \"bt\" }",
        "program = { goal = \"absent.goal\" }",
        "program = { goal = \"unknown.goal\" }",
        "program = { goal = \"unmatched.goal\" }",
        "program = { goal = \"cycle.goal\" }",
        "program = { goal = \"negative.goal\" }",
        "program = { goal = \"ping.goal\", hosts = \"h1\" }",
        "program = { goal = \"ping.goal\", sigma = 1.5 }",
        "program = { goal = \"ping.goal\", start = \"1s\" }",
        "program = { goal = \"ping.goal\" }\nbetween = \"all\"",
        "program = { goal = \"ping.goal\" }\nlong = {}",
        "program = { generate = \"bt\" }",
        "program = { generate = \"lu\" }",
        "program = { generate = \"none\" }",
        "program = { generate = { bt = { ranks = 5 } } }",
        "program = { generate = { ring-all-reduce = { ranks = 4 } } }",
        "program = { generate = { ring-all-reduce = { ranks = 1, bytes = \"1MB\" } } }",
        "long = {}\nbetween = \"all\"\nconnections = \"in-order\"",
    ] {
        let _ = writeln!(all, "{}", beside(&with(program)).expect_err(program).render());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_generators_text_is_written_as_on_a_command_line() {
    let given =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    let text = goal_text("ring-all-reduce", &given(&[("ranks", "3"), ("bytes", "3KB")])).unwrap();
    assert!(text.starts_with("num_ranks 3\n\nrank 0 {\nl1: calc 0\nl2: recv 1000b from 2\nl2 requires l1\n"), "{text}");
    for (name, pairs) in
        [("ring", vec![]), ("bt", vec![("size", "3")]), ("bt", vec![("ranks", "x")]), ("all-to-all", vec![])]
    {
        assert!(goal_text(name, &given(&pairs)).is_err(), "{name}");
    }
}
