/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The cores as functions of the host, for the twin test: the same headers that the BPF programs include. The build script
 * includes this after the headers, and adds a line TWIN(core, its parameters, its state) for each.
 */
#include <stdarg.h>
#include <stdio.h>

/* A core behind pointers: its parameters' names in the order in which it reads them, null after the last, and its hooks. */
struct twin {
	const char *name;
	u64 size;
	const char *const *names;
	void (*init)(void *cc, const u64 *parameters, const struct cc_path *path);
	void (*configure)(void *cc, const u64 *parameters, const struct cc_path *path);
	void (*on_ack)(void *cc, const struct cc_ack *ack, const struct cc_path *path);
	void (*on_congestion)(void *cc, u64 now_ns, u32 cause, const struct cc_path *path);
	void (*on_timeout)(void *cc, u64 now_ns, u32 repeated, const struct cc_path *path);
	void (*on_sent)(void *cc, u32 start, const struct cc_path *path);
	void (*on_idle_restart)(void *cc, u64 idle_ns, const struct cc_path *path);
	void (*on_undo)(void *cc);
	/* Writes its state as the derived Debug of the Rust controller writes its own. */
	void (*describe)(const void *cc, char *text, u64 size);
};

/* Where text is written to. */
struct text {
	char *at;
	char *end;
	int begun;	/* a field was written in these braces */
};

static __attribute__((format(printf, 2, 3))) void put(struct text *t, const char *format, ...)
{
	va_list values;
	int written;

	va_start(values, format);
	written = vsnprintf(t->at, t->end - t->at, format, values);
	va_end(values);
	t->at += cc_min(written, t->end - t->at - 1);
}

static void put_name(struct text *t, const char *name)
{
	put(t, t->begun ? ", %s: " : "%s: ", name);
	t->begun = 1;
}

static void put_open(struct text *t, const char *type)
{
	put(t, "%s { ", type);
	t->begun = 0;
}

static void put_close(struct text *t)
{
	put(t, " }");
	t->begun = 1;
}

/* The kinds of fields in a core's list of its state. */
static void put_U64(struct text *t, u64 value)
{
	put(t, "%llu", (unsigned long long)value);
}

static void put_BOOL(struct text *t, u64 value)
{
	put(t, value ? "true" : "false");
}

static void put_PHASE(struct text *t, u64 value)
{
	static const char *const phases[] = { "Open", "EcnReduction", "Recovery", "Loss" };

	put(t, "%s", value < 4 ? phases[value] : "no phase");
}

/* A newtype of one number: Seq, Time, Rate. */
static void put_TYPE(struct text *t, const char *type, u64 value)
{
	put(t, "%s(%llu)", type, (unsigned long long)value);
}

/* None where `is` is 0. */
static void put_SOME_TYPE(struct text *t, u64 is, const char *type, u64 value)
{
	if (is)
		put(t, "Some(%s(%llu))", type, (unsigned long long)value);
	else
		put(t, "None");
}

static void put_SOME(struct text *t, u64 value)
{
	if (value == CC_NONE)
		put(t, "None");
	else
		put(t, "Some(%llu)", (unsigned long long)value);
}

static void put_PAIR(struct text *t, u64 is, u64 first, u64 second)
{
	if (is)
		put(t, "Some((%llu, %llu))", (unsigned long long)first, (unsigned long long)second);
	else
		put(t, "None");
}

#define FIELD(kind, name, ...) \
	put_name(t, name); \
	put_##kind(t, __VA_ARGS__);

static __attribute__((unused)) void put_WINDOW(struct text *t, const struct cc_window *w)
{
	put_open(t, "Window");
	FIELD(U64, "packets", w->packets)
	FIELD(U64, "threshold", w->threshold)
	FIELD(U64, "credit", w->credit)
	FIELD(PAIR, "before", w->has_before, w->before_packets, w->before_threshold)
	put_close(t);
}

/* The Rust filter keeps the greatest complement. */
static void put_MINIMUM(struct text *t, const struct cc_minimum *m)
{
	put(t, "WindowedMin(");
	put_open(t, "WindowedMax");
	FIELD(U64, "window", m->window)
	put(t, ", best: [");
	for (int i = 0; i < 3; i++)
		put(t, "%sSample { at: %llu, value: %llu }", i ? ", " : "", (unsigned long long)m->best[i].at,
			(unsigned long long)~m->best[i].value);
	put(t, "]");
	put_close(t);
	put(t, ")");
}

/* A list of fields in braces of its own. */
#define STRUCT(name, type, STATE, s) \
	put_name(t, name); \
	put_open(t, type); \
	STATE(FIELD, s) \
	put_close(t);

#define NAME(index, name) name,
#define HOOK(cc, hook, arguments, ...) \
	static void cc##_twin_##hook arguments \
	{ \
		cc##_##hook(__VA_ARGS__); \
	}

#define TWIN(cc, NAMES, STATE) \
	static const char *const cc##_names[] = { NAMES(NAME) 0 }; \
	static void cc##_describe(const void *state, char *text, u64 size) \
	{ \
		const struct cc *s = state; \
		struct text to = { text, text + size, 0 }, *t = &to; \
		put_open(t, ""); \
		STATE(FIELD, s) \
		put_close(t); \
	} \
	HOOK(cc, init, (void *s, const u64 *values, const struct cc_path *path), s, values, path) \
	HOOK(cc, configure, (void *s, const u64 *values, const struct cc_path *path), s, values, path) \
	HOOK(cc, on_ack, (void *s, const struct cc_ack *ack, const struct cc_path *path), s, ack, path) \
	HOOK(cc, on_congestion, (void *s, u64 now, u32 cause, const struct cc_path *path), s, now, cause, path) \
	HOOK(cc, on_timeout, (void *s, u64 now, u32 repeated, const struct cc_path *path), s, now, repeated, path) \
	HOOK(cc, on_sent, (void *s, u32 start, const struct cc_path *path), s, start, path) \
	HOOK(cc, on_idle_restart, (void *s, u64 idle, const struct cc_path *path), s, idle, path) \
	HOOK(cc, on_undo, (void *s), s) \
	static const struct twin twin_##cc = { \
		#cc, sizeof(struct cc), cc##_names, cc##_twin_init, cc##_twin_configure, cc##_twin_on_ack, \
		cc##_twin_on_congestion, cc##_twin_on_timeout, cc##_twin_on_sent, cc##_twin_on_idle_restart, \
		cc##_twin_on_undo, cc##_describe, \
	};

const u64 twin_ack_size = sizeof(struct cc_ack);
const u64 twin_path_size = sizeof(struct cc_path);
