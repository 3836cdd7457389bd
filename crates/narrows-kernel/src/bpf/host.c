/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The cores as functions of the host, for the twin test: the same headers that the BPF programs include. */
#include "dctcp.core.h"
#include "gemini.core.h"
#include "newreno.core.h"
#include "vegas.core.h"

/* A core behind pointers: its size, its parameters' names in the order in which it reads them, null after the last, and its hooks. */
struct twin {
	u64 size;
	const char *const *names;
	void (*init)(void *cc, const u64 *parameters, const struct cc_path *path);
	void (*configure)(void *cc, const u64 *parameters, const struct cc_path *path);
	void (*on_ack)(void *cc, const struct cc_ack *ack, const struct cc_path *path);
	void (*on_congestion)(void *cc, u64 now_ns, u32 cause, const struct cc_path *path);
	void (*on_timeout)(void *cc, u64 now_ns, u32 repeated, const struct cc_path *path);
	void (*on_sent)(void *cc, u32 was_idle, const struct cc_path *path);
	void (*on_idle_restart)(void *cc, u64 idle_ns, const struct cc_path *path);
	void (*on_undo)(void *cc);
};

#define NAME(index, name) name,
#define HOOK(cc, hook, arguments, ...) \
	static void cc##_twin_##hook arguments \
	{ \
		cc##_##hook(__VA_ARGS__); \
	}

#define TWIN(cc, NAMES) \
	static const char *const cc##_names[] = { NAMES(NAME) 0 }; \
	HOOK(cc, init, (void *s, const u64 *values, const struct cc_path *path), s, values, path) \
	HOOK(cc, configure, (void *s, const u64 *values, const struct cc_path *path), s, values, path) \
	HOOK(cc, on_ack, (void *s, const struct cc_ack *ack, const struct cc_path *path), s, ack, path) \
	HOOK(cc, on_congestion, (void *s, u64 now, u32 cause, const struct cc_path *path), s, now, cause, path) \
	HOOK(cc, on_timeout, (void *s, u64 now, u32 repeated, const struct cc_path *path), s, now, repeated, path) \
	HOOK(cc, on_sent, (void *s, u32 was_idle, const struct cc_path *path), s, was_idle, path) \
	HOOK(cc, on_idle_restart, (void *s, u64 idle, const struct cc_path *path), s, idle, path) \
	HOOK(cc, on_undo, (void *s), s) \
	const struct twin twin_##cc = { \
		sizeof(struct cc), cc##_names, cc##_twin_init, cc##_twin_configure, cc##_twin_on_ack, \
		cc##_twin_on_congestion, cc##_twin_on_timeout, cc##_twin_on_sent, cc##_twin_on_idle_restart, \
		cc##_twin_on_undo, \
	};

TWIN(newreno, NEWRENO_PARAMETERS)
TWIN(dctcp, DCTCP_PARAMETERS)
TWIN(vegas, VEGAS_PARAMETERS)
TWIN(gemini, GEMINI_PARAMETERS)

const u64 twin_ack_size = sizeof(struct cc_ack);
const u64 twin_path_size = sizeof(struct cc_path);
