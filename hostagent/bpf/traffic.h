/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What leaves by an interface, and what comes. */
#ifndef HEADWAY_TRAFFIC_H
#define HEADWAY_TRAFFIC_H

static __always_inline bool is_held(struct tcp_sock *tp)
{
	struct conn *conn = tp ? bpf_sk_storage_get(&hw_conns_8, tp, NULL, 0) : NULL;

	return conn && conn->held;
}

/* Marks what a mapped socket sends; and sends copies of what is sent again at a transfer's end. A copy belongs to no
 * socket, so it is not copied. */
SEC("tc")
int headway_egress(struct __sk_buff *skb)
{
	struct bpf_sock *bpf_sk = skb->sk;
	struct tcp_sock *tp;

	if (!bpf_sk || skb->tc_index == COPIED)
		return TCX_NEXT;
	bpf_sk = bpf_sk_fullsock(bpf_sk);
	if (!bpf_sk)
		return TCX_NEXT;
	tp = bpf_skc_to_tcp_sock(bpf_sk);
	if (!tp)
		return TCX_NEXT;
	if (skb->protocol == bpf_htons(ETH_P_IP) && bpf_sk->family == AF_INET6)
		mark_mapped(skb, tp);
	if (!is_tail(tp) || !is_again(skb, tp) || !is_held(tp))
		return TCX_NEXT;
	skb->tc_index = COPIED;
	for (int more = 1; more < COPIES; more++)
		bpf_clone_redirect(skb, skb->ifindex, 0);
	return TCX_NEXT;
}

/* Takes out of what comes to a held connection that the receiver had something already. */
SEC("tc")
int headway_ingress(struct __sk_buff *skb)
{
	int tcp = tcp_offset(skb), option;
	struct sacked sacked;
	struct bpf_sock *sk;
	bool held;

	if (!tcp)
		return TCX_NEXT;
	option = duplicate_sack(skb, tcp, &sacked);
	if (!option)
		return TCX_NEXT;
	sk = receiver_of(skb, tcp);
	if (!sk)
		return TCX_NEXT;
	held = is_held(bpf_skc_to_tcp_sock(sk));
	bpf_sk_release(sk);
	if (held)
		without_first_block(skb, tcp, option, &sacked);
	return TCX_NEXT;
}

#endif
