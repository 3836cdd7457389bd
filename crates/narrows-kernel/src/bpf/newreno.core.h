/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* NewReno: slow start, additive increase, halving [RFC 5681, RFC 6582]. Twin of narrows-core's cc/newreno.rs. */
#ifndef NARROWS_NEWRENO_CORE_H
#define NARROWS_NEWRENO_CORE_H

#include "window.core.h"

#define NEWRENO_PARAMETERS(X)

enum newreno_parameter { NEWRENO_PARAMETER_COUNT };

struct newreno {
	struct cc_window window;
};

/* Its state as the Rust controller's, for the twin test: kind, name there, value. */
#define NEWRENO_STATE(X, n) X(WINDOW, "window", &n->window)

CC_INLINE void newreno_init(struct newreno *n, const u64 *parameters, const struct cc_path *path)
{
	cc_window_init(&n->window, path->initial_window);
}

CC_INLINE void newreno_configure(struct newreno *n, const u64 *parameters, const struct cc_path *path)
{
}

CC_INLINE void newreno_on_ack(struct newreno *n, const struct cc_ack *ack, const struct cc_path *path)
{
	if (cc_may_grow(ack) && cc_window_was_used(&n->window, ack))
		cc_window_grow(&n->window, ack->acked);
}

/* Half the window, at least two packets, for losses and ECE alike [RFC 3168 §6.1.2]. */
CC_INLINE void newreno_on_congestion(struct newreno *n, u64 now_ns, u32 cause, const struct cc_path *path)
{
	cc_window_cut(&n->window, n->window.packets / 2);
}

CC_INLINE void newreno_on_timeout(struct newreno *n, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	cc_window_collapse(&n->window, n->window.packets / 2, repeated);
}

CC_INLINE void newreno_on_sent(struct newreno *n, u32 start, const struct cc_path *path)
{
}

CC_INLINE void newreno_on_idle_restart(struct newreno *n, u64 idle_ns, const struct cc_path *path)
{
	cc_window_restart(&n->window, idle_ns, path);
}

CC_INLINE void newreno_on_undo(struct newreno *n)
{
	cc_window_undo(&n->window);
}

#endif
