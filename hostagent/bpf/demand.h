/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Whether the connections of a watched allocation want its rate, and stepping down when their flight has ended.
 *
 * A flight begins when a connection could send more than goes out at once, or the last of a transfer. It ends when
 * nothing waits to be sent any more. After the last transmission no hook runs for a round trip, so the end is foretold:
 * before each of the last departures it is known what is left, that window and pacing let it go, and when; a timer rings
 * when that is over. If it has not gone, another hook has run meanwhile and put the timer off.
 *
 * What was lost waits to be sent too. More than DEMAND_BYTES of it is a flight of its own if the one that it is of has
 * ended: a tail that a burst of losses has taken would else be sent again at the standby rate.
 *
 * Any byte of an MPTCP subflow begins a flight. Its scheduler gives the next bytes to the subflow that would be through
 * with them first, so one that stands by gets less than DEMAND_BYTES however much the program has written. What is on its
 * way counts as not through, at the rate by which it stood by: it gets more after a round trip, so its pause is as long.
 *
 * The rate holds while the allocation wants it under a grant that no end has used up. See docs/decisions/0012.
 *
 *   unsent bytes of a connection
 *     |  _                          wants = 1: more than DEMAND_BYTES was written; the agent is woken, and tells
 *     | / \                         waits = 1: the end cannot be seen yet, so the timer is not armed
 *     |/   \                        (while both hold, a hook has nothing to learn until the last stretch)
 *     |.....\..................... LAST_STRETCH_BYTES
 *     |      \                     waits = 0: window and pacing let all go; due_ns is set, the timer armed
 *     |       \                    each departure says due_ns again: the same, if it has gone as foretold
 *     +--------\-------|--------> time
 *                     due_ns       the timer rings: wants = 0, the grant is used up; the agent is woken
 *
 * For example 400 Mbit/s (50 MB/s), which hold already, and 1 MB written at 0 ms. It is more than 32 kB: wants and
 * waits are 1. At 18.7 ms 64 KiB are left, which take 1.3 ms. Not known to be the last: over at 18.7 + 1.3 + PAUSE_NS =
 * 30 ms. With the end of the stream queued, or the announced size reached: at 18.7 + 1.3 + MARGIN_NS = 21 ms. A request
 * of 20 kB begins no flight, unless it is the last. If 1 MB more is written at 25 ms, the connection waits again; the
 * timer that rings at 30 ms sees that and does nothing, and the next last stretch arms it anew. Of several connections
 * the last that waits decides.
 */
#ifndef HEADWAY_DEMAND_H
#define HEADWAY_DEMAND_H

#include "parity.h"

#define DEMAND_BYTES 32768        /* less than the first full buffer of a large write, more than a request */
#define UNSCALED_WINDOW_BYTES 65535 /* the most that a SYN-ACK can offer */
#define LAST_STRETCH_BYTES 65536  /* from here on the end is foretold */
#define PAUSE_NS 10000000ULL      /* an application that is silent for so long has ended its flight */
#define MARGIN_NS 1000000ULL      /* a timer of pacing is late by less */
#define FALLBACK_LOOK_NS 1000000000ULL
#define FIN_QUEUED ((1 << BPF_TCP_FIN_WAIT1) | (1 << BPF_TCP_CLOSING) | (1 << BPF_TCP_LAST_ACK))

struct demand {
	struct bpf_timer timer;
	struct demanded seen;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HEADWAY_MAX_ENTRIES);
	__type(key, __u32);
	__type(value, struct demand);
} hw_demand SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HEADWAY_EVENTS_BYTES);
} hw_events SEC(".maps");

/* Wakes the agent: it reads the state, so an event that found no room is made good by the next. */
static __always_inline void tell(__u32 slot)
{
	bpf_ringbuf_output(&hw_events, &slot, sizeof(slot), 0);
}

/* Whether the whole rate holds now. */
static __always_inline bool granted(const struct entry *entry, const struct demanded *seen)
{
	return seen->wants && entry->grant > seen->ended_grant;
}

/* The timer has rung. */
static int flight_over(void *map, __u32 *key, struct demand *demand)
{
	struct demanded *seen = &demand->seen;
	__u32 slot = *key;
	struct entry *entry = bpf_map_lookup_elem(&hw_entries, &slot);
	struct counters *counters = bpf_map_lookup_elem(&hw_counters, &slot);
	__u64 now_ns = bpf_ktime_get_ns();

	if (!entry || !counters)
		return 0;
	if (counters->fallback_since_ns && seen->wants) { /* its connections are not seen now */
		bpf_timer_start(&demand->timer, FALLBACK_LOOK_NS, 0);
		return 0;
	}
	if (seen->wants && !seen->waiting && now_ns < seen->due_ns) {
		bpf_timer_start(&demand->timer, seen->due_ns - now_ns, 0);
		return 0;
	}
	__sync_lock_test_and_set(&seen->armed, 0);
	if (!seen->wants || seen->waiting > 0)
		return 0;
	if (entry->grant > seen->ended_grant)
		seen->ended_grant = entry->grant;
	if (entry->size_bytes && seen->sent_bytes >= entry->size_bytes)
		seen->sent_bytes = 0; /* the next announcement of the same size */
	if (__sync_lock_test_and_set(&seen->wants, 0))
		tell(slot);
	return 0;
}

/* Has the timer ring when nothing waits any more, unless it will anyway, and not later than is due ("sooner"). */
static __always_inline void arm(struct demand *demand, __u64 now_ns, bool sooner)
{
	struct demanded *seen = &demand->seen;
	__u64 due_ns = seen->due_ns;

	if (!seen->wants || seen->waiting > 0)
		return;
	if (__sync_lock_test_and_set(&seen->armed, 1) && !sooner)
		return;
	if (!seen->timer_made) {
		seen->timer_made = 1;
		bpf_timer_init(&demand->timer, &hw_demand, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&demand->timer, flight_over);
	}
	bpf_timer_start(&demand->timer, due_ns > now_ns ? due_ns - now_ns : 0, 0);
}

static __always_inline struct demand *demand_of(const struct conn *conn)
{
	__u32 slot = conn->slot;

	return bpf_map_lookup_elem(&hw_demand, &slot);
}

static __always_inline void set_waits(struct conn *conn, struct demanded *seen, __u8 waits)
{
	if (waits == conn->waits)
		return;
	__sync_fetch_and_add(&seen->waiting, waits ? 1 : -1);
	conn->waits = waits;
}

/* Takes a connection out of its allocation's demand. */
static __noinline int withdraw(struct conn *conn)
{
	struct demand *demand;
	__u64 now_ns;

	if (!conn)
		return 0;
	conn->watched = 0;
	demand = demand_of(conn);
	if (!counters_of(conn)) /* what it waited for is over */
		conn->waits = 0;
	if (!demand || !conn->waits)
		return 0;
	now_ns = bpf_ktime_get_ns();
	set_waits(conn, &demand->seen, 0);
	if (demand->seen.due_ns < now_ns + MARGIN_NS)
		demand->seen.due_ns = now_ns + MARGIN_NS;
	arm(demand, now_ns, false);
	return 0;
}

/* What the connection has sent at least once, cumulative. */
static __always_inline __u64 sent_once_bytes(const struct tcp_sock *tp)
{
	return tp->bytes_acked + (__u32)(tp->snd_nxt - tp->snd_una);
}

static __always_inline __s32 in_flight_segments(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* What was lost and waits to be sent again. */
static __always_inline __u32 lost_bytes(const struct tcp_sock *tp)
{
	return tp->lost_out > tp->retrans_out ? (tp->lost_out - tp->retrans_out) * tp->mss_cache : 0;
}

/* Whether window and congestion window let all that is left go. What is sent again lies within the window already. */
static __always_inline bool may_all_go(const struct tcp_sock *tp, __u32 unsent, __u32 lost)
{
	__s32 room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;
	__s32 segments = tp->snd_cwnd - in_flight_segments(tp);

	return (__s32)unsent <= room && segments > 0 && unsent + lost <= (__u64)segments * tp->mss_cache;
}

/* Whether the peer's window is what it will be. What a SYN-ACK offers is unscaled, what an ACK does is not; a window
 * that takes the whole rest need not grow. */
static __always_inline bool window_is_open(const struct tcp_sock *tp, const struct conn *conn, __u32 unsent)
{
	__s32 room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;

	return conn->accepted || tp->snd_wnd > UNSCALED_WINDOW_BYTES || tp->bytes_acked > 1 /* the SYN */ ||
	       (__s32)unsent <= room;
}

/* The most that the parities of a transfer come to, which follow what is left at the same rate. */
static __always_inline __u32 parities_bytes(const struct tcp_sock *tp, const struct entry *entry)
{
	__u32 groups = tp->snd_cwnd / LEAST_ROWS;

	return entry->tail_coded ? (groups < MOST_GROUPS ? groups : MOST_GROUPS) * tp->mss_cache : 0;
}

/* When what is left will have gone, at the latest, and the flight is over if nothing follows. */
static __always_inline __u64 over_ns(struct sock *sk, __u32 left, bool all, __u64 now_ns)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	__u64 from_ns = tp->tcp_wstamp_ns > now_ns ? tp->tcp_wstamp_ns : now_ns, rate = sk->sk_pacing_rate;
	__u64 pause_ns = PAUSE_NS + (is_mptcp(tp) ? (tp->srtt_us >> 3) * 1000ULL : 0);

	/* what goes out last has its time on the circuit too */
	return from_ns + (rate ? left * 1000000000ULL / rate : 0) + (all ? MARGIN_NS : pause_ns);
}

/* Counts what the connection has sent since it was last looked at. */
static __always_inline void count_sent(const struct tcp_sock *tp, struct conn *conn, const struct entry *entry,
				       struct demanded *seen)
{
	__u64 sent_bytes = sent_once_bytes(tp);

	if (seen->size_bytes != entry->size_bytes) { /* another announcement */
		seen->size_bytes = entry->size_bytes;
		seen->sent_bytes = 0;
	}
	if (conn->watched && sent_bytes != conn->sent_once_bytes)
		__sync_fetch_and_add(&seen->sent_bytes, sent_bytes - conn->sent_once_bytes);
	else if (!conn->watched) /* an application that was told of the promise first has begun already */
		__sync_fetch_and_add(&seen->sent_bytes, (__u32)(tp->snd_nxt - tp->snd_una));
	conn->sent_once_bytes = sent_bytes;
	conn->watched = 1;
}

/* Whether nothing follows what the connection has been given: its stream ends there, or the announcement does. */
static __always_inline bool is_all(const struct sock *sk, const struct entry *entry, const struct demanded *seen,
				   __u32 unsent)
{
	return ((1 << sk->__sk_common.skc_state) & FIN_QUEUED) ||
	       (entry->size_bytes && seen->sent_bytes + unsent >= entry->size_bytes);
}

/* Says when the flight is over, as far as it is this connection's, and whether that is sooner than was said. */
static __always_inline bool foretell(struct conn *conn, struct demanded *seen, __u64 due_ns)
{
	__u64 before_ns = seen->due_ns;

	/* one that had something to wait for, and now does not, takes back what it said */
	if (due_ns > before_ns || before_ns == conn->due_ns)
		seen->due_ns = due_ns;
	conn->due_ns = due_ns;
	return seen->due_ns < before_ns;
}

/* Looks at what a connection of a watched allocation has to send: does a flight begin, when is it over? */
static __noinline int follow_demand(struct sock *sk, struct conn *conn, struct entry *entry, __u64 now_ns)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	struct demand *demand;
	struct demanded *seen;
	__u32 unsent, lost;
	bool all, begins, waits, sooner = false;

	if (!sk || !conn || !entry)
		return 0;
	demand = demand_of(conn);
	if (!demand)
		return 0;
	seen = &demand->seen;
	unsent = tp->write_seq - tp->snd_nxt;
	if (seen->wants && conn->waits && unsent > LAST_STRETCH_BYTES)
		return 0;
	count_sent(tp, conn, entry, seen);
	lost = lost_bytes(tp);
	all = is_all(sk, entry, seen, unsent);
	begins = unsent && window_is_open(tp, conn, unsent) &&
		 (all || is_mptcp(tp) || sendable_bytes(tp) > DEMAND_BYTES);
	begins = !seen->wants && (begins || lost > DEMAND_BYTES);
	waits = unsent + lost && (unsent + lost > LAST_STRETCH_BYTES || !may_all_go(tp, unsent, lost));
	if (!waits && (unsent + lost || conn->waits))
		sooner = foretell(conn, seen, over_ns(sk, unsent + lost + parities_bytes(tp, entry), all, now_ns));
	set_waits(conn, seen, waits);
	if (begins && !__sync_lock_test_and_set(&seen->wants, 1))
		tell(conn->slot);
	arm(demand, now_ns, sooner);
	return 0;
}

#endif
