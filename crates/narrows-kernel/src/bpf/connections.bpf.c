// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Every TCP connection that a process has open: who holds it, which it is, and where its sequence numbers stand. The kernel
 * walks the files of all processes and calls this for each; one record is written for each connection.
 */
#include "kernel.bpf.h"
#include "connection.h"
#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	int tgid;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct socket {
	struct sock *sk;
};

#pragma clang attribute pop

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))

/*
 * The connection is not locked, and an acknowledgement may be taken in on another processor: what was read twice the same
 * belongs together, but for the rare case that the other processor stood still between its two writes: who keeps what was
 * read compares two walks.
 */
static bool acknowledged(struct narrows_connection *found, struct tcp_sock *tp)
{
	int i;

	for (i = 0; i < 8; i++) {
		found->acked = READ_ONCE(tp->bytes_acked);
		found->unacknowledged = READ_ONCE(tp->snd_una);
		if (found->acked == READ_ONCE(tp->bytes_acked) && found->unacknowledged == READ_ONCE(tp->snd_una))
			return 1;
	}
	return 0;
}

SEC("iter/task_file")
int connections(struct bpf_iter__task_file *at)
{
	struct task_struct *task = at->task;
	struct file *file = at->file;
	struct narrows_connection found = {};
	struct sock_common *common;
	struct socket *socket;
	struct tcp_sock *tp;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket || !socket->sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(socket->sk);
	if (!tp)
		return 0;
	common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	if (common->skc_state == TCP_LISTEN || common->skc_state == TCP_CLOSE)
		return 0;
	found.cookie = bpf_get_socket_cookie(socket->sk);
	if (!acknowledged(&found, tp))
		return 0;
	found.process = task->tgid;	/* in the initial PID namespace, where the loader must be */
	found.file = at->fd;
	found.next = tp->snd_nxt;
	found.namespace = common->skc_net.net->ns.inum;
	found.family = common->skc_family;
	found.local_port = common->skc_num;
	found.remote_port = bpf_ntohs(common->skc_dport);
	if (found.family == AF_INET) {
		__builtin_memcpy(found.local, &common->skc_rcv_saddr, 4);
		__builtin_memcpy(found.remote, &common->skc_daddr, 4);
	} else {
		__builtin_memcpy(found.local, &common->skc_v6_rcv_saddr, 16);
		__builtin_memcpy(found.remote, &common->skc_v6_daddr, 16);
	}
	bpf_seq_write(at->meta->seq, &found, sizeof(found));
	return 0;
}
