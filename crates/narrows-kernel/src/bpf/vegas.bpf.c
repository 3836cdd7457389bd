// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Vegas [Vegas §3.2]: the kernel's hooks drive the core. */
#include "vegas.core.h"

#define CONTROLLER vegas
#define PARAMETERS VEGAS_PARAMETER_COUNT
#include "windowed.bpf.h"

CC_INLINE void publish(struct flow *flow)
{
	u64 base_us = flow->cc.base_us;

	flow->record.rtt_base_us = base_us == CC_NONE ? CC_NONE : base_us - 1;
	windowed_publish(flow, &flow->cc.window);
}

SEC("struct_ops")
void BPF_PROG(vegas_begin, struct tcp_sock *tp)
{
	struct flow *flow = flow_begin(tp);

	if (!flow)
		return;
	vegas_init(&flow->cc, flow_parameters(flow->record.namespace_cookie), &flow->path);
	vegas_begin_round(&flow->cc, flow->path.nxt);
	publish(flow);
}

SEC("struct_ops")
void BPF_PROG(vegas_end, struct tcp_sock *tp)
{
	flow_end(tp);
}

SEC("struct_ops")
void BPF_PROG(vegas_acked, struct tcp_sock *tp, const struct ack_sample *sample)
{
	struct flow *flow = flow_of(tp);

	if (flow && sample->rtt_us >= 0)
		vegas_sample(&flow->cc, (u32)sample->rtt_us);
}

SEC("struct_ops")
void BPF_PROG(vegas_avoid, struct tcp_sock *tp, u32 una, u32 acked)
{
	struct flow *flow = flow_of(tp);
	const u64 *changed;
	struct cc_ack ack;

	if (!flow)
		return;
	changed = flow_changed_parameters(flow);
	if (changed)
		vegas_configure(&flow->cc, changed, &flow->path);
	windowed_load(&flow->cc.window, tp);
	flow_read_path(flow, tp);
	flow_read_ack(&ack, flow, tp);
	ack.acked = acked;
	ack.in_order = 1;
	if (vegas_judge(&flow->cc, &ack)) {
		publish(flow);
	}
	windowed_store(&flow->cc.window, tp);
}

SEC("struct_ops")
u32 BPF_PROG(vegas_ssthresh, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return cc_max(tp->snd_cwnd / 2, CC_MIN_WINDOW);
	windowed_load(&flow->cc.window, tp);
	vegas_on_congestion(&flow->cc, 0, CC_CAUSE_LOSS, &flow->path);
	return windowed_threshold(&flow->cc.window);
}

SEC("struct_ops")
void BPF_PROG(vegas_state, struct tcp_sock *tp, u8 state)
{
	u32 old = flow_phase(BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state));
	struct flow *flow = flow_of(tp);
	u32 phase = flow_phase(state);

	if (!flow)
		return;
	windowed_count(flow, phase, old);
	flow_read_path(flow, tp);
	vegas_follow(&flow->cc, phase, flow->path.nxt);
	windowed_load(&flow->cc.window, tp);
	publish(flow);
}

SEC("struct_ops")
void BPF_PROG(vegas_event, struct tcp_sock *tp, u32 event)
{
	struct flow *flow = flow_of(tp);

	if (!flow || (event != CA_EVENT_TX_START && event != CA_EVENT_CWND_RESTART))
		return;
	flow_read_path(flow, tp);
	vegas_restart(&flow->cc, flow->path.nxt);
}

SEC("struct_ops")
u32 BPF_PROG(vegas_undo, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	return flow ? windowed_undo(flow, &flow->cc.window, tp) : tp->snd_cwnd;
}

#define VEGAS_OPS { \
	.init = (void *)vegas_begin, \
	.release = (void *)vegas_end, \
	.pkts_acked = (void *)vegas_acked, \
	.ssthresh = (void *)vegas_ssthresh, \
	.cong_avoid = (void *)vegas_avoid, \
	.set_state = (void *)vegas_state, \
	.cwnd_event = (void *)vegas_event, \
	.undo_cwnd = (void *)vegas_undo, \
	.flags = TCP_CONG_NON_RESTRICTED, \
	.name = "narrows_vegas", \
}

SEC(".struct_ops.link") struct tcp_congestion_ops vegas_linked = VEGAS_OPS;
SEC(".struct_ops") struct tcp_congestion_ops vegas_plain = VEGAS_OPS;
