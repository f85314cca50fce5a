/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The mark of what an IPv6 socket sends to an IPv4 peer, as those of a server that listens by both do.
 *
 * Such packets are IPv4's and have what IP_TOS says; of an IPv6 socket bpf_setsockopt sets IPV6_TCLASS alone. So the mark
 * is written into the packets. */
#ifndef HEADWAY_MAPPED_H
#define HEADWAY_MAPPED_H

#define ECN_BITS 3
#define CHECK_OFFSET 10

/* The beginning of an IPv4 header, to its checksum. */
struct beginning {
	__u8 version, tos;
	__u16 rest[5];
} __attribute__((aligned(4)));

static __always_inline bool begins_at(struct __sk_buff *skb, int offset, const struct beginning *header)
{
	const __u32 *left = (const __u32 *)header, *right;
	struct beginning there = {};

	right = (const __u32 *)&there;
	return !bpf_skb_load_bytes(skb, offset, &there, sizeof(there)) && left[0] == right[0] && left[1] == right[1] &&
	       left[2] == right[2];
}

/* Writes the mark of the socket's allocation into a packet of IPv4, if it has one. */
static __always_inline void mark_mapped(struct __sk_buff *skb, struct tcp_sock *tp)
{
	struct conn *conn = bpf_sk_storage_get(&hw_conns_8, tp, NULL, 0);
	int link = ETHERNET_BYTES;
	struct beginning was = {}, now;

	if (!conn || !conn->held || !conn->marked ||
	    bpf_skb_load_bytes_relative(skb, 0, &was, sizeof(was), BPF_HDR_START_NET))
		return;
	now = was;
	now.tos = conn->marked_tos | (was.tos & ECN_BITS);
	if (now.tos == was.tos)
		return;
	if (!begins_at(skb, link, &was)) /* a tunnel's interface has no Ethernet header */
		link = 0;
	if (!link && !begins_at(skb, link, &was))
		return;
	if (!bpf_l3_csum_replace(skb, link + CHECK_OFFSET, *(__u16 *)&was, *(__u16 *)&now, 2))
		bpf_skb_store_bytes(skb, link + 1, &now.tos, 1, 0);
}

#endif
