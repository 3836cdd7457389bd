/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * For the controllers whose recovery the kernel owns: their window is the socket's. The kernel asks for a threshold when
 * an episode begins and reduces towards it [RFC 6937], repairs timeouts and restarts idle senders by itself.
 */
#ifndef NARROWS_WINDOWED_BPF_H
#define NARROWS_WINDOWED_BPF_H

#include "flow.bpf.h"
#include "window.core.h"

CC_INLINE void windowed_load(struct cc_window *w, struct tcp_sock *tp)
{
	u32 threshold = tp->snd_ssthresh;

	w->packets = cc_max(tp->snd_cwnd, 1);
	w->threshold = threshold >= TCP_INFINITE_SSTHRESH ? CC_NONE : threshold;
	w->credit = tp->snd_cwnd_cnt;
}

CC_INLINE u32 windowed_threshold(const struct cc_window *w)
{
	return cc_min(w->threshold, TCP_INFINITE_SSTHRESH);
}

CC_INLINE void windowed_store(const struct cc_window *w, struct tcp_sock *tp)
{
	tp->snd_cwnd = cc_max(cc_min(w->packets, tp->snd_cwnd_clamp), 1);
	tp->snd_cwnd_cnt = cc_min(w->credit, ~(u32)0);
	tp->snd_ssthresh = windowed_threshold(w);
}

CC_INLINE void windowed_publish(struct flow *flow, const struct cc_window *w)
{
	flow->record.window_q10 = w->packets << 10;
	flow->record.threshold = w->threshold;
	flow_publish(flow);
}

/* Counts an episode when the kernel enters its state: `old` is the state before. */
CC_INLINE void windowed_count(struct flow *flow, u32 phase, u32 old)
{
	if (phase == CC_LOSS)
		flow->record.timeouts += 1;
	else if (phase == CC_RECOVERY && old != CC_RECOVERY)
		flow->record.cuts_loss += 1;
	else if (phase == CC_ECN_REDUCTION && old == CC_OPEN)
		flow->record.cuts_ecn += 1;
}

/* The window that an undo restores: the larger one of now and before the cut [RFC 4015]. */
CC_INLINE u32 windowed_undo(struct flow *flow, struct cc_window *w, struct tcp_sock *tp)
{
	windowed_load(w, tp);
	cc_window_undo(w);
	flow->record.undone += 1;
	return w->packets;
}

#endif
