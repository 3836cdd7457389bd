/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What Linux's own controllers, net/ipv4/tcp_*.c, include: the part of the kernel that they use. Functions that are not
 * `static` here are in runtime.c.
 */
#ifndef NARROWS_KERNEL_H
#define NARROWS_KERNEL_H

#include <string.h>
#include <bpf_tracing_net.h>
#include <narrows_parameter.h>

/* Of the compiler and the module loader. */
#define __init
#define __exit
#define __read_mostly
#define __bpf_kfunc __attribute__((used))
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#undef __inline
#define __pure __attribute__((pure))
#define __aligned(size) __attribute__((aligned(size)))
#define noinline __attribute__((noinline))
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#define cmpxchg(place, old, new) ({			\
	__typeof__(*(place)) __was = *(place);		\
	if (__was == (old))				\
		*(place) = (new);			\
	__was; })
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define IS_ENABLED(option) 0
#define THIS_MODULE NULL
#define EXPORT_SYMBOL_GPL(symbol)
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define MODULE_PARM_DESC(name, text)
#define module_param(name, type, permissions) \
	NARROWS_PARAMETER_ENTRY(name, (void *)&name, sizeof(name), NARROWS_KIND(name), NULL)
#define module_param_cb(name, ops, argument, permissions) \
	NARROWS_PARAMETER_ENTRY(name, argument, 0, NARROWS_TEXT, ops)
#define module_exit(function) \
	static void (*narrows_exit)(void) __attribute__((unused)) = function
/* Of the file that was asked for, not of others that it needs: see compiler.rs. */
#ifdef NARROWS_MAIN
#define module_init(function) int narrows_init(void) { return function(); }
#else
#define module_init(function) static int (*narrows_init)(void) __attribute__((unused)) = function
#endif
extern int param_set_uint_minmax(const char *text, const struct kernel_param *kp, unsigned int least, unsigned int most);
extern int param_get_uint(char *page, const struct kernel_param *kp);

/* Lists of functions that BPF may call: nobody calls them here. */
struct btf_kfunc_id_set { const void *owner; const void *set; };
#define BTF_SET8_START(name) static const int name[] __attribute__((unused)) = { 0
#define BTF_SET8_END(name) };
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name) BTF_SET8_END(name)
#define BTF_ID_FLAGS(kind, name, flags...)
#define BPF_PROG_TYPE_STRUCT_OPS 27
#define register_btf_kfunc_id_set(kind, set) ((void)(set), 0)

/* Numbers. */
#define min(a, b) ({ __typeof__(a) __a = (a); __typeof__(b) __b = (b); __a < __b ? __a : __b; })
#define max(a, b) ({ __typeof__(a) __a = (a); __typeof__(b) __b = (b); __a > __b ? __a : __b; })
#define max3(a, b, c) max(max(a, b), c)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(value, low, high) min((__typeof__(value))max(value, low), high)
#define clamp_t(type, value, low, high) min_t(type, max_t(type, value, low), high)
#define min_not_zero(a, b) ({				\
	__typeof__(a) __x = (a);			\
	__typeof__(b) __y = (b);			\
	__x == 0 ? __y : (__y == 0 ? __x : min(__x, __y)); })
#define abs(x) ({ __typeof__(x) __v = (x); __v < 0 ? -__v : __v; })
#define do_div(n, base) ({				\
	__u32 __base = (base), __rest = (n) % __base;	\
	(n) /= __base;					\
	__rest; })
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define DIV_ROUND_CLOSEST(n, d) ({ __typeof__(n) __n = (n); __typeof__(d) __d = (d); (__n < 0) == (__d < 0) ? (__n + __d / 2) / __d : (__n - __d / 2) / __d; })
#define U16_MAX ((u16)~0U)
#define U32_MAX ((u32)~0U)
#define S32_MAX ((s32)(U32_MAX >> 1))
#define INT_MAX 0x7fffffff
#define U32_C(number) number##U
#define BIT(n) (1UL << (n))
#define BITS_PER_LONG 64
static inline bool is_power_of_2(unsigned long n) { return n && !(n & (n - 1)); }
static inline u64 div_u64(u64 n, u32 d) { return n / d; }
static inline u64 div64_u64(u64 n, u64 d) { return n / d; }
static inline u64 div64_ul(u64 n, unsigned long d) { return n / d; }
static inline s64 div64_s64(s64 n, s64 d) { return n / d; }
static inline long div64_long(s64 n, long d) { return n / d; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int fls(u32 x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int ilog2(u64 x) { return fls64(x) - 1; }

/* Time: jiffies of 4 ms, as of Debian's kernels. */
#define HZ 250
#define TCP_TS_HZ 1000
#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define jiffies ((unsigned long)bpf_jiffies64())
static inline unsigned long usecs_to_jiffies(unsigned int us) { return (us + USEC_PER_SEC / HZ - 1) / (USEC_PER_SEC / HZ); }
static inline unsigned long msecs_to_jiffies(unsigned int ms) { return (ms + MSEC_PER_SEC / HZ - 1) / (MSEC_PER_SEC / HZ); }
static inline unsigned int jiffies_to_usecs(unsigned long j) { return USEC_PER_SEC / HZ * j; }
static inline unsigned int jiffies_to_msecs(unsigned long j) { return MSEC_PER_SEC / HZ * j; }
static inline u64 local_clock(void) { return bpf_ktime_get_ns(); }
static inline u64 ktime_get_ns(void) { return bpf_ktime_get_ns(); }
static inline u64 tcp_clock_ns(void) { return bpf_ktime_get_ns(); }
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)

/* Randomness, a stream for each connection. */
#define get_random_u32() bpf_get_prandom_u32()
#define get_random_u32_below(most) ((u32)(((u64)bpf_get_prandom_u32() * (most)) >> 32))
#define prandom_u32_max(most) get_random_u32_below(most)
#define prandom_u32() bpf_get_prandom_u32()
extern void get_random_bytes(void *place, size_t size);

/* Memory. */
enum { ENOMEM = 12, EEXIST = 17, EINVAL = 22, ERANGE = 34 };
#define GFP_NOWAIT 0
#define GFP_ATOMIC 0
#define GFP_KERNEL 0
#define __GFP_NOWARN 0
extern void *kcalloc(size_t number, size_t size, int flags);
extern void *kmalloc(size_t size, int flags);
extern void kfree(const void *place);

#define WARN_ONCE(condition, format, arguments...) ({ int __is = !!(condition); if (__is) pr_warn(format, ##arguments); __is; })
#define WARN_ON_ONCE(condition) ({ !!(condition); })
/* Counters of the whole host: nobody reads them here. */
#define NET_INC_STATS(net, counter) ((void)0)
#define NET_ADD_STATS(net, counter, number) ((void)(number))
#define pr_debug(format, arguments...) bpf_printk(format, ##arguments)
#define pr_info(format, arguments...) bpf_printk(format, ##arguments)
#define pr_err(format, arguments...) bpf_printk(format, ##arguments)
#define pr_warn(format, arguments...) bpf_printk(format, ##arguments)

/* TCP. */
enum { TCP_ESTABLISHED = 1, TCP_CLOSE = 7, TCP_LISTEN = 10 };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)
static inline bool before(u32 one, u32 other) { return (s32)(one - other) < 0; }
#define after(other, one) before(one, other)
static inline bool between(u32 x, u32 low, u32 high) { return (u32)(x - low) <= (u32)(high - low); }
static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 window) { tp->snd_cwnd = window; }
static inline unsigned int tcp_packets_in_flight(const struct tcp_sock *tp) { return tp->narrows_in_flight; }
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp) { return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH; }
static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return (1 << inet_csk(sk)->icsk_ca_state) & (1 << TCP_CA_CWR | 1 << TCP_CA_Recovery);
}
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* Three quarters of the window are remembered, unless it is being reduced. */
	u32 most = (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2);

	return !tcp_in_cwnd_reduction(sk) && most > tp->snd_ssthresh ? most : tp->snd_ssthresh;
}
static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
static inline u32 minmax_reset(struct minmax *m, u32 t, u32 v)
{
	m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){ .t = t, .v = v };
	return v;
}
extern u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 v);
extern u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 v);
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return minmax_get(&tp->rtt_min); }
static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) { return max_t(s64, later - earlier, 0); }
static inline u32 tcp_time_stamp(const struct tcp_sock *tp) { return tp->tcp_mstamp / 1000; }
static inline u32 tcp_time_stamp_ts(const struct tcp_sock *tp) { return tp->tcp_mstamp / 1000; }
static inline u32 tcp_mss_to_mtu(struct sock *sk, int mss) { return mss + 52; }
#define MAX_TCP_HEADER 320
#define GSO_LEGACY_MAX_SIZE 65536u
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
extern u32 tcp_reno_ssthresh(struct sock *sk);
extern u32 tcp_reno_undo_cwnd(struct sock *sk);
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
#define __tcp_send_ack(sk, next...) ((void)0)
#define INET_ECN_dontxmit(sk) ((void)0)
#define INET_ECN_xmit(sk) ((void)0)
extern void tcp_enter_cwr(struct sock *sk);
extern int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
#define tcp_unregister_congestion_control(ops) ((void)(ops))
/* Protective load balancing: off, as it is in Linux by default, and a flow keeps its path here. */
struct tcp_plb_state { u8 consec_cong_rounds; u32 pause_until; };
#define TCP_PLB_SCALE 8
#define tcp_plb_init(sk, plb) ((void)(plb))
#define tcp_plb_update_state(sk, plb, ratio) ((void)(plb), (void)(ratio))
#define tcp_plb_check_rehash(sk, plb) ((void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(plb))
/* Programs that answer for a socket: there is none. */
#define BPF_SOCK_OPS_BASE_RTT 8
#define tcp_call_bpf(sk, operation, number, arguments) (-1)

/* What `ss` is told: nobody asks here. */
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };
struct tcpvegas_info { __u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt; };
struct tcp_dctcp_info { __u16 dctcp_enabled, dctcp_ce_state; __u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot; };
struct tcp_bbr_info { __u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain; };
union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
};

#endif
