/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the connections of an allocation have done, counted; and whether so much is lost that the plan must not hold.
 *
 * Loss is judged over periods, from the segments that were sent again and those that were delivered. When it is
 * catastrophic the connections are given back; they are watched, and taken again once it is over and a hold time has
 * passed, which doubles each time.
 *
 *   sent anew    |=============|
 *   delivered          |=============|     |~~~~~~~~~|    a round trip later; ~: what was sent again
 *   sent again           :  : : :  :  :|: :  :            a quarter of a round trip later: RACK waits for reordering
 *                                      A   B
 *
 * What is sent again between A and B was lost beside what was delivered before A; and nothing else is delivered until a
 * round trip later. So a period that begins at A also has what was delivered before and is not yet confirmed because of a
 * gap: whatever is sent again belongs to those. It is a window of each connection at most, which is more than RACK waits;
 * where much is lost, gaps stay open for many round trips. And nobody is judged by a tail: of what a period had sent again
 * a part must have been sent anew in it; and what was before a pause gives back nobody who begins after it.
 */
#ifndef HEADWAY_LOSS_H
#define HEADWAY_LOSS_H

#define ACCOUNT_NS 1000000ULL
#define JUDGED_SEGMENTS 100     /* fewer tell nothing about loss */
#define TRIPPING_SEGMENTS 1000  /* fewer give nobody back: a single burst of losses is a super-packet, 44 segments */
#define LEAST_FRESH 4           /* so many times what was sent anew, at most, was sent again: no tail, no outage */
#define LONGEST_PERIODS 8       /* a period with fewer is prolonged, up to so many */
#define CALM_HOLDS 8            /* this many hold times without catastrophic loss, and the next is the first again */
#define LONGEST_HOLD_SHIFT 5

/* What a period has come to. */
struct period {
	__u64 fresh; /* segments sent anew */
	__u64 again;
	__u64 ended; /* delivered or sent again */
};

static __always_inline struct period period_of(const struct counters *counters)
{
	__u64 fresh = counters->sent_segments - counters->retransmitted_segments - counters->loss_fresh_segments;
	__u64 again = counters->retransmitted_segments - counters->loss_retransmitted_segments;
	struct period period = {};

	period.fresh = (__s64)fresh < 0 ? 0 : fresh; /* another CPU was between the two */
	period.again = (__s64)again < 0 ? 0 : again; /* another CPU was spared some in between */
	period.ended = counters->delivered_segments - counters->loss_delivered_segments + counters->loss_behind_gap +
		       period.again;
	return period;
}

static __always_inline bool is_catastrophe(const struct period *period)
{
	return period->ended >= TRIPPING_SEGMENTS && period->fresh >= JUDGED_SEGMENTS &&
	       period->fresh * LEAST_FRESH >= period->again &&
	       period->again * 1000000 >= period->ended * host.loss_trip_ppm;
}

/* Decides at the end of each period whether the allocation's loss is catastrophic, or is no more. */
static __noinline int judge(struct counters *counters, __u64 now_ns)
{
	__u64 start_ns, hold_ns;
	bool paused;
	struct period period;
	__s64 age_ns;

	if (!counters)
		return 0;
	start_ns = counters->loss_start_ns;
	age_ns = now_ns - start_ns; /* negative if another CPU has just begun a period */
	paused = (__s64)(now_ns - counters->accounted_ns) > (__s64)host.loss_period_ns;
	if (age_ns < (__s64)host.loss_period_ns)
		return 0;
	period = period_of(counters);
	if (!counters->fallback_since_ns && period.ended < TRIPPING_SEGMENTS &&
	    age_ns < (__s64)(LONGEST_PERIODS * host.loss_period_ns) && !paused)
		return 0;
	if (__sync_val_compare_and_swap(&counters->loss_start_ns, start_ns, now_ns) != start_ns)
		return 0;
	counters->loss_fresh_segments = counters->sent_segments - counters->retransmitted_segments;
	counters->loss_delivered_segments = counters->delivered_segments;
	counters->loss_retransmitted_segments = counters->retransmitted_segments;
	counters->loss_behind_gap = counters->behind_gap;
	if (!counters->fallback_since_ns) {
		if (paused || !is_catastrophe(&period))
			return 0;
		if (now_ns - counters->returned_ns > CALM_HOLDS * host.loss_hold_ns)
			counters->fallbacks = 0;
		if (counters->fallbacks < LONGEST_HOLD_SHIFT + 1)
			counters->fallbacks += 1;
		counters->fallback_since_ns = now_ns;
		return 0;
	}
	hold_ns = host.loss_hold_ns << ((counters->fallbacks - 1) & 7);
	if (now_ns - counters->fallback_since_ns < hold_ns)
		return 0;
	if (period.ended >= JUDGED_SEGMENTS && period.again * 1000000 > period.ended * host.loss_clear_ppm)
		return 0;
	counters->fallback_since_ns = 0;
	counters->returned_ns = now_ns;
	return 0;
}

/* The payload that the receiver has confirmed: the kernel counts a confirmed FIN as a byte. */
static __always_inline __u64 payload_acked(const struct tcp_sock *tp)
{
	__u8 state = ((const struct sock *)tp)->__sk_common.skc_state;
	bool ended = state != BPF_TCP_ESTABLISHED && state != BPF_TCP_CLOSE_WAIT;

	return tp->bytes_acked - (ended && tp->snd_una == tp->write_seq);
}

/* Segments that were delivered and are not confirmed, because of a gap before them; a window at most. */
static __always_inline __u32 behind_gap_of(const struct tcp_sock *tp)
{
	return tp->sacked_out < tp->snd_cwnd ? tp->sacked_out : tp->snd_cwnd;
}

/* Segments delivered since the socket was last asked. A sender that aborts (SO_LINGER of 0) has its socket's counts set
 * to 0 before it comes back: then there is nothing to add, rather than what is missing to 2^32. */
static __always_inline __u32 newly_delivered(const struct tcp_sock *tp, const struct conn *conn)
{
	return tp->delivered ? tp->delivered - conn->delivered : 0;
}

/* Adds to the allocation's counters what the socket has done since it was last asked. */
static __always_inline void account(const struct tcp_sock *tp, struct conn *conn, struct counters *counters,
				    __u64 now_ns)
{
	__u64 acked = payload_acked(tp);
	__u32 behind_gap = conn->held ? behind_gap_of(tp) : 0;

	judge(counters, now_ns); /* first: what was before a pause is no part of what comes */
	counters->accounted_ns = now_ns;
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
	__sync_fetch_and_add(&counters->delivered_segments, (__u64)newly_delivered(tp, conn));
	__sync_fetch_and_add(&counters->behind_gap, behind_gap - conn->behind_gap);
	if (tp->srtt_us) /* 0 after an abort, too */
		counters->rtt_us = tp->srtt_us >> 3;
	conn->accounted_ns = now_ns;
	conn->data_segs_out = tp->data_segs_out;
	conn->total_retrans = tp->total_retrans;
	conn->delivered = tp->delivered;
	conn->behind_gap = behind_gap;
}

/* What was before is not for this slot. */
static __always_inline void account_from_here(const struct tcp_sock *tp, struct conn *conn)
{
	conn->bytes_acked = tp->bytes_acked;
	conn->data_segs_out = tp->data_segs_out;
	conn->total_retrans = tp->total_retrans;
	conn->delivered = tp->delivered - behind_gap_of(tp); /* what is sent again from here on belongs to those, too */
	conn->behind_gap = 0;
}

#endif
