// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Holds the plan's allocations on this network namespace's TCP sockets.
 *
 * A socket that matches an allocation is switched to our congestion control (sockops for a new one, the iterator for
 * one already open); what it had before is kept in its storage. While the lease runs, every ACK sets window and pacing
 * to the allocation's share; when the lease ends or the allocation goes, the next ACK gives the socket back.
 * A socket that matches nothing is never touched.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "kernel.h"
#include "headway.h"
#include "plan.h"
#include "sharing.h"
#include "demand.h"
#include "way.h"

#define MIN_WINDOW_SEGMENTS 4  /* below, a lost segment cannot be told by duplicate ACKs (RFC 5681: three) */
#define SHARED_SLACK_SEGMENTS 2 /* a delayed ACK confirms two segments; with a small part that is much of its window */
#define ACCOUNT_NS 1000000ULL
#define JUDGED_SEGMENTS 100    /* fewer tell nothing about loss */
#define CALM_HOLDS 8           /* this many hold times without catastrophic loss, and the next is the first again */
#define LONGEST_HOLD_SHIFT 5

/* Decides at the end of each period whether the allocation's loss is catastrophic, or is no more. */
static __always_inline void judge(struct counters *counters, __u64 now_ns)
{
	__u64 start_ns = counters->loss_start_ns, sent, lost, hold_ns;
	__s64 age_ns = now_ns - start_ns; /* negative if another CPU has just begun a period */

	if (age_ns < (__s64)host.loss_period_ns ||
	    __sync_val_compare_and_swap(&counters->loss_start_ns, start_ns, now_ns) != start_ns)
		return;
	sent = counters->sent_segments - counters->loss_sent_segments;
	lost = counters->retransmitted_segments - counters->loss_retransmitted_segments;
	if ((__s64)lost < 0) /* another CPU was spared some in between */
		lost = 0;
	counters->loss_sent_segments = counters->sent_segments;
	counters->loss_retransmitted_segments = counters->retransmitted_segments;
	if (!counters->fallback_since_ns) {
		if (sent < JUDGED_SEGMENTS || lost * 1000000 < sent * host.loss_trip_ppm)
			return;
		if (now_ns - counters->returned_ns > CALM_HOLDS * host.loss_hold_ns)
			counters->fallbacks = 0;
		if (counters->fallbacks < LONGEST_HOLD_SHIFT + 1)
			counters->fallbacks += 1;
		counters->fallback_since_ns = now_ns;
		return;
	}
	hold_ns = host.loss_hold_ns << ((counters->fallbacks - 1) & 7);
	if (now_ns - counters->fallback_since_ns < hold_ns)
		return;
	if (sent >= JUDGED_SEGMENTS && lost * 1000000 > sent * host.loss_clear_ppm)
		return;
	counters->fallback_since_ns = 0;
	counters->returned_ns = now_ns;
}

/* Adds to the allocation's counters what the socket has done since it was last asked. */
static __always_inline void account(const struct tcp_sock *tp, struct conn *conn, struct counters *counters,
				    __u64 now_ns)
{
	__sync_fetch_and_add(&counters->delivered_bytes, tp->bytes_acked - conn->bytes_acked);
	__sync_fetch_and_add(&counters->sent_segments, (__u64)(__u32)(tp->data_segs_out - conn->data_segs_out));
	__sync_fetch_and_add(&counters->retransmitted_segments,
			     (__u64)(__u32)(tp->total_retrans - conn->total_retrans));
	__sync_fetch_and_add(&counters->loss_retransmitted_segments,
			     (__u64)spared_segments(tp, conn, tp->total_retrans - conn->total_retrans));
	counters->rtt_us = tp->srtt_us >> 3;
	conn->accounted_ns = now_ns;
	conn->bytes_acked = tp->bytes_acked;
	conn->data_segs_out = tp->data_segs_out;
	conn->total_retrans = tp->total_retrans;
	judge(counters, now_ns);
}

/* What was before is not for this slot. */
static __always_inline void account_from_here(const struct tcp_sock *tp, struct conn *conn)
{
	conn->bytes_acked = tp->bytes_acked;
	conn->data_segs_out = tp->data_segs_out;
	conn->total_retrans = tp->total_retrans;
}

/* The entry in force for a socket of ours; NULL when the lease is over or the plan has nothing for it. */
static __always_inline struct entry *entry_of(struct sock *sk, struct conn *conn, __u64 now_ns)
{
	struct control *control = leased(now_ns);
	__u32 slot;

	if (!control)
		return NULL;
	if (conn->generation != control->generation) {
		conn->generation = control->generation;
		slot = slot_of(&sk->__sk_common);
		if (slot != conn->slot) {
			withdraw(conn);
			leave(conn);
			conn->slot = slot;
			join(conn);
		}
	}
	slot = conn->slot;
	return bpf_map_lookup_elem(&hw_entries, &slot);
}

/* Keeps the least round trip of the last half to whole round trip: a queue that drains meanwhile does not show, a new
 * route does. */
static __always_inline void follow_path(const struct tcp_sock *tp, struct conn *conn, __u64 now_ns)
{
	__u32 rtt_us = tp->rack.rtt_us;

	if (now_ns - conn->half_start_ns > (__u64)(tp->srtt_us >> 4) * 1000) {
		conn->least_rtt_us_before = conn->least_rtt_us;
		conn->least_rtt_us = rtt_us;
		conn->half_start_ns = now_ns;
	} else if (rtt_us < conn->least_rtt_us) {
		conn->least_rtt_us = rtt_us;
	}
}

/* The window for a rate: the allocation's for the whole rate, in proportion for a part; wider if the path has become
 * longer than planned, up to one and a half. Pacing holds the rate, so a wider window sends no faster. */
static __always_inline __u32 window_segments(const struct tcp_sock *tp, const struct conn *conn,
					     const struct entry *entry, __u64 fair)
{
	__u64 rate = entry->rate_bytes_per_s, planned = entry->window_segments, followed, ceiling;
	__u32 rtt_us = conn->least_rtt_us, mss_bytes = tp->mss_cache;

	if (fair < rate)
		planned = (planned * fair + rate - 1) / rate + SHARED_SLACK_SEGMENTS;
	if (conn->least_rtt_us_before && conn->least_rtt_us_before < rtt_us)
		rtt_us = conn->least_rtt_us_before;
	if (!mss_bytes)
		return planned;
	followed = fair * rtt_us / 1000000 / mss_bytes;
	followed += followed / 128 + SHARED_SLACK_SEGMENTS; /* what a departure of a whole unit and a delayed ACK need */
	ceiling = planned + planned / 2;
	if (followed > ceiling)
		followed = ceiling;
	if (followed > planned)
		planned = followed;
	return planned > MIN_WINDOW_SEGMENTS ? planned : MIN_WINDOW_SEGMENTS;
}

/* The allocation as it holds now: at its standby rate, if that is what it has. */
static __always_inline struct entry held_now(struct sock *sk, struct conn *conn, struct entry *entry, __u64 now_ns)
{
	struct entry now = {.rate_bytes_per_s = entry->rate_bytes_per_s, .window_segments = entry->window_segments};
	struct demand *demand;

	if (!entry->standby_bytes_per_s) {
		if (conn->watched)
			withdraw(conn);
		conn->stands_by = 0;
		return now;
	}
	follow_demand(sk, conn, entry, now_ns);
	demand = demand_of(conn);
	conn->stands_by = !demand || !granted(entry, &demand->seen);
	if (conn->stands_by)
		now.rate_bytes_per_s = entry->standby_bytes_per_s;
	return now;
}

/* Sets window and pacing to the socket's part of the allocation. */
static __always_inline void hold(struct sock *sk, struct conn *conn, const struct entry *entry,
				 struct counters *counters, __u64 now_ns)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 fair = fair_bytes_per_s(entry, counters, conn);
	__u64 rate_bytes_per_s = part_bytes_per_s(sk, conn, entry, counters, fair, now_ns);

	__u32 window = window_segments(tp, conn, entry, fair) + left_segments(tp, conn);

	/* what a flight has left in the air must not keep its repetitions back; pacing holds the rate */
	if (conn->stands_by && window < in_flight_segments(tp) + MIN_WINDOW_SEGMENTS)
		window = in_flight_segments(tp) + MIN_WINDOW_SEGMENTS;
	tp->snd_cwnd = window;
	/* Payload, also where the fq qdisc paces: since Linux 4.20 it goes by the times that TCP writes on the packets. */
	sk->sk_pacing_rate = rate_bytes_per_s;
	if (sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		conn->paced = 1;
	}
}

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
	int level = ipv6 ? SOL_IPV6 : SOL_IP, option = ipv6 ? IPV6_TCLASS : IP_TOS, tos = 0;

	if (!conn->marked)
		return;
	conn->marked = 0;
	bpf_getsockopt(ctx, level, option, &tos, sizeof(tos));
	if ((__u32)tos != conn->marked_tos)
		return;
	tos = conn->previous_tos;
	bpf_setsockopt(ctx, level, option, &tos, sizeof(tos));
}

/* Gives the socket back to the algorithm it had. ctx: what bpf_setsockopt wants in this kind of program. */
static __always_inline void give_back(void *ctx, struct conn *conn, bool ipv6)
{
	char algorithm[HEADWAY_NAME_BYTES] __attribute__((aligned(8))) = "";
	char reno[HEADWAY_NAME_BYTES] = "reno"; /* always there */
	int rto_min_us = TCP_RTO_MIN_US;

	if (conn)
		__builtin_memcpy(algorithm, conn->previous, sizeof(algorithm));
	else
		copy_name(algorithm, host.fallback);
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_RTO_MIN, &rto_min_us, sizeof(rto_min_us));
	if (conn)
		unmark(ctx, conn, ipv6);
}

/* The congestion control. ----------------------------------------------------------------------------------------*/

static __always_inline struct conn *conn_of(struct sock *sk)
{
	return bpf_sk_storage_get(&hw_conns_4, sk, NULL, 0);
}

enum occasion { OTHER, ACK };

/* Brings the plan to the socket; false if there is none for it now. */
static __always_inline bool enforce(struct sock *sk, struct conn *conn, __u64 now_ns, enum occasion occasion)
{
	struct entry *entry = entry_of(sk, conn, now_ns);
	struct counters *counters = counters_of(conn);
	struct tcp_sock *tp = tcp_sk(sk);
	struct entry now;

	if (!entry || !counters)
		return false;
	if (occasion == ACK) {
		follow_path(tp, conn, now_ns);
		if (now_ns - conn->accounted_ns > ACCOUNT_NS)
			account(tp, conn, counters, now_ns);
	}
	if (counters->fallback_since_ns)
		return false;
	now = held_now(sk, conn, entry, now_ns);
	/* one that stays greedy is looked at before its next transmission anyway */
	if (occasion == ACK && conn->part == PART_GREEDY && sendable_bytes(tp) > LARGEST_UNIT_BYTES)
		return true;
	if (conn->way != entry->way)
		take_way(tp, conn, entry->way);
	measure(tp, conn, counters, now_ns);
	hold(sk, conn, &now, counters, now_ns);
	return true;
}

SEC("struct_ops/headway_init")
void BPF_PROG(headway_init, struct sock *sk)
{
	struct conn *conn = conn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now_ns = bpf_ktime_get_ns();

	if (!conn)
		return;
	conn->generation = 0; /* what an earlier agent's generations meant is not known here */
	conn->slot = NO_SLOT;
	conn->part = PART_NONE;
	conn->bytes_sent = tp->bytes_sent;
	conn->least_rtt_us = 0;
	conn->least_rtt_us_before = 0;
	account_from_here(tp, conn);
	conn->held = 1;
	conn->paced = 0;
	conn->in_turn = 0;
	conn->watched = 0;
	conn->waits = 0;
	conn->stands_by = 0;
	conn->way = 0;
	conn->left_segments = 0;
	conn->left_spared = 0;
	enforce(sk, conn, now_ns, OTHER);
}

SEC("struct_ops/headway_release")
void BPF_PROG(headway_release, struct sock *sk)
{
	struct conn *conn = conn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct counters *counters;

	if (!conn || !conn->held)
		return;
	counters = counters_of(conn);
	if (counters)
		account(tp, conn, counters, bpf_ktime_get_ns());
	withdraw(conn);
	leave(conn);
	conn->held = 0;
	if (conn->paced && sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
	/* the next algorithm starts from here without doubling */
	tp->snd_ssthresh = tp->snd_cwnd;
}

SEC("struct_ops/headway_cong_control")
void BPF_PROG(headway_cong_control, struct sock *sk) /* the first argument only: the others differ before 6.10 */
{
	struct conn *conn = conn_of(sk);

	if (!conn || !enforce(sk, conn, tcp_sk(sk)->tcp_clock_cache, ACK))
		give_back(sk, conn, sk->__sk_common.skc_family == AF_INET6);
}

/* Asked before each transmission how many segments it shall have at least; so this is where a connection that was idle
 * starts at its rate, and where one learns that others came or went. (CA_EVENT_TX_START comes after the window was
 * looked at, and moved to another member in Linux 7.1.) */
SEC("struct_ops/headway_min_tso_segs")
__u32 BPF_PROG(headway_min_tso_segs, struct sock *sk)
{
	struct conn *conn = conn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now_ns = tp->tcp_clock_cache; /* not tcp_mstamp, cut to microseconds: before a departure that is due */

	if (conn && conn->part == PART_GREEDY && sk->sk_pacing_status == SK_PACING_NEEDED && now_ns < tp->tcp_wstamp_ns &&
	    !(conn->watched && !conn->waits))
		return START_SEGMENTS; /* pacing lets nothing go now: it asks again when it does */
	if (conn && enforce(sk, conn, now_ns, OTHER))
		return conn->stands_by ? 1 : START_SEGMENTS; /* one segment delays the first at the whole rate least */
	/* Idle until now and no plan any more: start as an ordinary connection; the first ACK gives the socket back. */
	if (!tp->packets_out && tp->snd_cwnd > TCP_INIT_CWND)
		tp->snd_cwnd = TCP_INIT_CWND;
	return START_SEGMENTS;
}

SEC("struct_ops/headway_set_state")
void BPF_PROG(headway_set_state, struct sock *sk, __u8 new_state)
{
	struct conn *conn = conn_of(sk);

	/* tcp_enter_loss has just set the window to what is in flight plus one */
	if (new_state == TCP_CA_Loss && conn)
		enforce(sk, conn, bpf_ktime_get_ns(), OTHER);
}

SEC("struct_ops/headway_ssthresh")
__u32 BPF_PROG(headway_ssthresh, struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

SEC("struct_ops/headway_undo_cwnd")
__u32 BPF_PROG(headway_undo_cwnd, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops hw_ops = {
	.init = (void *)headway_init,
	.release = (void *)headway_release,
	.cong_control = (void *)headway_cong_control,
	.set_state = (void *)headway_set_state,
	.ssthresh = (void *)headway_ssthresh,
	.undo_cwnd = (void *)headway_undo_cwnd,
	.min_tso_segs = (void *)headway_min_tso_segs,
	.name = "headway@@@@@@@@", /* the daemon writes the real name here before the object is opened */
};

/* Taking sockets. ------------------------------------------------------------------------------------------------*/

static __always_inline bool is_ours(const char *algorithm)
{
	const __u64 *left = (const __u64 *)algorithm;
	const volatile __u64 *right = (const volatile __u64 *)host.algorithm;

	return left[0] == right[0] && left[1] == right[1];
}

/* Switches a socket to our algorithm and the allocation's DSCP, and keeps what it had. */
static __always_inline void take(void *ctx, struct conn *conn, __u32 dscp, bool ipv6)
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
	if (dscp == HEADWAY_NO_DSCP)
		unmark(ctx, conn, ipv6);
	else
		mark(ctx, conn, dscp, ipv6);
	/* the last segments of a transfer have nothing behind them that would show their loss: their timer must */
	bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_RTO_MIN, &rto_min_us, sizeof(rto_min_us));
}

/* The slot of a socket if a plan is in force, NO_SLOT otherwise. */
static __always_inline __u32 planned_slot(struct tcp_sock *tp)
{
	return leased(bpf_ktime_get_ns()) ? slot_of(&((struct sock *)tp)->__sk_common) : NO_SLOT;
}

SEC("sockops")
int headway_established(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *bpf_sk = ctx->sk;
	struct counters *counters;
	struct entry *entry;
	struct tcp_sock *tp;
	struct conn *conn;
	__u32 slot;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (bpf_get_netns_cookie(ctx) != host.netns_cookie || !bpf_sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(bpf_sk);
	if (!tp)
		return 1;
	slot = planned_slot(tp);
	entry = bpf_map_lookup_elem(&hw_entries, &slot);
	counters = bpf_map_lookup_elem(&hw_counters, &slot);
	if (!entry || !counters || counters->fallback_since_ns)
		return 1;
	conn = bpf_sk_storage_get(&hw_conns_4, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!conn)
		return 1;
	conn->accepted = ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
	take(ctx, conn, entry->dscp, ctx->family == AF_INET6);
	return 1;
}

/* States in which a socket can still send data. */
#define SENDING ((1 << BPF_TCP_ESTABLISHED) | (1 << BPF_TCP_FIN_WAIT1) | (1 << BPF_TCP_CLOSE_WAIT) | \
		 (1 << BPF_TCP_CLOSING) | (1 << BPF_TCP_LAST_ACK))

/* Watches a socket that runs its own algorithm because of catastrophic loss. */
static __always_inline void watch(struct tcp_sock *tp, struct conn *conn, struct counters *counters, __u32 slot)
{
	if (conn->slot != slot || !conn->accounted_ns) {
		conn->slot = slot;
		account_from_here(tp, conn);
	}
	account(tp, conn, counters, bpf_ktime_get_ns());
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

/* Walks the open sockets of the namespace of the process that made the iterator: takes, gives back, watches. */
SEC("iter/tcp")
int headway_open(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct counters *counters;
	struct entry *entry;
	struct tcp_sock *tp;
	struct conn *conn;
	__u32 slot;
	bool ipv6;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || !((1 << ((struct sock *)tp)->__sk_common.skc_state) & SENDING))
		return 0;
	ipv6 = ((struct sock *)tp)->__sk_common.skc_family == AF_INET6;
	slot = planned_slot(tp);
	entry = bpf_map_lookup_elem(&hw_entries, &slot);
	counters = bpf_map_lookup_elem(&hw_counters, &slot);
	if (!entry || !counters) {
		conn = bpf_sk_storage_get(&hw_conns_4, tp, NULL, 0);
		if (conn && conn->held)
			give_back(tp, conn, ipv6);
		return 0;
	}
	conn = bpf_sk_storage_get(&hw_conns_4, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!conn)
		return 0;
	if (counters->fallback_since_ns) {
		if (conn->held)
			give_back(tp, conn, ipv6);
		watch(tp, conn, counters, slot);
		return 0;
	}
	if (conn->held)
		entry_of((struct sock *)tp, conn, bpf_ktime_get_ns()); /* an idle socket leaves its old slot now */
	take(tp, conn, entry->dscp, ipv6);
	push(tp);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
