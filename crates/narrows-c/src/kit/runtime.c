/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What Linux gives to its controllers: functions that they call, and the clock. Linked with each controller's own file.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <bpf_tracing_net.h>
#include <narrows.h>

/* Set before each call: the simulated time, and the state of the connection's random numbers. */
__u64 narrows_now_ns;
__u64 *narrows_stream;
/* Ends the run; does not return. */
void (*narrows_fail)(const char *file, __u32 line, const char *what);

unsigned long CONFIG_HZ = 250;

/* How the structures are laid out: socket.rs compares. */
const __u32 narrows_layout[] = {
	sizeof(struct tcp_sock),
	offsetof(struct sock, sk_pacing_rate),
	offsetof(struct inet_connection_sock, icsk_rto),
	offsetof(struct inet_connection_sock, icsk_ca_priv),
	offsetof(struct inet_connection_sock, narrows_guard),
	offsetof(struct tcp_sock, tcp_mstamp),
	offsetof(struct tcp_sock, rtt_min),
	offsetof(struct tcp_sock, snd_cwnd),
	offsetof(struct tcp_sock, ecn_flags),
	sizeof(struct rate_sample),
	offsetof(struct rate_sample, interval_us),
	offsetof(struct rate_sample, is_app_limited),
	sizeof(struct tcp_congestion_ops),
	offsetof(struct tcp_congestion_ops, name),
	offsetof(struct tcp_congestion_ops, init),
	sizeof(struct narrows_path),
	sizeof(struct narrows_ack),
	offsetof(struct narrows_ack, phase),
	offsetof(struct narrows_ack, may_grow),
	sizeof(struct narrows_lost),
	offsetof(struct narrows_lost, app_limited),
	sizeof(struct narrows_hop),
	sizeof(struct narrows_controller),
	offsetof(struct narrows_controller, init),
};

__u64 bpf_ktime_get_ns(void)
{
	return narrows_now_ns;
}

__u64 bpf_ktime_get_boot_ns(void)
{
	return narrows_now_ns;
}

__u64 bpf_jiffies64(void)
{
	return narrows_now_ns / (1000000000ull / CONFIG_HZ);
}

/* SplitMix64 [Steele, Lea, Flood 2014], a stream for each connection. */
__u32 bpf_get_prandom_u32(void)
{
	static __u64 of_no_connection;
	__u64 *state = narrows_stream ? narrows_stream : &of_no_connection;
	__u64 z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) >> 32;
}

double narrows_random(void)
{
	return (bpf_get_prandom_u32() >> 1) * 0x1p-31;
}

/* Receivers are the simulator's own. */
long bpf_tcp_send_ack(void *tp, __u32 rcv_nxt)
{
	return 0;
}

/* A connection keeps the controller that it has. */
long bpf_setsockopt(void *sk, int level, int name, void *value, int length)
{
	return -524; /* ENOTSUPP */
}

long bpf_getsockopt(void *sk, int level, int name, void *value, int length)
{
	return -524;
}

struct storage {
	struct storage *next;
	void *map;
	__u64 size;
	__u64 value[];
};

void *narrows_storage_get(void *map, void *sk, __u32 size, const void *first_value, __u64 flags)
{
	struct storage **first = (struct storage **)&((struct sock *)sk)->narrows_storage, *one;

	for (one = *first; one; one = one->next)
		if (one->map == map)
			return one->value;
	if (!(flags & 1))
		return NULL;
	one = calloc(1, sizeof(*one) + size);
	one->map = map;
	one->size = size;
	if (first_value)
		memcpy(one->value, first_value, size);
	one->next = *first;
	*first = one;
	return one->value;
}

long bpf_sk_storage_delete(void *map, void *sk)
{
	struct storage **place = (struct storage **)&((struct sock *)sk)->narrows_storage;

	for (; *place; place = &(*place)->next)
		if ((*place)->map == map) {
			struct storage *one = *place;

			*place = one->next;
			free(one);
			return 0;
		}
	return -2; /* ENOENT */
}

void narrows_storage_free(struct sock *sk)
{
	struct storage *one = sk->narrows_storage, *next;

	for (; one; one = next) {
		next = one->next;
		free(one);
	}
	sk->narrows_storage = NULL;
}

/* `sk` is a copy of another connection's: gives it a storage of its own. */
void narrows_storage_copy(struct sock *sk)
{
	struct storage *one = sk->narrows_storage, **place = (struct storage **)&sk->narrows_storage;

	for (*place = NULL; one; one = one->next) {
		*place = malloc(sizeof(*one) + one->size);
		memcpy(*place, one, sizeof(*one) + one->size);
		place = &(*place)->next;
	}
	*place = NULL;
}

void *kcalloc(size_t number, size_t size, int flags)
{
	return calloc(number, size);
}

void *kmalloc(size_t size, int flags)
{
	return calloc(1, size); /* Linux leaves what was there: here a run is to be the same each time */
}

void kfree(const void *place)
{
	free((void *)place);
}

void get_random_bytes(void *place, size_t size)
{
	unsigned char *next = place;

	while (size--)
		*next++ = bpf_get_prandom_u32();
}

extern const struct narrows_controller *__start_narrows_controllers[] __attribute__((weak));
extern const struct narrows_controller *__stop_narrows_controllers[] __attribute__((weak));

/* One of the file's controllers in plain C; NULL behind the last. */
const struct narrows_controller *narrows_controller_at(__u32 number)
{
	const struct narrows_controller **place = __start_narrows_controllers + number;

	return place < __stop_narrows_controllers ? *place : NULL;
}

extern const struct narrows_parameter *__start_narrows_parameters[] __attribute__((weak));
extern const struct narrows_parameter *__stop_narrows_parameters[] __attribute__((weak));

/* The name of one of the file's parameters; NULL behind the last. */
const char *narrows_parameter_name(__u32 number)
{
	const struct narrows_parameter **place = __start_narrows_parameters + number;

	return place < __stop_narrows_parameters ? (*place)->name : NULL;
}

/* The value of a parameter as text, in a page of memory. */
void narrows_parameter_value(__u32 number, char *page)
{
	const struct narrows_parameter *one = __start_narrows_parameters[number];
	const struct kernel_param kp = { .arg = one->place };
	const int spare = 64 - 8 * one->size;
	unsigned long long value = 0;

	page[0] = 0;
	if (one->ops) {
		if (one->ops->get)
			one->ops->get(page, &kp);
		page[strcspn(page, "\n")] = 0;
		return;
	}
	switch (one->kind) {
	case NARROWS_SIGNED:
		memcpy(&value, one->place, one->size);	/* the low bytes come first */
		sprintf(page, "%lld", (long long)(value << spare) >> spare);
		break;
	case NARROWS_UNSIGNED:
		memcpy(&value, one->place, one->size);
		sprintf(page, "%llu", value);
		break;
	case NARROWS_BOOL:
		strcpy(page, *(_Bool *)one->place ? "true" : "false");
		break;
	case NARROWS_DOUBLE:
		sprintf(page, "%.15g", *(double *)one->place);
		break;
	case NARROWS_FLOAT:
		sprintf(page, "%.7g", *(float *)one->place);
		break;
	default:
		break;
	}
}

static int set_signed(const struct narrows_parameter *one, const char *text)
{
	const int spare = 64 - 8 * one->size;
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (errno || end == text || *end || value != (long long)((unsigned long long)value << spare) >> spare)
		return -EINVAL;
	memcpy(one->place, &value, one->size);
	return 0;
}

static int set_unsigned(const struct narrows_parameter *one, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || (one->size < 8 && value >> (8 * one->size)))
		return -EINVAL;
	memcpy(one->place, &value, one->size);
	return 0;
}

static int set_bool(const struct narrows_parameter *one, const char *text)
{
	static const char *const no[] = { "0", "n", "false" }, *const yes[] = { "1", "y", "true" };
	int each;

	for (each = 0; each < 3; each++) {
		if (!strcasecmp(text, no[each]) || !strcasecmp(text, yes[each])) {
			*(_Bool *)one->place = !strcasecmp(text, yes[each]);
			return 0;
		}
	}
	return -EINVAL;
}

static int set_double(const struct narrows_parameter *one, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value))
		return -EINVAL;
	if (one->kind == NARROWS_FLOAT)
		*(float *)one->place = value;
	else
		*(double *)one->place = value;
	return 0;
}

/* What a parameter takes: enum narrows_kind, or one more if the file judges it itself. */
__u32 narrows_parameter_kind(const char *name)
{
	const struct narrows_parameter **place = __start_narrows_parameters;

	for (; place < __stop_narrows_parameters; place++)
		if (!strcmp((*place)->name, name))
			return (*place)->ops ? NARROWS_TEXT + 1 : (*place)->kind;
	return NARROWS_TEXT;
}

/* Sets a parameter, before the file's controller begins: 0, -ENOENT if there is none, -EINVAL if this is no value of it. */
int narrows_set_parameter(const char *name, const char *text)
{
	const struct narrows_parameter **place = __start_narrows_parameters;

	for (; place < __stop_narrows_parameters; place++) {
		const struct narrows_parameter *one = *place;
		const struct kernel_param kp = { .arg = one->place };

		if (strcmp(one->name, name))
			continue;
		if (one->ops)
			return one->ops->set && !one->ops->set(text, &kp) ? 0 : -EINVAL;
		switch (one->kind) {
		case NARROWS_SIGNED:
			return set_signed(one, text);
		case NARROWS_UNSIGNED:
			return set_unsigned(one, text);
		case NARROWS_BOOL:
			return set_bool(one, text);
		case NARROWS_DOUBLE:
		case NARROWS_FLOAT:
			return set_double(one, text);
		default:
			return -EINVAL;
		}
	}
	return -ENOENT;
}

int param_set_uint_minmax(const char *text, const struct kernel_param *kp, unsigned int least, unsigned int most)
{
	unsigned int value;
	const struct narrows_parameter one = { .place = &value, .size = sizeof(value) };

	if (set_unsigned(&one, text) || value < least || value > most)
		return -EINVAL;
	*(unsigned int *)kp->arg = value;
	return 0;
}

int param_get_uint(char *page, const struct kernel_param *kp)
{
	return sprintf(page, "%u", *(unsigned int *)kp->arg);
}

/* The controller that the module registered. */
struct tcp_congestion_ops *narrows_registered;

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	narrows_registered = ops;
	return 0;
}

static __u32 least(__u32 one, __u32 other)
{
	return one < other ? one : other;
}

/* One packet more for each acknowledged, up to the threshold; gives back what is left of `acked` [RFC 5681 §3.1]. */
__u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	__u32 taken = least(acked, room);

	tp->snd_cwnd = least(tp->snd_cwnd + taken, tp->snd_cwnd_clamp);
	return acked - taken;
}

/*
 * One packet more for every `w` acknowledged. Credit that was enough before this acknowledgement, as `w` has fallen, is one
 * packet and no more.
 */
void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked)
{
	__u32 old = tp->snd_cwnd_cnt >= w, credit = (old ? 0 : tp->snd_cwnd_cnt) + acked;

	tp->snd_cwnd_cnt = credit % w;
	tp->snd_cwnd = least(tp->snd_cwnd + old + credit / w, tp->snd_cwnd_clamp);
}

/* Half of the window, at least two packets [RFC 5681 §3.1 eq. 4]. */
__u32 tcp_reno_ssthresh(struct sock *sk)
{
	__u32 window = tcp_sk(sk)->snd_cwnd;

	return window < 4 ? 2 : window / 2;
}

/* Slow start, then one packet for each window acknowledged, if the window was used. */
void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 left = acked;

	if (tcp_is_cwnd_limited(sk)) {
		if (tcp_in_slow_start(tp))
			left = tcp_slow_start(tp, acked);
		if (left)
			tcp_cong_avoid_ai(tp, tp->snd_cwnd, left);
	}
}

__u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

/* A controller asks for a reduction, once per window of data; connection.rs leads the window from then on. */
void tcp_enter_cwr(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->prior_ssthresh = 0;
	if (icsk->icsk_ca_state > TCP_CA_Disorder)
		return;
	tp->high_seq = tp->snd_nxt;
	tp->snd_cwnd_cnt = 0;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = icsk->icsk_ca_ops->ssthresh(sk);
	if (icsk->icsk_ca_ops->set_state)
		icsk->icsk_ca_ops->set_state(sk, TCP_CA_CWR);
	icsk->icsk_ca_state = TCP_CA_CWR;
}

/*
 * The largest value of a window of time in constant memory, after Kathleen Nichols: three samples, each the largest since the one
 * before it. What is older than the window falls out at the front; a quarter and a half of the window on, later samples take the
 * places behind, so that there is one when the first falls out. The least value is the largest of the complements.
 */
static __u32 running_max(struct minmax *m, __u32 window, __u32 t, __u32 v)
{
	struct minmax_sample *place = m->s;
	int from = 3, dropped;

	/* The first place whose sample the new one is not below; all of them if even the last is too old. */
	while (from > 0 && v >= place[from - 1].v)
		from--;
	if (t - place[2].t > window)
		from = 0;
	for (; from < 3; from++)
		place[from] = (struct minmax_sample){ .t = t, .v = v };
	for (dropped = 0; dropped < 2 && t - place[0].t > window; dropped++) {
		place[0] = place[1];
		place[1] = place[2];
		place[2] = (struct minmax_sample){ .t = t, .v = v };
	}
	if (!dropped && place[1].t == place[0].t && t - place[0].t > window / 4)
		place[1] = place[2] = (struct minmax_sample){ .t = t, .v = v };
	else if (!dropped && place[2].t == place[1].t && t - place[0].t > window / 2)
		place[2] = (struct minmax_sample){ .t = t, .v = v };
	return place[0].v;
}

__u32 minmax_running_max(struct minmax *m, __u32 window, __u32 t, __u32 v)
{
	return running_max(m, window, t, v);
}

__u32 minmax_running_min(struct minmax *m, __u32 window, __u32 t, __u32 v)
{
	struct minmax complements = *m;
	__u32 found, each;

	for (each = 0; each < 3; each++)
		complements.s[each].v = ~complements.s[each].v;
	found = ~running_max(&complements, window, t, ~v);
	for (each = 0; each < 3; each++)
		m->s[each] = (struct minmax_sample){ .t = complements.s[each].t, .v = ~complements.s[each].v };
	return found;
}

/* Of the compiler's check of divisions, which says where: the place comes first in what it hands over. */
struct place {
	const char *file;
	__u32 line;
	__u32 column;
};

void __ubsan_handle_divrem_overflow_abort(struct place *place, void *one, void *other)
{
	narrows_fail(place->file, place->line, "divides by zero");
}
