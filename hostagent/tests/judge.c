/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The kernel part's account of loss (../bpf/loss.h) as a library of this machine, for histories that a test makes up. */
#include <stdbool.h>
#include <string.h>
#include <linux/bpf.h>

#define __noinline __attribute__((noinline))

#include "headway.h"

struct sock_common {
	__u8 skc_state;
};

struct sock {
	struct sock_common __sk_common;
};

/* What the kernel knows of a connection; a test sets it. */
struct tcp_sock {
	struct sock sock;
	__u32 snd_cwnd, snd_una, write_seq, packets_out, sacked_out, srtt_us, data_segs_out, delivered, total_retrans;
	__u64 bytes_acked;
};

struct conn {
	__u64 accounted_ns, bytes_acked;
	__u32 data_segs_out, total_retrans, delivered, behind_gap;
	__u8 held;
};

static struct host host;

static __always_inline __u32 spared_segments(const struct tcp_sock *tp, struct conn *conn, __u32 resent)
{
	return 0; /* nothing changes its way here */
}

#include "loss.h"

static struct counters counters;
static struct conn conn;

/* Begin: nothing was ever sent. */
void begin(__u64 period_ns, __u64 hold_ns, __u32 trip_ppm, __u32 clear_ppm)
{
	memset(&counters, 0, sizeof(counters));
	host = (struct host){.loss_period_ns = period_ns, .loss_hold_ns = hold_ns, .loss_trip_ppm = trip_ppm,
			     .loss_clear_ppm = clear_ppm};
}

/* A new connection takes the place of the one before, all of which was confirmed. */
void open_connection(void)
{
	memset(&conn, 0, sizeof(conn));
	conn.held = 1;
}

/* An acknowledgement. Returns since when the allocation is on its fallback, 0 if it is not. */
__u64 acknowledged(__u64 now_ns, __u32 window, __u32 sent, __u32 again, __u32 confirmed, __u32 delivered)
{
	struct tcp_sock tp = {.sock = {{BPF_TCP_ESTABLISHED}}, .snd_cwnd = window, .data_segs_out = sent + again,
			      .total_retrans = again, .delivered = delivered, .sacked_out = delivered - confirmed,
			      .packets_out = sent - confirmed, .bytes_acked = confirmed};

	if (now_ns - conn.accounted_ns > ACCOUNT_NS || !tp.packets_out)
		account(&tp, &conn, &counters, now_ns);
	return counters.fallback_since_ns;
}
