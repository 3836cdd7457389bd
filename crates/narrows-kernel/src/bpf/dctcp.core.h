/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* DCTCP: cut in proportion to the fraction of marked packets [DCTCP, RFC 8257]. Twin of narrows-core's cc/dctcp.rs. */
#ifndef NARROWS_DCTCP_CORE_H
#define NARROWS_DCTCP_CORE_H

#include "window.core.h"

/* In the order of the Rust controller's Spec, each an integer of its kind. */
#define DCTCP_PARAMETERS(X) \
	X(DCTCP_G_SHIFT, "g-shift") \
	X(DCTCP_INITIAL_ALPHA, "initial-alpha")

#define DCTCP_INDEX(index, name) index,
enum dctcp_parameter { DCTCP_PARAMETERS(DCTCP_INDEX) DCTCP_PARAMETER_COUNT };

/* One, of alpha. */
#define DCTCP_ONE ((u64)1 << 10)

struct dctcp {
	struct cc_window window;
	u64 alpha;		/* 0..=1024 */
	u64 gain_shift;
	u64 acked;
	u64 marked;
	u64 window_end;		/* end of the window of data over which the fraction is measured */
};

/* Its state as the Rust controller's, for the twin test: kind, name there, value. */
#define DCTCP_STATE(X, d) \
	X(WINDOW, "window", &d->window) \
	X(U64, "alpha", d->alpha) \
	X(U64, "gain_shift", d->gain_shift) \
	X(U64, "acked", d->acked) \
	X(U64, "marked", d->marked) \
	X(TYPE, "window_end", "Seq", d->window_end)

CC_INLINE void dctcp_init(struct dctcp *d, const u64 *parameters, const struct cc_path *path)
{
	cc_window_init(&d->window, path->initial_window);
	d->alpha = parameters[DCTCP_INITIAL_ALPHA];
	d->gain_shift = parameters[DCTCP_G_SHIFT];
	d->acked = 0;
	d->marked = 0;
	d->window_end = 0;
}

/* A parameter changed while the flow lives; alpha's first value is past. */
CC_INLINE void dctcp_configure(struct dctcp *d, const u64 *parameters, const struct cc_path *path)
{
	d->gain_shift = parameters[DCTCP_G_SHIFT];
}

CC_INLINE void dctcp_begin_window(struct dctcp *d, u64 nxt)
{
	d->acked = 0;
	d->marked = 0;
	d->window_end = nxt;
}

/*
 * alpha <- (1-g)*alpha + g*F [DCTCP eq. 1, RFC 8257 §3.3], F = marked/acked, g = 2^-shift. Where g*alpha rounds to
 * nothing, alpha goes to 0 at once, so that a sender without marks gets there.
 */
CC_INLINE u64 dctcp_average(u64 alpha, u64 marked, u64 acked, u64 shift)
{
	u64 decay = alpha >> shift ? alpha >> shift : alpha;
	/* At most 2^10 times the marks of one window of data, which are below 2^32. */
	u64 share = marked * (DCTCP_ONE >> shift) / cc_max(acked, 1);

	return cc_min(alpha - decay + share, DCTCP_ONE);
}

/* Returns whether a window of data ended. */
CC_INLINE int dctcp_measure(struct dctcp *d, const struct cc_ack *ack)
{
	d->acked = cc_saturating_add(d->acked, ack->acked);
	d->marked = cc_saturating_add(d->marked, ack->marked);
	if (ack->una < d->window_end)
		return 0;
	d->alpha = dctcp_average(d->alpha, d->marked, d->acked, d->gain_shift);
	dctcp_begin_window(d, ack->nxt);
	return 1;
}

CC_INLINE void dctcp_grow(struct dctcp *d, const struct cc_ack *ack)
{
	if (cc_may_grow(ack) && cc_window_was_used(&d->window, ack))
		cc_window_grow(&d->window, ack->acked);
}

CC_INLINE void dctcp_on_ack(struct dctcp *d, const struct cc_ack *ack, const struct cc_path *path)
{
	dctcp_measure(d, ack);
	dctcp_grow(d, ack);
}

/* An echo takes alpha/2 of the window [DCTCP eq. 2, RFC 8257 §3.3]; a loss takes half [RFC 8257 §3.5]. alpha stays. */
CC_INLINE void dctcp_on_congestion(struct dctcp *d, u64 now_ns, u32 cause, const struct cc_path *path)
{
	u64 packets = d->window.packets;

	/* Packets are below 2^31 and alpha is at most 2^10. */
	cc_window_cut(&d->window, cause == CC_CAUSE_ECN ? packets - ((packets * d->alpha) >> 11) : packets / 2);
}

CC_INLINE void dctcp_on_timeout(struct dctcp *d, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	cc_window_collapse(&d->window, d->window.packets / 2, repeated);
	dctcp_begin_window(d, path->nxt);
}

CC_INLINE void dctcp_on_sent(struct dctcp *d, u32 start, const struct cc_path *path)
{
}

CC_INLINE void dctcp_on_idle_restart(struct dctcp *d, u64 idle_ns, const struct cc_path *path)
{
	cc_window_restart(&d->window, idle_ns, path);
}

CC_INLINE void dctcp_on_undo(struct dctcp *d)
{
	cc_window_undo(&d->window);
}

#endif
