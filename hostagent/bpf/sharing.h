/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the connections of one allocation share it.
 *
 * A connection that has more to send than goes out at once is greedy; all greedy ones get equal parts of what the others
 * leave. One that cannot use an equal part (its application, its buffer or its receiver is slower, or it asked for less
 * with SO_MAX_PACING_RATE) claims only what it uses; one with nothing to send takes nothing. Each is looked at on each
 * of its ACKs and before each of its transmissions, so a change of their number is in force within a millisecond.
 */
#ifndef HEADWAY_SHARING_H
#define HEADWAY_SHARING_H

#define SLICE_NS 32000000ULL   /* long enough for a mean, short enough that a claim is over soon after the last byte */
#define BUSY_SEGMENTS 3        /* no more than this to send makes nobody greedy: a request, a keep-alive */
#define START_SEGMENTS 2       /* the least that goes out at once; tcp_min_tso_segs */
#define UNIT_PER_S 1024        /* TCP's unit of departure is a 1024th of a second of its rate (sk_pacing_shift 10) */
#define LARGEST_UNIT_BYTES 65536

static __always_inline struct counters *counters_of(const struct conn *conn)
{
	__u32 slot = conn->slot;

	return bpf_map_lookup_elem(&hw_counters, &slot);
}

static __always_inline void set_part(struct conn *conn, struct counters *counters, __u8 part, __u64 claim_bytes_per_s)
{
	__u8 before = conn->part;

	if (part != before) {
		if (before == PART_GREEDY)
			__sync_fetch_and_add(&counters->greedy, -1);
		else if (before == PART_CLAIMING)
			__sync_fetch_and_add(&counters->claiming, -1);
		if (part == PART_GREEDY)
			__sync_fetch_and_add(&counters->greedy, 1);
		else if (part == PART_CLAIMING)
			__sync_fetch_and_add(&counters->claiming, 1);
		conn->part = part;
	}
	if (claim_bytes_per_s != conn->claim_bytes_per_s) {
		__sync_fetch_and_add(&counters->claimed_bytes_per_s, claim_bytes_per_s - conn->claim_bytes_per_s);
		conn->claim_bytes_per_s = claim_bytes_per_s;
	}
}

static __noinline int join(struct conn *conn)
{
	struct counters *counters;

	if (!conn)
		return 0;
	counters = counters_of(conn);
	if (counters)
		__sync_fetch_and_add(&counters->connections, 1);
	return 0;
}

static __noinline int leave(struct conn *conn)
{
	struct counters *counters;

	if (!conn)
		return 0;
	counters = counters_of(conn);
	if (counters) {
		set_part(conn, counters, PART_NONE, 0);
		__sync_fetch_and_add(&counters->connections, -1);
	}
	return 0;
}

/* The connection's part of the rate if it is, or were, greedy. Never less than an equal part for everyone: a claim is
 * what was used, not a right. */
static __always_inline __u64 fair_bytes_per_s(const struct entry *entry, const struct counters *counters,
					      const struct conn *conn)
{
	__u64 rate = entry->rate_bytes_per_s, claimed = counters->claimed_bytes_per_s - conn->claim_bytes_per_s;
	__u32 greedy = counters->greedy + (conn->part != PART_GREEDY);
	__u32 all = greedy + counters->claiming - (conn->part == PART_CLAIMING);
	__u64 equal, rest;

	if (all <= 1)
		return rate;
	equal = rate / all;
	rest = claimed < rate && greedy ? (rate - claimed) / greedy : 0;
	return rest > equal ? rest : equal;
}

/* What a connection that is not greedy may send at, and with what a greedy one begins: so little that all which are
 * open may begin at once. */
static __always_inline __u64 start_bytes_per_s(const struct entry *entry, const struct counters *counters,
					       __u32 mss_bytes, __u64 fair)
{
	__u64 least = (__u64)START_SEGMENTS * mss_bytes * UNIT_PER_S;
	__u64 start = counters->connections > 1 ? entry->rate_bytes_per_s / counters->connections
						: entry->rate_bytes_per_s;

	if (start < least)
		start = least;
	return start < fair ? start : fair;
}

/* Measures what the connection sends. */
static __always_inline void measure(const struct tcp_sock *tp, struct conn *conn, __u64 now_ns)
{
	__u64 age_ns = now_ns - conn->slice_start_ns;

	if (age_ns < SLICE_NS)
		return;
	conn->sent_bytes_per_s_before = conn->sent_bytes_per_s;
	conn->sent_bytes_per_s = (tp->bytes_sent - conn->slice_start_bytes) * 1000000000ULL / age_ns;
	conn->slice_start_ns = now_ns;
	conn->slice_start_bytes = tp->bytes_sent;
}

/* What the connection could send now: what its application has written, as far as the receiver's window goes. */
static __always_inline __u32 sendable_bytes(const struct tcp_sock *tp)
{
	__u32 unsent = tp->write_seq - tp->snd_nxt;
	__s32 room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;

	if (room <= 0)
		return 0;
	return unsent < (__u32)room ? unsent : (__u32)room;
}

/* Decides what part the connection takes, and returns the rate it may send at. */
static __always_inline __u64 part_bytes_per_s(struct sock *sk, struct conn *conn, const struct entry *entry,
					      struct counters *counters, __u64 fair)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	__u32 mss_bytes = tp->mss_cache, sendable = sendable_bytes(tp), at_once = BUSY_SEGMENTS * mss_bytes;
	__u64 start = start_bytes_per_s(entry, counters, mss_bytes, fair), asked = sk->sk_max_pacing_rate, claim;
	__u64 unit = start / UNIT_PER_S;
	__u8 before = conn->part;

	if (unit > LARGEST_UNIT_BYTES)
		unit = LARGEST_UNIT_BYTES;
	if (sendable > (unit > at_once ? unit : at_once)) {
		if (asked < fair) {
			set_part(conn, counters, PART_CLAIMING, asked);
			return asked;
		}
		set_part(conn, counters, PART_GREEDY, 0);
		return before == PART_GREEDY ? fair : start;
	}
	claim = conn->sent_bytes_per_s > conn->sent_bytes_per_s_before ? conn->sent_bytes_per_s
								       : conn->sent_bytes_per_s_before;
	if (tp->snd_una == tp->write_seq)
		claim = 0;
	set_part(conn, counters, claim ? PART_CLAIMING : PART_NONE, claim);
	return start < asked ? start : asked;
}

#endif
