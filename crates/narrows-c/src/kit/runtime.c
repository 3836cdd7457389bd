/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What Linux gives to its controllers: functions that they call, and the clock. Linked with each controller's own file.
 */
#include <stdlib.h>
#include <string.h>
#include <bpf_tracing_net.h>

/* Set before each call: the simulated time, and whose call it is. */
__u64 narrows_now_ns;
struct sock *narrows_current;
/* Ends the run; does not return. */
void (*narrows_fail)(const char *file, __u32 line, const char *what);

unsigned long CONFIG_HZ = 1000;

/* How the structures are laid out: socket.rs compares. */
const __u32 narrows_layout[] = {
	sizeof(struct tcp_sock),
	offsetof(struct sock, sk_pacing_rate),
	offsetof(struct inet_connection_sock, icsk_rto),
	offsetof(struct inet_connection_sock, icsk_ca_priv),
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
	__u64 z = narrows_current->narrows_random += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) >> 32;
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

void *narrows_storage_get(void *map, void *sk, __u32 size, __u64 flags)
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
	return malloc(size);
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

/* The controller that the module registered. */
struct tcp_congestion_ops *narrows_registered;

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	narrows_registered = ops;
	return 0;
}

/* One packet more for each acknowledged, up to the threshold; gives back what is left of `acked` [RFC 5681 §3.1]. */
__u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 reached = tp->snd_cwnd + acked;

	if (reached > tp->snd_ssthresh)
		reached = tp->snd_ssthresh;
	acked -= reached - tp->snd_cwnd;
	tp->snd_cwnd = reached < tp->snd_cwnd_clamp ? reached : tp->snd_cwnd_clamp;
	return acked;
}

/* One packet more after every `w` acknowledged. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		__u32 more = tp->snd_cwnd_cnt / w;

		tp->snd_cwnd_cnt -= more * w;
		tp->snd_cwnd += more;
	}
	if (tp->snd_cwnd > tp->snd_cwnd_clamp)
		tp->snd_cwnd = tp->snd_cwnd_clamp;
}

__u32 tcp_reno_ssthresh(struct sock *sk)
{
	__u32 half = tcp_sk(sk)->snd_cwnd >> 1;

	return half > 2 ? half : 2;
}

void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

__u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

/* A controller asks for a reduction: at once here, where Linux spreads it over a round. */
void tcp_enter_cwr(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (icsk->icsk_ca_state >= TCP_CA_CWR)
		return;
	tp->prior_ssthresh = 0;
	tp->prior_cwnd = tp->snd_cwnd;
	tp->high_seq = tp->snd_nxt;
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = icsk->icsk_ca_ops->ssthresh(sk);
	if (tp->snd_cwnd > tp->snd_ssthresh)
		tp->snd_cwnd = tp->snd_ssthresh;
}

/*
 * The best value of a window of time, in constant memory: the best, and the best of what came after it, and after that
 * [Nichols, "Controlling queue delay"; Linux's lib/win_minmax.c has the same three].
 */
static __u32 running(struct minmax *m, __u32 window, __u32 t, __u32 v, int largest)
{
	struct minmax_sample now = { .t = t, .v = v }, *s = m->s;
	__u32 since;

#define BETTER(one, other) (largest ? (one) >= (other) : (one) <= (other))
	if (BETTER(v, s[0].v) || t - s[2].t > window) {
		s[0] = s[1] = s[2] = now;
		return v;
	}
	if (BETTER(v, s[1].v))
		s[1] = s[2] = now;
	else if (BETTER(v, s[2].v))
		s[2] = now;
#undef BETTER
	since = t - s[0].t;
	if (since > window) {
		/* The best is too old: the next takes its place, twice if that is too old as well. */
		s[0] = s[1];
		s[1] = s[2];
		s[2] = now;
		if (t - s[0].t > window) {
			s[0] = s[1];
			s[1] = s[2];
			s[2] = now;
		}
	} else if (s[1].t == s[0].t && since > window / 4) {
		/* A quarter has passed without a second best: this one is. */
		s[1] = s[2] = now;
	} else if (s[2].t == s[1].t && since > window / 2) {
		s[2] = now;
	}
	return s[0].v;
}

__u32 minmax_running_max(struct minmax *m, __u32 window, __u32 t, __u32 v)
{
	return running(m, window, t, v, 1);
}

__u32 minmax_running_min(struct minmax *m, __u32 window, __u32 t, __u32 v)
{
	return running(m, window, t, v, 0);
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
