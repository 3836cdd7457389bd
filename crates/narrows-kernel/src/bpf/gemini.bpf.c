// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * GEMINI [GEMINI §III]: the kernel's hooks drive the core. With `cong_control` the kernel moves no window: this does, in
 * losses, timeouts and after idle periods too.
 */
#include "gemini.core.h"

#define CONTROLLER gemini
#define PARAMETERS GEMINI_PARAMETER_COUNT
#include "receiver.bpf.h"

CC_INLINE void publish(struct flow *flow)
{
	const struct gemini *g = &flow->cc;
	struct narrows_flow *record = &flow->record;

	record->window_q10 = g->window;
	record->threshold = g->threshold == CC_NONE ? CC_NONE : g->threshold / GEMINI_ONE_Q10;
	record->pacing_bps = g->pacing_bps;
	record->alpha_q20 = g->alpha;
	record->factor_q10 = g->factor;
	record->step_q10 = g->step;
	record->rtt_base_us = cc_minimum_value(&g->rtt_base_us);
	flow_publish(flow);
}

CC_INLINE u32 threshold(const struct gemini *g)
{
	return cc_min(g->threshold / GEMINI_ONE_Q10, TCP_INFINITE_SSTHRESH);
}

/* The kernel paces bytes of payload per second; the core states bits of IP packets. */
CC_INLINE u64 payload_rate(u64 bps, const struct cc_path *path, u64 mss)
{
	u64 packet_bits = cc_max(path->packet_bytes, 1) * 8;

	/* Below 2^47 the product fits; above, the rounding is less than one part in 10^8. */
	return bps < (u64)1 << 47 ? bps * mss / packet_bits : bps / packet_bits * mss;
}

/* States the window and the rate to the socket. */
CC_INLINE void apply(struct flow *flow, struct tcp_sock *tp)
{
	struct sock *sk = flow_sock(tp);
	u64 rate = CC_NONE;

	tp->snd_cwnd = cc_max(cc_min(gemini_window(&flow->cc), tp->snd_cwnd_clamp), 1);
	tp->snd_ssthresh = threshold(&flow->cc);
	if (flow->cc.config.pacing) {
		if (!flow->cc.pacing_bps)
			return;
		rate = cc_max(payload_rate(flow->cc.pacing_bps, &flow->path, tp->mss_cache), 1);
	}
	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = cc_min(rate, sk->sk_max_pacing_rate);
}

SEC("struct_ops")
void BPF_PROG(gemini_begin, struct tcp_sock *tp)
{
	struct flow *flow;

	if (flow_refused(tp))
		return;
	flow = flow_begin(tp);
	if (!flow)
		return;
	gemini_init(&flow->cc, flow_parameters(flow->record.namespace_cookie), &flow->path);
	/* The pacer of TCP itself, where no fair queue paces. */
	if (flow->cc.config.pacing && tp->inet_conn.icsk_inet.sk.sk_pacing_status == SK_PACING_NONE)
		tp->inet_conn.icsk_inet.sk.sk_pacing_status = SK_PACING_NEEDED;
	apply(flow, tp);
	publish(flow);
}

SEC("struct_ops")
void BPF_PROG(gemini_end, struct tcp_sock *tp)
{
	flow_end(tp);
}

CC_INLINE void count_cut(struct narrows_flow *record, u32 signals)
{
	if (signals == GEMINI_SIGNAL_ECN)
		record->cuts_ecn += 1;
	else if (signals == GEMINI_SIGNAL_DELAY)
		record->cuts_delay += 1;
	else if (signals)
		record->cuts_both += 1;
}

CC_INLINE void on_ack(struct tcp_sock *tp, u32 ece, const struct rate_sample *rs)
{
	struct flow *flow = flow_of(tp);
	const u64 *changed;
	struct cc_ack ack;
	u64 window_end;
	u32 signals;

	if (!flow)
		return;
	flow_read_path(flow, tp);
	changed = flow_changed_parameters(flow);
	if (changed)
		gemini_configure(&flow->cc, changed, &flow->path);
	flow_read_ack(&ack, flow, tp);
	ack.ece |= ece;
	if (rs->rtt_us > 0) {
		ack.rtt_us = cc_min(rs->rtt_us, ~(u32)0);
		/* The last byte of the segment: at or after a cut's edge exactly if the segment is. */
		ack.rtt_seq = ack.una + (s64)(s32)(rs->last_end_seq - tp->snd_una) - 1;
	}
	window_end = flow->cc.window_end;
	signals = gemini_on_ack(&flow->cc, &ack, &flow->path);
	apply(flow, tp);
	count_cut(&flow->record, signals);
	if (signals || flow->cc.window_end != window_end)
		publish(flow);
}

/* From Linux 6.10 on. */
SEC("struct_ops")
void BPF_PROG(gemini_control, struct tcp_sock *tp, u32 una, int flag, const struct rate_sample *rs)
{
	on_ack(tp, flag & FLAG_ECE ? 1 : 0, rs);
}

/* Before: echoes show as marked packets only. */
SEC("struct_ops")
void BPF_PROG(gemini_control_1, struct tcp_sock *tp, const struct rate_sample *rs)
{
	on_ack(tp, 0, rs);
}

/* Where an episode leads was decided in gemini_state or will be. */
SEC("struct_ops")
u32 BPF_PROG(gemini_ssthresh, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	return flow ? threshold(&flow->cc) : cc_max(tp->snd_cwnd / 2, CC_MIN_WINDOW);
}

SEC("struct_ops")
void BPF_PROG(gemini_state, struct tcp_sock *tp, u8 state)
{
	u32 old = flow_phase(BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state));
	struct flow *flow = flow_of(tp);
	u32 phase = flow_phase(state);

	if (!flow)
		return;
	if (phase == CC_RECOVERY && old != CC_RECOVERY) {
		flow_read_path(flow, tp);
		if (gemini_on_congestion(&flow->cc, bpf_ktime_get_ns(), CC_CAUSE_LOSS, &flow->path))
			flow->record.cuts_loss += 1;
	} else if (phase == CC_LOSS) {
		flow_read_path(flow, tp);
		gemini_on_timeout(&flow->cc, bpf_ktime_get_ns(), !flow->loss_event, &flow->path);
		flow->loss_event = 0;
		flow->record.timeouts += 1;
	} else {
		return;
	}
	apply(flow, tp);
	publish(flow);
}

/* Longer than the retransmission timeout: the kernel leaves that to who has `cong_control`. */
CC_INLINE void restart(struct flow *flow, struct tcp_sock *tp)
{
	u32 idle = (u32)bpf_jiffies64() - tp->lsndtime;

	flow_read_path(flow, tp);
	if ((s32)(idle - tp->inet_conn.icsk_rto) > 0) {
		/* Both in jiffies: how often one goes into the other is all that counts. */
		flow->path.rto_ns = tp->inet_conn.icsk_rto;
		gemini_on_idle_restart(&flow->cc, idle, &flow->path);
	} else
		gemini_on_sent(&flow->cc, 0, &flow->path);
	apply(flow, tp);
}

SEC("struct_ops")
void BPF_PROG(gemini_event, struct tcp_sock *tp, u32 event)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return;
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		receiver_event(flow, tp, event);
	else if (event == CA_EVENT_LOSS)
		flow->loss_event = 1;
	else if (event == CA_EVENT_TX_START)
		restart(flow, tp);
}

SEC("struct_ops")
u32 BPF_PROG(gemini_undo, struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return tp->snd_cwnd;
	gemini_on_undo(&flow->cc);
	flow->record.undone += 1;
	return gemini_window(&flow->cc);
}

/* A paced packet is a segment, as far as the host lets it be. */
SEC("struct_ops")
u32 BPF_PROG(gemini_burst, struct tcp_sock *tp)
{
	return 1;
}

#define GEMINI_OPS(control) { \
	.init = (void *)gemini_begin, \
	.release = (void *)gemini_end, \
	.cong_control = (void *)control, \
	.ssthresh = (void *)gemini_ssthresh, \
	.set_state = (void *)gemini_state, \
	.cwnd_event = (void *)gemini_event, \
	.undo_cwnd = (void *)gemini_undo, \
	.min_tso_segs = (void *)gemini_burst, \
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED, \
	.name = "narrows_gemini", \
}

SEC(".struct_ops.link") struct tcp_congestion_ops gemini_linked = GEMINI_OPS(gemini_control);
SEC(".struct_ops") struct tcp_congestion_ops gemini_plain = GEMINI_OPS(gemini_control);
SEC(".struct_ops.link") struct tcp_congestion_ops gemini_linked1 = GEMINI_OPS(gemini_control_1);
SEC(".struct_ops") struct tcp_congestion_ops gemini_plain1 = GEMINI_OPS(gemini_control_1);
