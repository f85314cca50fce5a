/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How a socket comes to us and goes back: its congestion control, its DSCP, its least timeout, how far its application may
 * write ahead; and the push that has it look at its new window at once.
 *
 * ctx is everywhere what bpf_setsockopt wants in this kind of program. */
#ifndef HEADWAY_HANDOVER_H
#define HEADWAY_HANDOVER_H

/* Sets the allocation's DSCP, and keeps what was there. */
static __always_inline void mark(void *ctx, struct conn *conn, __u32 dscp, bool ipv6)
{
	int level = ipv6 ? SOL_IPV6 : SOL_IP, option = ipv6 ? IPV6_TCLASS : IP_TOS, tos = dscp << 2;

	if (!conn->marked) {
		int before = 0;

		bpf_getsockopt(ctx, level, option, &before, sizeof(before));
		conn->previous_tos = before;
	}
	if (conn->marked && conn->marked_tos == (__u32)tos)
		return;
	if (!bpf_setsockopt(ctx, level, option, &tos, sizeof(tos))) {
		conn->marked = 1;
		conn->marked_tos = tos;
	}
}

/* Puts back the DSCP that was there, unless the application has set another since. */
static __always_inline void unmark(void *ctx, struct conn *conn, bool ipv6)
{
	int level = ipv6 ? SOL_IPV6 : SOL_IP, option = ipv6 ? IPV6_TCLASS : IP_TOS, tos = 0, before = conn->previous_tos;

	if (!conn->marked)
		return;
	bpf_getsockopt(ctx, level, option, &tos, sizeof(tos));
	if (is_our_mark(conn, tos))
		bpf_setsockopt(ctx, level, option, &before, sizeof(before));
	conn->marked = 0;
}

/* Bounds what the application may write ahead of what is sent, unless it has chosen that itself (tcp(7),
 * TCP_NOTSENT_LOWAT); 0 takes the bound away. A send buffer holds several windows: an application that deals its work to
 * whoever can take some would deal lanes by their buffers, and not by their rates. */
static __always_inline void bound(void *ctx, struct conn *conn, __u32 ahead_bytes)
{
	int now = 0, bytes = ahead_bytes;

	if (conn->ahead_bytes == ahead_bytes)
		return;
	if (bpf_getsockopt(ctx, SOL_TCP, TCP_NOTSENT_LOWAT, &now, sizeof(now)) || (__u32)now != conn->ahead_bytes)
		return;
	if (!bpf_setsockopt(ctx, SOL_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes)))
		conn->ahead_bytes = ahead_bytes;
}

static __always_inline bool is_ours(const char *algorithm)
{
	const __u64 *left = (const __u64 *)algorithm;
	const volatile __u64 *right = (const volatile __u64 *)host.algorithm;

	return left[0] == right[0] && left[1] == right[1];
}

/* Gives the socket back to the algorithm it had, unless the application has chosen another since. ctx: what bpf_setsockopt
 * wants in this kind of program. */
static __always_inline void give_back(void *ctx, struct conn *conn, bool ipv6)
{
	char algorithm[HEADWAY_NAME_BYTES] __attribute__((aligned(8))) = "";
	char reno[HEADWAY_NAME_BYTES] = "reno"; /* always there */
	int rto_min_us = TCP_RTO_MIN_US;
	bool ours = bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)) || is_ours(algorithm);

	if (conn)
		__builtin_memcpy(algorithm, conn->previous, sizeof(algorithm));
	else
		copy_name(algorithm, host.fallback);
	if (conn)
		conn->returning = 1;
	if (ours && bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_RTO_MIN, &rto_min_us, sizeof(rto_min_us));
	if (!conn)
		return;
	conn->returning = 0;
	unmark(ctx, conn, ipv6);
	bound(ctx, conn, 0);
	conn->taken = 0;
}

/* Switches a socket to our algorithm, the allocation's DSCP and its bound, and keeps what it had. */
static __always_inline void take(void *ctx, struct conn *conn, const struct entry *entry, bool ipv6)
{
	char algorithm[HEADWAY_NAME_BYTES] __attribute__((aligned(8))) = "";
	int rto_min_us = host.rto_min_us;

	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		return;
	if (!is_ours(algorithm)) {
		__builtin_memcpy(conn->previous, algorithm, sizeof(algorithm));
	} else if (!conn->previous[0]) {
		copy_name(conn->previous, host.fallback);
	}
	copy_name(algorithm, host.algorithm);
	/* Does nothing if the socket runs it already; a dead agent's copy of the same name is replaced. */
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		return;
	conn->taken = 1;
	if (entry->dscp == HEADWAY_NO_DSCP)
		unmark(ctx, conn, ipv6);
	else
		mark(ctx, conn, entry->dscp, ipv6);
	bound(ctx, conn, entry->ahead_bytes);
	/* the last segments of a transfer have nothing behind them that would show their loss: their timer must */
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_RTO_MIN, &rto_min_us, sizeof(rto_min_us));
}

/* Lets a socket look at its window now. One whose window was full, or whose next departure lay far ahead, would find out
 * that it may send more only by its next ACK: a round trip too late. Switching Nagle's algorithm off pushes what waits
 * (tcp(7), TCP_NODELAY); what the application has chosen is put back. */
static __always_inline void push(struct tcp_sock *tp)
{
	int chosen = 0, off = 0, on = 1;

	if (tp->write_seq == tp->snd_nxt || bpf_getsockopt(tp, SOL_TCP, TCP_NODELAY, &chosen, sizeof(chosen)))
		return;
	bpf_setsockopt(tp, SOL_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!chosen)
		bpf_setsockopt(tp, SOL_TCP, TCP_NODELAY, &off, sizeof(off));
}

#endif
