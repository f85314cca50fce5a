/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a change of way leaves in flight, and what was in flight when a connection became ours.
 *
 * When the packets of an allocation take another way, because a circuit has died, what is in flight on the one before may
 * never be answered. A window that waits for it is shut: nothing goes until the retransmission timer has rung and its one
 * segment is answered. So the window is wider by what was in flight then, until that is known to be lost, or the last of
 * it is acknowledged. Pacing holds the rate, so nothing goes faster; and it is there only for about a round trip.
 */
#ifndef HEADWAY_WAY_H
#define HEADWAY_WAY_H

/* Notes by which way the connection sends now, and what the one before has left in flight. */
static __always_inline void take_way(const struct tcp_sock *tp, struct conn *conn, __u32 way)
{
	if (conn->way && way) { /* 0: not known */
		conn->left_segments = in_flight_segments(tp);
		conn->left_lost = tp->lost;
		conn->left_end = tp->snd_nxt;
		conn->left_spared = conn->left_segments;
	}
	conn->way = way;
}

/* What is still counted in flight of what was sent by the way before, at most. */
static __always_inline __u32 left_segments(const struct tcp_sock *tp, struct conn *conn)
{
	__u32 lost = tp->lost - conn->left_lost;

	if (!conn->left_segments)
		return 0;
	if ((__s32)(conn->left_end - tp->snd_una) <= 0 || lost >= conn->left_segments) {
		conn->left_segments = 0;
		return 0;
	}
	return conn->left_segments - lost;
}

/* Notes what was sent before the connection was ours. Its algorithm may have doubled its rate until nearly all was lost:
 * what of that is sent again, for seconds at a slow allocation's rate, is no loss of the plan's. */
static __always_inline void take_over(const struct tcp_sock *tp, struct conn *conn)
{
	conn->left_spared = tp->packets_out - tp->sacked_out;
	conn->left_end = tp->snd_nxt;
}

/* How many of the segments that were sent again are no sign of a bad path: as many as were left behind. A fast circuit's
 * round trip may be more than a slow one carries in the period over which loss is judged. */
static __always_inline __u32 spared_segments(const struct tcp_sock *tp, struct conn *conn, __u32 resent)
{
	__u32 spared = conn->left_spared;

	if (!spared)
		return 0;
	if (spared > resent)
		spared = resent;
	conn->left_spared -= spared;
	if ((__s32)(conn->left_end - tp->snd_una) <= 0)
		conn->left_spared = 0;
	return spared;
}

#endif
