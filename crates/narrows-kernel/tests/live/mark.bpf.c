// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Marks one ECN-capable packet in `one_in`: a switch with a queue, for kernels that have no such discipline. */
typedef __UINT8_TYPE__ __u8;
typedef __UINT16_TYPE__ __u16;
typedef __UINT32_TYPE__ __u32;
typedef __UINT64_TYPE__ __u64;
typedef __INT32_TYPE__ __s32;
typedef __INT64_TYPE__ __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct __sk_buff {
	__u32 len;
};

SEC(".rodata.one_in") const volatile __u32 one_in = 16;
__u32 seen = 0;

SEC("tc")
int mark(struct __sk_buff *skb)
{
	if (++seen % one_in == 0)
		bpf_skb_ecn_set_ce(skb);
	return 0;
}
