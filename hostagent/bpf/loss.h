/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the connections of an allocation have done, counted; and whether so much is lost that the plan must not hold.
 *
 * Loss is judged over periods, from the segments that were sent again. When it is catastrophic the connections are
 * given back; they are watched, and taken again once it is over and a hold time has passed, which doubles each time.
 */
#ifndef HEADWAY_LOSS_H
#define HEADWAY_LOSS_H

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

/* The payload that the receiver has confirmed: the kernel counts a confirmed FIN as a byte. */
static __always_inline __u64 payload_acked(const struct tcp_sock *tp)
{
	__u8 state = ((const struct sock *)tp)->__sk_common.skc_state;
	bool ended = state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT;

	return tp->bytes_acked - (ended && tp->snd_una == tp->write_seq);
}

/* Adds to the allocation's counters what the socket has done since it was last asked. */
static __always_inline void account(const struct tcp_sock *tp, struct conn *conn, struct counters *counters,
				    __u64 now_ns)
{
	__u64 acked = payload_acked(tp);

	if ((__s64)(acked - conn->bytes_acked) > 0) {
		__sync_fetch_and_add(&counters->delivered_bytes, acked - conn->bytes_acked);
		counters->delivered_ns = now_ns;
		conn->bytes_acked = acked;
	}
	__sync_fetch_and_add(&counters->sent_segments, (__u64)(__u32)(tp->data_segs_out - conn->data_segs_out));
	__sync_fetch_and_add(&counters->retransmitted_segments,
			     (__u64)(__u32)(tp->total_retrans - conn->total_retrans));
	__sync_fetch_and_add(&counters->loss_retransmitted_segments,
			     (__u64)spared_segments(tp, conn, tp->total_retrans - conn->total_retrans));
	counters->rtt_us = tp->srtt_us >> 3;
	conn->accounted_ns = now_ns;
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

#endif
