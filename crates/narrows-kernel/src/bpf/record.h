/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What programs and loader share: mirrored in src/record.rs, which checks the sizes when it loads. */
#ifndef NARROWS_RECORD_H
#define NARROWS_RECORD_H

#include "facts.core.h"

/* The published state of one flow. Where a controller has no such quantity it is 0. */
struct narrows_flow {
	u64 cookie;		/* the socket's, 0 until the kernel gives it one */
	u64 updated_ns;		/* monotonic clock */
	u64 window_q10;		/* packets, 10 bits of fraction */
	u64 threshold;		/* packets; CC_NONE where there is none yet */
	u64 pacing_bps;		/* bits of IP packets per second; 0 where it is not paced */
	u64 alpha_q20;		/* the marked fraction */
	u64 factor_q10;		/* F */
	u64 step_q10;		/* h, packets per RTT */
	u64 rtt_base_us;	/* CC_NONE before a sample */
	u64 acked;		/* packets, over the life of the flow */
	u64 marked;
	u64 cuts_ecn;		/* by cause */
	u64 cuts_delay;
	u64 cuts_both;		/* ECN and delay in the same acknowledgement: the larger cut counts */
	u64 cuts_loss;
	u64 timeouts;
	u64 undone;
	u64 namespace_cookie;	/* SO_NETNS_COOKIE: what no later namespace has */
	u32 namespace;		/* inode of the network namespace */
	u32 ecn;		/* ECN was negotiated */
	u32 family;		/* 2 or 10 */
	u16 local_port;
	u16 remote_port;
	u8 local[16];		/* addresses in network order, the first four bytes for family 2 */
	u8 remote[16];
};

/* The one entry of the map `counters`. */
struct narrows_counters {
	u64 flows;		/* flows begun */
	u64 ecn_refused;	/* connections whose other end refused ECN */
	u64 unpublished;	/* flows without an entry in `flows`, which was full */
};

#endif
