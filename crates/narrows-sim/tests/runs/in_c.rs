//! Controllers in C: one that is NewReno gives NewReno's results, and what they do wrong ends the run with the reason.

use std::panic::{AssertUnwindSafe, catch_unwind};

use narrows_c::{Error, Misbehaved, Source, inspect};
use narrows_core::cc::EcnUse;
use narrows_core::units::Span;
use narrows_plan::{ControllerChoice, Plan, Program};
use narrows_results::Quantity;

use crate::plans::{Dumbbell, run};

/// Hooks that call the functions which Linux lends to its controllers; `ssthresh`, `avoid` and what is beside them may differ.
fn controller(ssthresh: &str, avoid: &str, beside: &str) -> String {
    format!(
        r#"#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tracing_net.h"
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
{beside}
SEC("struct_ops") __u32 BPF_PROG(one_ssthresh, struct sock *sk) {{ {ssthresh} }}
SEC("struct_ops") void BPF_PROG(one_avoid, struct sock *sk, __u32 ack, __u32 acked) {{ {avoid} }}
SEC("struct_ops") __u32 BPF_PROG(one_undo, struct sock *sk) {{ return tcp_reno_undo_cwnd(sk); }}
SEC(".struct_ops.link") struct tcp_congestion_ops one = {{
	.ssthresh = (void *)one_ssthresh, .cong_avoid = (void *)one_avoid, .undo_cwnd = (void *)one_undo, .name = "one",
}};
"#
    )
}

const SSTHRESH: &str = "return tcp_reno_ssthresh(sk);";
const AVOID: &str = "tcp_reno_cong_avoid(sk, ack, acked);";

fn source(text: &str) -> Source {
    Source { name: "one.bpf.c".to_owned(), text: text.to_owned(), others: [].into() }
}

fn in_c(text: &str, ecn: bool) -> ControllerChoice {
    let program = Program {
        file: "one.bpf.c".to_owned(),
        controller: "one".to_owned(),
        text: text.to_owned(),
        others: [].into(),
    };
    ControllerChoice { name: "one".to_owned(), values: vec![], ecn, program: Some(program) }
}

/// Three flows through a bottleneck that loses packets and, if they are ECN-capable, marks.
fn plan(controller: ControllerChoice) -> Plan {
    let network = Dumbbell { pairs: 3, limit: 60, mark_at: controller.ecn.then_some(20), ..Dumbbell::default() };
    let mut plan = network.long("newreno", controller.ecn, Span::from_secs(4));
    let bottleneck = network.bottleneck();
    plan.network.links[bottleneck].loss = u32::MAX / 1_000;
    plan.traffic[0].controller = controller;
    plan
}

#[test]
fn newreno_in_c_gives_the_results_of_newreno() {
    for ecn in [false, true] {
        let (ours, in_c) = (
            run(&plan(ControllerChoice::new("newreno", ecn)), 1),
            run(&plan(in_c(&controller(SSTHRESH, AVOID, ""), ecn)), 1),
        );
        let resent: u64 = ours.flows.iter().map(|flow| flow.retransmitted_bytes).sum();
        assert!(resent > 50_000, "losses and reductions are what is compared: {resent}");
        assert_eq!(in_c.flows, ours.flows, "ecn: {ecn}");
        assert_eq!(in_c.ports, ours.ports);
        assert_eq!(in_c.series, ours.series);
    }
}

#[test]
fn a_files_variables_begin_anew_with_each_run() {
    let counting = controller(SSTHRESH, "if (++calls < 2000) tcp_reno_cong_avoid(sk, ack, acked);", "int calls;");
    let [first, second] = [(); 2].map(|()| run(&plan(in_c(&counting, false)), 1));
    assert_eq!(first.flows, second.flows);
    assert_ne!(first.flows, run(&plan(ControllerChoice::new("newreno", false)), 1).flows, "they do count");
}

/// The message with which a run of this file ends.
fn message(text: &str) -> String {
    let ended = catch_unwind(AssertUnwindSafe(|| run(&plan(in_c(text, false)), 1)));
    ended.expect_err("the run ends").downcast::<Misbehaved>().expect("with the controller's fault").0
}

#[test]
fn what_a_controller_does_wrong_ends_the_run_with_file_and_line() {
    let divides = controller("return 10 / zero;", AVOID, "int zero;");
    let line = 1 + divides.lines().position(|line| line.contains("/ zero")).unwrap();
    assert_eq!(message(&divides), format!("one.bpf.c:{line}: divides by zero"));
    for (window, said) in [("0", "0"), ("0x80000000", "2147483648")] {
        let text = controller(SSTHRESH, &format!("tcp_sk(sk)->snd_cwnd = {window};"), "");
        let expected =
            format!("one.bpf.c: cong_avoid leaves a window of {said} packets, where 1 to 2147483647 are possible");
        assert_eq!(message(&text), expected);
    }
}

#[test]
fn state_beside_the_controllers_own_is_a_connections() {
    let map = "struct { __uint(type, BPF_MAP_TYPE_SK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int); \
               __type(value, int); } counts SEC(\".maps\");";
    let avoid = "int *calls = bpf_sk_storage_get(&counts, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE); \
                 if (calls && ++*calls <= 50) tcp_sk(sk)->snd_cwnd = 10 + *calls;";
    let results = run(&plan(in_c(&controller("return 60;", avoid, map), false)), 1);
    let windows = results.series.iter().filter(|row| row.quantity == Quantity::WindowPackets).map(|row| row.value);
    assert_eq!(windows.fold(0.0, f64::max), 60.0, "each connection counts to 50 by itself");
}

#[test]
fn a_file_that_is_no_controller_is_refused_with_the_reason() {
    let refused = |text: &str, name| inspect(&source(text), name).expect_err("it is no controller");
    let unknown = controller(SSTHRESH, "tcp_sk(sk)->of_tomorrow = 1;", "");
    let Error::DoesNotCompile { messages, .. } = refused(&unknown, None) else { panic!("it has no such field") };
    assert!(messages.contains("of_tomorrow"), "{messages}");
    assert!(messages.contains("one.bpf.c:"), "{messages}");
    assert!(matches!(refused("int nothing;", None), Error::NoController(_)));
    let plain = controller(SSTHRESH, AVOID, "");
    let incomplete = plain.replace(".undo_cwnd = (void *)one_undo, ", "");
    assert!(matches!(refused(&incomplete, None), Error::NoController(_)));
    let second = r#"SEC(".struct_ops.link") struct tcp_congestion_ops two = {
        .ssthresh = (void *)one_ssthresh, .cong_avoid = (void *)one_avoid, .undo_cwnd = (void *)one_undo,
        .flags = TCP_CONG_NEEDS_ECN, .name = "two",
    };"#;
    let both = format!("{plain}{second}");
    assert_eq!(refused(&both, None).to_string(), "`one.bpf.c` has several controllers: one, two");
    assert_eq!(
        refused(&both, Some("three")).to_string(),
        "`one.bpf.c` has no controller called `three`: it has one, two"
    );
    assert_eq!(inspect(&source(&both), Some("two")).unwrap().ecn, EcnUse::Exact);
    assert_eq!(inspect(&source(&both), Some("one")).unwrap().ecn, EcnUse::Optional);
}

/// A module as the kernel has them, with a header and the file of that header's functions.
#[test]
fn a_module_of_the_kernel_registers_itself_and_calls_what_stands_beside_it() {
    let main = r#"#include <linux/module.h>
#include <net/tcp.h>
#include "shared.h"
static struct tcp_congestion_ops module __read_mostly = {
	.ssthresh = tcp_reno_ssthresh, .cong_avoid = shared_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE, .name = "module",
};
static int __init module_register(void) { return tcp_register_congestion_control(&module); }
static void __exit module_unregister(void) { tcp_unregister_congestion_control(&module); }
module_init(module_register);
module_exit(module_unregister);
MODULE_LICENSE("GPL");
"#;
    let shared = r#"#include <linux/module.h>
#include <net/tcp.h>
#include "shared.h"
void shared_avoid(struct sock *sk, u32 ack, u32 acked) { tcp_reno_cong_avoid(sk, ack, acked); }
EXPORT_SYMBOL_GPL(shared_avoid);
static int __init other_register(void) { return -22; }
module_init(other_register);
"#;
    let beside = |name: &str| match name {
        "shared.h" => Some("void shared_avoid(struct sock *sk, u32 ack, u32 acked);\n".to_owned()),
        "shared.c" => Some(shared.to_owned()),
        _ => None,
    };
    let Source { name, text, others } = Source::gather("module.c".to_owned(), main.to_owned(), beside);
    assert_eq!(others.keys().collect::<Vec<_>>(), ["shared.c", "shared.h"]);
    assert_eq!(inspect(&Source { name, text: text.clone(), others: others.clone() }, None).unwrap().name, "module");
    let program = Program { file: "module.c".to_owned(), controller: "module".to_owned(), text, others };
    let choice = ControllerChoice { name: "module".to_owned(), values: vec![], ecn: false, program: Some(program) };
    assert_eq!(run(&plan(choice), 1).flows, run(&plan(ControllerChoice::new("newreno", false)), 1).flows);
}
