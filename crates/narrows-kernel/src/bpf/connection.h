/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What connections.bpf.c writes of each connection: mirrored in src/connections.rs. */
#ifndef NARROWS_CONNECTION_H
#define NARROWS_CONNECTION_H

#include "facts.core.h"

struct narrows_connection {
	u64 cookie;
	u64 acked;		/* bytes, as TCP_INFO counts them */
	u32 process;
	u32 file;
	u32 unacknowledged;	/* sequence numbers */
	u32 next;
	u32 namespace;		/* inode of the network namespace */
	u32 family;		/* 2 or 10 */
	u16 local_port;
	u16 remote_port;
	u32 unused;
	u8 local[16];		/* addresses in network order, the first four bytes for family 2 */
	u8 remote[16];
};

#endif
