/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What every controller's program shares: its maps, the facts of a socket, and publishing.
 *
 * A program includes its core, defines CONTROLLER (the core's name) and PARAMETERS (how many), then includes this. Life
 * of a flow: flow_begin in `init`; flow_of in every other hook, which may find nothing; flow_end in `release`.
 */
#ifndef NARROWS_FLOW_BPF_H
#define NARROWS_FLOW_BPF_H

#include "kernel.bpf.h"
#include "record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* One entry where a controller has none, so that maps have a size. */
#define VALUES (PARAMETERS ? PARAMETERS : 1)

struct parameters {
	u64 values[VALUES];
};

/* Set by the loader before it loads the object. */
SEC(".rodata.parameters") const volatile struct parameters defaults = {};
/* The controller that takes a flow over whose other end refused ECN; empty: the flow stays. */
SEC(".rodata.fallback") const volatile char fallback[16] = "cubic";

/* Segments by which a path reorders that is not known to (sysctl tcp_reordering). */
#define REORDERING 3

/* State of a flow: lives and dies with its socket. */
struct flow {
	struct CONTROLLER cc;
	struct cc_path path;
	u64 key;		/* of its entry in `flows` */
	u64 generation;		/* of the parameters in use */
	u64 rounds;
	u64 una;		/* the path's when an acknowledgement was last read */
	struct narrows_flow record;
	u32 delivered;		/* the socket's counters when they were last read */
	u32 delivered_ce;
	u32 prior_rcv_nxt;	/* DCTCP's receiver */
	u32 ce;
	u32 loss_event;		/* the kernel announced a loss that no timeout has followed yet */
	u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} sockets SEC(".maps");

/* Published state by socket cookie; by a running number with the highest bit set where there is no cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct narrows_flow);
} flows SEC(".maps");

/* Parameters by cookie of the network namespace; 0 for every other. An inode would be given to another namespace later. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct parameters);
} parameters SEC(".maps");

/* Raised by the loader after a change of parameters. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} generation SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct narrows_counters);
} counters SEC(".maps");

CC_INLINE struct narrows_counters *flow_counters(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

CC_INLINE u64 flow_generation(void)
{
	u32 zero = 0;
	u64 *now = bpf_map_lookup_elem(&generation, &zero);

	return now ? *now : 0;
}

CC_INLINE const u64 *flow_parameters(u64 namespace)
{
	struct parameters *found = bpf_map_lookup_elem(&parameters, &namespace);
	u64 every = 0;

	if (!found)
		found = bpf_map_lookup_elem(&parameters, &every);
	return found ? found->values : (const u64 *)defaults.values;
}

/* Nothing where the socket has no such state: then a hook does as little as it may. */
CC_INLINE struct flow *flow_of(struct tcp_sock *tp)
{
	return bpf_sk_storage_get(&sockets, tp, 0, 0);
}

CC_INLINE struct sock *flow_sock(struct tcp_sock *tp)
{
	return &tp->inet_conn.icsk_inet.sk;
}

CC_INLINE struct net *flow_namespace(struct tcp_sock *tp)
{
	return flow_sock(tp)->__sk_common.skc_net.net;
}

/* The path's facts as they are now, and the cookie, which the kernel gives a socket when somebody asks for it. Sequence numbers are extended to 64 bits from those known before. */
CC_INLINE void flow_read_path(struct flow *flow, struct tcp_sock *tp)
{
	struct cc_path *path = &flow->path;
	u32 least = tp->rtt_min.s[0].v;
	u32 ip = flow_sock(tp)->__sk_common.skc_family == AF_INET ? 20 : 40;

	flow->record.cookie = flow_sock(tp)->__sk_common.skc_cookie.counter;
	path->una += (u32)(tp->snd_una - (u32)path->una);
	path->nxt = path->una + (u32)(tp->snd_nxt - tp->snd_una);
	path->packet_bytes = cc_min(tp->mss_cache + tp->tcp_header_len + ip, 65535);
	path->srtt_eighth_us = tp->srtt_us;
	path->min_rtt_us = least == ~(u32)0 ? CC_NONE : least;
}

CC_INLINE u32 flow_phase(u8 state)
{
	if (state == TCP_CA_Recovery)
		return CC_RECOVERY;
	if (state == TCP_CA_Loss)
		return CC_LOSS;
	return state == TCP_CA_CWR ? CC_ECN_REDUCTION : CC_OPEN;
}

CC_INLINE u32 flow_limited_by(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return CC_BY_WINDOW;
	if (tp->write_seq == tp->snd_nxt)
		return CC_BY_APPLICATION;
	if (BPF_CORE_READ_BITFIELD(tp, chrono_type) == TCP_CHRONO_RWND_LIMITED)
		return CC_BY_RECEIVER;
	return CC_BY_PACING;
}

/* What this acknowledgement tells beside its RTT. `path` was read just before. */
CC_INLINE void flow_read_ack(struct cc_ack *ack, struct flow *flow, struct tcp_sock *tp)
{
	ack->now_ns = bpf_ktime_get_ns();
	ack->acked = (u32)(tp->delivered - flow->delivered);
	ack->marked = (u32)(tp->delivered_ce - flow->delivered_ce);
	ack->rtt_us = CC_NONE;
	ack->rtt_seq = 0;
	ack->una = flow->path.una;
	ack->nxt = flow->path.nxt;
	ack->max_in_flight = tp->max_packets_out;
	ack->phase = flow_phase(BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state));
	ack->limited_by = flow_limited_by(tp);
	ack->ece = ack->marked > 0;
	ack->in_order = ack->una != flow->una || tp->reordering > REORDERING;
	flow->una = ack->una;
	flow->delivered = tp->delivered;
	flow->delivered_ce = tp->delivered_ce;
	flow->record.acked += ack->acked;
	flow->record.marked += ack->marked;
}

/* Copies the record out, where the map has an entry for it. The controller's own fields are set by the caller. */
CC_INLINE void flow_publish(struct flow *flow)
{
	flow->record.updated_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&flows, &flow->key, &flow->record, BPF_ANY);
}

/* Which entry is this flow's, and who talks to whom. */
CC_INLINE void flow_describe(struct flow *flow, struct tcp_sock *tp, u64 number)
{
	struct sock_common *common = &flow_sock(tp)->__sk_common;
	struct narrows_flow *record = &flow->record;
	u32 *local = (u32 *)record->local, *remote = (u32 *)record->remote;

	__builtin_memset(record, 0, sizeof(*record));
	record->cookie = common->skc_cookie.counter;
	flow->key = record->cookie ? record->cookie : number | (u64)1 << 63;
	record->namespace = flow_namespace(tp)->ns.inum;
	record->namespace_cookie = flow_namespace(tp)->net_cookie;
	record->ecn = tp->ecn_flags & TCP_ECN_OK;
	record->family = common->skc_family;
	record->local_port = common->skc_num;
	record->remote_port = __builtin_bswap16(common->skc_dport);
	record->rtt_base_us = CC_NONE;
	record->threshold = CC_NONE;
	if (record->family == AF_INET) {
		local[0] = common->skc_rcv_saddr;
		remote[0] = common->skc_daddr;
	} else {
		for (int word = 0; word < 4; word++) {
			local[word] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[word];
			remote[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
		}
	}
}

/* State for a new flow, its path read and `record` described; nothing if there is no memory for it. */
CC_INLINE struct flow *flow_begin(struct tcp_sock *tp)
{
	struct flow *flow = bpf_sk_storage_get(&sockets, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct narrows_counters *count = flow_counters();

	if (!flow)
		return 0;
	/* Read before the parameters: a change in between is read once more. */
	flow->generation = flow_generation();
	flow_describe(flow, tp, count ? __sync_fetch_and_add(&count->flows, 1) : 0);
	flow->rounds = 0;
	flow->delivered = tp->delivered;
	flow->delivered_ce = tp->delivered_ce;
	flow->prior_rcv_nxt = tp->rcv_nxt;
	flow->ce = 0;
	flow->loss_event = 0;
	/* Any number above 0 whose low half is the socket's: windows of data begin at 0. */
	flow->path.una = (u64)1 << 32 | tp->snd_una;
	flow->path.initial_window = tp->snd_cwnd;
	flow->path.line_rate_bps = 0;
	flow->path.rto_ns = 0;
	flow_read_path(flow, tp);
	flow->una = flow->path.una;
	if (bpf_map_update_elem(&flows, &flow->key, &flow->record, BPF_ANY) && count)
		__sync_fetch_and_add(&count->unpublished, 1);
	return flow;
}

/* The parameters, if they changed since the flow read them. */
CC_INLINE const u64 *flow_changed_parameters(struct flow *flow)
{
	u64 now = flow_generation();

	if (now == flow->generation)
		return 0;
	flow->generation = now;
	return flow_parameters(flow->record.namespace_cookie);
}

CC_INLINE void flow_end(struct tcp_sock *tp)
{
	struct flow *flow = flow_of(tp);

	if (!flow)
		return;
	bpf_map_delete_elem(&flows, &flow->key);
	bpf_sk_storage_delete(&sockets, tp);
}

/*
 * A connection whose other end refused ECN still sends ECN-capable packets, and no mark on them would ever be answered:
 * another controller takes it over. Returns whether one did.
 */
CC_INLINE bool flow_refused(struct tcp_sock *tp)
{
	struct narrows_counters *count = flow_counters();
	u8 state = flow_sock(tp)->__sk_common.skc_state;

	if (tp->ecn_flags & TCP_ECN_OK || state == TCP_LISTEN || state == TCP_CLOSE)
		return 0;
	if (count)
		__sync_fetch_and_add(&count->ecn_refused, 1);
	if (!fallback[0])
		return 0;
	return bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, (void *)fallback, sizeof(fallback)) == 0;
}

#endif
