/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What sender and receiver of a coded tail keep and send each other.
 *
 * Two kinds of packets go along a connection, none of which TCP takes: they have no flag, and a segment without ACK is
 * dropped (RFC 9293 section 3.10.7.4). An anchor goes before the first cell of a block and says where its cells are; then
 * follow the cells, which are TCP's own segments as they were; and when nothing is left to be sent, parities.
 *
 *   A 0 1 2 3 ... n   P P P P P
 */
#ifndef HEADWAY_CODED_H
#define HEADWAY_CODED_H

#include "parity.h"

#define POOL_PIECES 2048 /* of each direction: 3.2 MB */
#define FLOWS 1024
#define TCP_HEADER 32    /* with timestamps and nothing else: what a segment has that carries data */
#define MOST_HEADER (ETHERNET_BYTES + IPV6_BYTES + TCP_HEADER)
#define MAGIC 0x48776179436f6465ULL
#define OPTION 254       /* for experiments, RFC 4727; followed by its length and two bytes of ours */
#define OPTION_MARK 0x4877
#define TCP_FLAGS_OFFSET 13
#define TCP_ACK 0x10
#define TCP_PSH 0x08
#define TCP_SYN_FIN_RST 0x07

/* skb->tc_index: also where the packet leaves by another interface below (VLAN, bond) */
#define SEED 0x4858
#define MADE 0x4859
#define PASSED 0x485a

enum half { OUT, IN };

/* From the sender of data to its receiver; IPv4 as ::ffff:a.b.c.d. */
struct flow {
	__u32 from[4];
	__u32 to[4];
	__be16 from_port;
	__be16 to_port;
	__u32 padding;
};

/* What both ends know of a block. */
struct block {
	__u64 owner; /* of its pieces */
	__u64 key;
	__u32 base; /* sequence number of the first cell */
	__u32 groups;
	__u32 cell_bytes;
	__u32 pieces; /* of a cell */
};

/* What an anchor carries. */
struct notice {
	__u64 magic;
	__u64 key;
	__u32 groups;
	__u32 cell_bytes;
	__u32 base;
	__u32 padding;
};

/* In a parity the fields of TCP's header say: seq the block's base, ack_seq cells << 16 | groups - 1, window the bytes of
 * the last cell, urg_ptr the group; and in place of the timestamps there is this. */
struct parity_option {
	__u8 kind, length;
	__be16 mark;
	__u32 sum[2];
};

/* A block of the sender. */
struct sent {
	struct block block;
	__u64 ended_ns;  /* when nothing was left to be sent; 0: it is open */
	__u64 used_ns;   /* up to when the rate is used by the parities that were sent */
	__u64 rate_bytes_per_s;
	__u32 next;     /* sequence number of what is to come */
	__u32 emitted;  /* parities */
	__u32 from;     /* sequence number from which on parities have been sent, of this block or of those before it */
	__u32 last;     /* sequence number from which on confirmations cannot tell TCP that something is lost */
	__u32 interface;
	__u32 header_bytes;
	__u8 header[MOST_HEADER + 2];
};

/* A block of the receiver, and TCP's header of what came last of the connection. */
struct came {
	struct block block;
	__u8 tcp[TCP_HEADER];
};

/* What the nested program is to make of the packet that it is given. */
struct job {
	struct flow flow;
	__u32 kind;
	__u32 first;
	__u32 count;
	__u32 number; /* of the one that is being made */
};

enum kind { ANCHOR, PARITY };

struct coded_counts {
	__u64 blocks;     /* of the sender, opened */
	__u64 parities;   /* sent */
	__u64 anchors;    /* of the receiver, come */
	__u64 rebuilt;    /* segments */
	__u64 needless;   /* parities of whose group nothing was missing */
	__u64 too_many;   /* parities of whose group more than one was missing */
	__u64 refused;    /* what was made of a parity did not agree with its sum */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * POOL_PIECES);
	__type(key, __u32);
	__type(value, struct piece);
} hw_pieces SEC(".maps");

/* How many pieces have ever been given away, of each direction. The oldest block gives way to the newest. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} hw_given SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS);
	__type(key, struct flow);
	__type(value, struct sent);
} hw_sent SEC(".maps");

/* A block before it is kept: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sent);
} hw_fresh SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS);
	__type(key, struct flow);
	__type(value, struct came);
} hw_came SEC(".maps");

struct scratch {
	__u64 words[PIECE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_PIECES);
	__type(key, __u32);
	__type(value, struct scratch);
} hw_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct job);
} hw_job SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct coded_counts);
} hw_coded SEC(".maps");

static __always_inline struct coded_counts *coded_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&hw_coded, &zero);
}

#define COUNT(member)                                                \
	do {                                                         \
		struct coded_counts *_counts = coded_counts();       \
		if (_counts)                                         \
			__sync_fetch_and_add(&_counts->member, 1);   \
	} while (0)

/* Gives a block its pieces; returns their owner, 0 if there are none. */
static __always_inline __u64 pieces_for(__u32 half, __u32 groups, __u32 pieces)
{
	__u64 *given = bpf_map_lookup_elem(&hw_given, &half);

	/* owners begin at POOL_PIECES, so that 0 is none */
	return given ? __sync_fetch_and_add(given, (__u64)groups * pieces) + POOL_PIECES : 0;
}

/* Whether a block has its pieces still. */
static __always_inline bool has_pieces(const struct block *block, __u32 half)
{
	__u64 *given = bpf_map_lookup_elem(&hw_given, &half);

	return given && block->owner && *given + POOL_PIECES - block->owner <= POOL_PIECES;
}

static __always_inline __u32 piece_index(const struct block *block, __u32 half, __u32 group, __u32 piece)
{
	return half * POOL_PIECES + ((block->owner + group * block->pieces + piece) & (POOL_PIECES - 1));
}

static __always_inline __u32 pieces_of(__u32 cell_bytes)
{
	return (cell_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
}

/* A packet of TCP as far as we look at it. Offsets count from the start of the Ethernet header. */
struct packet {
	__u32 ip;
	__u32 tcp;
	__u32 header; /* bytes of TCP's */
	__u32 data;   /* offset */
	__u32 bytes;  /* of data */
	__u32 seq;
	__u32 ack;
	__u8 flags;
	__u8 ipv4;
};

static __always_inline bool looked_at(struct __sk_buff *skb, struct packet *packet)
{
	int tcp = tcp_offset(skb);
	__be16 protocol, total = 0, fragment = 0;
	struct {
		__be32 ports, seq, ack;
		__u8 offset, flags;
		__be16 window;
	} header;

	if (!tcp || bpf_skb_load_bytes(skb, ETHERNET_BYTES - 2, &protocol, 2) || protocol != skb->protocol)
		return false;
	packet->ipv4 = protocol == bpf_htons(ETH_P_IP);
	packet->ip = ETHERNET_BYTES;
	packet->tcp = ETHERNET_BYTES + tcp;
	if (bpf_skb_load_bytes(skb, packet->ip + (packet->ipv4 ? 2 : 4), &total, 2) ||
	    bpf_skb_load_bytes(skb, packet->tcp, &header, sizeof(header)))
		return false;
	if (packet->ipv4 && (tcp != 20 || bpf_skb_load_bytes(skb, packet->ip + 6, &fragment, 2) ||
			     fragment & bpf_htons(0x3fff)))
		return false;
	packet->header = (header.offset >> 4) * 4;
	packet->data = packet->tcp + packet->header;
	packet->flags = header.flags;
	packet->seq = bpf_ntohl(header.seq);
	packet->ack = bpf_ntohl(header.ack);
	/* a short packet is padded by Ethernet, so its length is IP's; one of more than 64 kB does not say it there */
	packet->bytes = !total ? skb->len : ETHERNET_BYTES + bpf_ntohs(total) + (packet->ipv4 ? 0 : IPV6_BYTES);
	if (packet->bytes < packet->data || packet->bytes > skb->len)
		return false;
	packet->bytes -= packet->data;
	return true;
}

/* The flow of a packet, or the one that it confirms. */
static __always_inline bool flow_of(struct __sk_buff *skb, const struct packet *packet, bool reverse, struct flow *flow)
{
	struct {
		__u32 from[4], to[4];
	} addresses = {};
	__be16 ports[2];

	if (bpf_skb_load_bytes(skb, packet->tcp, ports, 4))
		return false;
	if (packet->ipv4) {
		addresses.from[2] = addresses.to[2] = bpf_htonl(0xffff);
		if (bpf_skb_load_bytes(skb, packet->ip + 12, &addresses.from[3], 4) ||
		    bpf_skb_load_bytes(skb, packet->ip + 16, &addresses.to[3], 4))
			return false;
	} else if (bpf_skb_load_bytes(skb, packet->ip + 8, &addresses, 32)) {
		return false;
	}
	__builtin_memcpy(flow->from, reverse ? addresses.to : addresses.from, 16);
	__builtin_memcpy(flow->to, reverse ? addresses.from : addresses.to, 16);
	flow->from_port = ports[reverse];
	flow->to_port = ports[!reverse];
	flow->padding = 0;
	return true;
}

#endif
