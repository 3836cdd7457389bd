/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The cores as functions of the host, for the twin test: the same headers that the BPF programs include. */
#include "dctcp.core.h"
#include "gemini.core.h"
#include "newreno.core.h"
#include "vegas.core.h"

#define NAME(index, name) name,

/* Names in the order in which a core reads its parameters, null after the last; and the sizes of what Rust mirrors. */
#define TWIN(cc, NAMES) \
	const char *twin_##cc##_name(u64 index) \
	{ \
		static const char *const names[] = { NAMES(NAME) 0 }; \
		return names[index]; \
	} \
	const u64 twin_##cc##_size = sizeof(struct cc);

TWIN(newreno, NEWRENO_PARAMETERS)
TWIN(dctcp, DCTCP_PARAMETERS)
TWIN(vegas, VEGAS_PARAMETERS)
TWIN(gemini, GEMINI_PARAMETERS)

const u64 twin_ack_size = sizeof(struct cc_ack);
const u64 twin_path_size = sizeof(struct cc_path);

#define UNUSED(argument) ((void)(argument))

void twin_newreno_init(struct newreno *n, const u64 *parameters, const struct cc_path *path)
{
	UNUSED(parameters);
	newreno_init(n, path);
}

void twin_newreno_configure(struct newreno *n, const u64 *parameters, const struct cc_path *path)
{
	UNUSED(n);
	UNUSED(parameters);
	UNUSED(path);
}

void twin_newreno_on_ack(struct newreno *n, const struct cc_ack *ack, const struct cc_path *path)
{
	UNUSED(path);
	newreno_on_ack(n, ack);
}

void twin_newreno_on_congestion(struct newreno *n, u64 now_ns, u32 cause, const struct cc_path *path)
{
	UNUSED(now_ns);
	UNUSED(cause);
	UNUSED(path);
	newreno_on_congestion(n);
}

void twin_newreno_on_timeout(struct newreno *n, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	UNUSED(now_ns);
	UNUSED(path);
	newreno_on_timeout(n, repeated);
}

void twin_newreno_on_sent(struct newreno *n, u32 was_idle, const struct cc_path *path)
{
	UNUSED(n);
	UNUSED(was_idle);
	UNUSED(path);
}

void twin_newreno_on_idle_restart(struct newreno *n, u64 idle_ns, const struct cc_path *path)
{
	newreno_on_idle_restart(n, idle_ns, path);
}

void twin_newreno_on_undo(struct newreno *n)
{
	newreno_on_undo(n);
}

void twin_dctcp_init(struct dctcp *d, const u64 *parameters, const struct cc_path *path)
{
	dctcp_init(d, parameters, path);
}

void twin_dctcp_configure(struct dctcp *d, const u64 *parameters, const struct cc_path *path)
{
	UNUSED(path);
	dctcp_configure(d, parameters);
}

void twin_dctcp_on_ack(struct dctcp *d, const struct cc_ack *ack, const struct cc_path *path)
{
	UNUSED(path);
	dctcp_on_ack(d, ack);
}

void twin_dctcp_on_congestion(struct dctcp *d, u64 now_ns, u32 cause, const struct cc_path *path)
{
	UNUSED(now_ns);
	UNUSED(path);
	dctcp_on_congestion(d, cause);
}

void twin_dctcp_on_timeout(struct dctcp *d, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	UNUSED(now_ns);
	dctcp_on_timeout(d, repeated, path);
}

void twin_dctcp_on_sent(struct dctcp *d, u32 was_idle, const struct cc_path *path)
{
	UNUSED(d);
	UNUSED(was_idle);
	UNUSED(path);
}

void twin_dctcp_on_idle_restart(struct dctcp *d, u64 idle_ns, const struct cc_path *path)
{
	dctcp_on_idle_restart(d, idle_ns, path);
}

void twin_dctcp_on_undo(struct dctcp *d)
{
	dctcp_on_undo(d);
}

void twin_vegas_init(struct vegas *v, const u64 *parameters, const struct cc_path *path)
{
	vegas_init(v, parameters, path);
}

void twin_vegas_configure(struct vegas *v, const u64 *parameters, const struct cc_path *path)
{
	UNUSED(path);
	vegas_configure(v, parameters);
}

void twin_vegas_on_ack(struct vegas *v, const struct cc_ack *ack, const struct cc_path *path)
{
	UNUSED(path);
	vegas_on_ack(v, ack);
}

void twin_vegas_on_congestion(struct vegas *v, u64 now_ns, u32 cause, const struct cc_path *path)
{
	UNUSED(now_ns);
	UNUSED(cause);
	UNUSED(path);
	vegas_on_congestion(v);
}

void twin_vegas_on_timeout(struct vegas *v, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	UNUSED(now_ns);
	UNUSED(path);
	vegas_on_timeout(v, repeated);
}

void twin_vegas_on_sent(struct vegas *v, u32 was_idle, const struct cc_path *path)
{
	if (was_idle)
		vegas_restart(v, path->nxt);
}

void twin_vegas_on_idle_restart(struct vegas *v, u64 idle_ns, const struct cc_path *path)
{
	vegas_on_idle_restart(v, idle_ns, path);
}

void twin_vegas_on_undo(struct vegas *v)
{
	vegas_on_undo(v);
}

void twin_gemini_init(struct gemini *g, const u64 *parameters, const struct cc_path *path)
{
	gemini_init(g, parameters, path);
}

void twin_gemini_configure(struct gemini *g, const u64 *parameters, const struct cc_path *path)
{
	gemini_configure(g, parameters, path);
}

void twin_gemini_on_ack(struct gemini *g, const struct cc_ack *ack, const struct cc_path *path)
{
	gemini_on_ack(g, ack, path);
}

void twin_gemini_on_congestion(struct gemini *g, u64 now_ns, u32 cause, const struct cc_path *path)
{
	gemini_on_congestion(g, now_ns, cause, path);
}

void twin_gemini_on_timeout(struct gemini *g, u64 now_ns, u32 repeated, const struct cc_path *path)
{
	gemini_on_timeout(g, now_ns, repeated, path);
}

void twin_gemini_on_sent(struct gemini *g, u32 was_idle, const struct cc_path *path)
{
	UNUSED(was_idle);
	gemini_on_sent(g, path);
}

void twin_gemini_on_idle_restart(struct gemini *g, u64 idle_ns, const struct cc_path *path)
{
	UNUSED(idle_ns);
	gemini_on_idle_restart(g, path);
}

void twin_gemini_on_undo(struct gemini *g)
{
	gemini_on_undo(g);
}
