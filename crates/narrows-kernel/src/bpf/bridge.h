/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the programs of an edge router share with the process that loads them. */
#ifndef NARROWS_BRIDGE_H
#define NARROWS_BRIDGE_H

/* Which interface a frame came in at. */
enum narrows_side { NARROWS_INSIDE, NARROWS_OUTSIDE, NARROWS_SIDES };

/* Why it is handed to the process. */
enum narrows_kind { NARROWS_TCP, NARROWS_TUNNEL, NARROWS_ERROR };

/* Ahead of a frame's bytes in the ring: 24 bytes. */
struct narrows_frame {
	__u64 came_ns;		/* CLOCK_MONOTONIC */
	__u32 length;		/* bytes of the frame */
	__u8 side;
	__u8 kind;
	__u8 zero[2];
	/* How many frames of this side that the process should have had went past it. */
	__u32 past;
	__u8 more[4];
	__u8 bytes[];
};

/* Records are of one of these sizes, their head and the ring's own 8 bytes included. */
#define NARROWS_SMALL 256
#define NARROWS_FULL 2048
#define NARROWS_JUMBO 9472

#define NARROWS_OWN 8

/* The whole of the configuration; it does not change. */
struct narrows_bridge {
	__u32 interface[NARROWS_SIDES];
	__u32 link;		/* bytes of the link header: 14, or 0 */
	__u32 alive_ns;		/* how long a heartbeat counts */
	__u16 port;		/* of the tunnel's datagrams */
	__u16 tunnel;
	__u8 sign;		/* DSCP of disguised packets; 0 if there are none */
	__u8 own_count;
	__u8 mac[NARROWS_SIDES][6];
	__u8 drop_unseen;	/* whether marked packets that no process authenticates are dropped, not unwrapped */
	__u8 zero[1];
	/* Addresses of this machine, as of IPv6: without a link header they say what is for itself. */
	__u8 own[NARROWS_OWN][16];
};

/* Frames of one side. */
struct narrows_passed {
	__u64 diverted;		/* handed to the process */
	__u64 straight;		/* neither TCP nor of the tunnel: sent on by the kernel */
	__u64 own;		/* for this machine */
	__u64 group;		/* for many: sent on, and for this machine, too */
	__u64 super;		/* joined from several by an offload, or with a VLAN tag beside it: sent on as they are */
	__u64 too_long;		/* for the ring: sent on by the kernel */
	__u64 ring_full;	/* likewise, as the process did not keep up */
	__u64 alone;		/* likewise, as there is no process */
	__u64 unwrapped;	/* of the last three, marked packets that the kernel unwrapped */
	__u64 unsigned_;	/* likewise, disguised packets */
	__u64 dropped;		/* likewise, what edges tell each other and hosts need not know */
};

#endif
