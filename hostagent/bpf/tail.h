/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is sent again at the end of a transfer goes three times.
 *
 * A segment that is sent again while new ones follow is missed as soon as one of these is confirmed. After the last new
 * segment nothing follows: a repetition that is lost too is found by the timeout alone, and on a new connection that is
 * up to three round trips (RFC 6298 section 2.2: the variance starts at half a round trip and is weighed four times; it
 * falls by a quarter in each, and not while there is a hole). So each of these repetitions leaves with two copies of itself,
 * and pacing counts all three: the line is idle then, and what the receiver has already it drops.
 *
 * The receiver says of each that it had it already (a duplicate SACK, RFC 2883). TCP would take that for reordering: from
 * then on, for the connection's life, it would wait a quarter of a round trip and more before it calls a segment lost
 * (RFC 8985 section 6.2). So that word is taken out of what comes to a held connection.
 *
 *   new data ............|            the line is idle
 *                         rrr    rrr   ^ a hole of the last window, told by what came after it
 */
#ifndef HEADWAY_TAIL_H
#define HEADWAY_TAIL_H

#define COPIED 0x4857 /* in skb->tc_index: also where the packet leaves by another interface below (VLAN, bond) */
#define COPIES 3 /* with one copy, of a thousand transfers at 1% of loss one was more than four round trips late */
#define TCP_SEQ_OFFSET 4
#define TCP_ACK_OFFSET 8
#define TCP_CHECK_OFFSET 16
#define TCP_BYTES 20
#define TIMESTAMPS_BYTES 12 /* with what fills them up: NOP, NOP, kind 8, length 10 */
#define IPV6_BYTES 40
#define ETHERNET_BYTES 14
#define NOP 1
#define SACK 5

/* Nothing new is to be sent, and something is missing. */
static __always_inline bool is_tail(const struct tcp_sock *tp)
{
	return host.tail_copies && tp->write_seq == tp->snd_nxt && (tp->lost_out || tp->retrans_out);
}

/* Where TCP's header begins after the start of IP's; 0 for other packets, and for IPv6 with extension headers. */
static __always_inline int tcp_offset(struct __sk_buff *skb)
{
	bool ipv4 = skb->protocol == bpf_htons(ETH_P_IP);
	__u8 first, protocol;

	if (!ipv4 && skb->protocol != bpf_htons(ETH_P_IPV6))
		return 0;
	if (bpf_skb_load_bytes_relative(skb, 0, &first, sizeof(first), BPF_HDR_START_NET) ||
	    bpf_skb_load_bytes_relative(skb, ipv4 ? 9 : 6, &protocol, sizeof(protocol), BPF_HDR_START_NET) ||
	    protocol != IPPROTO_TCP)
		return 0;
	return ipv4 ? (first & 15) * 4 : IPV6_BYTES;
}

/* Whether what leaves has left before: snd_nxt moves after the transmission. */
static __always_inline bool is_again(struct __sk_buff *skb, const struct tcp_sock *tp)
{
	int offset = tcp_offset(skb);
	__be32 seq;

	if (!offset ||
	    bpf_skb_load_bytes_relative(skb, offset + TCP_SEQ_OFFSET, &seq, sizeof(seq), BPF_HDR_START_NET))
		return false;
	return (__s32)(bpf_ntohl(seq) - tp->snd_nxt) < 0;
}

/* The SACK option as Linux writes it, and its first two blocks. */
struct sacked {
	__u8 nops[2], kind, length;
	__be32 start, end, next_start, next_end;
};

/* The offset, from the start of IP's header, of a SACK option whose first block is a duplicate; 0 if there is none. */
static __always_inline int duplicate_sack(struct __sk_buff *skb, int tcp, struct sacked *found)
{
	__u8 kinds[4];
	int offset = tcp + TCP_BYTES;
	__be32 ack;

	/* most packets are over before there could be one */
	if (bpf_skb_load_bytes_relative(skb, offset, kinds, sizeof(kinds), BPF_HDR_START_NET))
		return 0;
	if (kinds[2] != SACK)
		offset += TIMESTAMPS_BYTES;
	__builtin_memset(found, 0, sizeof(*found));
	if (bpf_skb_load_bytes_relative(skb, offset, found, 12, BPF_HDR_START_NET) ||
	    found->nops[0] != NOP || found->nops[1] != NOP || found->kind != SACK || found->length < 10 ||
	    bpf_skb_load_bytes_relative(skb, tcp + TCP_ACK_OFFSET, &ack, sizeof(ack), BPF_HDR_START_NET))
		return 0;
	if ((__s32)(bpf_ntohl(found->start) - bpf_ntohl(ack)) < 0)
		return offset;
	if (found->length < 18 ||
	    bpf_skb_load_bytes_relative(skb, offset, found, sizeof(*found), BPF_HDR_START_NET))
		return 0;
	return (__s32)(bpf_ntohl(found->start) - bpf_ntohl(found->next_start)) >= 0 &&
		       (__s32)(bpf_ntohl(found->end) - bpf_ntohl(found->next_end)) <= 0
		       ? offset
		       : 0;
}

/* Writes NOPs over the first block of a SACK option; the others follow as they were. */
static __always_inline void without_first_block(struct __sk_buff *skb, int tcp, int option, const struct sacked *was)
{
	__u8 now[12] = {NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP};
	__u8 first, same;
	int link = ETHERNET_BYTES;
	__s64 change;

	if (was->length > 10) {
		now[10] = SACK;
		now[11] = was->length - 8;
	}
	/* a tunnel's interface has no Ethernet header */
	if (bpf_skb_load_bytes_relative(skb, 0, &first, sizeof(first), BPF_HDR_START_NET) ||
	    bpf_skb_load_bytes(skb, link + option + 2, &same, sizeof(same)) || same != SACK)
		link = 0;
	if (bpf_skb_load_bytes(skb, link, &same, sizeof(same)) || same != first ||
	    bpf_skb_load_bytes(skb, link + option + 2, &same, sizeof(same)) || same != SACK)
		return;
	change = bpf_csum_diff((__be32 *)was, sizeof(now), (__be32 *)now, sizeof(now), 0);
	if (change >= 0 && !bpf_skb_store_bytes(skb, link + option, now, sizeof(now), 0))
		bpf_l4_csum_replace(skb, link + tcp + TCP_CHECK_OFFSET, 0, change, 0);
}

/* The socket that a packet is for; to be released. */
static __always_inline struct bpf_sock *receiver_of(struct __sk_buff *skb, int tcp)
{
	bool ipv4 = skb->protocol == bpf_htons(ETH_P_IP);
	struct bpf_sock_tuple tuple = {};

	if (ipv4) {
		bpf_skb_load_bytes_relative(skb, 12, &tuple.ipv4, 8, BPF_HDR_START_NET);
		bpf_skb_load_bytes_relative(skb, tcp, &tuple.ipv4.sport, 4, BPF_HDR_START_NET);
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	bpf_skb_load_bytes_relative(skb, 8, &tuple.ipv6, 32, BPF_HDR_START_NET);
	bpf_skb_load_bytes_relative(skb, tcp, &tuple.ipv6.sport, 4, BPF_HDR_START_NET);
	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
}

#endif
