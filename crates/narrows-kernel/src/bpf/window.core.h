/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The window that most controllers move: twin of narrows-core's cc/parts/reno.rs. Packets below 2^31.
 *
 * In the kernel packets, threshold and credit are the socket's snd_cwnd, snd_ssthresh and snd_cwnd_cnt: they are loaded
 * before a call and stored after it.
 */
#ifndef NARROWS_WINDOW_CORE_H
#define NARROWS_WINDOW_CORE_H

#include "facts.core.h"

struct cc_window {
	u64 packets;		/* the window, at least 1 */
	u64 threshold;		/* slow-start threshold; CC_NONE where there is none yet */
	u64 credit;		/* packets acknowledged towards the next increment */
	u64 before_packets;	/* window and threshold before the last cut, for an undo */
	u64 before_threshold;
	u64 has_before;
};

CC_INLINE void cc_window_init(struct cc_window *w, u64 initial)
{
	w->packets = cc_max(initial, 1);
	w->threshold = CC_NONE;
	w->credit = 0;
	w->before_packets = 0;
	w->before_threshold = 0;
	w->has_before = 0;
}

CC_INLINE int cc_window_in_slow_start(const struct cc_window *w)
{
	return w->packets < w->threshold;
}

/* Whether the last round used the window: otherwise it must not grow [RFC 7661]. Waiting for the pacer is using it. */
CC_INLINE int cc_window_was_used(const struct cc_window *w, const struct cc_ack *ack)
{
	if (cc_window_in_slow_start(w))
		return w->packets < 2 * ack->max_in_flight;
	return ack->limited_by == CC_BY_WINDOW || ack->limited_by == CC_BY_PACING;
}

/* One packet more for each acknowledged, up to the threshold; returns what is left over [RFC 5681 §3.1]. */
CC_INLINE u64 cc_window_slow_start(struct cc_window *w, u64 acked)
{
	u64 grown = cc_min(w->packets + acked, w->threshold);
	u64 left = acked - (grown - w->packets);

	w->packets = grown;
	return left;
}

/* One packet more after every `per_packet` acknowledged. */
CC_INLINE void cc_window_add_after(struct cc_window *w, u64 per_packet, u64 acked)
{
	per_packet = cc_max(per_packet, 1);
	if (w->credit >= per_packet) {
		w->credit = 0;
		w->packets += 1;
	}
	w->credit += acked;
	if (w->credit >= per_packet) {
		u64 grown = w->credit / per_packet;

		w->credit -= grown * per_packet;
		w->packets += grown;
	}
}

/* Slow start, then one packet per window acknowledged. */
CC_INLINE void cc_window_grow(struct cc_window *w, u64 acked)
{
	u64 left = cc_window_in_slow_start(w) ? cc_window_slow_start(w, acked) : acked;

	if (left > 0)
		cc_window_add_after(w, w->packets, left);
}

/* Linux `tcp_current_ssthresh`: three quarters of the window at least. */
CC_INLINE u64 cc_window_threshold(const struct cc_window *w)
{
	return cc_max(w->threshold, (w->packets >> 1) + (w->packets >> 2));
}

/* Threshold and window to `to`, at least 2; both are remembered. A window of one packet stays so. */
CC_INLINE void cc_window_cut(struct cc_window *w, u64 to)
{
	w->before_packets = w->packets;
	w->before_threshold = cc_window_threshold(w);
	w->has_before = 1;
	w->threshold = cc_max(to, CC_MIN_WINDOW);
	w->packets = cc_min(w->packets, w->threshold);
	w->credit = 0;
}

/* After a timeout: threshold to `to`, window to one packet; where the loss was answered already, the threshold stays. */
CC_INLINE void cc_window_collapse(struct cc_window *w, u64 to, u32 repeated)
{
	if (!repeated)
		cc_window_cut(w, to);
	w->packets = 1;
	w->credit = 0;
}

CC_INLINE void cc_window_undo(struct cc_window *w)
{
	if (!w->has_before)
		return;
	w->packets = cc_max(w->packets, w->before_packets);
	w->threshold = cc_max(w->threshold, w->before_threshold);
	w->has_before = 0;
}

/* One halving of the window for each timeout's worth of idling, not below the initial window [RFC 2861]. Times in one unit, windows
 * in another. */
CC_INLINE u64 cc_after_idle(u64 window, u64 initial, u64 idle, u64 rto)
{
	u64 floor = cc_min(initial, window);

	for (int halvings = 0; halvings < 64; halvings++) {
		if (idle <= rto || window <= floor)
			break;
		idle -= rto;
		window >>= 1;
	}
	return cc_max(window, floor);
}

CC_INLINE void cc_window_restart(struct cc_window *w, u64 idle_ns, const struct cc_path *path)
{
	w->threshold = cc_window_threshold(w);
	w->packets = cc_after_idle(w->packets, path->initial_window, idle_ns, path->rto_ns);
}

#endif
