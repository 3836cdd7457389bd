/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What a controller is told: the facts of narrows-core's Ack and Path, in the kernel's units.
 *
 * Pure C for two compilers: clang for BPF, and the host's for the twin test. Fixed-width integers only; no kernel type,
 * no helper, no signed division, no loop without a bound.
 */
#ifndef NARROWS_FACTS_CORE_H
#define NARROWS_FACTS_CORE_H

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;

#define CC_INLINE static inline __attribute__((always_inline, unused))

/* No value yet, no limit; of a parameter: left to the controller. */
#define CC_NONE (~(u64)0)

/* The smallest window but for a timeout's, packets [RFC 5681 §3.1]. */
#define CC_MIN_WINDOW 2

/* Where the sender stands between losses. Linux's Disorder counts as open. */
enum cc_phase { CC_OPEN, CC_ECN_REDUCTION, CC_RECOVERY, CC_LOSS };

/* Why an episode of congestion began. */
enum cc_cause { CC_CAUSE_LOSS, CC_CAUSE_ECN };

/* What a transmission begins: nothing; a burst after idle time, when all is acknowledged; or one when nothing is in flight. */
enum cc_start { CC_STARTS_NOTHING, CC_STARTS_IDLE, CC_STARTS_AGAIN };

/* What kept the sender from sending more. */
enum cc_limit { CC_BY_WINDOW, CC_BY_RECEIVER, CC_BY_APPLICATION, CC_BY_PACING, CC_BY_NEAR_SOURCE };

/* One acknowledgement. Sequence numbers are 64-bit offsets that never wrap. */
struct cc_ack {
	u64 now_ns;		/* when it arrived */
	u64 acked;		/* packets newly delivered, below 2^32 */
	u64 marked;		/* those of them that were reported as marked */
	u64 rtt_us;		/* RTT, below 2^32; CC_NONE without a sample */
	u64 rtt_seq;		/* a byte of the segment that it was taken on */
	u64 una;		/* first byte not yet acknowledged */
	u64 nxt;		/* first byte not yet sent */
	u64 max_in_flight;	/* most packets in flight over the last round */
	u32 phase;		/* enum cc_phase, an episode that begins now included */
	u32 limited_by;		/* enum cc_limit */
	u32 ece;		/* the ECE flag was set and ECN is in use */
	u32 in_order;		/* it acknowledges data in sequence, or the path is known to reorder */
};

/* What changes slowly. */
struct cc_path {
	u64 packet_bytes;	/* a full IP packet, at most 65535 */
	u64 initial_window;	/* packets */
	u64 line_rate_bps;	/* of the sending host's port */
	u64 srtt_eighth_us;	/* smoothed RTT in 1/8 us as Linux keeps it, below 2^32; 0 before a sample */
	u64 min_rtt_us;		/* minimum RTT of the last 300 s; CC_NONE before a sample */
	u64 rto_ns;		/* retransmission timeout, without back-off */
	u64 una;
	u64 nxt;
};

/* A controller whose recovery the transport owns grows then only: not while the transport reduces, nor above a hole. */
CC_INLINE int cc_may_grow(const struct cc_ack *ack)
{
	return ack->in_order && (ack->phase == CC_OPEN || ack->phase == CC_LOSS);
}

CC_INLINE u64 cc_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

CC_INLINE u64 cc_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

CC_INLINE u64 cc_saturating_add(u64 a, u64 b)
{
	return a + b < a ? CC_NONE : a + b;
}

CC_INLINE u64 cc_saturating_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* In halves: the product of 128 bits that a compiler would check is none of BPF's. */
CC_INLINE u64 cc_saturating_mul(u64 a, u64 b)
{
	u64 a_high = a >> 32, a_low = a & 0xffffffff;
	u64 b_high = b >> 32, b_low = b & 0xffffffff;
	/* If only one half above is not 0, so is one of these products. */
	u64 middle = a_high * b_low + a_low * b_high;

	if ((a_high && b_high) || middle >> 32)
		return CC_NONE;
	return cc_saturating_add(middle << 32, a_low * b_low);
}

#endif
