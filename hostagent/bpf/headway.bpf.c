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
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "kernel.h"
#include "headway.h"
#include "plan.h"
#include "sharing.h"
#include "demand.h"
#include "way.h"
#include "loss.h"
#include "tail.h"
#include "window.h"
#include "handover.h"
#include "deal.h"
#include "mapped.h"
#include "traffic.h"

/* Has the allocation that the socket leaves count all of what was done for it. */
static __noinline int settle(const struct tcp_sock *tp, struct conn *conn, __u64 now_ns)
{
	struct counters *counters;

	if (!tp || !conn)
		return 0;
	counters = counters_of(conn);
	if (counters)
		account(tp, conn, counters, now_ns);
	return 0;
}

/* Has the agent look for a socket of which its application has changed what we had set. */
static __always_inline void note_left(void)
{
	__u32 only = 0;
	__u64 *left = bpf_map_lookup_elem(&hw_left, &only);

	if (left)
		__sync_fetch_and_add(left, 1);
}

/* The entry in force for a socket of ours; NULL when the lease is over or the plan has nothing for it. */
static __always_inline struct entry *entry_of(struct sock *sk, struct conn *conn, __u64 now_ns)
{
	struct control *control = leased();
	__u8 own_dscp, marked = conn->marked;
	__u32 slot;

	if (!control)
		return NULL;
	own_dscp = own_dscp_of(&sk->__sk_common, conn);
	if (marked && !conn->marked) /* it can be marked anew by a walk only */
		note_left();
	if (conn->generation != control->generation || conn->own_dscp != own_dscp) {
		conn->generation = control->generation;
		conn->own_dscp = own_dscp;
		slot = slot_of(&sk->__sk_common, own_dscp);
		if (slot != conn->slot) {
			settle(tcp_sk(sk), conn, now_ns);
			withdraw(conn);
			leave(conn);
			conn->slot = slot;
			join(conn);
		}
	}
	slot = conn->slot;
	return bpf_map_lookup_elem(&hw_entries, &slot);
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

/* The congestion control. ----------------------------------------------------------------------------------------*/

static __always_inline struct conn *conn_of(struct sock *sk)
{
	return bpf_sk_storage_get(&hw_conns_8, sk, NULL, 0);
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
		/* the last that is confirmed may be the last that runs here */
		if (now_ns - conn->accounted_ns > ACCOUNT_NS || !tp->packets_out) {
			account(tp, conn, counters, now_ns);
			counters->least_rtt_us = least_rtt_us(conn);
		}
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
	take_over(tp, conn);
	enforce(sk, conn, now_ns, OTHER);
}

SEC("struct_ops/headway_release")
void BPF_PROG(headway_release, struct sock *sk)
{
	struct conn *conn = conn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!conn || !conn->held)
		return;
	settle(tp, conn, bpf_ktime_get_ns());
	withdraw(conn);
	leave(conn);
	conn->held = 0;
	if (!conn->returning && ((1 << sk->__sk_common.skc_state) & SENDING))
		note_left();
	/* unless the application has asked for a rate of its own meanwhile */
	if (conn->paced && sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
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

/* The slot of a socket if a plan is in force, NO_SLOT otherwise. conn: NULL for one that we do not know yet. */
static __always_inline __u32 planned_slot(struct tcp_sock *tp, struct conn *conn)
{
	const struct sock_common *skc = &((struct sock *)tp)->__sk_common;

	return leased() ? slot_of(skc, own_dscp_of(skc, conn)) : NO_SLOT;
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
	slot = planned_slot(tp, NULL);
	entry = bpf_map_lookup_elem(&hw_entries, &slot);
	counters = bpf_map_lookup_elem(&hw_counters, &slot);
	if (!entry || !counters || counters->fallback_since_ns)
		return 1;
	conn = bpf_sk_storage_get(&hw_conns_8, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!conn)
		return 1;
	conn->accepted = ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
	take(ctx, conn, entry, ctx->family == AF_INET6);
	return 1;
}

/* Whether the walk is for a socket: one that has sent all and only receives is not taken, but it may be held. */
static __always_inline bool is_walked(struct tcp_sock *tp, struct conn *conn)
{
	__u32 state = 1 << ((struct sock *)tp)->__sk_common.skc_state;

	return (state & SENDING) || (state == 1 << BPF_TCP_FIN_WAIT2 && conn && conn->held);
}

/* Watches a socket that runs its own algorithm because of catastrophic loss. */
static __always_inline void watch(struct tcp_sock *tp, struct conn *conn, struct counters *counters, __u32 slot)
{
	if (conn->slot != slot || !conn->accounted_ns) {
		conn->slot = slot;
		account_from_here(tp, conn);
	}
	account(tp, conn, counters, bpf_ktime_get_ns());
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
	if (!tp)
		return 0;
	conn = bpf_sk_storage_get(&hw_conns_8, tp, NULL, 0);
	if (!is_walked(tp, conn))
		return 0;
	ipv6 = ((struct sock *)tp)->__sk_common.skc_family == AF_INET6;
	slot = planned_slot(tp, conn);
	entry = bpf_map_lookup_elem(&hw_entries, &slot);
	counters = bpf_map_lookup_elem(&hw_counters, &slot);
	if (!entry || !counters) {
		if (conn && (conn->held || conn->taken))
			give_back(tp, conn, ipv6);
		return 0;
	}
	conn = bpf_sk_storage_get(&hw_conns_8, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!conn)
		return 0;
	if (counters->fallback_since_ns) {
		if (conn->held || conn->taken)
			give_back(tp, conn, ipv6);
		watch(tp, conn, counters, slot);
		return 0;
	}
	take(tp, conn, entry, ipv6); /* first: a dead agent's slot is left in the maps of that one */
	if (conn->held)
		entry_of((struct sock *)tp, conn, bpf_ktime_get_ns()); /* an idle socket leaves its old slot now */
	push(tp);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
