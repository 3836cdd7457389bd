//! Controllers in C: one that is NewReno gives NewReno's results, and what they do wrong ends the run with the reason.

use std::panic::{AssertUnwindSafe, catch_unwind};

use narrows_c::{Error, Misbehaved, Source, inspect};
use narrows_core::cc::EcnUse;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span};
use narrows_plan::{Connections, ControllerChoice, Pattern, Plan, Program};
use narrows_results::Quantity;

use crate::plans::{Dumbbell, at, flow, run, smooth};

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

/// How a run ends in which `cong_avoid` has seen what it waited for, and sets a window of 0 to say so.
const SAW_IT: &str = "one.bpf.c: cong_avoid leaves a window of 0 packets, where 1 to 2147483647 are possible";
const SSTHRESH: &str = "return tcp_reno_ssthresh(sk);";
const AVOID: &str = "tcp_reno_cong_avoid(sk, ack, acked);";

fn source(text: &str) -> Source {
    Source { name: "one.bpf.c".to_owned(), text: text.to_owned(), others: [].into(), parameters: [].into() }
}

fn in_c(text: &str, ecn: bool) -> ControllerChoice {
    let program = Program {
        file: "one.bpf.c".to_owned(),
        controller: "one".to_owned(),
        text: text.to_owned(),
        others: [].into(),
        parameters: [].into(),
        needs_telemetry: false,
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
    let expected = "one.bpf.c: cong_avoid writes beyond the 104 bytes of a controller's own state (icsk_ca_priv)";
    for place in [13, 16] {
        let beyond = controller(SSTHRESH, "((__u64 *)inet_csk_ca(sk))[place] = 1;", &format!("int place = {place};"));
        assert_eq!(message(&beyond), expected);
    }
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

/// An acknowledgement that ends an episode is none that the kernel had predicted: a window that tells which were wrong shows that none is.
#[test]
fn acknowledgements_of_an_episode_take_the_slow_path_and_jiffies_are_of_four_milliseconds() {
    let hook = "int slow, fast; SEC(\"struct_ops\") void BPF_PROG(one_event, struct sock *sk, __u32 flags) { \
                    int open = inet_csk(sk)->icsk_ca_state == TCP_CA_Open; \
                    int episode = inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder; \
                    if (episode && !(flags & CA_ACK_SLOWPATH)) tcp_sk(sk)->snd_cwnd = 0; \
                    if (tcp_sk(sk)->tcp_mstamp / 4000 != tcp_jiffies32) tcp_sk(sk)->snd_cwnd = 0; \
                    if (open) fast += !(flags & CA_ACK_SLOWPATH); else slow++; }";
    let avoid = "if (slow > 300 && fast > 3000) tcp_sk(sk)->snd_cwnd = 0; else tcp_reno_cong_avoid(sk, ack, acked);";
    let text = controller(SSTHRESH, avoid, hook).replace(".name =", ".in_ack_event = (void *)one_event, .name =");
    assert_eq!(message(&text), SAW_IT, "both kinds are seen, and no hook before it found fault");
}

/// `tcp_event_data_sent` comes before the segment counts as sent.
#[test]
fn a_transmission_begins_before_its_first_segment_counts() {
    let hook = "int starts; SEC(\"struct_ops\") void BPF_PROG(one_init, struct sock *sk) { \
                    if (tcp_sk(sk)->snd_nxt != tcp_sk(sk)->snd_una) tcp_sk(sk)->snd_cwnd = 0; } \
                 SEC(\"struct_ops\") void BPF_PROG(one_event, struct sock *sk, enum tcp_ca_event event) { \
                    struct tcp_sock *tp = tcp_sk(sk); \
                    if (event != CA_EVENT_TX_START) return; \
                    starts++; if (tp->snd_nxt != tp->snd_una || tp->packets_out) tp->snd_cwnd = 0; }";
    let avoid = "if (starts == 3) tcp_sk(sk)->snd_cwnd = 0; else tcp_reno_cong_avoid(sk, ack, acked);";
    let text = controller(SSTHRESH, avoid, hook)
        .replace(".name =", ".init = (void *)one_init, .cwnd_event = (void *)one_event, .name =");
    assert_eq!(message(&text), SAW_IT, "once of each flow");
}

/// In milliseconds: ours comes back after an RTT, and the peer's goes on with the time, from anywhere.
#[test]
fn acknowledgements_have_timestamps_of_both_ends() {
    let avoid = "struct tcp_sock *tp = tcp_sk(sk); \
                 __u32 waited = tp->tcp_mstamp / 1000 - tp->rx_opt.rcv_tsecr, ahead = tp->rx_opt.rcv_tsval - tp->tcp_mstamp / 1000; \
                 int drift = seen ? (int)(ahead - before) : 0; \
                 if (!seen++) before = ahead; \
                 if (waited < 9 || waited > 12 || drift < -6 || drift > 6 || !before) tp->snd_cwnd = 0; \
                 else if (seen > 1000) tp->snd_cwnd = 0x80000000; \
                 else if (tp->snd_cwnd < 50) tcp_reno_cong_avoid(sk, ack, acked);";
    let network = Dumbbell::default();
    let mut plan = network.long("newreno", false, Span::from_secs(2));
    plan.traffic[0].controller = in_c(&controller(SSTHRESH, avoid, "int seen; __u32 before;"), false);
    let ended = catch_unwind(AssertUnwindSafe(|| drop(run(&plan, 1)))).expect_err("the run ends");
    let said = ended.downcast::<Misbehaved>().expect("with the controller's fault").0;
    assert!(said.starts_with("one.bpf.c: cong_avoid leaves a window of 2147483648 packets"), "{said}");
}

/// The first acknowledgement that acknowledges nothing new, but reports data beyond a hole, meets Open; those after it Disorder or an
/// episode, as in the kernel: of what BIC counts in Open only such make the mean.
#[test]
fn data_beyond_a_hole_is_disorder() {
    let hooks = "int first, left, disorders; \
                 SEC(\"struct_ops\") void BPF_PROG(one_state, struct sock *sk, __u8 state) { \
                    int before = inet_csk(sk)->icsk_ca_state; \
                    left += before == TCP_CA_Open; disorders += state == TCP_CA_Disorder; \
                    if (state == before || (state == TCP_CA_Disorder && !tcp_sk(sk)->sacked_out)) tcp_sk(sk)->snd_cwnd = 0; } \
                 SEC(\"struct_ops\") void BPF_PROG(one_acked, struct sock *sk, const struct ack_sample *sample) { \
                    first += inet_csk(sk)->icsk_ca_state == TCP_CA_Open && !sample->pkts_acked; \
                    if (first > left + 3) tcp_sk(sk)->snd_cwnd = 0; }";
    let avoid = "if (first > 50 && disorders > 50) tcp_sk(sk)->snd_cwnd = 0; else tcp_reno_cong_avoid(sk, ack, acked);";
    let text = controller(SSTHRESH, avoid, hooks)
        .replace(".name =", ".set_state = (void *)one_state, .pkts_acked = (void *)one_acked, .name =");
    assert_eq!(message(&text), SAW_IT, "enough of both, and no hook before it found fault");
}

/// The first retransmission after a timeout begins a transmission, too: all that was in flight is given up.
#[test]
fn a_transmission_begins_after_a_timeout() {
    let hook = "int after; SEC(\"struct_ops\") void BPF_PROG(one_event, struct sock *sk, enum tcp_ca_event event) { \
                    struct tcp_sock *tp = tcp_sk(sk); \
                    if (event != CA_EVENT_TX_START || inet_csk(sk)->icsk_ca_state != TCP_CA_Loss) return; \
                    after++; if (tp->sacked_out != tp->packets_out || !tp->packets_out || tp->snd_nxt == tp->snd_una) tp->snd_cwnd = 0; }";
    let avoid = "if (after > 3) tcp_sk(sk)->snd_cwnd = 0; else tcp_reno_cong_avoid(sk, ack, acked);";
    let text = controller(SSTHRESH, avoid, hook).replace(".name =", ".cwnd_event = (void *)one_event, .name =");
    let mut lossy = plan(in_c(&text, false));
    lossy.network.links.iter_mut().for_each(|link| link.loss = u32::MAX / 20);
    lossy.schedule.end = at(Span::from_secs(30));
    let ended = catch_unwind(AssertUnwindSafe(|| drop(run(&lossy, 1)))).expect_err("the run ends");
    assert_eq!(ended.downcast::<Misbehaved>().expect("with the controller's fault").0, SAW_IT);
}

/// `tcp_process_tlp_ack`: the one way to CWR of packets that are not ECN-capable, and it is left at once.
#[test]
fn what_a_tail_loss_probe_repairs_is_a_reduction_that_is_over_at_once() {
    let hooks = "int repaired; \
                 SEC(\"struct_ops\") void BPF_PROG(one_state, struct sock *sk, __u8 state) { \
                    int before = inet_csk(sk)->icsk_ca_state; \
                    repaired += state == TCP_CA_CWR; \
                    if (state == TCP_CA_CWR && before > TCP_CA_Disorder) tcp_sk(sk)->snd_cwnd = 0; \
                    if (before == TCP_CA_CWR && (state > TCP_CA_Disorder || tcp_sk(sk)->snd_cwnd != tcp_sk(sk)->snd_ssthresh)) \
                        tcp_sk(sk)->snd_cwnd = 0; }";
    let avoid = "if (inet_csk(sk)->icsk_ca_state == TCP_CA_CWR || repaired > 2) tcp_sk(sk)->snd_cwnd = 0; \
                 else tcp_reno_cong_avoid(sk, ack, acked);";
    let text = controller(SSTHRESH, avoid, hooks).replace(".name =", ".set_state = (void *)one_state, .name =");
    // Messages of three packets: where the last is lost, no other tells, and the probe repairs it.
    let network = Dumbbell { profile: smooth(Profile::LINUX_6), ..Dumbbell::default() };
    let messages = (0..600).map(|nth| flow(Span::from_ms(500) * nth, 0, 1, Some(3 * 1448)));
    let mut lossy = network.plan("newreno", false, Span::from_secs(300), Pattern::List(messages.collect()));
    lossy.traffic[0].controller = in_c(&text, false);
    lossy.traffic[0].connections = Connections::InOrder;
    lossy.network.links.iter_mut().for_each(|link| link.loss = u32::MAX / 100);
    let ended = catch_unwind(AssertUnwindSafe(|| drop(run(&lossy, 1)))).expect_err("the run ends");
    assert_eq!(ended.downcast::<Misbehaved>().expect("with the controller's fault").0, SAW_IT);
}

/// NewReno that asks for a reduction whenever its window has grown to forty packets, as a controller that reads delays would. What
/// does not go as in the kernel sets a window of 0.
#[test]
fn a_reduction_that_a_controller_asks_for_is_spread_over_a_round() {
    let text = r#"#include <linux/module.h>
#include <net/tcp.h>
static void one_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_reno_cong_avoid(sk, ack, acked);
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_CWR)
		tp->snd_cwnd = 0; /* windows grow in no reduction */
	else if (tp->snd_cwnd >= 40)
		tcp_enter_cwr(sk);
}
static void one_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state == TCP_CA_CWR && (inet_csk(sk)->icsk_ca_state != TCP_CA_Open || tp->high_seq != tp->snd_nxt))
		tp->snd_cwnd = 0;
	if (state == TCP_CA_Open && tp->snd_cwnd != 20)
		tp->snd_cwnd = 0;
}
static void one_event(struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (event == CA_EVENT_COMPLETE_CWR && (inet_csk(sk)->icsk_ca_state != TCP_CA_CWR || (s32)(tp->snd_una - tp->high_seq) <= 0))
		tp->snd_cwnd = 0;
}
static struct tcp_congestion_ops one __read_mostly = {
	.ssthresh = tcp_reno_ssthresh, .cong_avoid = one_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
	.set_state = one_state, .cwnd_event = one_event, .name = "one",
};
static int __init one_register(void) { return tcp_register_congestion_control(&one); }
module_init(one_register);
"#;
    let slow = Dumbbell { rate: Rate::from_mbps(20), ..Dumbbell::default() };
    let mut plan = slow.long("newreno", false, Span::from_secs(4));
    plan.traffic[0].controller = of_text("one.c", text, &[]);
    let results = run(&plan, 1);
    let windows: Vec<f64> =
        results.series.iter().filter(|row| row.quantity == Quantity::WindowPackets).map(|row| row.value).collect();
    let falls = windows.windows(2).map(|pair| pair[0] - pair[1]).filter(|&fall| fall > 0.0);
    let (count, largest) = falls.fold((0, 0.0), |(count, largest), fall| (count + 1, f64::max(largest, fall)));
    assert!(count >= 60 && largest <= 3.0, "packet by packet, not at once: {count} falls, by {largest} at most");
    let reductions = windows.windows(2).filter(|pair| pair[0] > 30.0 && pair[1] <= 30.0).count();
    assert!(reductions >= 4, "{reductions}");
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
    assert_eq!(refused(&incomplete, None).to_string(), "the controller `one` of `one.bpf.c` lacks undo_cwnd");
    for (name, lacks) in
        [("", "lacks a name"), (", .name = \"sixteen_letters_\"", "lacks a name of at most 15 characters")]
    {
        let said = refused(&plain.replace(", .name = \"one\"", name), None).to_string();
        assert!(said.ends_with(lacks), "{said}");
    }
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
    let source = Source::gather("module.c".to_owned(), main.to_owned(), beside);
    assert_eq!(source.others.keys().collect::<Vec<_>>(), ["shared.c", "shared.h"]);
    assert_eq!(inspect(&source, None).unwrap().name, "module");
    let Source { name: file, text, others, parameters } = source;
    let program = Program { file, controller: "module".to_owned(), text, others, parameters, needs_telemetry: false };
    let choice = ControllerChoice { name: "module".to_owned(), values: vec![], ecn: false, program: Some(program) };
    assert_eq!(run(&plan(choice), 1).flows, run(&plan(ControllerChoice::new("newreno", false)), 1).flows);
}

/// A module that is NewReno unless an experiment sets its parameters: a number, a switch, and one that it judges itself.
fn with_parameters(parameters: &[(&str, &str)]) -> ControllerChoice {
    let text = r#"#include <linux/module.h>
#include <net/tcp.h>
static int floor_window __read_mostly = 2;
module_param(floor_window, int, 0644);
MODULE_PARM_DESC(floor_window, "least window");
static bool halves __read_mostly = true;
module_param(halves, bool, 0644);
static unsigned int cap = 4000;
static int cap_set(const char *text, const struct kernel_param *kp) { return param_set_uint_minmax(text, kp, 1, 5000); }
static const struct kernel_param_ops cap_ops = { .set = cap_set, .get = param_get_uint };
module_param_cb(cap, &cap_ops, &cap, 0644);
static u32 one_ssthresh(struct sock *sk)
{
	return halves ? tcp_reno_ssthresh(sk) : max_t(u32, tcp_sk(sk)->snd_cwnd, floor_window);
}
static void one_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
	tcp_sk(sk)->snd_cwnd = min_t(u32, tcp_sk(sk)->snd_cwnd, cap);
}
static struct tcp_congestion_ops one __read_mostly = {
	.ssthresh = one_ssthresh, .cong_avoid = one_avoid, .undo_cwnd = tcp_reno_undo_cwnd, .name = "one",
};
static int __init one_register(void) { return tcp_register_congestion_control(&one); }
module_init(one_register);
"#;
    of_text("one.c", text, parameters)
}

fn of_text(file: &str, text: &str, parameters: &[(&str, &str)]) -> ControllerChoice {
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (file, text, controller) = (file.to_owned(), text.to_owned(), "one".to_owned());
    let program = Program { file, controller, text, others: [].into(), parameters, needs_telemetry: false };
    ControllerChoice { name: "one".to_owned(), values: vec![], ecn: false, program: Some(program) }
}

fn largest_window(controller: ControllerChoice) -> f64 {
    let results = run(&plan(controller), 1);
    let windows = results.series.iter().filter(|row| row.quantity == Quantity::WindowPackets).map(|row| row.value);
    windows.fold(0.0, f64::max)
}

#[test]
fn a_modules_parameters_are_those_of_the_experiment() {
    let newreno = run(&plan(ControllerChoice::new("newreno", false)), 1).flows;
    assert_eq!(run(&plan(with_parameters(&[])), 1).flows, newreno, "by default it is NewReno");
    assert_eq!(largest_window(with_parameters(&[("cap", "13")])), 13.0);
    assert_ne!(run(&plan(with_parameters(&[("halves", "false")])), 1).flows, newreno);
}

#[test]
fn global_constants_of_bpf_are_parameters() {
    let text = |declared: &str| {
        controller(
            SSTHRESH,
            "tcp_reno_cong_avoid(sk, ack, acked); if (tcp_sk(sk)->snd_cwnd > cap) tcp_sk(sk)->snd_cwnd = cap;",
            declared,
        )
    };
    for (declared, value) in [("const volatile __u32 cap = 4000;", "13"), ("const volatile __s64 cap = 0x1000;", "0xd")]
    {
        let text = text(declared);
        assert!(largest_window(of_text("one.bpf.c", &text, &[])) > 20.0);
        assert_eq!(largest_window(of_text("one.bpf.c", &text, &[("cap", value)])), 13.0, "{declared}");
    }
    let plain = text("const int cap = 4000;");
    let source = Source { parameters: [("cap".to_owned(), "7".to_owned())].into(), ..source(&plain) };
    let error = inspect(&source, None).expect_err("its compiler has read it").to_string();
    assert_eq!(error, "`one.bpf.c` has no parameter `cap`: it has none");
}

#[test]
fn parameters_that_do_not_exist_or_do_not_fit_are_refused() {
    let refused = |choice: ControllerChoice| {
        let Program { file: name, text, others, parameters, .. } = choice.program.expect("in a file");
        inspect(&Source { name, text, others, parameters }, None).expect_err("refused").to_string()
    };
    let of_module = |name, value| refused(with_parameters(&[(name, value)]));
    assert_eq!(of_module("caps", "7"), "`one.c` has no parameter `caps`: it has cap, floor_window, halves");
    for (name, value) in
        [("cap", "5001"), ("cap", "-1"), ("floor_window", "2147483648"), ("halves", "2"), ("cap", "0.5")]
    {
        let said = of_module(name, value);
        assert!(said.starts_with(&format!("`{value}` is no value of the parameter `{name}` of `one.c`")), "{said}");
    }
    assert!(of_module("halves", "2").ends_with(", which is true or false"));
    for (declared, value, fits) in [
        ("unsigned int cap = 9", "-1", false),
        ("__s32 cap = 9", "2147483648", false),
        ("bool cap = 1", "2", false),
        ("bool cap = 1", "false", true),
        ("double cap = 9", "0.5", true),
        ("double cap = 9", "half", false),
        ("__u64 cap = 9", "0xffffffffffffffff", true),
    ] {
        let text =
            controller(SSTHRESH, "if (tcp_sk(sk)->snd_cwnd < cap) return;", &format!("const volatile {declared};"));
        let parameters = [("cap".to_owned(), value.to_owned())].into();
        let found = inspect(&Source { parameters, ..source(&text) }, None);
        assert_eq!(found.is_ok(), fits, "{declared} {value}: {found:?}");
    }
    let pointer = controller(SSTHRESH, "if (cap) return;", "const volatile char *cap;");
    assert!(refused(of_text("one.bpf.c", &pointer, &[("cap", "1")])).contains("has no parameter `cap`"));
    let small = controller(
        SSTHRESH,
        "if (tcp_sk(sk)->snd_cwnd < cap) tcp_reno_cong_avoid(sk, ack, acked);",
        "const volatile __u8 cap = 9;",
    );
    assert_eq!(
        refused(of_text("one.bpf.c", &small, &[("cap", "256")])),
        "`256` is no value of the parameter `cap` of `one.bpf.c`, which is a whole number, 0 or more, that fits"
    );
}

/// NewReno in plain C: the window grows by a packet for each in slow start, and by their share of it later.
fn plain(more: &str, on_ack: &str) -> String {
    format!(
        r#"#include <narrows.h>
NARROWS_PARAMETER(double, share, 0.5);
NARROWS_PARAMETER(int, cap, 1000000);
struct one {{ uint64_t acks; }};
static void on_ack(struct narrows_sender *s, const struct narrows_ack *ack, const struct narrows_path *path)
{{
	struct one *own = s->state;
	own->acks++;
	{on_ack}
	if (!ack->may_grow || ack->limited_by != NARROWS_WINDOW)
		return;
	if (s->window < s->threshold)
		s->window = fmin(s->window + ack->acked, s->threshold);
	else
		s->window += ack->acked / s->window;
	s->window = fmin(s->window, cap);
}}
static void on_congestion(struct narrows_sender *s, enum narrows_cause cause, const struct narrows_path *path)
{{
	s->window = s->threshold = fmax(s->window * share, 2);
}}
NARROWS_CONTROLLER(one, .on_ack = on_ack, .on_congestion = on_congestion, .state_size = sizeof(struct one), {more});
"#
    )
}

#[test]
fn a_controller_in_plain_c_has_parameters_and_a_state_for_each_connection() {
    let text = plain("", "s->window = 12 + fmin(own->acks, cap); return;");
    assert_eq!(largest_window(of_text("one.c", &text, &[("cap", "18")])), 30.0);
    let cautious = of_text("one.c", &plain("", ""), &[("share", "0.9")]);
    assert_ne!(run(&plan(cautious), 1).flows, run(&plan(of_text("one.c", &plain("", ""), &[])), 1).flows);
}

#[test]
fn a_controller_in_plain_c_paces_and_draws_random_numbers_of_its_own() {
    // 2 Mbit/s of packets of 1,500 bytes, of which 40 are headers, by each of three flows; before the first RTT nothing is paced.
    let paced = plain(".needs_delivery_rate = true", "s->pacing_rate = 2e6;");
    for flow in run(&plan(of_text("one.c", &paced, &[])), 1).flows {
        let rate = flow.received_bytes as f64 * 8.0 / 4.0;
        assert!((1.7e6..1.95e6).contains(&rate), "{rate} bit/s");
    }
    let draws = of_text("one.c", &plain("", "s->window = 1 + floor(20 * narrows_random()); return;"), &[]);
    let [first, again, other] = [1, 1, 2].map(|seed| run(&plan(draws.clone()), seed).flows);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

/// A controller that ends the run where what it is told of losses and by switches does not fit together.
const TOLD: &str = r#"#include <narrows.h>
NARROWS_PARAMETER(int, hops_on_the_way, 3);
struct told { uint64_t lost, acks, last_sent[3]; bool timed_out; double last_at[3]; };
#define must(holds) do { if (!(holds)) s->window = -__LINE__; } while (0)
static void on_lost(struct narrows_sender *s, const struct narrows_lost *lost, const struct narrows_path *path)
{
	struct told *own = s->state;
	own->lost++;
	must(lost->sent_at < path->now && lost->in_flight_at_send >= 1 && lost->lost_since_send >= 1);
	must(lost->segment * path->mss <= path->nxt && (lost->segment + 2) * path->mss >= path->una);
}
static void on_telemetry(struct narrows_sender *s, const struct narrows_hop *hops, size_t count)
{
	struct told *own = s->state;
	must(count == (size_t)hops_on_the_way);
	for (size_t i = 0; i < count && i < 3; i++) {
		must(i == 0 || hops[i].at > hops[i - 1].at);
		must(hops[i].at >= own->last_at[i] && hops[i].sent >= own->last_sent[i]);
		/* At most what the line carries meanwhile, but for the packet that had begun to leave. */
		must((hops[i].sent - own->last_sent[i]) * 8 <= (hops[i].at - own->last_at[i]) * hops[i].rate + 1538 * 8);
		own->last_at[i] = hops[i].at;
		own->last_sent[i] = hops[i].sent;
	}
}
static void on_ack(struct narrows_sender *s, const struct narrows_ack *ack, const struct narrows_path *path)
{
	struct told *own = s->state;
	own->acks++;
	/* What a timeout gives up is told after it, and counted by no acknowledgement. */
	must(own->timed_out ? own->lost >= ack->lost : own->lost == ack->lost);
	own->lost = 0;
	own->timed_out = false;
	must(own->last_at[0] > 0);
	if (s->window > 0)
		s->window = 20;
}
static void on_congestion(struct narrows_sender *s, enum narrows_cause cause, const struct narrows_path *path)
{
}
static void on_timeout(struct narrows_sender *s, bool repeated, const struct narrows_path *path)
{
	struct told *own = s->state;
	own->timed_out = true;
	if (s->window > 0)
		s->window = 1;
}
NARROWS_CONTROLLER(one, .on_ack = on_ack, .on_congestion = on_congestion, .on_lost = on_lost, .on_telemetry = on_telemetry,
	.on_timeout = on_timeout, .needs_delivery_rate = true, .needs_telemetry = true, .owns_recovery = true,
	.state_size = sizeof(struct told));
"#;

#[test]
fn a_controller_in_plain_c_is_told_of_losses_and_by_switches() {
    let told = |parameters: &[(&str, &str)]| {
        let mut plan = plan(of_text("told.c", TOLD, parameters));
        plan.network.links.iter_mut().for_each(|link| link.telemetry = true);
        run(&plan, 1)
    };
    let results = told(&[]);
    assert!(results.flows.iter().all(|flow| flow.received_bytes > 1_000_000), "{:?}", results.flows);
    assert!(results.ports.iter().map(|port| port.dropped_impairment_packets).sum::<u64>() > 5);
    // So often that timeouts come, too.
    let mut lossy = plan(of_text("told.c", TOLD, &[]));
    for link in &mut lossy.network.links {
        link.telemetry = true;
        link.loss *= 600;
    }
    let flows = run(&lossy, 1).flows;
    assert!(flows.iter().map(|flow| flow.timeouts).sum::<u32>() >= 5, "{flows:?}");
    // What does not hold ends the run.
    for hops in ["2", "4"] {
        let ended = catch_unwind(AssertUnwindSafe(|| told(&[("hops_on_the_way", hops)])));
        let said = ended.expect_err("the run ends").downcast::<Misbehaved>().expect("with the controller's fault").0;
        let line = 1 + TOLD.lines().position(|text| text.contains("must(count")).expect("it is there");
        assert!(said.contains(&format!("on_telemetry leaves a window of -{line} packets")), "{said}");
    }
    for (needs, hook) in [("needs_delivery_rate", "on_lost"), ("needs_telemetry", "on_telemetry")] {
        let text = TOLD.replace(&format!(".{needs} = true"), &format!(".{needs} = false"));
        let error = inspect(&source(&text), None).expect_err("it is never called").to_string();
        assert!(error.contains(&format!("`.{needs} = true`, without which its {hook} is never called")), "{error}");
    }
}

#[test]
fn what_a_controller_in_plain_c_does_wrong_ends_the_run() {
    let message = |text: &str| {
        let ended = catch_unwind(AssertUnwindSafe(|| run(&plan(of_text("one.c", text, &[])), 1)));
        ended.expect_err("the run ends").downcast::<Misbehaved>().expect("with the controller's fault").0
    };
    for (statement, expected) in [
        ("s->window = 0.5;", "one.c: on_ack leaves a window of 0.5 packets, where 1 to 1073741824 are possible"),
        ("s->window = NAN;", "one.c: on_ack leaves a window of NaN packets, where 1 to 1073741824 are possible"),
        ("s->threshold = 0;", "one.c: on_ack leaves a threshold of 0 packets, where 1 or more are possible"),
        ("s->pacing_rate = -1;", "one.c: on_ack leaves a pacing rate of -1 bit/s, where 0 and 1 to 1e15 are possible"),
    ] {
        assert_eq!(
            message(&plain("", &format!("if (own->acks == 40) {statement} if (own->acks == 40) return;"))),
            expected
        );
    }
    let divides =
        plain("", "own->acks / (own->acks - 40);").replace("own->acks / ", "volatile uint64_t one = own->acks / ");
    let line = 1 + divides.lines().position(|line| line.contains("own->acks / ")).unwrap();
    assert_eq!(message(&divides), format!("one.c:{line}: divides by zero"));
    let stays = plain(".on_timeout = on_timeout", "").replace(
        "NARROWS_CONTROLLER(",
        "static void on_timeout(struct narrows_sender *s, bool repeated, const struct narrows_path *path) {}\nNARROWS_CONTROLLER(",
    );
    let mut cut = plan(of_text("one.c", &stays, &[]));
    cut.network.links.iter_mut().for_each(|link| link.loss = u32::MAX / 3);
    let ended = catch_unwind(AssertUnwindSafe(|| run(&cut, 1))).expect_err("the run ends");
    let said = ended.downcast::<Misbehaved>().expect("with the controller's fault").0;
    assert!(said.starts_with("one.c: on_timeout leaves a window of "), "{said}");
    let lacks = plain("", "").replace(".on_congestion = on_congestion, ", "");
    let error = inspect(&source(&lacks), None).expect_err("it is incomplete").to_string();
    assert_eq!(error, "the controller `one` of `one.bpf.c` lacks on_congestion");
    let beyond =
        plain("", "own[3].acks = 1;").replace(".state_size = sizeof(struct one)", ".state_size = sizeof(uint64_t)");
    let beyond = beyond.replace("own[3]", "own[1]");
    let expected = "one.c: on_ack writes beyond the 8 bytes of its state; state_size says how many it has";
    assert_eq!(message(&beyond), expected);
    let fewer = plain(".on_sent = on_sent", "").replace(
        "NARROWS_CONTROLLER(",
        "static void on_sent(struct narrows_sender *s, const struct narrows_path *path) {}\nNARROWS_CONTROLLER(",
    );
    let Err(Error::DoesNotCompile { messages, .. }) = inspect(&source(&fewer), None) else {
        panic!("it lacks an argument")
    };
    assert!(messages.contains("on_sent"), "{messages}");
}
