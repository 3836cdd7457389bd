/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The few kernel types that the programs read, with the fields that they read: the loader relocates every access to the
 * running kernel (CO-RE). Nothing here says where a field lies.
 */
#ifndef NARROWS_KERNEL_BPF_H
#define NARROWS_KERNEL_BPF_H

#include "facts.core.h"

typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;

/* Values of the BPF system call's interface that the helper headers leave to the kernel's. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};
#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
	u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

typedef struct {
	s64 counter;
} atomic64_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct sock {
	struct sock_common __sk_common;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u16 tcp_header_len;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 write_seq;
	u64 bytes_acked;
	u32 lsndtime;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 mss_cache;
	u32 snd_ssthresh;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 max_packets_out;
	u32 reordering;
	u32 delivered;
	u32 delivered_ce;
	u8 is_cwnd_limited : 1;
	u8 chrono_type : 2;
	u8 ecn_flags;
};

struct rate_sample {
	long rtt_us;
	u32 last_end_seq;
};

struct ack_sample {
	s32 rtt_us;
};

/* What keeps an acknowledgement waiting; the values are relocated like fields. */
enum inet_csk_ack_state_t {
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_NOW = 16,
};

#pragma clang attribute pop

enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

/* The hook table: the loader matches members by name, and those that are absent here stay empty. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(void);	/* two shapes, see gemini.bpf.c */
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#define TCP_CONG_NON_RESTRICTED 1	/* any process may choose it */
#define TCP_CONG_NEEDS_ECN 2

#define TCP_ECN_OK 1			/* both ends agreed on ECN */
#define TCP_ECN_DEMAND_CWR 4		/* acknowledgements carry the ECE flag */

#define TCP_CLOSE 7
#define TCP_LISTEN 10

#define TCP_CHRONO_RWND_LIMITED 2

#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

/* An acknowledgement's ECE, in the flags that cong_control is given (Linux `FLAG_ECE`). */
#define FLAG_ECE 0x40

#define TCP_INFINITE_SSTHRESH 0x7fffffff

#define AF_INET 2
#define SOL_TCP 6
#define TCP_CONGESTION 13

#endif
