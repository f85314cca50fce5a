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

#define MIN_WINDOW_SEGMENTS 4  /* below, a lost segment cannot be told by duplicate ACKs (RFC 5681: three) */
#define BUSY_SEGMENTS 3        /* with no more than this unconfirmed, a connection takes no share */
#define ETHERNET_HEADER_BYTES 14

static __always_inline struct counters *counters_of(const struct conn *conn)
{
	__u32 slot = conn->slot;

	return bpf_map_lookup_elem(&hw_counters, &slot);
}

static void join(struct conn *conn)
{
	struct counters *counters = counters_of(conn);

	if (counters)
		__sync_fetch_and_add(&counters->connections, 1);
}

static void leave(struct conn *conn)
{
	struct counters *counters = counters_of(conn);

	if (counters)
		__sync_fetch_and_add(&counters->connections, -1);
}

/* The entry in force for a socket of ours; NULL when the lease is over or the plan has nothing for it. */
static struct entry *entry_of(struct sock *sk, struct conn *conn)
{
	struct control *control = leased();
	__u32 slot;

	if (!control)
		return NULL;
	if (conn->generation != control->generation) {
		conn->generation = control->generation;
		slot = slot_of(&sk->__sk_common);
		if (slot != conn->slot) {
			leave(conn);
			conn->slot = slot;
			conn->epoch_start_ns = 0;
			join(conn);
		}
	}
	slot = conn->slot;
	return bpf_map_lookup_elem(&hw_entries, &slot);
}

/* Counts the socket as active if it has more to deliver than a request or a keep-alive has. */
static void count_active(struct tcp_sock *tp, struct conn *conn, struct counters *counters)
{
	__u64 now_ns = bpf_ktime_get_ns(), rtt_ns = (__u64)(tp->srtt_us >> 3) * 1000;
	__u64 epoch_ns = rtt_ns > HEADWAY_EPOCH_NS ? rtt_ns : HEADWAY_EPOCH_NS;
	__u64 start_ns = counters->epoch_start_ns;
	__s64 age_ns = now_ns - start_ns; /* negative if another CPU has just begun an epoch */

	if (age_ns > (__s64)epoch_ns &&
	    __sync_val_compare_and_swap(&counters->epoch_start_ns, start_ns, now_ns) == start_ns) {
		counters->active_before = age_ns < (__s64)(2 * epoch_ns) ? counters->active_now : 0;
		counters->active_now = 0;
	}
	start_ns = counters->epoch_start_ns;
	if (conn->epoch_start_ns != start_ns && tp->write_seq - tp->snd_una > BUSY_SEGMENTS * tp->mss_cache) {
		conn->epoch_start_ns = start_ns;
		__sync_fetch_and_add(&counters->active_now, 1);
	}
}

/* Adds to the allocation's counters what the socket has done since it was last asked. */
static void account(struct tcp_sock *tp, struct conn *conn, struct counters *counters)
{
	__sync_fetch_and_add(&counters->delivered_bytes, tp->bytes_acked - conn->bytes_acked);
	__sync_fetch_and_add(&counters->sent_segments, (__u64)(__u32)(tp->data_segs_out - conn->data_segs_out));
	__sync_fetch_and_add(&counters->retransmitted_segments,
			     (__u64)(__u32)(tp->total_retrans - conn->total_retrans));
	counters->rtt_us = tp->srtt_us >> 3;
	conn->bytes_acked = tp->bytes_acked;
	conn->data_segs_out = tp->data_segs_out;
	conn->total_retrans = tp->total_retrans;
}

/* Sets window and pacing to the socket's share of the allocation. */
static void hold(struct sock *sk, struct conn *conn, const struct entry *entry, const struct counters *counters)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 now = counters->active_now, before = counters->active_before;
	__u32 sharing = now > before ? now : before;
	__u32 window_segments, mss_bytes = tp->mss_cache;
	__u64 rate_bytes_per_s;

	if (!sharing)
		sharing = 1;
	window_segments = entry->window_segments / sharing;
	tp->snd_cwnd = window_segments > MIN_WINDOW_SEGMENTS ? window_segments : MIN_WINDOW_SEGMENTS;

	rate_bytes_per_s = entry->rate_bytes_per_s / sharing;
	if (sk->sk_pacing_status == SK_PACING_FQ && mss_bytes) {
		/* the fq qdisc counts frames, TCP's own pacing payload */
		__u32 header_bytes = ETHERNET_HEADER_BYTES + tp->tcp_header_len +
				     (sk->__sk_common.skc_family == AF_INET6 ? 40 : 20);

		rate_bytes_per_s += rate_bytes_per_s * header_bytes / mss_bytes;
	}
	if (rate_bytes_per_s > sk->sk_max_pacing_rate) /* the application asked for less */
		rate_bytes_per_s = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate_bytes_per_s;
	if (sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		conn->paced = 1;
	}
}

/* Gives the socket back to the algorithm it had. ctx: what bpf_setsockopt wants in this kind of program. */
static __always_inline void give_back(void *ctx, struct conn *conn, bool ipv6)
{
	char algorithm[HEADWAY_NAME_BYTES] __attribute__((aligned(8))) = "";
	char reno[HEADWAY_NAME_BYTES] = "reno"; /* always there */
	int tos = 0;

	if (conn) {
		__builtin_memcpy(algorithm, conn->previous, sizeof(algorithm));
		tos = conn->previous_tos;
	} else {
		copy_name(algorithm, host.fallback);
	}
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
	if (conn)
		bpf_setsockopt(ctx, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof(tos));
}

/* The congestion control. ----------------------------------------------------------------------------------------*/

static __always_inline struct conn *conn_of(struct sock *sk)
{
	return bpf_sk_storage_get(&hw_conns_1, sk, NULL, 0);
}

static __always_inline bool enforce(struct sock *sk, struct conn *conn)
{
	struct entry *entry = entry_of(sk, conn);
	struct counters *counters = counters_of(conn);

	if (!entry || !counters)
		return false;
	account(tcp_sk(sk), conn, counters);
	count_active(tcp_sk(sk), conn, counters);
	hold(sk, conn, entry, counters);
	return true;
}

SEC("struct_ops/headway_init")
void BPF_PROG(headway_init, struct sock *sk)
{
	struct conn *conn = conn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!conn)
		return;
	conn->generation = 0; /* what an earlier agent's generations meant is not known here */
	conn->slot = NO_SLOT;
	conn->epoch_start_ns = 0;
	conn->bytes_acked = tp->bytes_acked;
	conn->data_segs_out = tp->data_segs_out;
	conn->total_retrans = tp->total_retrans;
	conn->held = 1;
	conn->paced = 0;
	enforce(sk, conn);
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
		account(tp, conn, counters);
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

	if (!conn || !enforce(sk, conn))
		give_back(sk, conn, sk->__sk_common.skc_family == AF_INET6);
}

SEC("struct_ops/headway_cwnd_event")
void BPF_PROG(headway_cwnd_event, struct sock *sk, __u32 event)
{
	struct conn *conn = conn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (event != CA_EVENT_TX_START || (conn && enforce(sk, conn)))
		return;
	/* Idle until now and no plan any more: start as an ordinary connection; the first ACK gives the socket back. */
	if (tp->snd_cwnd > TCP_INIT_CWND)
		tp->snd_cwnd = TCP_INIT_CWND;
}

SEC("struct_ops/headway_set_state")
void BPF_PROG(headway_set_state, struct sock *sk, __u8 new_state)
{
	struct conn *conn = conn_of(sk);

	/* tcp_enter_loss has just set the window to what is in flight plus one */
	if (new_state == TCP_CA_Loss && conn)
		enforce(sk, conn);
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
	.cwnd_event = (void *)headway_cwnd_event,
	.set_state = (void *)headway_set_state,
	.ssthresh = (void *)headway_ssthresh,
	.undo_cwnd = (void *)headway_undo_cwnd,
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
static __always_inline void take(void *ctx, struct tcp_sock *tp, struct conn *conn, __u32 dscp, bool ipv6)
{
	char algorithm[HEADWAY_NAME_BYTES] __attribute__((aligned(8))) = "";
	int level = ipv6 ? SOL_IPV6 : SOL_IP, option = ipv6 ? IPV6_TCLASS : IP_TOS;
	int tos = 0;

	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		return;
	if (!is_ours(algorithm)) {
		__builtin_memcpy(conn->previous, algorithm, sizeof(algorithm));
		bpf_getsockopt(ctx, level, option, &tos, sizeof(tos));
		conn->previous_tos = tos;
	} else if (!conn->previous[0]) {
		copy_name(conn->previous, host.fallback);
	}
	copy_name(algorithm, host.algorithm);
	/* Does nothing if the socket runs it already; a dead agent's copy of the same name is replaced. */
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm)))
		return;
	tos = dscp << 2;
	bpf_setsockopt(ctx, level, option, &tos, sizeof(tos));
}

/* The entry of a socket that is not ours yet, NULL if none is in force. */
static __always_inline struct entry *wanted(struct tcp_sock *tp)
{
	__u32 slot;

	if (!leased())
		return NULL;
	slot = slot_of(&((struct sock *)tp)->__sk_common);
	return bpf_map_lookup_elem(&hw_entries, &slot);
}

SEC("sockops")
int headway_established(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *bpf_sk = ctx->sk;
	struct entry *entry;
	struct tcp_sock *tp;
	struct conn *conn;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (bpf_get_netns_cookie(ctx) != host.netns_cookie || !bpf_sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(bpf_sk);
	if (!tp)
		return 1;
	entry = wanted(tp);
	if (!entry)
		return 1;
	conn = bpf_sk_storage_get(&hw_conns_1, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (conn)
		take(ctx, tp, conn, entry->dscp, ctx->family == AF_INET6);
	return 1;
}

/* States in which a socket can still send data. */
#define SENDING ((1 << BPF_TCP_ESTABLISHED) | (1 << BPF_TCP_FIN_WAIT1) | (1 << BPF_TCP_CLOSE_WAIT) | \
		 (1 << BPF_TCP_CLOSING) | (1 << BPF_TCP_LAST_ACK))

/* Walks the open sockets of the namespace of the process that made the iterator: takes and gives back. */
SEC("iter/tcp")
int headway_open(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct entry *entry;
	struct tcp_sock *tp;
	struct conn *conn;
	bool ipv6;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || !((1 << ((struct sock *)tp)->__sk_common.skc_state) & SENDING))
		return 0;
	ipv6 = ((struct sock *)tp)->__sk_common.skc_family == AF_INET6;
	entry = wanted(tp);
	if (entry) {
		conn = bpf_sk_storage_get(&hw_conns_1, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (conn)
			take(tp, tp, conn, entry->dscp, ipv6);
		return 0;
	}
	conn = bpf_sk_storage_get(&hw_conns_1, tp, NULL, 0);
	if (conn && conn->held)
		give_back(tp, conn, ipv6);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
