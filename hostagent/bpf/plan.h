/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The plan in maps, what is kept of each socket, and the way from a socket to its entry. */
#ifndef HEADWAY_PLAN_H
#define HEADWAY_PLAN_H

#define NO_SLOT 0xffffffffU
#define SELECTOR_BITS 192      /* of struct match, before the address */
#define ADDR_BITS 128

/* States in which a socket can still send data. */
#define SENDING ((1 << BPF_TCP_ESTABLISHED) | (1 << BPF_TCP_FIN_WAIT1) | (1 << BPF_TCP_CLOSE_WAIT) | \
		 (1 << BPF_TCP_CLOSING) | (1 << BPF_TCP_LAST_ACK))

/* What a connection takes of its allocation. */
enum part {
	PART_NONE,   /* it has nothing to send */
	PART_LESSER, /* what its application, its buffer or its receiver lets it */
	PART_GREEDY, /* an equal part of what the lesser leave */
};

/* What we know of one socket. */
struct conn {
	__u64 generation;    /* of the plan that slot was looked up in */
	__u64 bytes_sent;    /* seen so far */
	__u64 half_start_ns; /* the least round trip is kept for this half of a round trip and the one before */
	__u64 accounted_ns;
	__u64 bytes_acked; /* accounted so far */
	__u64 sent_once_bytes; /* counted in its allocation's demand, while it is watched */
	__u64 due_ns;          /* when it said last that its flight will be over */
	__u64 shrunk_ns;       /* when its window became smaller; 0: what was in flight then has drained */
	__u32 data_segs_out; /* accounted so far, as the next two */
	__u32 total_retrans;
	__u32 delivered;
	__u32 behind_gap;  /* counted in its allocation */
	__u32 least_rtt_us;
	__u32 least_rtt_us_before;
	__u32 window_segments; /* for its part */
	__u32 shrunk_from;     /* its window before */
	__u32 shrunk_end;      /* the next byte to be sent then */
	__u32 slot;
	__u32 previous_tos;
	__u32 marked_tos; /* what we have set; worth something while marked */
	__u32 way;           /* by which it sends; 0: not known */
	__u32 left_segments; /* in flight on the way before when that changed; with the next three see way.h */
	__u32 left_lost;
	__u32 left_end;
	__u32 left_spared;
	__u32 ahead_bytes; /* what its application may write ahead of what is sent, as we have set it; 0: we have not */
	__u32 term; /* of the slot, when it joined */
	char previous[HEADWAY_NAME_BYTES]; /* the algorithm before ours */
	__u8 part;
	__u8 held;  /* runs our algorithm, is counted in its slot */
	__u8 paced; /* we switched the pacing on */
	__u8 marked;
	__u8 watched;  /* counted in its allocation's demand */
	__u8 waits;    /* has more to send than the last stretch */
	__u8 stands_by; /* sends at the standby rate */
	__u8 accepted; /* the peer has connected: its window was scaled from its first ACK on */
	__u8 in_turn; /* it waits for its turns, not in step with those that began with it */
	__u8 own_dscp; /* the application's, that slot was looked up with */
	__u8 taken; /* has what we set besides the algorithm; still, if the application has chosen another one */
	__u8 returning; /* it is we who give it back now */
};

const volatile struct host host SEC(".rodata.host") = {};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, HEADWAY_MAX_ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct match);
	__type(value, struct matched);
} hw_plan SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} hw_control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HEADWAY_MAX_ENTRIES);
	__type(key, __u32);
	__type(value, struct entry);
} hw_entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HEADWAY_MAX_ENTRIES);
	__type(key, __u32);
	__type(value, struct counters);
} hw_counters SEC(".maps");

/* How often an application has changed what we had set of a socket that can still send: its algorithm or our mark. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hw_left SEC(".maps");

/* A new agent adopts this map from one that died, to know what its sockets had before. The number in the name is the
 * version of struct conn. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} hw_conns_8 SEC(".maps");

/* Copies a name of struct host. By volatile words: memcpy would let the compiler put the zeros of build time. */
static __always_inline void copy_name(char *to, const volatile char *from)
{
	((__u64 *)to)[0] = ((const volatile __u64 *)from)[0];
	((__u64 *)to)[1] = ((const volatile __u64 *)from)[1];
}

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* Whether the socket is a subflow of a connection of Multipath TCP. */
static __always_inline bool is_mptcp(const struct tcp_sock *tp)
{
	return bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp;
}

/* The lease runs while the host sleeps: by a clock that stops then, one that wakes would act on what is over. */
static __always_inline struct control *leased(void)
{
	__u32 zero = 0;
	struct control *control = bpf_map_lookup_elem(&hw_control, &zero);

	return control && bpf_ktime_get_boot_ns() < control->expires_ns ? control : NULL;
}

static __always_inline void consider(struct match *match, __be16 dest_port, __be16 local_port, __u8 own_dscp,
				     struct matched *best)
{
	struct matched *found;

	match->dest_port = dest_port;
	match->local_port = local_port;
	match->own_dscp = own_dscp;
	found = bpf_map_lookup_elem(&hw_plan, match);
	if (found && (best->slot == NO_SLOT || found->prefix_bits > best->prefix_bits))
		*best = *found;
}

/* Whether an IPv6 socket talks to an IPv4 peer, as those of a server that listens by both do. */
static __always_inline bool is_mapped(const struct sock_common *skc)
{
	const __u32 *peer = skc->skc_v6_daddr.in6_u.u6_addr32;

	return skc->skc_family == AF_INET6 && !peer[0] && !peer[1] && peer[2] == bpf_htonl(0xffff);
}

/* Whether a traffic class is what we have set. Its last two bits are ECN's: TCP sets those itself, anew as it sends. */
static __always_inline bool is_our_mark(const struct conn *conn, __u32 tos)
{
	return conn->marked && conn->marked_tos >> 2 == tos >> 2;
}

/* The code point that the application has set; what we have set ourselves is not its own, unless it has set another
 * since. A mapped socket sends with IPv4's, which we cannot set (mapped.h): if it has none, IPv6's says what is meant. */
static __always_inline __u8 own_dscp_of(const struct sock_common *skc, struct conn *conn)
{
	const struct inet_sock *inet = (const struct inet_sock *)skc;
	__u32 tos = inet->tos;

	if (is_mapped(skc) && tos >> 2)
		return tos >> 2;
	if (skc->skc_family == AF_INET6 && inet->pinet6)
		tos = inet->pinet6->tclass;
	if (conn && conn->marked && !is_our_mark(conn, tos))
		conn->marked = 0;
	return (conn && conn->marked ? conn->previous_tos : tos) >> 2;
}

/* The entry with the longest prefix; with equal prefixes the one that names more: the destination's port, the local
 * port, the application's code point. */
static __always_inline void find(struct match *match, const struct sock_common *skc, __u8 own_dscp, struct matched *best)
{
	__be16 dest_port = skc->skc_dport, local_port = bpf_htons(skc->skc_num);

	consider(match, dest_port, local_port, HEADWAY_NO_DSCP, best);
	consider(match, dest_port, 0, HEADWAY_NO_DSCP, best);
	consider(match, 0, local_port, HEADWAY_NO_DSCP, best);
	consider(match, 0, 0, own_dscp, best);
	consider(match, 0, 0, HEADWAY_NO_DSCP, best);
}

/* The socket's slot: of its own address, by which one interface of several is meant; else of any. */
static __noinline __u32 slot_of(const struct sock_common *skc, __u8 own_dscp)
{
	struct match match = {.prefixlen = SELECTOR_BITS + ADDR_BITS};
	struct matched best = {.slot = NO_SLOT};
	__u32 *addr = (__u32 *)match.addr, *local = (__u32 *)match.local_addr;

	if (!skc)
		return NO_SLOT;
	if (skc->skc_family == AF_INET6) {
		addr[0] = skc->skc_v6_daddr.in6_u.u6_addr32[0];
		addr[1] = skc->skc_v6_daddr.in6_u.u6_addr32[1];
		addr[2] = skc->skc_v6_daddr.in6_u.u6_addr32[2];
		addr[3] = skc->skc_v6_daddr.in6_u.u6_addr32[3];
		local[0] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		local[1] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		local[2] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		local[3] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
	} else {
		addr[2] = local[2] = bpf_htonl(0xffff);
		addr[3] = skc->skc_daddr;
		local[3] = skc->skc_rcv_saddr;
	}
	find(&match, skc, own_dscp, &best);
	if (best.slot == NO_SLOT) {
		__builtin_memset(match.local_addr, 0, sizeof(match.local_addr));
		find(&match, skc, own_dscp, &best);
	}
	return best.slot;
}

#endif
