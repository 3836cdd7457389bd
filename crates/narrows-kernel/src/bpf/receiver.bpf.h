/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The receiver whose ECE follows marks exactly [RFC 8257 §3.2]: acknowledgements carry ECE while the last packet was marked, and
 * where that changes, what was received before is acknowledged at once with the flag that belongs to it.
 */
#ifndef NARROWS_RECEIVER_BPF_H
#define NARROWS_RECEIVER_BPF_H

#include "flow.bpf.h"

CC_INLINE void receiver_echo(struct tcp_sock *tp, u32 ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* A packet arrived; `rcv_nxt` may count it already, so what lay before it was kept. */
CC_INLINE void receiver_event(struct flow *flow, struct tcp_sock *tp, u32 event)
{
	u32 ce = event == CA_EVENT_ECN_IS_CE;

	if (ce != flow->ce) {
		u8 timer = bpf_core_enum_value(enum inet_csk_ack_state_t, ICSK_ACK_TIMER);
		u8 now = bpf_core_enum_value(enum inet_csk_ack_state_t, ICSK_ACK_NOW);

		if (tp->inet_conn.icsk_ack.pending & timer) {
			receiver_echo(tp, flow->ce);
			bpf_tcp_send_ack(tp, flow->prior_rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= now;
	}
	flow->prior_rcv_nxt = tp->rcv_nxt;
	flow->ce = ce;
	receiver_echo(tp, ce);
}

#endif
