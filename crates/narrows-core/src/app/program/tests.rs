//! Texts, checks and generators; the machine's own tests are in `ranks_tests`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::schedule::{After, Operation};
use super::{generate, goal};
use crate::component::{Spec, Value};
use crate::units::{Bytes, Span};
use proptest::prelude::*;

/// As Schedgen writes it, labels and all.
const BROADCAST: &str = "num_ranks 4\n\nrank 0 {\nl1: send 1b to 1 tag 0\nl2: send 1b to 2 tag 0\n}\n\nrank 1 {\nl1: recv 1b from 0 tag 0\nl2: send 1b to 3 tag 0\nl2 requires l1\n}\n\nrank 2 {\nl1: recv 1b from 0 tag 0\n}\n\nrank 3 {\nl1: recv 1b from 1 tag 0\n}\n";

fn fault(text: &str) -> String {
    match goal::read(text) {
        Err(fault) => fault.to_string(),
        Ok(schedule) => panic!("it was read:\n{schedule}"),
    }
}

/// One rank with these lines, the first of which is line 3.
fn alone(lines: &str) -> String {
    format!("num_ranks 1\nrank 0 {{\n{lines}\n}}\n")
}

#[test]
fn a_text_of_schedgen_is_read() {
    let schedule = goal::read(BROADCAST).unwrap();
    assert_eq!((schedule.ranks(), schedule.operations()), (4, 6));
    assert_eq!(schedule.messages().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 3)].map(|(a, b)| (a, b, Bytes::new(1))));
    assert_eq!(schedule.dependants(2).collect::<Vec<_>>(), [(3, After::End)]);
    assert_eq!((0..6).map(|one| schedule.rank(one)).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 3]);
}

#[test]
fn comments_blanks_optional_parts_and_forward_references_are_read() {
    let text = "/* two\nlines */ num_ranks 2 // and more\r\nrank 1 { // the other first\n\tb : recv 10b from 0 nic 3 tag 5 cpu 2\n\
                }\nrank 0 {\n late irequires a\n late: send 10b to 1 cpu 1 tag 5 /* } */\n a: calc 7\n\n calc 8 cpu 3\n}\n";
    let schedule = goal::read(text).unwrap();
    assert_eq!(schedule.of_rank(0), 0..3);
    assert_eq!(schedule.operation(0), Operation::Send(Bytes::new(10), 0));
    assert_eq!((schedule.operation(1), schedule.cpu(2)), (Operation::Calc(Span::from_ns(7)), 3));
    assert_eq!(schedule.dependants(1).collect::<Vec<_>>(), [(0, After::Start)]);
}

#[test]
fn a_text_that_cannot_be_read_is_refused_with_its_line() {
    let cases = [
        ("", "1: `num_ranks` is missing"),
        ("num_ranks 0", "1: the number of ranks is zero"),
        ("num_ranks 5000", "1: the number of ranks is 5000, more than 4096"),
        ("rank 0 {\n}", "1: a rank before `num_ranks`"),
        ("num_ranks 1\nrank 1 {\n}", "2: rank 1 is not below num_ranks 1"),
        ("num_ranks 1\nrank 0 {\ncalc 1\n", "2: the rank's block does not end"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}", "4: rank 0 has a block already, at line 2"),
        ("num_ranks 1\nrank 0 {\n/* calc 1\n}", "3: a comment does not end"),
        ("num_ranks 2\nnum_ranks 2", "2: `num_ranks` is stated again"),
        ("num_ranks 2\ncalc 3", "2: expected `num_ranks` or `rank`, found `calc`"),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text), expected);
    }
    let lines = [
        ("a: calc -1", "3: the time of a computation is negative: -1"),
        ("a: calc 1ns", "3: `1ns` cannot be the time of a computation"),
        ("a: calc", "3: expected the time of a computation, found the end of the line"),
        (
            "a: calc 99999999999999999999",
            "3: the time of a computation is 99999999999999999999, more than 86400000000000",
        ),
        ("a: send -4b to 1", "3: the size of a message is negative: -4"),
        ("a: send 4 to 1", "3: `4` cannot be the size of a message"),
        ("a: send 4b from 1", "3: expected `to`, found `from`"),
        ("a: send 4b to 1", "3: rank 1 is not below num_ranks 1"),
        ("a: send 4b to 0", "3: rank 0 would exchange a message with itself"),
        ("a: recv 4b from -1", "3: a rank is negative: -1"),
        ("a: calc 1 tag 3", "3: unexpected `tag` after `calc`"),
        ("a: calc 1 cpu 1 cpu 2", "3: a cpu is stated twice"),
        ("a: calc 1 cpu 256", "3: a cpu is 256, more than 255"),
        ("a: jump 1", "3: unknown operation `jump`"),
        ("a: calc 1\na: calc 2", "4: the label `a` is in use since line 3"),
        ("a: calc 1\nb requires a", "4: rank 0 has no operation labelled `b`"),
        ("a: calc 1\na requires b", "4: rank 0 has no operation labelled `b`"),
        ("a calc 1", "3: expected `:`, `requires` or `irequires` after `a`, found `calc`"),
        ("a: calc 1 b: calc 2", "3: unexpected `b` after `calc`"),
        ("a: calc 1\na requires a b", "4: unexpected `b`"),
        ("a: calc 1\n{", "4: a block within a block"),
    ];
    for (line, expected) in lines {
        assert_eq!(fault(&alone(line)), expected);
    }
}

#[test]
fn a_message_without_its_other_side_is_refused() {
    let text = "num_ranks 2\nrank 0 {\na: send 4b to 1 tag 3\nb: send 4b to 1 tag 3\n}\nrank 1 {\nc: recv 4b from 0 tag 3\n}\n";
    assert_eq!(fault(text), "4: from rank 0 to rank 1 with tag 3 there are 2 sends and 1 receive");
    let text = text.replace("b: send 4b to 1 tag 3", "b: send 4b to 1 tag 4");
    assert_eq!(fault(&text), "4: from rank 0 to rank 1 with tag 4 there are 1 send and 0 receives");
}

#[test]
fn operations_that_wait_for_each_other_are_named() {
    let inside = alone("a: calc 1\nb: calc 2\nc: calc 3\na requires c\nb requires a\nc irequires b");
    assert_eq!(
        fault(&inside),
        "3: operations wait for each other: `a` of rank 0, which waits for `c` of rank 0, which waits for `b` of rank 0, which waits for `a` of rank 0"
    );
    assert_eq!(
        fault(&alone("a: calc 1\na requires a")),
        "3: operations wait for each other: `a` of rank 0, which waits for `a` of rank 0"
    );
    let across = "num_ranks 2\nrank 0 {\na: recv 1b from 1\nsend 1b to 1\nb: calc 1\nc: send 1b to 1\nc requires a\n}\n\
                  rank 1 {\nx: recv 1b from 0\nrecv 1b from 0\ny: send 1b to 0\ny requires z\nz: calc 1\nz requires w\nw: recv 9b from 0 tag 1\n}\n";
    let across = across.replace("b: calc 1", "b: send 9b to 1 tag 1\nb requires a");
    let told = fault(&across);
    assert_eq!(
        told,
        "3: operations wait for each other: `a` of rank 0, which waits for `y` of rank 1, which waits for `z` of rank 1, which waits for `w` of rank 1, which waits for `b` of rank 0, which waits for `a` of rank 0"
    );
}

/// The generator's program with its defaults, but for these.
fn generated(name: &str, given: &[(&str, Value)]) -> super::Schedule {
    let spec: &Spec = generate::spec(name).unwrap();
    let value = |parameter: &crate::component::Parameter| {
        let set = given.iter().find(|(name, _)| *name == parameter.name);
        match set.map_or(parameter.default, |(_, value)| *value) {
            Value::Required => Value::Bytes(Bytes::new(1_000_003)),
            value => value,
        }
    };
    let values: Vec<Value> = spec.parameters.iter().map(value).collect();
    generate::schedule(name, &values).unwrap()
}

#[test]
fn every_generator_writes_a_program_that_can_end_and_is_read_again() {
    for spec in generate::SPECS {
        let few = Value::Count(1);
        let schedule = generated(spec.name, &[("iterations", few)]);
        assert_eq!(schedule.ranks(), 64);
        let text = schedule.to_string();
        let again = goal::read(&text).unwrap_or_else(|fault| panic!("{}: {fault}", spec.name));
        assert_eq!(again.to_string(), text, "{}", spec.name);
        let whole = |schedule: &super::Schedule| schedule.messages().collect::<Vec<_>>();
        assert_eq!(whole(&again), whole(&schedule), "{}", spec.name);
    }
}

#[test]
fn generators_send_what_their_sources_say() {
    let count = |name: &str, given: &[(&str, Value)]| {
        let schedule = generated(name, given);
        let mut sizes: Vec<u64> = schedule.messages().map(|(_, _, size)| size.get()).collect();
        let messages = sizes.len();
        let bytes = sizes.iter().sum::<u64>();
        sizes.sort_unstable();
        sizes.dedup();
        (messages, bytes, sizes)
    };
    let ranks = |ranks| ("ranks", Value::Count(ranks));
    let once = ("iterations", Value::Count(1));
    // 2(P − 1) of P pieces of each rank's data.
    assert_eq!(count("ring-all-reduce", &[ranks(5)]), (5 * 8, 8 * 1_000_003, [200_000, 200_001].into()));
    assert_eq!(count("tree-all-reduce", &[ranks(6)]), (2 * 5, 10 * 1_000_003, [1_000_003].into()));
    // In each of 3 groups twice 3 steps of 4 pieces; at each of 4 places twice 2 steps of thirds of a piece.
    let (messages, bytes, _) = count("hierarchical-all-reduce", &[ranks(12), ("groups", Value::Count(3))]);
    assert_eq!((messages, bytes), (12 * 6 + 12 * 4, 3 * 6 * 1_000_003 + 4 * 1_000_003));
    assert_eq!(count("all-to-all", &[ranks(7)]).0, 7 * 6);
    // Class A at 64 ranks: 36 KB faces, 15.4 KB and 2.6 KB in 7 stages of 3 directions.
    let (messages, _, sizes) = count("bt", &[once]);
    assert_eq!((messages, sizes), (64 * (6 + 3 * 14), [2_560, 15_360, 35_840].into()));
    // 26 products of three steps and, but for the diagonal, one across; 51 dot products of three steps.
    let (messages, _, sizes) = count("cg", &[once]);
    assert_eq!((messages, sizes), (26 * (64 * 3 + 56) + 51 * 64 * 3, [8, 14_000].into()));
    let (messages, _, sizes) = count("ft", &[once]);
    assert_eq!((messages, sizes), (2 * 64 * 63 + 63, [16, 32_768].into()));
    let (messages, _, sizes) = count("is", &[once]);
    assert_eq!(messages, 64 * 6 + 2 * 64 * 63);
    assert!(sizes.iter().filter(|&&size| size > 4_116).all(|size| (7_373..=9_011).contains(size)));
    // Sides 64, 32 … 2 and their halos; 18 exchanges of six faces, and a norm.
    let (messages, _, sizes) = count("mg", &[once]);
    assert_eq!((messages, sizes), (64 * (18 * 6 + 6), [16, 128, 288, 800, 2_592, 9_248, 34_848].into()));
    // 8 stages of 8 replicas: 16 batches over 7 borders both ways, and a ring of 14 steps in each stage.
    let (messages, _, _) = count("pipeline", &[]);
    assert_eq!(messages, 2 * 16 * 7 * 8 + 64 * 14);
}

#[test]
fn groups_send_each_other_less_than_a_ring_through_them() {
    let crossing = |name: &str, given: &[(&str, Value)]| -> u64 {
        let schedule = generated(name, &[&[("ranks", Value::Count(16))], given].concat());
        let crosses = |&(from, to, _): &(u32, u32, Bytes)| from < 8 && to >= 8;
        schedule.messages().filter(crosses).map(|(_, _, size)| size.get()).sum()
    };
    // All data once, where a ring takes 30 of 16 pieces across.
    assert_eq!(crossing("hierarchical-all-reduce", &[("groups", Value::Count(2))]), 1_000_003);
    let ring = crossing("ring-all-reduce", &[]);
    assert!(ring.abs_diff(1_000_003 * 30 / 16) <= 16, "{ring}");
}

#[test]
fn one_group_and_groups_of_one_are_a_ring() {
    let ring = generated("ring-all-reduce", &[("ranks", Value::Count(12))]).to_string();
    for groups in [1, 12] {
        let given = [("ranks", Value::Count(12)), ("groups", Value::Count(groups))];
        assert_eq!(generated("hierarchical-all-reduce", &given).to_string(), ring, "{groups}");
    }
}

#[test]
fn an_operation_takes_some_tens_of_bytes() {
    let schedule = generated("is", &[("iterations", Value::Count(2))]);
    let operations = schedule.operations() as usize;
    assert!(operations > 30_000);
    assert!(schedule.memory() < 50 * operations, "{} B for {operations}", schedule.memory());
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    let refused = |name: &str, ranks: u64| {
        let spec = generate::spec(name).unwrap();
        let mut values = spec.defaults();
        values[0] = Value::Count(ranks);
        generate::schedule(name, &values).is_err()
    };
    for (name, ranks) in
        [("bt", 8), ("cg", 8), ("is", 12), ("mg", 16), ("pipeline", 12), ("hierarchical-all-reduce", 9)]
    {
        assert!(refused(name, ranks), "{name}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(num_ranks|rank|calc|send|recv|requires|irequires|to|from|tag|cpu|-?[0-9]{1,3}b?|[a-c]|[:{}\\n]|//|/\\*|\\*/|[ é])*") {
        if let Err(fault) = goal::read(&text) {
            prop_assert!(fault.line >= 1 && fault.line as usize <= text.matches('\n').count() + 1);
            prop_assert!(!fault.what.is_empty() && !fault.help.is_empty());
        }
    }

    /// Spaces between the words make more of them lines that are nearly right.
    #[test]
    fn lines_that_are_nearly_right_are_read_or_refused(
        lines in proptest::collection::vec(
            "[a-c](: (calc [0-9]{1,2}|(send|recv) [0-9]b (to|from) [0-2]( tag [0-2])?( cpu [0-9])?)| i?requires [a-c])", 0..8)
    ) {
        for split in 0..=lines.len() {
            let text = format!(
                "num_ranks 2\nrank 0 {{\n{}\n}}\nrank 1 {{\n{}\n}}\n", lines[..split].join("\n"), lines[split..].join("\n"));
            match goal::read(&text) {
                Err(fault) => prop_assert!((2..=lines.len() + 7).contains(&(fault.line as usize)), "{fault}"),
                Ok(schedule) => prop_assert_eq!(goal::read(&schedule.to_string()).unwrap().to_string(), schedule.to_string()),
            }
        }
    }
}
