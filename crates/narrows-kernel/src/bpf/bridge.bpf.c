// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Joins two interfaces, as a wire would. While a process is alive that says so every few milliseconds, it is given the TCP packets of both
 * sides and what the far edge sends, and sends them on itself; all else goes straight on. Without it everything goes straight on, and
 * what the far edge did to packets is undone here, so that hosts never see it (docs/reference/wire.md).
 *
 * Nothing here trusts a length that a packet states: bytes are loaded by calls that check.
 */
typedef __UINT8_TYPE__ __u8;
typedef __UINT16_TYPE__ __u16;
typedef __UINT32_TYPE__ __u32;
typedef __UINT64_TYPE__ __u64;
typedef __INT32_TYPE__ __s32;
typedef __INT64_TYPE__ __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

/* Values of the BPF system call's interface that the helper headers leave to the kernel's. */
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};
#define BPF_F_RECOMPUTE_CSUM 1
#define BPF_ADJ_ROOM_MAC 1
#define TC_ACT_OK 0
#define TC_ACT_SHOT 2
#define TC_ACT_STOLEN 4

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "bridge.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As the kernel's interface has it, up to the last field that is read. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__u64 flow_keys;
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	__u64 sk;
	__u32 gso_size;
};

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define TCP 6
#define UDP 17
#define ICMP 1
#define ICMPV6 58

/* What the far edge's datagrams begin with: docs/reference/wire.md. */
#define MARKED 0x11
#define WELCOME 0x14
#define SHIM 28

SEC(".rodata.bridge") const volatile struct narrows_bridge bridge = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} ring SEC(".maps");

/* When the process was alive last. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} heartbeat SEC(".maps");

/* By side: frames that were the process' and went past it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NARROWS_SIDES);
	__type(key, __u32);
	__type(value, __u32);
} past SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NARROWS_SIDES);
	__type(key, __u32);
	__type(value, struct narrows_passed);
} passed SEC(".maps");

struct ipv4 {
	__u8 version_ihl;
	__u8 tos;
	__be16 total;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__u8 source[4];
	__u8 destination[4];
};

struct ipv6 {
	__u8 version_class;
	__u8 class_label;
	__be16 label;
	__be16 payload;
	__u8 next;
	__u8 hop_limit;
	__u8 source[16];
	__u8 destination[16];
};

struct udp {
	__be16 source;
	__be16 destination;
	__be16 length;
	__be16 checksum;
};

/* What a frame is, as far as matters here. */
struct seen {
	__u8 protocol;		/* 0 where it is not to be touched */
	__u8 class;		/* DSCP and ECN */
	bool v6;
	bool own;
	__u32 transport;	/* where the transport's header begins */
	__u8 said;		/* the first byte of a datagram of the tunnel */
};

static __always_inline bool load(struct __sk_buff *skb, __u32 at, void *to, __u32 size)
{
	return bpf_skb_load_bytes(skb, at, to, size) == 0;
}

/* Whether the address, as of IPv6, is one of this machine's. */
static __always_inline bool is_own(const __u8 *address)
{
	const __u64 *wanted = (const __u64 *)address;
	int i;

	for (i = 0; i < NARROWS_OWN; i++) {
		const volatile __u64 *own = (const volatile __u64 *)bridge.own[i];

		if (i < bridge.own_count && own[0] == wanted[0] && own[1] == wanted[1])
			return 1;
	}
	return 0;
}

static __always_inline bool see_v4(struct __sk_buff *skb, struct seen *seen)
{
	struct ipv4 ip;

	if (!load(skb, bridge.link, &ip, sizeof(ip)) || ip.version_ihl >> 4 != 4)
		return 0;
	seen->class = ip.tos;
	seen->transport = bridge.link + (ip.version_ihl & 15) * 4;
	/* "More fragments" and the offset. */
	if (!(ip.fragment & bpf_htons(0x3fff)) && (ip.version_ihl & 15) >= 5)
		seen->protocol = ip.protocol;
	if (!bridge.link) {
		__u8 mapped[16] __attribute__((aligned(8))) = { [10] = 0xff, [11] = 0xff };

		__builtin_memcpy(mapped + 12, ip.destination, 4);
		seen->own = is_own(mapped);
	}
	return 1;
}

static __always_inline bool see_v6(struct __sk_buff *skb, struct seen *seen)
{
	struct ipv6 ip __attribute__((aligned(8)));

	if (!load(skb, bridge.link, &ip, sizeof(ip)) || ip.version_class >> 4 != 6)
		return 0;
	seen->v6 = 1;
	seen->class = ip.version_class << 4 | ip.class_label >> 4;
	seen->transport = bridge.link + sizeof(ip);
	seen->protocol = ip.next;
	if (!bridge.link)
		seen->own = is_own(ip.destination);
	return 1;
}

/* Whether a datagram is one of this tunnel; what it says first is noted. */
static __always_inline bool is_tunnel(struct __sk_buff *skb, struct seen *seen)
{
	struct udp udp;
	__u8 said[4];

	if (!load(skb, seen->transport, &udp, sizeof(udp)) || udp.destination != bpf_htons(bridge.port))
		return 0;
	if (!load(skb, seen->transport + sizeof(udp), said, sizeof(said)))
		return 0;
	seen->said = said[0];
	return said[0] >= MARKED && said[0] <= WELCOME && (said[2] << 8 | said[3]) == bridge.tunnel;
}

/* Whether an ICMP message tells of a datagram of a tunnel's: nobody but an edge has sent that. */
static __always_inline bool is_error(struct __sk_buff *skb, const struct seen *seen)
{
	__u32 quoted = seen->transport + 8;
	struct udp udp;
	__u8 type;

	if (!load(skb, seen->transport, &type, 1))
		return 0;
	if (seen->v6) {
		struct ipv6 ip;

		/* Errors have types below 128 [RFC 4443 §2.1]. */
		if (type >= 128 || !load(skb, quoted, &ip, sizeof(ip)) || ip.next != UDP)
			return 0;
		quoted += sizeof(ip);
	} else {
		struct ipv4 ip;

		/* Unreachable, and time exceeded. */
		if ((type != 3 && type != 11) || !load(skb, quoted, &ip, sizeof(ip)) || ip.protocol != UDP)
			return 0;
		quoted += (ip.version_ihl & 15) * 4;
	}
	return load(skb, quoted, &udp, sizeof(udp)) && udp.destination == bpf_htons(bridge.port);
}

static __always_inline bool copy(struct __sk_buff *skb, __u64 now, const __u32 record, __u8 side, __u8 kind, __u32 gone)
{
	const __u32 size = record - 8, room = size - sizeof(struct narrows_frame);
	struct narrows_frame *frame = bpf_ringbuf_reserve(&ring, size, 0);
	__u32 length = skb->len;

	if (!frame)
		return 0;
	/*
	 * Two comparisons, each with the length itself: made into one of length - 1, Linux 6.1 does not learn from it that the
	 * length fits.
	 */
	if (length > room)
		goto discard;
	barrier_var(length);
	if ((__s32)length < 1 || bpf_skb_load_bytes(skb, 0, frame->bytes, length) < 0)
		goto discard;
	frame->came_ns = now;
	frame->length = length;
	frame->side = side;
	frame->kind = kind;
	frame->past = gone;
	bpf_ringbuf_submit(frame, 0);
	return 1;
discard:
	bpf_ringbuf_discard(frame, 0);
	return 0;
}

#define ROOM(record) ((record) - 8 - sizeof(struct narrows_frame))

/* Hands a frame to the process, if there is one and there is room; whether it did. */
static __always_inline bool divert(struct __sk_buff *skb, struct narrows_passed *count, __u8 side, __u8 kind)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	__u64 *alive = bpf_map_lookup_elem(&heartbeat, &zero);
	__u32 key = side, gone;
	__u32 *went = bpf_map_lookup_elem(&past, &key);
	bool given;

	/* It is there: the map is an array. */
	if (!went)
		return 0;
	gone = *(volatile __u32 *)went;
	if (!alive || now - *alive > bridge.alive_ns) {
		/* One that was written on another processor just now is not in the past. */
		if (!alive || (__s64)(now - *alive) > 0) {
			count->alone++;
			__sync_fetch_and_add(went, 1);
			return 0;
		}
	}
	if (skb->len <= ROOM(NARROWS_SMALL)) {
		given = copy(skb, now, NARROWS_SMALL, side, kind, gone);
	} else if (skb->len <= ROOM(NARROWS_FULL)) {
		given = copy(skb, now, NARROWS_FULL, side, kind, gone);
	} else if (skb->len <= ROOM(NARROWS_JUMBO)) {
		given = copy(skb, now, NARROWS_JUMBO, side, kind, gone);
	} else {
		count->too_long++;
		__sync_fetch_and_add(went, 1);
		return 0;
	}
	if (given) {
		count->diverted++;
	} else {
		count->ring_full++;
		__sync_fetch_and_add(went, 1);
	}
	return given;
}

/*
 * Whether a packet is TCP between the hosts that the datagram around it names, as edges send it. Tags cannot be looked at here; so nothing
 * is unwrapped that could not have been sent to that host as it is.
 */
static __always_inline bool is_inner(struct __sk_buff *skb, __u32 at, const struct seen *seen)
{
	__u64 outer[4] = {}, inner[4] = {};
	__u8 head[10];

	if (!load(skb, at, head, sizeof(head)))
		return 0;
	if (seen->v6) {
		if (head[0] >> 4 != 6 || head[6] != TCP || !load(skb, bridge.link + 8, outer, 32) || !load(skb, at + 8, inner, 32))
			return 0;
	} else if (head[0] >> 4 != 4 || head[9] != TCP || !load(skb, bridge.link + 12, outer, 8) || !load(skb, at + 12, inner, 8)) {
		return 0;
	}
	return outer[0] == inner[0] && outer[1] == inner[1] && outer[2] == inner[2] && outer[3] == inner[3];
}

/* Takes off a marked packet what the far edge put around it. */
static __always_inline int unwrap(struct __sk_buff *skb, struct narrows_passed *count, const struct seen *seen)
{
	__u32 head = seen->transport - bridge.link + sizeof(struct udp) + SHIM;

	if (bridge.drop_unseen || !is_inner(skb, bridge.link + head, seen) ||
	    bpf_skb_adjust_room(skb, -(__s32)head, BPF_ADJ_ROOM_MAC, 0)) {
		count->dropped++;
		return TC_ACT_SHOT;
	}
	count->unwrapped++;
	return bpf_redirect(bridge.interface[NARROWS_INSIDE], 0);
}

/* Takes the sign off a disguised packet, and the ECN bits that were not its host's. */
static __always_inline void unsign(struct __sk_buff *skb, struct narrows_passed *count, const struct seen *seen)
{
	__u8 bytes[2];

	if (!load(skb, bridge.link, bytes, sizeof(bytes)))
		return;
	if (seen->v6) {
		bytes[0] &= 0xf0;
		bytes[1] &= 0x0f;
		if (bpf_skb_store_bytes(skb, bridge.link, bytes, 2, BPF_F_RECOMPUTE_CSUM))
			return;
	} else {
		/* The words as they lie in memory. */
		__u16 before = bytes[0] | bytes[1] << 8, after = bytes[0];

		if (bpf_l3_csum_replace(skb, bridge.link + __builtin_offsetof(struct ipv4, checksum), before, after, 2))
			return;
		bytes[1] = 0;
		/* What the checksum makes up for needs no other. */
		if (bpf_skb_store_bytes(skb, bridge.link, bytes, 2, 0))
			return;
	}
	count->unsigned_++;
}

static __always_inline int straight(const __u8 side)
{
	return bpf_redirect(bridge.interface[!side], 0);
}

static __always_inline int take(struct __sk_buff *skb, const __u8 side)
{
	__u32 key = side;
	struct narrows_passed *count = bpf_map_lookup_elem(&passed, &key);
	struct seen seen = {};

	/* It is there: the map is an array. */
	if (!count)
		return straight(side);
	if (bridge.link) {
		__u8 to[6];

		if (!load(skb, 0, to, sizeof(to)))
			return TC_ACT_SHOT;
		if (to[0] & 1) {
			count->group++;
			bpf_clone_redirect(skb, bridge.interface[!side], 0);
			return TC_ACT_OK;
		}
		if (to[0] == bridge.mac[side][0] && to[1] == bridge.mac[side][1] && to[2] == bridge.mac[side][2] &&
		    to[3] == bridge.mac[side][3] && to[4] == bridge.mac[side][4] && to[5] == bridge.mac[side][5]) {
			count->own++;
			return TC_ACT_OK;
		}
	}
	if (skb->vlan_present || skb->gso_size) {
		count->super++;
		return straight(side);
	}
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (!see_v4(skb, &seen))
			seen.protocol = 0;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (!see_v6(skb, &seen))
			seen.protocol = 0;
	}
	if (seen.own) {
		count->own++;
		return TC_ACT_OK;
	}
	if (seen.protocol == TCP) {
		if (divert(skb, count, side, NARROWS_TCP))
			return TC_ACT_STOLEN;
		if (side == NARROWS_OUTSIDE && bridge.sign && seen.class >> 2 == bridge.sign)
			unsign(skb, count, &seen);
		return straight(side);
	}
	if (side == NARROWS_OUTSIDE && seen.protocol == UDP && is_tunnel(skb, &seen)) {
		if (divert(skb, count, side, NARROWS_TUNNEL))
			return TC_ACT_STOLEN;
		if (seen.said == MARKED)
			return unwrap(skb, count, &seen);
		count->dropped++;
		return TC_ACT_SHOT;
	}
	if (side == NARROWS_OUTSIDE && seen.protocol == (seen.v6 ? ICMPV6 : ICMP) && is_error(skb, &seen)) {
		if (divert(skb, count, side, NARROWS_ERROR))
			return TC_ACT_STOLEN;
		count->dropped++;
		return TC_ACT_SHOT;
	}
	count->straight++;
	return straight(side);
}

SEC("tc")
int inside(struct __sk_buff *skb)
{
	return take(skb, NARROWS_INSIDE);
}

SEC("tc")
int outside(struct __sk_buff *skb)
{
	return take(skb, NARROWS_OUTSIDE);
}
