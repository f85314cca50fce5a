/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Deals new connections to lanes: which of the host's own addresses one is from that its application has bound to neither
 * an address nor an interface; or, where the far end is to send, which of that one's it goes to. In turn, as the daemon
 * has laid the turns out, and not by a hash: few connections would come unevenly. */
#ifndef HEADWAY_DEAL_H
#define HEADWAY_DEAL_H

#define DEALT_STREAM 1 /* SOCK_STREAM */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HEADWAY_MAX_TURNS);
	__type(key, struct turn);
	__type(value, struct dealt);
} hw_deal SEC(".maps");

/* As in linux/in.h and linux/in6.h, which define what kernel.h has by CO-RE. */
struct bound4 {
	__u16 family;
	__be16 port;
	__u32 addr;
	__u8 zero[8];
};

struct bound6 {
	__u16 family;
	__be16 port;
	__u32 flow;
	__u32 addr[4];
	__u32 scope;
};

/* The address that the next connection to a destination is from, or goes to; NULL if there are no lanes to it. */
static __always_inline struct dealt *next_lane(struct turn *turn, __be16 port)
{
	struct dealt *first;

	turn->dest_port = port;
	turn->number = 0;
	first = bpf_map_lookup_elem(&hw_deal, turn);
	if (!first) {
		turn->dest_port = 0;
		first = bpf_map_lookup_elem(&hw_deal, turn);
	}
	if (!first || !first->turns)
		return NULL;
	turn->number = __sync_fetch_and_add(&first->connections, 1) % first->turns;
	return bpf_map_lookup_elem(&hw_deal, turn);
}

static __always_inline bool is_dealt(struct bpf_sock_addr *ctx)
{
	return ctx->type == DEALT_STREAM && ctx->protocol == IPPROTO_TCP && leased() &&
	       bpf_get_netns_cookie(ctx) == host.netns_cookie;
}

/* A connection that cannot be bound goes on as if there were no lanes. */
SEC("cgroup/connect4")
int headway_deal4(struct bpf_sock_addr *ctx)
{
	struct turn turn = {};
	struct bound4 bound = {.family = AF_INET};
	struct bpf_sock *sk = ctx->sk;
	struct dealt *lane;

	if (!is_dealt(ctx) || !sk || sk->bound_dev_if || sk->src_ip4)
		return 1;
	((__u32 *)turn.addr)[2] = bpf_htonl(0xffff);
	((__u32 *)turn.addr)[3] = ctx->user_ip4;
	lane = next_lane(&turn, ctx->user_port);
	if (lane && lane->is_far) {
		ctx->user_ip4 = ((__u32 *)lane->addr)[3];
	} else if (lane) {
		bound.addr = ((__u32 *)lane->addr)[3];
		bpf_bind(ctx, (struct sockaddr *)&bound, sizeof(bound));
	}
	return 1;
}

SEC("cgroup/connect6")
int headway_deal6(struct bpf_sock_addr *ctx)
{
	struct turn turn = {};
	struct bound6 bound = {.family = AF_INET6};
	struct bpf_sock *sk = ctx->sk;
	struct dealt *lane;
	__u32 *addr = (__u32 *)turn.addr, *next;

	if (!is_dealt(ctx) || !sk || sk->bound_dev_if ||
	    sk->src_ip6[0] || sk->src_ip6[1] || sk->src_ip6[2] || sk->src_ip6[3])
		return 1;
	addr[0] = ctx->user_ip6[0];
	addr[1] = ctx->user_ip6[1];
	addr[2] = ctx->user_ip6[2];
	addr[3] = ctx->user_ip6[3];
	lane = next_lane(&turn, ctx->user_port);
	if (!lane)
		return 1;
	next = (__u32 *)lane->addr;
	if (lane->is_far) {
		ctx->user_ip6[0] = next[0];
		ctx->user_ip6[1] = next[1];
		ctx->user_ip6[2] = next[2];
		ctx->user_ip6[3] = next[3];
	} else {
		bound.addr[0] = next[0];
		bound.addr[1] = next[1];
		bound.addr[2] = next[2];
		bound.addr[3] = next[3];
		bpf_bind(ctx, (struct sockaddr *)&bound, sizeof(bound));
	}
	return 1;
}

#endif
