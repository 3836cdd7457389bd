/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Vegas: keeps a few packets of its own in the queues [Vegas §3.2]. Twin of narrows-core's cc/vegas.rs. */
#ifndef NARROWS_VEGAS_CORE_H
#define NARROWS_VEGAS_CORE_H

#include "window.core.h"

/* In the order of the Rust controller's Spec, each an integer of its kind. */
#define VEGAS_PARAMETERS(X) \
	X(VEGAS_ALPHA, "alpha") \
	X(VEGAS_BETA, "beta") \
	X(VEGAS_GAMMA, "gamma")

#define VEGAS_INDEX(index, name) index,
enum vegas_parameter { VEGAS_PARAMETERS(VEGAS_INDEX) VEGAS_PARAMETER_COUNT };

struct vegas {
	struct cc_window window;
	u64 alpha;		/* packets */
	u64 beta;
	u64 gamma;
	u64 active;		/* judges queues: not from an episode's begin until it is over */
	u64 phase;		/* enum cc_phase */
	u64 round_end;		/* the round ends when data beyond this is acknowledged */
	u64 base_us;		/* minimum RTT since the start or an idle period, microseconds plus one */
	u64 least_us;		/* the same of this round, and its samples */
	u64 samples;
};

/* Its state as the Rust controller's, for the twin test: kind, name there, value. */
#define VEGAS_STATE(X, v) \
	X(U64, "alpha", v->alpha) \
	X(U64, "beta", v->beta) \
	X(U64, "gamma", v->gamma) \
	X(WINDOW, "window", &v->window) \
	X(BOOL, "active", v->active) \
	X(PHASE, "phase", v->phase) \
	X(TYPE, "round_end", "Seq", v->round_end) \
	X(U64, "base_us", v->base_us) \
	X(U64, "least_us", v->least_us) \
	X(U64, "samples", v->samples)

CC_INLINE void vegas_configure(struct vegas *v, const u64 *parameters, const struct cc_path *path)
{
	v->alpha = parameters[VEGAS_ALPHA];
	v->beta = parameters[VEGAS_BETA];
	v->gamma = parameters[VEGAS_GAMMA];
}

CC_INLINE void vegas_init(struct vegas *v, const u64 *parameters, const struct cc_path *path)
{
	cc_window_init(&v->window, path->initial_window);
	vegas_configure(v, parameters, path);
	v->active = 1;
	v->phase = CC_OPEN;
	v->round_end = 0;
	v->base_us = CC_NONE;
	v->least_us = CC_NONE;
	v->samples = 0;
}

CC_INLINE void vegas_begin_round(struct vegas *v, u64 nxt)
{
	v->round_end = nxt;
	v->least_us = CC_NONE;
	v->samples = 0;
}

/* With nothing in flight the path may have changed: even the base RTT is measured anew, after a timeout, too. */
CC_INLINE void vegas_restart(struct vegas *v, u64 nxt)
{
	v->base_us = CC_NONE;
	v->active = 1;
	vegas_begin_round(v, nxt);
}

CC_INLINE void vegas_sample(struct vegas *v, u64 rtt_us)
{
	u64 us = cc_saturating_add(rtt_us, 1);

	v->base_us = cc_min(v->base_us, us);
	v->least_us = cc_min(v->least_us, us);
	v->samples += 1;
}

/* Sampling stops when an episode begins and starts afresh when it is over. */
CC_INLINE void vegas_follow(struct vegas *v, u64 phase, u64 nxt)
{
	if (phase == v->phase)
		return;
	v->phase = phase;
	v->active = phase == CC_OPEN;
	if (v->active)
		vegas_begin_round(v, nxt);
}

/* The once-per-round decision [Vegas §3.2]. Packets below 2^31 times microseconds below 2^32 fit 64 bits. */
CC_INLINE void vegas_decide(struct vegas *v, const struct cc_ack *ack)
{
	struct cc_window *w = &v->window;
	u64 packets = w->packets;
	u64 target, queued;

	if (v->samples <= 2) {
		/* Too few samples to trust: one of them may be a delayed acknowledgement. */
		if (cc_window_was_used(w, ack))
			cc_window_grow(w, ack->acked);
		return;
	}
	target = packets * v->base_us / v->least_us;
	queued = packets * cc_saturating_sub(v->least_us, v->base_us) / v->base_us;
	if (cc_window_in_slow_start(w)) {
		if (queued > v->gamma) {
			w->packets = cc_min(packets, target + 1);
			w->threshold = cc_min(w->threshold, w->packets);
		} else {
			/* At the threshold the rest is not used: growth is decided once per round. */
			cc_window_slow_start(w, ack->acked);
		}
	} else if (queued > v->beta) {
		w->packets -= 1;
		w->threshold = cc_min(w->threshold, w->packets);
	} else if (queued < v->alpha) {
		w->packets += 1;
	}
	w->packets = cc_max(w->packets, CC_MIN_WINDOW);
	w->threshold = cc_max(w->threshold, (w->packets >> 1) + (w->packets >> 2));
}

/* Returns whether a round ended. */
CC_INLINE int vegas_judge(struct vegas *v, const struct cc_ack *ack)
{
	if (!cc_may_grow(ack))
		return 0;
	if (!v->active) {
		if (cc_window_was_used(&v->window, ack))
			cc_window_grow(&v->window, ack->acked);
	} else if (ack->una > v->round_end) {
		vegas_decide(v, ack);
		vegas_begin_round(v, ack->nxt);
		return 1;
	} else if (cc_window_in_slow_start(&v->window)) {
		cc_window_slow_start(&v->window, ack->acked);
	}
	return 0;
}

CC_INLINE void vegas_on_ack(struct vegas *v, const struct cc_ack *ack, const struct cc_path *path)
{
	if (ack->rtt_us != CC_NONE)
		vegas_sample(v, ack->rtt_us);
	vegas_follow(v, ack->phase, ack->nxt);
	vegas_judge(v, ack);
}

CC_INLINE void vegas_on_congestion(struct vegas *v, u64 now_ns, u32 cause, const struct cc_path *path)
{
	cc_window_cut(&v->window, v->window.packets / 2);
}

CC_INLINE void vegas_on_timeout(struct vegas *v, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	cc_window_collapse(&v->window, v->window.packets / 2, repeated);
	v->active = 0;
	v->phase = CC_LOSS;
}

CC_INLINE void vegas_on_sent(struct vegas *v, u32 start, const struct cc_path *path)
{
	/* After idle time the round is that of the first segment, which the path counts as sent: the kernel tells of it before. */
	if (start)
		vegas_restart(v, start == CC_STARTS_IDLE ? path->una : path->nxt);
}

CC_INLINE void vegas_on_idle_restart(struct vegas *v, u64 idle_ns, const struct cc_path *path)
{
	cc_window_restart(&v->window, idle_ns, path);
	vegas_restart(v, path->nxt);
}

CC_INLINE void vegas_on_undo(struct vegas *v)
{
	cc_window_undo(&v->window);
}

#endif
