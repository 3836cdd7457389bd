// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* DCTCP [RFC 8257]: the kernel's hooks drive the core. */
#include "dctcp.core.h"

#define CONTROLLER dctcp
#define PARAMETERS DCTCP_PARAMETER_COUNT
#include "receiver.bpf.h"
#include "windowed.bpf.h"

CC_INLINE void publish(struct flow *flow)
{
	flow->record.alpha_q20 = flow->cc.alpha << 10;
	windowed_publish(flow, &flow->cc.window);
}

SEC("struct_ops")
void BPF_PROG(dctcp_begin, struct tcp_sock *tp)
{
	struct flow *flow;

	if (flow_refused(tp))
		return;
	flow = flow_begin(tp);
	if (!flow)
		return;
	dctcp_init(&flow->cc, flow_parameters(flow->record.namespace_cookie), &flow->path);
	publish(flow);
}

SEC("struct_ops")
void BPF_PROG(dctcp_end, struct tcp_sock *tp)
{
	flow_end(tp);
}

/* Called on every acknowledgement, before the kernel decides on an episode: alpha is up to date when it asks for a cut. */
SEC("struct_ops")
void BPF_PROG(dctcp_in_ack, struct tcp_sock *tp, u32 flags)
{
	struct flow *flow = flow_of(tp);
	const u64 *changed;
	struct cc_ack ack;

	if (!flow)
		return;
	changed = flow_changed_parameters(flow);
	if (changed)
		dctcp_configure(&flow->cc, changed, &flow->path);
	flow_read_path(flow, tp);
	flow_read_ack(&ack, flow, tp);
	if (dctcp_measure(&flow->cc, &ack)) {
		windowed_load(&flow->cc.window, tp);
		publish(flow);
	}
}

SEC("struct_ops")
void BPF_PROG(dctcp_avoid, struct tcp_sock *tp, u32 una, u32 acked)
{
	struct flow *flow = flow_of(tp);
	struct cc_ack ack = {};

	if (!flow)
		return;
	windowed_load(&flow->cc.window, tp);
	ack.acked = acked;
	ack.in_order = 1;
	ack.max_in_flight = tp->max_packets_out;
	ack.limited_by = flow_limited_by(tp);
	ack.phase = flow_phase(BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state));
	dctcp_grow(&flow->cc, &ack);
	windowed_store(&flow->cc.window, tp);
}

/* The kernel does not tell why it asks: an echo's cut, which a loss then replaces. */
SEC("struct_ops")
u32 BPF_PROG(dctcp_ssthresh, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return cc_max(tp->snd_cwnd / 2, CC_MIN_WINDOW);
	windowed_load(&flow->cc.window, tp);
	dctcp_on_congestion(&flow->cc, 0, CC_CAUSE_ECN, &flow->path);
	return windowed_threshold(&flow->cc.window);
}

CC_INLINE void lost(struct flow *flow, struct tcp_sock *tp)
{
	windowed_load(&flow->cc.window, tp);
	dctcp_on_congestion(&flow->cc, 0, CC_CAUSE_LOSS, &flow->path);
	tp->snd_ssthresh = windowed_threshold(&flow->cc.window);
}

SEC("struct_ops")
void BPF_PROG(dctcp_state, struct tcp_sock *tp, u8 state)
{
	u32 old = flow_phase(BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state));
	struct flow *flow = flow_of(tp);
	u32 phase = flow_phase(state);

	if (!flow)
		return;
	windowed_count(flow, phase, old);
	if (phase == CC_RECOVERY && old != CC_RECOVERY)
		lost(flow, tp);
	if (phase == CC_LOSS) {
		flow_read_path(flow, tp);
		dctcp_begin_window(&flow->cc, flow->path.nxt);
	}
	windowed_load(&flow->cc.window, tp);
	publish(flow);
}

SEC("struct_ops")
void BPF_PROG(dctcp_event, struct tcp_sock *tp, u32 event)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return;
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		receiver_event(flow, tp, event);
	else if (event == CA_EVENT_LOSS)
		lost(flow, tp);
}

SEC("struct_ops")
u32 BPF_PROG(dctcp_undo, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	return flow ? windowed_undo(flow, &flow->cc.window, tp) : tp->snd_cwnd;
}

#define DCTCP_OPS { \
	.init = (void *)dctcp_begin, \
	.release = (void *)dctcp_end, \
	.in_ack_event = (void *)dctcp_in_ack, \
	.ssthresh = (void *)dctcp_ssthresh, \
	.cong_avoid = (void *)dctcp_avoid, \
	.set_state = (void *)dctcp_state, \
	.cwnd_event = (void *)dctcp_event, \
	.undo_cwnd = (void *)dctcp_undo, \
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED, \
	.name = "narrows_dctcp", \
}

SEC(".struct_ops.link") struct tcp_congestion_ops dctcp_linked = DCTCP_OPS;
SEC(".struct_ops") struct tcp_congestion_ops dctcp_plain = DCTCP_OPS;
