//! Controllers in C: how an experiment names them, and what is said of files that are none.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const CONTROLLER: &str = r#"#include "beside.h"
const volatile __u32 cap = 9;
SEC("struct_ops") __u32 BPF_PROG(ssthresh, struct sock *sk) { return HALF(tcp_sk(sk)->snd_cwnd); }
SEC("struct_ops") void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) { }
SEC("struct_ops") __u32 BPF_PROG(undo, struct sock *sk) { return tcp_sk(sk)->snd_cwnd; }
SEC(".struct_ops") struct tcp_congestion_ops one = {
	.ssthresh = (void *)ssthresh, .cong_avoid = (void *)avoid, .undo_cwnd = (void *)undo, .name = "one",
};
SEC(".struct_ops") struct tcp_congestion_ops two = {
	.ssthresh = (void *)ssthresh, .cong_avoid = (void *)avoid, .undo_cwnd = (void *)undo, .name = "bbr",
	.flags = TCP_CONG_NEEDS_ECN,
};
"#;
const HEADER: &str = r#"#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tracing_net.h"
#define HALF(window) ((window) > 4 ? (window) / 2 : 2)
"#;
const EXPERIMENT: &str = r#"
    [topology.dumbbell]
    pairs = 1
    [[traffic]]
    name = "bulk"
    from = "left-1"
    to = "right-1"
    long = {}
    [[arm]]
    name = "in-c"
    cc = "CC"
    [run]
    end = "1s"
"#;

/// A folder with these files, for this test alone.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("narrows-in-c-{test}-{}", std::process::id()));
    fs::create_dir_all(folder.join("inside")).unwrap();
    for (file, text) in [
        ("inside/mine.bpf.c", CONTROLLER),
        ("inside/beside.h", HEADER),
        ("wrong.c", "int f(void) {\n\treturn of_tomorrow;\n}\n"),
        ("empty.c", "int nothing;\n"),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

fn expanded(folder: &Path, controller: &str) -> Result<Experiment, Box<Error>> {
    expand_in(Some(folder), &EXPERIMENT.replace("\"CC\"", controller), &Overrides::default(), &Limits::default())
}

#[test]
fn a_plan_holds_the_controllers_files() {
    let folder = folder("holds");
    let chosen = |name: &str| {
        let controller = format!("{{ file = {{ path = \"inside/mine.bpf.c\", name = \"{name}\" }} }}");
        let plans = expanded(&folder, &controller).unwrap_or_else(|error| panic!("{}", error.render())).plans;
        plans[0].traffic[0].controller.clone()
    };
    let one = chosen("one");
    assert_eq!((one.name.as_str(), one.ecn, one.values.len()), ("one", false, 0));
    let program = one.program.expect("the file");
    assert_eq!((program.file.as_str(), program.controller.as_str()), ("mine.bpf.c", "one"));
    assert_eq!(program.text, CONTROLLER);
    assert_eq!(program.others.into_iter().collect::<Vec<_>>(), [("beside.h".to_owned(), HEADER.to_owned())]);
    let two = chosen("bbr");
    assert_eq!((two.name.as_str(), two.ecn), ("mine.bpf.c", true), "`bbr` is one of the registry");
    let with =
        expanded(&folder, r#"{ file = { path = "inside/mine.bpf.c", name = "one", parameters = { cap = 12 } } }"#);
    let program =
        with.unwrap_or_else(|error| panic!("{}", error.render())).plans[0].traffic[0].controller.program.clone();
    assert_eq!(program.expect("the file").parameters, [("cap".to_owned(), "12".to_owned())].into());
    let missing = expanded(&folder, r#"{ file = "inside/mine.bpf.c" }"#).map(|_| ()).expect_err("which?").render();
    assert!(missing.contains("`mine.bpf.c` has several controllers: one, bbr"), "{missing}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_that_are_no_controllers_are_refused() {
    let folder = folder("refused");
    let said = |controller: &str| expanded(&folder, controller).map(|_| ()).expect_err("it is none").render();
    for (controller, words) in [
        (r#"{ file = "absent.bpf.c" }"#, &["absent.bpf.c"][..]),
        (r#"{ file = "../mine.bpf.c" }"#, &["is outside the experiment's folder"]),
        (r#"{ file = "wrong.c" }"#, &["`wrong.c` does not compile", "wrong.c:2", "of_tomorrow"]),
        (r#"{ file = "empty.c" }"#, &["`empty.c` has no controller", "struct tcp_congestion_ops"]),
        (
            r#"{ file = "inside/mine.bpf.c", parameters = { cap = 12 } }"#,
            &["a controller's file and something else in one place: `file` and `parameters`", "in a table of its own"],
        ),
        (r#"{ file = { path = "empty.c", mode = "fast" } }"#, &["unknown key `mode`", "path, name, parameters"]),
        (
            r#"{ file = { path = "inside/mine.bpf.c", name = "one", parameters = { caps = 1 } } }"#,
            &["`mine.bpf.c` has no parameter `caps`: it has cap", "experiment.toml:11:78"],
        ),
        (
            r#"{ file = { path = "inside/mine.bpf.c", name = "one", parameters = { cap = "many" } } }"#,
            &[
                "`many` is no value of the parameter `cap` of `mine.bpf.c`, which is a whole number, 0 or more, that fits",
            ],
        ),
        (
            r#"{ file = { path = "inside/mine.bpf.c", name = "one", parameters = { cap = [1] } } }"#,
            &["`cap` is a list", "a file's parameter is true, false, a number or a text"],
        ),
        (
            r#"{ file = { path = "inside/mine.bpf.c", parameters = 3 } }"#,
            &["`3` stands where a table of parameters belongs"],
        ),
        (r#"{ file = { name = "one" } }"#, &["`file` is the path of a controller in C or Python"]),
        ("{ file = 3 }", &["the path of a controller in C or Python"]),
    ] {
        let text = said(controller);
        for word in words {
            assert!(text.contains(word), "{controller}: {text}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}
