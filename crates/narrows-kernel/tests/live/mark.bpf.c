// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Marks one ECN-capable packet in `mark_one_in` and drops one full one in `drop_one_in`: a switch in trouble. */
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

#define TC_ACT_OK 0
#define TC_ACT_SHOT 2

/* 0 for none. */
SEC(".rodata.harm") const volatile struct harm {
	__u32 mark_one_in;
	__u32 drop_one_in;
} harm = {};
__u32 seen = 0;

SEC("tc")
int mark(struct __sk_buff *skb)
{
	seen++;
	if (harm.drop_one_in && skb->len > 1000 && seen % harm.drop_one_in == 0)
		return TC_ACT_SHOT;
	if (harm.mark_one_in && seen % harm.mark_one_in == 0)
		bpf_skb_ecn_set_ce(skb);
	return TC_ACT_OK;
}
