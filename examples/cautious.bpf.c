#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tracing_net.h"

char _license[] SEC("license") = "GPL";

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

struct cautious {
	__u32 fresh_from;	/* RTTs count once the data sent at the last cut is acknowledged */
	__u32 is_late;
};

/* Sequence numbers begin anywhere: 0 may be far ahead. */
SEC("struct_ops")
void BPF_PROG(cautious_init, struct sock *sk)
{
	struct cautious *ca = inet_csk_ca(sk);

	ca->fresh_from = tcp_sk(sk)->snd_una;
}

SEC("struct_ops")
void BPF_PROG(cautious_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct cautious *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->is_late = sample->rtt_us > 0 && sample->rtt_us > tp->rtt_min.s[0].v + 5000;
}

SEC("struct_ops")
void BPF_PROG(cautious_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct cautious *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!ca->is_late) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if ((__s32)(tp->snd_una - ca->fresh_from) >= 0) {
		tp->snd_cwnd -= (tp->snd_cwnd + 7) / 8;
		if (tp->snd_cwnd < 2)
			tp->snd_cwnd = 2;
		tp->snd_ssthresh = tp->snd_cwnd;
		ca->fresh_from = tp->snd_nxt;
	}
}

SEC("struct_ops")
__u32 BPF_PROG(cautious_ssthresh, struct sock *sk)
{
	struct cautious *ca = inet_csk_ca(sk);

	ca->fresh_from = tcp_sk(sk)->snd_nxt;
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(cautious_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops cautious = {
	.init = (void *)cautious_init,
	.pkts_acked = (void *)cautious_pkts_acked,
	.cong_avoid = (void *)cautious_cong_avoid,
	.ssthresh = (void *)cautious_ssthresh,
	.undo_cwnd = (void *)cautious_undo_cwnd,
	.name = "cautious",
};
