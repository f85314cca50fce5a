/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the connections of one allocation share it.
 *
 * A connection that has more to send than goes out at once is greedy; all greedy ones get equal parts of what the lesser
 * leave: those whose application, buffer or receiver is slower, or that asked for less with SO_MAX_PACING_RATE. What the
 * lesser use is measured, all together. Each connection is looked at on each of its ACKs and before each of its
 * transmissions, so a change of their number is in force within a millisecond.
 */
#ifndef HEADWAY_SHARING_H
#define HEADWAY_SHARING_H

#define SLICE_NS 32000000ULL /* long enough for a mean, short enough that nothing is kept for one that has ended */
#define BUSY_SEGMENTS 3        /* no more than this to send makes nobody greedy: a request, a keep-alive */
#define START_SEGMENTS 2       /* the least that goes out at once; tcp_min_tso_segs */
#define UNPACED_SEGMENTS 10    /* of a new connection: tcp_update_skb_after_send paces none of them */
#define LEAST_TURNS_PER_S 100   /* nobody waits longer for its second turn because others are open */
#define TOSS 1024
#define UNIT_PER_S 1024        /* TCP's unit of departure is a 1024th of a second of its rate (sk_pacing_shift 10) */
#define LARGEST_UNIT_BYTES 65536

/* The counters of the connection's allocation; NULL if it is over and another one has its slot. A socket that was reset is
 * in no list until its program closes it, so no walk has it leave before. */
static __always_inline struct counters *counters_of(const struct conn *conn)
{
	__u32 slot = conn->slot;
	struct counters *counters = bpf_map_lookup_elem(&hw_counters, &slot);

	return counters && counters->term == conn->term ? counters : NULL;
}

static __always_inline void set_part(struct conn *conn, struct counters *counters, __u8 part)
{
	__u8 before = conn->part;

	if (part == before)
		return;
	if (before == PART_GREEDY)
		__sync_fetch_and_add(&counters->greedy, -1);
	else if (before == PART_LESSER)
		__sync_fetch_and_add(&counters->lesser, -1);
	if (part == PART_GREEDY)
		__sync_fetch_and_add(&counters->greedy, 1);
	else if (part == PART_LESSER)
		__sync_fetch_and_add(&counters->lesser, 1);
	conn->part = part;
}

static __noinline int join(struct conn *conn)
{
	struct counters *counters;
	__u32 slot;

	if (!conn)
		return 0;
	slot = conn->slot;
	counters = bpf_map_lookup_elem(&hw_counters, &slot);
	if (!counters)
		return 0;
	conn->term = counters->term;
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
		set_part(conn, counters, PART_NONE);
		__sync_fetch_and_add(&counters->connections, -1);
		__sync_fetch_and_add(&counters->behind_gap, -conn->behind_gap);
	}
	conn->part = PART_NONE;
	conn->delivered -= conn->behind_gap; /* as if delivered to the next */
	conn->behind_gap = 0;
	return 0;
}

/* The connection's part of the rate if it is, or were, greedy. Never less than an equal part for each that is open: what
 * the lesser use is no right of theirs. */
static __always_inline __u64 fair_bytes_per_s(const struct entry *entry, const struct counters *counters,
					      const struct conn *conn)
{
	__u64 lesser = (counters->lesser_bytes_per_s + counters->lesser_bytes_per_s_before) / 2;
	__u64 rate = entry->rate_bytes_per_s, least, rest = 0;
	__u32 greedy = counters->greedy + (conn->part != PART_GREEDY), connections = counters->connections;

	if (connections <= 1)
		return rate;
	least = rate / connections;
	if (lesser < rate && greedy)
		rest = (rate - lesser) / greedy;
	return rest > least ? rest : least;
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

/* Adds what the connection has sent while it was no greedy one, and ends the slice when it is time. */
static __always_inline void measure(const struct tcp_sock *tp, struct conn *conn, struct counters *counters,
				    __u64 now_ns)
{
	__u64 sent = tp->bytes_sent - conn->bytes_sent, start_ns = counters->slice_start_ns, bytes_per_s;
	__s64 age_ns = now_ns - start_ns; /* negative if another CPU has just begun a slice */

	conn->bytes_sent = tp->bytes_sent;
	if (sent && conn->part != PART_GREEDY)
		__sync_fetch_and_add(&counters->slice_bytes, sent);
	if (age_ns < (__s64)SLICE_NS ||
	    __sync_val_compare_and_swap(&counters->slice_start_ns, start_ns, now_ns) != start_ns)
		return;
	bytes_per_s = __sync_lock_test_and_set(&counters->slice_bytes, 0) * 1000000000ULL / age_ns;
	counters->lesser_bytes_per_s_before = age_ns < (__s64)(2 * SLICE_NS) ? counters->lesser_bytes_per_s : bytes_per_s;
	counters->lesser_bytes_per_s = bytes_per_s;
}

/* The rate at which a connection accounts for the segments it begins with. All that are open may begin at one instant;
 * so that they do not go on in step, each waits between a half and one and a half of the turns it would then have. */
static __always_inline __u64 first_bytes_per_s(const struct entry *entry, const struct counters *counters,
					       __u32 mss_bytes, __u64 fair, __u64 start)
{
	__u64 first = (__u64)START_SEGMENTS * mss_bytes * LEAST_TURNS_PER_S;
	__u64 part = counters->connections ? entry->rate_bytes_per_s / counters->connections : fair;

	if (part >= (__u64)START_SEGMENTS * mss_bytes * UNIT_PER_S) /* turns of a millisecond */
		return start;
	if (first < part)
		first = part;
	if (first > fair)
		first = fair;
	return first * TOSS / (TOSS / 2 + bpf_get_prandom_u32() % TOSS);
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
					      struct counters *counters, __u64 fair, __u64 now_ns)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	__u32 mss_bytes = tp->mss_cache, at_once = BUSY_SEGMENTS * mss_bytes;
	__u64 start = start_bytes_per_s(entry, counters, mss_bytes, fair), asked = sk->sk_max_pacing_rate;
	__u64 unit = start / UNIT_PER_S;
	__u8 before = conn->part;

	if (unit > LARGEST_UNIT_BYTES)
		unit = LARGEST_UNIT_BYTES;
	if (asked && asked < fair) { /* TCP itself paces nothing at 0 */
		set_part(conn, counters, PART_LESSER);
		return asked;
	}
	if (sendable_bytes(tp) > (unit > at_once ? unit : at_once)) {
		set_part(conn, counters, PART_GREEDY);
		if (before == PART_GREEDY && conn->in_turn)
			return fair;
		conn->in_turn = tp->data_segs_out >= UNPACED_SEGMENTS;
		return first_bytes_per_s(entry, counters, mss_bytes, fair, start);
	}
	if (tp->snd_una == tp->write_seq) { /* no ACK will come after this one */
		set_part(conn, counters, PART_NONE);
		return start;
	}
	if (before == PART_GREEDY && now_ns < tp->tcp_wstamp_ns) /* what went out last still takes its time */
		return fair;
	set_part(conn, counters, PART_LESSER);
	return start;
}

#endif
