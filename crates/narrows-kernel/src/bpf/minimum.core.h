/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The least value of a sliding window: twin of WindowedMin in narrows-core's cc/parts/windowed.rs. Three best samples,
 * each newer than the one before it, so that a successor stands ready when the best grows too old.
 */
#ifndef NARROWS_MINIMUM_CORE_H
#define NARROWS_MINIMUM_CORE_H

#include "facts.core.h"

struct cc_sample {
	u64 at;
	u64 value;
};

struct cc_minimum {
	u64 window;
	struct cc_sample best[3];
};

CC_INLINE void cc_minimum_init(struct cc_minimum *m, u64 window)
{
	const struct cc_sample none = { 0, CC_NONE };

	m->window = window;
	m->best[0] = none;
	m->best[1] = none;
	m->best[2] = none;
}

/* CC_NONE before the first. */
CC_INLINE u64 cc_minimum_value(const struct cc_minimum *m)
{
	return m->best[0].value;
}

CC_INLINE void cc_minimum_reset(struct cc_minimum *m, u64 at, u64 value)
{
	const struct cc_sample only = { at, value };

	m->best[0] = only;
	m->best[1] = only;
	m->best[2] = only;
}

CC_INLINE void cc_minimum_update(struct cc_minimum *m, u64 at, u64 value)
{
	const struct cc_sample newest = { at, value };
	u64 age;

	if (value <= m->best[0].value || cc_saturating_sub(at, m->best[2].at) > m->window) {
		cc_minimum_reset(m, at, value);
		return;
	}
	if (value <= m->best[1].value) {
		m->best[1] = newest;
		m->best[2] = newest;
	} else if (value <= m->best[2].value) {
		m->best[2] = newest;
	}
	age = cc_saturating_sub(at, m->best[0].at);
	if (age > m->window) {
		m->best[0] = m->best[1];
		m->best[1] = m->best[2];
		m->best[2] = newest;
		if (cc_saturating_sub(at, m->best[0].at) > m->window) {
			m->best[0] = m->best[1];
			m->best[1] = m->best[2];
			m->best[2] = newest;
		}
	} else if (m->best[1].at == m->best[0].at && age > m->window / 4) {
		m->best[1] = newest;
		m->best[2] = newest;
	} else if (m->best[2].at == m->best[1].at && age > m->window / 2) {
		m->best[2] = newest;
	}
}

#endif
