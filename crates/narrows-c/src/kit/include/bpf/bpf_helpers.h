/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The part of libbpf's header that controllers use, for a compiler of this machine's own code. */
#ifndef NARROWS_BPF_HELPERS_H
#define NARROWS_BPF_HELPERS_H

#include <vmlinux.h>

#define SEC(name) __attribute__((section(name), used))
#define __ksym
#define __kconfig
#undef __weak
#define __weak __attribute__((weak))
#define __hidden
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#undef __noinline
#define __noinline __attribute__((noinline))
#define barrier() __asm__ __volatile__("" ::: "memory")

#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value *name[]

enum { BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 512 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

extern __u64 bpf_ktime_get_ns(void);
extern __u64 bpf_ktime_get_boot_ns(void);
extern __u64 bpf_jiffies64(void);
extern __u32 bpf_get_prandom_u32(void);
extern long bpf_tcp_send_ack(void *tp, __u32 rcv_nxt);
extern long bpf_setsockopt(void *sk, int level, int name, void *value, int length);
extern long bpf_getsockopt(void *sk, int level, int name, void *value, int length);

/* State of a connection beside the controller's own; `first` is its first value, if there is one, and else zeros. */
extern void *narrows_storage_get(void *map, void *sk, __u32 size, const void *first, __u64 flags);
extern long bpf_sk_storage_delete(void *map, void *sk);
#define bpf_sk_storage_get(map_, sk_, first_, flags_) \
	((__typeof__((map_)->value))narrows_storage_get((map_), (sk_), sizeof(*(map_)->value), (first_), (flags_)))

/* Messages to the kernel's trace: to nobody here. */
#define bpf_printk(format, arguments...) ({ if (0) narrows_said(format, ##arguments); 0; })
extern void narrows_said(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
