/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a controller in C sees of a connection in the simulator, under the names that Linux has for it. A field that is not
 * here is one that the simulator does not have: using it is an error of the compiler with the field's name.
 *
 * Layout: socket.rs, which checks it against narrows_layout of runtime.c. Compiled for BPF (`narrowsd cc load`), fields are
 * where the running kernel has them.
 */
#ifndef NARROWS_VMLINUX_H
#define NARROWS_VMLINUX_H

#include <stdbool.h>
#include <stddef.h>

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
/* Octets of a controller's own state: what Linux 6.12 has, and the same here, so that what runs here fits there. */
#define ICSK_CA_PRIV_SIZE 104

enum sk_pacing {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	SK_PACING_FQ = 2,
};

enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

enum tcp_ca_event {
	CA_EVENT_TX_START = 0,
	CA_EVENT_CWND_RESTART = 1,
	CA_EVENT_COMPLETE_CWR = 2,
	CA_EVENT_LOSS = 3,
	/* Of receivers. The simulator's receivers echo marks themselves, and these two never occur. */
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

enum inet_csk_ack_state_t {
	ICSK_ACK_SCHED = 1,
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_PUSHED = 4,
	ICSK_ACK_PUSHED2 = 8,
	ICSK_ACK_NOW = 16,
};

#ifdef __bpf__
/* Of maps that programs declare; natively in bpf/bpf_helpers.h. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 512 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct sock_common {
	unsigned char skc_state;
	__u16 skc_num;
};

struct sock {
	struct sock_common __sk_common;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;		/* octets of payload per second */
	unsigned long sk_max_pacing_rate;
	__u32 sk_gso_max_size;			/* octets that a host hands to its port in one piece */
	__u32 sk_pacing_shift;
#ifndef __bpf__
	void *narrows_storage;			/* of bpf_sk_storage_get */
	__u64 narrows_random;			/* state of the connection's random numbers */
#endif
};

struct inet_sock {
	struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u32 icsk_rto;				/* jiffies */
	__u8 icsk_ca_state : 5,
	     icsk_ca_initialized : 1,
	     icsk_ca_setsockopt : 1,
	     icsk_ca_dst_locked : 1;
	struct {
		__u8 pending;			/* of receivers, which the simulator has itself: always 0 */
	} icsk_ack;
	__u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(__u64)];
#ifndef __bpf__
	__u64 narrows_guard[4];			/* tells of writes beyond it */
#endif
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 tcp_mstamp;			/* us */
	__u64 delivered_mstamp;
	__u64 tcp_clock_cache;			/* ns */
	__u64 tcp_wstamp_ns;			/* when pacing lets the next piece go */
	__u64 bytes_acked;
	__u32 rcv_nxt;				/* of receivers: always 0 */
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 write_seq;
	__u32 mss_cache;
	__u32 advmss;
	__u32 srtt_us;				/* smoothed RTT, eighths of a us */
	struct minmax rtt_min;			/* us, of the last 300 s */
	__u32 packets_out;
	__u32 sacked_out;			/* reported beyond a hole, or lost */
#ifndef __bpf__
	__u32 narrows_in_flight;		/* tcp_packets_in_flight() */
#endif
	__u32 max_packets_out;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 prior_ssthresh;
	__u32 high_seq;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 lost;
	__u32 app_limited;
	__u32 lsndtime;				/* jiffies */
	struct tcp_options_received {
		__u32 rcv_tsval;		/* of the last acknowledgement, in the ticks of the hosts' profile */
		__u32 rcv_tsecr;
	} rx_opt;
	__u8 ecn_flags;
	__u8 is_cwnd_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;				/* -1: none */
	__u32 in_flight;			/* octets */
};

struct rate_sample {
	__u64 prior_mstamp;
	__u32 prior_delivered;
	__s32 delivered;			/* -1: none */
	long interval_us;			/* -1: none */
	__u32 snd_interval_us;
	__u32 rcv_interval_us;
	long rtt_us;				/* -1: none */
	int losses;
	__u32 acked_sacked;
	__u32 prior_in_flight;
	__u32 last_end_seq;
	bool is_app_limited;
	bool is_ack_delayed;			/* always false */
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

struct sk_buff;
union tcp_cc_info;

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	/* Before Linux 6.10 it had no `ack` and no `flag`. */
#ifdef NARROWS_CONG_CONTROL_BEFORE_6_10
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
#endif
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, __u32 ext, int *attr, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	void *owner;
	__u32 key;
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#endif
