/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * GEMINI: one window for two kinds of network [GEMINI §III]. Twin of narrows-core's cc/gemini.rs and its arithmetic.
 *
 * Scales: windows in Q10 packets; alpha and relative cuts in Q20; F and h in Q10; H in Q36; RTTs in whole
 * microseconds; the bandwidth-delay product in bits. All divisions round down.
 */
#ifndef NARROWS_GEMINI_CORE_H
#define NARROWS_GEMINI_CORE_H

#include "minimum.core.h"
#include "window.core.h"

/* In the order of the Rust controller's Spec, each an integer of its kind: spans in picoseconds, choices by position. */
#define GEMINI_PARAMETERS(X) \
	X(GEMINI_CAPACITY, "capacity") \
	X(GEMINI_K, "k") \
	X(GEMINI_T, "t") \
	X(GEMINI_T_SHARE, "t-share") \
	X(GEMINI_BETA, "beta") \
	X(GEMINI_H, "h") \
	X(GEMINI_H_MIN, "h-min") \
	X(GEMINI_H_MAX, "h-max") \
	X(GEMINI_G_SHIFT, "g-shift") \
	X(GEMINI_INITIAL_ALPHA, "initial-alpha") \
	X(GEMINI_F, "f") \
	X(GEMINI_F_MAX, "f-max") \
	X(GEMINI_F_DCN_MAX, "f-dcn-max") \
	X(GEMINI_ECN, "ecn") \
	X(GEMINI_DELAY, "delay") \
	X(GEMINI_GROW_DURING_CUT_ROUND, "grow-during-cut-round") \
	X(GEMINI_GATE, "gate") \
	X(GEMINI_DELAY_WINDOW, "delay-window") \
	X(GEMINI_LOSS_RESPONSE, "loss-response") \
	X(GEMINI_RTT_BASE_WINDOW, "rtt-base-window") \
	X(GEMINI_ROUTE_CHANGE_AFTER, "route-change-after") \
	X(GEMINI_WINDOW_FRACTION, "window-fraction") \
	X(GEMINI_PACING, "pacing") \
	X(GEMINI_PACING_GAIN_SLOW_START, "pacing-gain-slow-start") \
	X(GEMINI_PACING_GAIN, "pacing-gain")

#define GEMINI_INDEX(index, name) index,
enum gemini_parameter { GEMINI_PARAMETERS(GEMINI_INDEX) GEMINI_PARAMETER_COUNT };

#define GEMINI_ONE_Q10 ((u64)1 << 10)
#define GEMINI_ONE_Q20 ((u64)1 << 20)
#define GEMINI_MIN_WINDOW (2 * GEMINI_ONE_Q10)
/* 2^30 packets, so that a window times a Q20 fraction fits 64 bits. */
#define GEMINI_MAX_WINDOW (GEMINI_ONE_Q10 << 30)

/* The parameters, resolved. */
struct gemini_config {
	u64 capacity_bps;
	u64 k;
	u64 t_us;
	u64 t_share;
	u64 beta;
	u64 h;
	u64 h_least;
	u64 h_most;
	u64 g_shift;
	u64 fixed_factor;	/* CC_NONE: from the equation */
	u64 factor_most;
	u64 ecn_cut_most;
	u64 ecn;
	u64 delay;
	u64 grow_during_cut_round;
	u64 gate_by_timer;
	u64 fresh_samples;
	u64 halve_on_loss;
	u64 route_change_after;
	u64 carries_fraction;
	u64 pacing;
	u64 gain_slow_start;
	u64 gain;
	u64 packet_bits;
};

struct gemini {
	struct gemini_config config;
	u64 window;		/* CWND, Q10 packets */
	u64 threshold;		/* Q10 packets; CC_NONE where there is none yet */
	u64 credit;		/* remainder of additive increases, in units of 1/window */
	u64 alpha;		/* Q20 */
	u64 acked;
	u64 marked;
	u64 window_end;		/* end of the window of data over which alpha and RTT_min are measured */
	u64 rtt_current_us;	/* RTT_min so far in this window, and of the one before; or CC_NONE */
	u64 rtt_previous_us;
	struct cc_minimum rtt_base_us;
	u64 factor;		/* F and h at the present RTT_base, Q10 */
	u64 step;
	u64 cut_end;		/* the next cut waits until this is acknowledged */
	u64 last_cut_ns;
	u64 has_last_cut;
	u64 last_cut_was_loss;
	u64 fresh_from;		/* delay samples count on packets from here on */
	u64 futile_cuts;
	u64 futile_windows;
	u64 carried;		/* of the window's fractions, what no packet was sent for, Q10 */
	u64 pacing_bps;		/* in IP bytes; 0 for none */
	u64 before_window;	/* before the last loss, for an undo */
	u64 before_threshold;
	u64 has_before;
};

/* Its state as the Rust controller's, for the twin test: kind, name there, value. */
#define GEMINI_CONFIG_STATE(X, g) \
	X(U64, "capacity_bps", g->config.capacity_bps) \
	X(U64, "k", g->config.k) \
	X(U64, "t_us", g->config.t_us) \
	X(U64, "t_share", g->config.t_share) \
	X(U64, "beta", g->config.beta) \
	X(U64, "h", g->config.h) \
	X(U64, "h_least", g->config.h_least) \
	X(U64, "h_most", g->config.h_most) \
	X(U64, "g_shift", g->config.g_shift) \
	X(SOME, "fixed_factor", g->config.fixed_factor) \
	X(U64, "factor_most", g->config.factor_most) \
	X(U64, "ecn_cut_most", g->config.ecn_cut_most) \
	X(BOOL, "ecn", g->config.ecn) \
	X(BOOL, "delay", g->config.delay) \
	X(BOOL, "grow_during_cut_round", g->config.grow_during_cut_round) \
	X(BOOL, "gate_by_timer", g->config.gate_by_timer) \
	X(BOOL, "fresh_samples", g->config.fresh_samples) \
	X(BOOL, "halve_on_loss", g->config.halve_on_loss) \
	X(U64, "route_change_after", g->config.route_change_after) \
	X(BOOL, "carries_fraction", g->config.carries_fraction) \
	X(BOOL, "pacing", g->config.pacing) \
	X(U64, "gain_slow_start", g->config.gain_slow_start) \
	X(U64, "gain", g->config.gain) \
	X(U64, "packet_bits", g->config.packet_bits)

#define GEMINI_STATE(X, g) \
	STRUCT("config", "Config", GEMINI_CONFIG_STATE, g) \
	X(U64, "window", g->window) \
	X(U64, "threshold", g->threshold) \
	X(U64, "credit", g->credit) \
	X(U64, "alpha", g->alpha) \
	X(U64, "acked", g->acked) \
	X(U64, "marked", g->marked) \
	X(TYPE, "window_end", "Seq", g->window_end) \
	X(SOME, "rtt_current", g->rtt_current_us) \
	X(SOME, "rtt_previous", g->rtt_previous_us) \
	X(MINIMUM, "rtt_base", &g->rtt_base_us) \
	X(U64, "factor", g->factor) \
	X(U64, "step", g->step) \
	X(TYPE, "cut_end", "Seq", g->cut_end) \
	X(SOME_TYPE, "last_cut", g->has_last_cut, "Time", g->last_cut_ns * 1000) \
	X(BOOL, "last_cut_was_loss", g->last_cut_was_loss) \
	X(TYPE, "fresh_from", "Seq", g->fresh_from) \
	X(U64, "futile_cuts", g->futile_cuts) \
	X(U64, "futile_windows", g->futile_windows) \
	X(U64, "carried", g->carried) \
	X(SOME_TYPE, "pacing", g->pacing_bps, "Rate", g->pacing_bps) \
	X(PAIR, "before", g->has_before, g->before_window, g->before_threshold)

/* Bits of a set of signals. */
#define GEMINI_SIGNAL_ECN 1
#define GEMINI_SIGNAL_DELAY 2

/* C*RTT in bits. */
CC_INLINE u64 gemini_bandwidth_delay_bits(u64 capacity_bps, u64 rtt_us)
{
	return cc_saturating_mul(capacity_bps, rtt_us) / 1000000;
}

/* T = max(least, share*RTT_base) in microseconds, the share in Q20. */
CC_INLINE u64 gemini_delay_threshold(u64 least_us, u64 share, u64 base_us)
{
	return cc_max(cc_saturating_mul(base_us, share) >> 20, least_us);
}

/* F = 4K/(C*RTT + K) [GEMINI Theorem 1]. */
CC_INLINE u64 gemini_scale_factor(u64 k, u64 bandwidth_delay_bits, u64 packet_bits)
{
	u64 k_bits = cc_saturating_mul(k, packet_bits);
	u64 whole = cc_saturating_add(bandwidth_delay_bits, k_bits);

	return cc_saturating_mul(k_bits, 4 * GEMINI_ONE_Q10) / cc_max(whole, 1);
}

/* h = H*C*RTT packets per RTT, between its limits [GEMINI §III-B, §III-D]. */
CC_INLINE u64 gemini_additive_step(u64 h_q36, u64 bandwidth_delay_bits, u64 least, u64 most)
{
	u64 step = cc_saturating_mul(bandwidth_delay_bits, h_q36) >> 26;

	return cc_min(cc_max(step, least), most);
}

/* The marked fraction of a window's packets, Q20; both counts are below 2^44. */
CC_INLINE u64 gemini_marked_fraction(u64 marked, u64 acked)
{
	return cc_min((marked << 20) / cc_max(acked, 1), GEMINI_ONE_Q20);
}

/* alpha <- (1-g)*alpha + g*M with g = 2^-shift [DCTCP eq. 1]; each shift rounds down. */
CC_INLINE u64 gemini_average(u64 alpha, u64 fraction, u64 shift)
{
	return alpha - (alpha >> shift) + (fraction >> shift);
}

/* f_dcn = min(alpha*F, most): alpha is at most 2^20 and F at most 2^20 [GEMINI §III-C]. */
CC_INLINE u64 gemini_ecn_cut(u64 alpha, u64 factor, u64 most)
{
	return cc_min((alpha * factor) >> 10, most);
}

/* W <- W*(1-f), at least GEMINI_MIN_WINDOW, never more than W. */
CC_INLINE u64 gemini_reduce(u64 window, u64 fraction)
{
	u64 reduced = (window * (GEMINI_ONE_Q20 - cc_min(fraction, GEMINI_ONE_Q20))) >> 20;

	return cc_max(reduced, cc_min(window, GEMINI_MIN_WINDOW));
}

CC_INLINE int gemini_in_slow_start(const struct gemini *g)
{
	return g->window < g->threshold;
}

/* F and h depend on RTT_base alone. */
CC_INLINE void gemini_follow_base(struct gemini *g)
{
	const struct gemini_config *c = &g->config;
	u64 base = cc_minimum_value(&g->rtt_base_us);
	u64 bits = gemini_bandwidth_delay_bits(c->capacity_bps, base == CC_NONE ? 0 : base);
	u64 factor = gemini_scale_factor(c->k, bits, c->packet_bits);

	g->factor = cc_min(c->fixed_factor == CC_NONE ? factor : c->fixed_factor, c->factor_most);
	g->step = gemini_additive_step(c->h, bits, c->h_least, c->h_most);
}

/*
 * gain*CWND/SRTT in IP bits per second, rounded down, at least 1. The product has up to 84 bits: it is formed and divided
 * in digits of 32.
 */
CC_INLINE u64 gemini_rate(u64 window, u64 gain, u64 packet_bytes, u64 srtt_eighth_us)
{
	/* window/2^10 * gain/2^10 * 8 bits * 8e6 eighths of a us per second = windows * gain * 15625 / 2^8. */
	u64 left = window * gain;
	u64 right = packet_bytes * 15625;
	u64 low = (left & 0xffffffff) * right;
	u64 high = (left >> 32) * right + (low >> 32);
	u64 first = (high >> 32) / srtt_eighth_us;
	u64 rest = ((high >> 32) % srtt_eighth_us) << 32 | (high & 0xffffffff);
	u64 second = rest / srtt_eighth_us;
	u64 third;

	rest = (rest % srtt_eighth_us) << 32 | (low & 0xffffffff);
	third = rest / srtt_eighth_us;
	if (first >> 8)
		return CC_NONE;
	return cc_max(first << 56 | second << 24 | third >> 8, 1);
}

CC_INLINE void gemini_pace(struct gemini *g, const struct cc_path *path)
{
	u64 gain = gemini_in_slow_start(g) ? g->config.gain_slow_start : g->config.gain;

	g->pacing_bps = 0;
	if (g->config.pacing && path->srtt_eighth_us)
		g->pacing_bps = gemini_rate(g->window, gain, path->packet_bytes, path->srtt_eighth_us);
}

CC_INLINE void gemini_resolve(struct gemini_config *c, const u64 *parameters, const struct cc_path *path)
{
	c->capacity_bps = parameters[GEMINI_CAPACITY];
	if (c->capacity_bps == CC_NONE)
		c->capacity_bps = path->line_rate_bps;
	/* 50 packets per Gbit/s are one packet per 20 Mbit/s [GEMINI Table IV]. */
	c->k = parameters[GEMINI_K];
	if (c->k == CC_NONE)
		c->k = cc_max(c->capacity_bps / 20000000, 1);
	c->t_us = parameters[GEMINI_T] / 1000000;
	c->t_share = parameters[GEMINI_T_SHARE];
	c->beta = parameters[GEMINI_BETA];
	c->h = parameters[GEMINI_H];
	c->h_least = parameters[GEMINI_H_MIN];
	c->h_most = parameters[GEMINI_H_MAX];
	c->g_shift = parameters[GEMINI_G_SHIFT];
	c->fixed_factor = parameters[GEMINI_F];
	c->factor_most = parameters[GEMINI_F_MAX];
	c->ecn_cut_most = parameters[GEMINI_F_DCN_MAX];
	c->ecn = parameters[GEMINI_ECN];
	c->delay = parameters[GEMINI_DELAY];
	c->grow_during_cut_round = parameters[GEMINI_GROW_DURING_CUT_ROUND];
	c->gate_by_timer = parameters[GEMINI_GATE] == 1;
	c->fresh_samples = parameters[GEMINI_DELAY_WINDOW] == 0;
	c->halve_on_loss = parameters[GEMINI_LOSS_RESPONSE] == 0;
	c->route_change_after = parameters[GEMINI_ROUTE_CHANGE_AFTER];
	c->carries_fraction = parameters[GEMINI_WINDOW_FRACTION] == 1;
	c->pacing = parameters[GEMINI_PACING];
	c->gain_slow_start = parameters[GEMINI_PACING_GAIN_SLOW_START];
	c->gain = parameters[GEMINI_PACING_GAIN];
	c->packet_bits = path->packet_bytes * 8;
}

/* Parameters changed while the flow lives: alpha's first value is past, pacing follows at the next acknowledgement. */
CC_INLINE void gemini_configure(struct gemini *g, const u64 *parameters, const struct cc_path *path)
{
	gemini_resolve(&g->config, parameters, path);
	g->rtt_base_us.window = parameters[GEMINI_RTT_BASE_WINDOW] / 1000000;
	gemini_follow_base(g);
}

/* Packets: the window, with what was carried of its fraction. */
CC_INLINE u64 gemini_window(const struct gemini *g)
{
	return (g->window + g->carried) / GEMINI_ONE_Q10;
}

CC_INLINE u64 gemini_initial_window(const struct cc_path *path)
{
	return cc_min(cc_max(path->initial_window, 1), GEMINI_MAX_WINDOW / GEMINI_ONE_Q10) * GEMINI_ONE_Q10;
}

CC_INLINE void gemini_init(struct gemini *g, const u64 *parameters, const struct cc_path *path)
{
	g->window = gemini_initial_window(path);
	g->threshold = CC_NONE;
	g->credit = 0;
	g->alpha = parameters[GEMINI_INITIAL_ALPHA];
	g->acked = 0;
	g->marked = 0;
	g->window_end = 0;
	g->rtt_current_us = CC_NONE;
	g->rtt_previous_us = CC_NONE;
	cc_minimum_init(&g->rtt_base_us, 0);
	g->cut_end = 0;
	g->last_cut_ns = 0;
	g->has_last_cut = 0;
	g->last_cut_was_loss = 0;
	g->fresh_from = 0;
	g->futile_cuts = 0;
	g->futile_windows = 0;
	g->carried = 0;
	g->before_window = 0;
	g->before_threshold = 0;
	g->has_before = 0;
	gemini_configure(g, parameters, path);
	gemini_pace(g, path);
}

CC_INLINE void gemini_begin_window(struct gemini *g, u64 nxt)
{
	g->acked = 0;
	g->marked = 0;
	g->rtt_current_us = CC_NONE;
	g->window_end = nxt;
}

/* RTT_min of the previous window above RTT_base + T [GEMINI Algorithm 1]. */
CC_INLINE int gemini_delayed(const struct gemini *g)
{
	u64 base = cc_minimum_value(&g->rtt_base_us);
	u64 threshold = gemini_delay_threshold(g->config.t_us, g->config.t_share, base);

	return g->config.delay && g->rtt_previous_us != CC_NONE && base != CC_NONE &&
	       g->rtt_previous_us > cc_saturating_add(base, threshold);
}

/* A delay that outlives many cuts may be a path that became longer: if asked to, RTT_base follows it. */
CC_INLINE void gemini_watch_route(struct gemini *g, u64 now_us)
{
	u64 patience = g->config.route_change_after;

	g->futile_windows = g->window <= GEMINI_MIN_WINDOW ? g->futile_windows + 1 : 0;
	if (g->rtt_previous_us == CC_NONE)
		return;
	if (!gemini_delayed(g)) {
		g->futile_cuts = 0;
		g->futile_windows = 0;
	} else if (patience > 0 && cc_max(g->futile_cuts, g->futile_windows) >= patience) {
		cc_minimum_reset(&g->rtt_base_us, now_us, g->rtt_previous_us);
		g->futile_cuts = 0;
		g->futile_windows = 0;
	}
}

CC_INLINE void gemini_measure(struct gemini *g, const struct cc_ack *ack, const struct cc_path *path)
{
	u64 known = cc_minimum_value(&g->rtt_base_us);
	u64 now_us = ack->now_ns / 1000;

	/* The handshake's RTT is a sample too; the transport's minimum holds it. */
	if (known == CC_NONE && path->min_rtt_us != CC_NONE)
		cc_minimum_update(&g->rtt_base_us, now_us, path->min_rtt_us);
	if (ack->rtt_us != CC_NONE) {
		cc_minimum_update(&g->rtt_base_us, now_us, ack->rtt_us);
		if (ack->rtt_seq >= g->fresh_from)
			g->rtt_current_us = cc_min(g->rtt_current_us, ack->rtt_us);
	}
	g->acked = cc_saturating_add(g->acked, ack->acked);
	g->marked = cc_saturating_add(g->marked, ack->marked);
	if (ack->una >= g->window_end) {
		if (g->config.ecn) {
			u64 fraction = gemini_marked_fraction(g->marked, g->acked);

			g->alpha = gemini_average(g->alpha, fraction, g->config.g_shift);
		}
		g->rtt_previous_us = g->rtt_current_us;
		g->carried = g->config.carries_fraction ? (g->window + g->carried) % GEMINI_ONE_Q10 : 0;
		gemini_begin_window(g, ack->nxt);
		gemini_watch_route(g, now_us);
	}
	if (cc_minimum_value(&g->rtt_base_us) != known)
		gemini_follow_base(g);
}

/* At most one cut per RTT. */
CC_INLINE int gemini_may_cut(const struct gemini *g, const struct cc_ack *ack)
{
	u64 base = cc_minimum_value(&g->rtt_base_us);

	if (!g->config.gate_by_timer)
		return ack->una >= g->cut_end;
	return !g->has_last_cut ||
	       cc_saturating_sub(ack->now_ns, g->last_cut_ns) > (base == CC_NONE ? 0 : base * 1000);
}

/* max(f_dcn, f_wan) [GEMINI Algorithm 1], Q20. */
CC_INLINE u64 gemini_relative_cut(const struct gemini *g, u32 signals)
{
	u64 ecn = 0;

	if (signals & GEMINI_SIGNAL_ECN)
		ecn = gemini_ecn_cut(g->alpha, g->factor, g->config.ecn_cut_most);
	return cc_max(ecn, signals & GEMINI_SIGNAL_DELAY ? g->config.beta : 0);
}

CC_INLINE void gemini_begin_cut_round(struct gemini *g, u64 now_ns, u64 nxt, u64 loss)
{
	g->credit = 0;
	g->cut_end = nxt;
	g->last_cut_ns = now_ns;
	g->has_last_cut = 1;
	g->last_cut_was_loss = loss;
}

/* What was sent before a delay cut says nothing about the window after it. */
CC_INLINE void gemini_forget_delay(struct gemini *g, u64 nxt)
{
	g->fresh_from = nxt;
	g->rtt_current_us = CC_NONE;
	g->rtt_previous_us = CC_NONE;
}

CC_INLINE void gemini_cut(struct gemini *g, u32 signals, const struct cc_ack *ack)
{
	g->window = gemini_reduce(g->window, gemini_relative_cut(g, signals));
	g->threshold = g->window;
	gemini_begin_cut_round(g, ack->now_ns, ack->nxt, 0);
	if (signals & GEMINI_SIGNAL_DELAY) {
		g->futile_cuts += 1;
		if (g->config.fresh_samples)
			gemini_forget_delay(g, ack->nxt);
	}
}

/* Pacing derives from the window, so waiting for it counts as use. */
CC_INLINE int gemini_window_was_used(const struct gemini *g, const struct cc_ack *ack)
{
	if (!ack->in_order)
		return 0;
	if (gemini_in_slow_start(g))
		return g->window / GEMINI_ONE_Q10 < ack->max_in_flight * 2;
	return ack->limited_by == CC_BY_WINDOW || ack->limited_by == CC_BY_PACING;
}

/*
 * W <- W + n*h/W. The remainder of the division is carried to the next call, so that steps far below one unit of Q10 add
 * up to exactly h per window. Packets below 2^32 and h of at most 2^20 keep the product within 2^62.
 */
CC_INLINE void gemini_increase(struct gemini *g, u64 acked)
{
	u64 credit = cc_saturating_add(g->credit, acked * g->step * GEMINI_ONE_Q10);
	u64 window = g->window;

	g->window = cc_min(window + credit / window, GEMINI_MAX_WINDOW);
	g->credit = credit % window;
}

/* Slow start up to the threshold; what is left of `acked` grows the window by h per RTT. */
CC_INLINE void gemini_grow(struct gemini *g, u64 acked)
{
	if (gemini_in_slow_start(g)) {
		u64 room = cc_saturating_sub(cc_min(g->threshold, GEMINI_MAX_WINDOW), g->window);
		u64 grown = cc_min(acked * GEMINI_ONE_Q10, room);

		g->window += grown;
		acked -= (grown + GEMINI_ONE_Q10 - 1) / GEMINI_ONE_Q10;
	}
	if (acked > 0)
		gemini_increase(g, acked);
}

/* Returns the signals that cut the window, 0 if none did. */
CC_INLINE u32 gemini_on_ack(struct gemini *g, const struct cc_ack *ack, const struct cc_path *path)
{
	u32 signals = 0, cut = 0;

	gemini_measure(g, ack, path);
	if (ack->ece && g->config.ecn)
		signals |= GEMINI_SIGNAL_ECN;
	if (gemini_delayed(g))
		signals |= GEMINI_SIGNAL_DELAY;
	if (ack->phase == CC_RECOVERY) {
		/* The loss was answered already. */
	} else if (ack->phase == CC_LOSS) {
		/* A timeout's repair is slow start as in any TCP [RFC 5681 §3.1]. */
		if (gemini_window_was_used(g, ack))
			gemini_grow(g, ack->acked);
	} else if (signals) {
		/* Cut already in this round: neither more nor less. */
		if (gemini_may_cut(g, ack)) {
			gemini_cut(g, signals, ack);
			cut = signals;
		}
	} else if (g->config.grow_during_cut_round || gemini_may_cut(g, ack)) {
		if (gemini_window_was_used(g, ack))
			gemini_grow(g, ack->acked);
	}
	gemini_pace(g, path);
	return cut;
}

/* Linux `tcp_current_ssthresh`: three quarters of the window at least [RFC 2861 §3.2]. */
CC_INLINE u64 gemini_current_threshold(const struct gemini *g)
{
	return cc_max(g->threshold, g->window / 2 + g->window / 4);
}

CC_INLINE void gemini_remember(struct gemini *g)
{
	g->before_window = g->window;
	g->before_threshold = gemini_current_threshold(g);
	g->has_before = 1;
}

/* A loss halves the window once per window of data, whatever ECN and delay did in it [RFC 8257 §3.5]; alpha stays. */
CC_INLINE int gemini_on_congestion(struct gemini *g, u64 now_ns, u32 cause, const struct cc_path *path)
{
	u32 signals = 0;

	if (cause == CC_CAUSE_ECN || (g->last_cut_was_loss && path->una < g->cut_end))
		return 0;
	gemini_remember(g);
	if (g->config.ecn)
		signals |= GEMINI_SIGNAL_ECN;
	if (gemini_delayed(g))
		signals |= GEMINI_SIGNAL_DELAY;
	g->window = gemini_reduce(g->window,
				  g->config.halve_on_loss ? GEMINI_ONE_Q20 / 2 : gemini_relative_cut(g, signals));
	g->threshold = cc_max(g->window, GEMINI_MIN_WINDOW);
	gemini_begin_cut_round(g, now_ns, path->nxt, 1);
	gemini_forget_delay(g, path->nxt);
	gemini_pace(g, path);
	return 1;
}

/* One packet, and slow start up to half of what there was [RFC 5681 §3.1]. */
CC_INLINE void gemini_on_timeout(struct gemini *g, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	if (!repeated) {
		gemini_remember(g);
		g->threshold = cc_max(g->window / 2, GEMINI_MIN_WINDOW);
	}
	g->window = GEMINI_ONE_Q10;
	gemini_begin_window(g, path->nxt);
	gemini_begin_cut_round(g, now_ns, path->nxt, 1);
	gemini_forget_delay(g, path->nxt);
	gemini_pace(g, path);
}

CC_INLINE void gemini_on_sent(struct gemini *g, u32 start, const struct cc_path *path)
{
	/* The first flight after the handshake is paced as well: its RTT is known by then. */
	if (!g->pacing_bps)
		gemini_pace(g, path);
}

/* As others: the kernel does it for any controller that leaves its window to the transport. Measurements of the window are
 * stale; RTT_base is not. */
CC_INLINE void gemini_on_idle_restart(struct gemini *g, u64 idle_ns, const struct cc_path *path)
{
	g->threshold = gemini_current_threshold(g);
	g->window = cc_after_idle(g->window, gemini_initial_window(path), idle_ns, path->rto_ns);
	g->credit = 0;
	gemini_begin_window(g, path->nxt);
	gemini_forget_delay(g, path->nxt);
	gemini_pace(g, path);
}

CC_INLINE void gemini_on_undo(struct gemini *g)
{
	if (!g->has_before)
		return;
	g->window = cc_max(g->window, g->before_window);
	g->threshold = cc_max(g->threshold, g->before_threshold);
	g->has_before = 0;
	/* No fewer packets than before the cut, whatever was carried then. */
	if (g->config.carries_fraction)
		g->carried = GEMINI_ONE_Q10 - 1;
	/* The cut is taken back: the next loss in the same window of data is answered. */
	g->last_cut_was_loss = 0;
}

#endif
