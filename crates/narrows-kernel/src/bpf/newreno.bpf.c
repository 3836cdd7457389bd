// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* NewReno with classic ECN [RFC 5681, RFC 3168]: the kernel's hooks drive the core. */
#include "newreno.core.h"

#define CONTROLLER newreno
#define PARAMETERS NEWRENO_PARAMETER_COUNT
#include "windowed.bpf.h"

SEC("struct_ops")
void BPF_PROG(newreno_begin, struct tcp_sock *tp)
{
	struct flow *flow;

	if (flow_refused(tp))
		return;
	flow = flow_begin(tp);
	if (!flow)
		return;
	newreno_init(&flow->cc, 0, &flow->path);
	windowed_publish(flow, &flow->cc.window);
}

SEC("struct_ops")
void BPF_PROG(newreno_end, struct tcp_sock *tp)
{
	flow_end(tp);
}

SEC("struct_ops")
u32 BPF_PROG(newreno_ssthresh, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return cc_max(tp->snd_cwnd / 2, CC_MIN_WINDOW);
	windowed_load(&flow->cc.window, tp);
	newreno_on_congestion(&flow->cc, 0, CC_CAUSE_LOSS, &flow->path);
	return windowed_threshold(&flow->cc.window);
}

SEC("struct_ops")
void BPF_PROG(newreno_avoid, struct tcp_sock *tp, u32 una, u32 acked)
{
	struct flow *flow = flow_of(tp);
	struct cc_ack ack;

	if (!flow)
		return;
	windowed_load(&flow->cc.window, tp);
	flow_read_path(flow, tp);
	flow_read_ack(&ack, flow, tp);
	ack.acked = acked;
	ack.in_order = 1;
	newreno_on_ack(&flow->cc, &ack, &flow->path);
	windowed_store(&flow->cc.window, tp);
	if (ack.una >= flow->rounds) {
		flow->rounds = ack.nxt;
		windowed_publish(flow, &flow->cc.window);
	}
}

SEC("struct_ops")
void BPF_PROG(newreno_state, struct tcp_sock *tp, u8 state)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return;
	windowed_count(flow, flow_phase(state), flow_phase(BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state)));
	windowed_load(&flow->cc.window, tp);
	windowed_publish(flow, &flow->cc.window);
}

SEC("struct_ops")
u32 BPF_PROG(newreno_undo, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	return flow ? windowed_undo(flow, &flow->cc.window, tp) : tp->snd_cwnd;
}

#define NEWRENO_OPS { \
	.init = (void *)newreno_begin, \
	.release = (void *)newreno_end, \
	.ssthresh = (void *)newreno_ssthresh, \
	.cong_avoid = (void *)newreno_avoid, \
	.set_state = (void *)newreno_state, \
	.undo_cwnd = (void *)newreno_undo, \
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED, \
	.name = "narrows_newreno", \
}

SEC(".struct_ops.link") struct tcp_congestion_ops newreno_linked = NEWRENO_OPS;
SEC(".struct_ops") struct tcp_congestion_ops newreno_plain = NEWRENO_OPS;
