/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Takes the place of the header of this name in the kernel's self-tests, before Linux 6.10. */
#ifndef NARROWS_BPF_TCP_HELPERS_H
#define NARROWS_BPF_TCP_HELPERS_H

#include <bpf_tracing_net.h>
#include <bpf/bpf_tracing.h>

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_not_zero(x, y) ({			\
	__typeof__(x) __x = (x);		\
	__typeof__(y) __y = (y);		\
	__x == 0 ? __y : (__y == 0 ? __x : min(__x, __y)); })

static inline bool before(__u32 one, __u32 other)
{
	return (__s32)(one - other) < 0;
}
#define after(other, one) before(one, other)

static inline bool tcp_cc_eq(const char *one, const char *other)
{
	return !__builtin_strncmp(one, other, TCP_CA_NAME_MAX);
}

#ifndef BPF_STRUCT_OPS
#define BPF_STRUCT_OPS(name, arguments...) SEC("struct_ops/" #name) BPF_PROG(name, arguments)
#endif

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

#endif
