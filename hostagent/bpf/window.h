/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The window and the pacing of a connection, for its part of the allocation. */
#ifndef HEADWAY_WINDOW_H
#define HEADWAY_WINDOW_H

#define MIN_WINDOW_SEGMENTS 4  /* below, a lost segment cannot be told by duplicate ACKs (RFC 5681: three) */
#define TURN_NS 1000000ULL /* what goes out at once is sent in about a millisecond of its rate (sk_pacing_shift) */
#define MAPPING_BYTES 28 /* of each segment of MPTCP, as Linux sends it: DSS with two numbers of 64 bits, RFC 8684, 3.3 */
#define SHARED_SLACK_SEGMENTS 2 /* a delayed ACK confirms two segments; with a small part that is much of its window */

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

/* That: the less of the two halves. */
static __always_inline __u32 least_rtt_us(const struct conn *conn)
{
	if (conn->least_rtt_us_before && conn->least_rtt_us_before < conn->least_rtt_us)
		return conn->least_rtt_us_before;
	return conn->least_rtt_us;
}

/* The window for a rate: the allocation's for the whole rate, in proportion for a part; wider if the path has become
 * longer than planned, up to one and a half. Pacing holds the rate, so a wider window sends no faster. */
static __always_inline __u32 window_segments(const struct tcp_sock *tp, const struct conn *conn,
					     const struct entry *entry, __u64 fair)
{
	__u64 rate = entry->rate_bytes_per_s, planned = entry->window_segments, followed, ceiling;
	__u32 rtt_us = least_rtt_us(conn), mss_bytes = tp->mss_cache;

	if (fair < rate)
		planned = (planned * fair + rate - 1) / rate + SHARED_SLACK_SEGMENTS;
	if (!mss_bytes)
		return planned;
	followed = fair * rtt_us / 1000000 / mss_bytes;
	followed += followed / 128 + SHARED_SLACK_SEGMENTS; /* what a departure of a whole unit and a delayed ACK need */
	ceiling = planned + planned / 2;
	if (followed > ceiling)
		followed = ceiling;
	if (followed > planned)
		planned = followed;
	if (is_mptcp(tp)) /* its segments are smaller, and what the scheduler gives at once, 64 kB, ends within one */
		planned += planned / 8;
	return planned > MIN_WINDOW_SEGMENTS ? planned : MIN_WINDOW_SEGMENTS;
}

/* The window while what was in flight drains after the connection's part became smaller: what is left of that, and what
 * is sent at the smaller rate since. One that closed at once would silence the connection until so much is confirmed,
 * and nobody else may send what it does not. It is never wider than it was before, and after a round trip it is the
 * smaller one, whatever has been confirmed. */
static __always_inline __u32 draining_segments(const struct tcp_sock *tp, struct conn *conn, __u32 window, __u64 now_ns)
{
	__u64 rtt_ns = (__u64)conn->least_rtt_us * 1000, age_ns, segments;
	__u32 mss_bytes = tp->mss_cache;
	__s32 left_bytes;

	if (window < conn->window_segments && !conn->shrunk_ns) {
		conn->shrunk_ns = now_ns;
		conn->shrunk_from = conn->window_segments;
		conn->shrunk_end = tp->snd_nxt;
	}
	conn->window_segments = window;
	if (!conn->shrunk_ns)
		return window;
	age_ns = now_ns - conn->shrunk_ns;
	left_bytes = conn->shrunk_end - tp->snd_una;
	if (age_ns >= rtt_ns || left_bytes <= 0 || !mss_bytes) {
		conn->shrunk_ns = 0;
		return window;
	}
	segments = (__u32)left_bytes / mss_bytes + SHARED_SLACK_SEGMENTS + window * (age_ns + TURN_NS) / rtt_ns;
	if (segments > conn->shrunk_from)
		segments = conn->shrunk_from;
	return segments > window ? segments : window;
}

/* The rate by what a segment carries. The plan is for segments full of payload; a mapping takes its place on the
 * circuit too. */
static __always_inline __u64 payload_bytes_per_s(const struct tcp_sock *tp, __u64 rate_bytes_per_s)
{
	__u32 mss_bytes = tp->mss_cache;

	if (!is_mptcp(tp) || mss_bytes <= MAPPING_BYTES)
		return rate_bytes_per_s;
	return rate_bytes_per_s * (mss_bytes - MAPPING_BYTES) / mss_bytes;
}

/* Sets window and pacing to the socket's part of the allocation. */
static __always_inline void hold(struct sock *sk, struct conn *conn, const struct entry *entry,
				 struct counters *counters, __u64 now_ns)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 fair = fair_bytes_per_s(entry, counters, conn);
	__u64 rate_bytes_per_s = payload_bytes_per_s(tp, part_bytes_per_s(sk, conn, entry, counters, fair, now_ns));

	__u32 planned = window_segments(tp, conn, entry, fair);
	__u32 window = draining_segments(tp, conn, planned, now_ns) + left_segments(tp, conn);

	/* what a flight has left in the air must not keep its repetitions back; pacing holds the rate */
	if (conn->stands_by && window < in_flight_segments(tp) + MIN_WINDOW_SEGMENTS)
		window = in_flight_segments(tp) + MIN_WINDOW_SEGMENTS;
	tp->snd_cwnd = window;
	/* Payload, also where the fq qdisc paces: since Linux 4.20 it goes by the times that TCP writes on the packets. */
	sk->sk_pacing_rate = is_tail(tp) ? rate_bytes_per_s / COPIES : rate_bytes_per_s;
	if (sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		conn->paced = 1;
	}
}

#endif
