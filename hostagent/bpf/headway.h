/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel part and the daemon share. The daemon reads from the built object where each member stands. */
#ifndef HEADWAY_H
#define HEADWAY_H

#define HEADWAY_MAX_ENTRIES 1024
#define HEADWAY_MAX_TURNS 4096
#define HEADWAY_NAME_BYTES 16 /* TCP_CA_NAME_MAX */
#define HEADWAY_NO_DSCP 255
#define HEADWAY_EVENTS_BYTES 16384

/* Set before the object is loaded, constant after. */
struct host {
	__u64 netns_cookie;                /* only sockets of this network namespace are ours */
	char algorithm[HEADWAY_NAME_BYTES]; /* our name in the kernel-wide list of congestion controls */
	char fallback[HEADWAY_NAME_BYTES];  /* the namespace's own default, for a socket whose past is unknown */
	/* Catastrophic loss: segments sent again, in a million that were delivered or sent again, over a period. From
	 * loss_trip_ppm on, the allocation's sockets are given back; they are taken again after loss_hold_ns (twice as long
	 * each time it happens again soon), once no more than loss_clear_ppm are lost. */
	__u64 loss_period_ns;
	__u64 loss_hold_ns;
	__u32 loss_trip_ppm;
	__u32 loss_clear_ppm;
	__u32 rto_min_us; /* least retransmission timeout of a held socket */
	__u32 tail_copies; /* what is sent again at the end of a transfer goes three times */
};

/* Key of the plan, a longest-prefix trie. What stands before the address is always compared: 192 + prefix bits. */
struct match {
	__u32 prefixlen;
	__be16 dest_port;  /* 0: any */
	__be16 local_port; /* 0: any */
	__u8 own_dscp;     /* what the application has set; HEADWAY_NO_DSCP: any */
	__u8 padding[3];
	__u8 local_addr[16]; /* of a host with several interfaces, the socket's own; 0: any. Either as the next */
	__u8 addr[16];       /* IPv4 as ::ffff:a.b.c.d */
};

struct matched {
	__u32 slot;        /* index into entries and counters */
	__u32 prefix_bits; /* of the 128 */
};

/* One turn of the connections to a destination with lanes; turn 0 counts them. */
struct turn {
	__u8 addr[16];     /* of the destination, IPv4 as ::ffff:a.b.c.d */
	__be16 dest_port;  /* 0: any */
	__u16 padding;
	__u32 number;
};

struct dealt {
	__u8 addr[16];     /* whose turn it is; as the destination's */
	__u32 turns;       /* in a round */
	__u32 connections; /* dealt so far; counted by the kernel part, in turn 0 */
	__u32 is_far;      /* 0: the address is the host's own, that a connection is from; 1: the far end's, that it goes to */
	__u32 padding;
};

/* One for the whole plan. Written last, so that a new generation is seen only when its keys and entries are there. */
struct control {
	__u64 generation; /* a socket looks its entry up again when this changes */
	__u64 expires_ns; /* CLOCK_BOOTTIME; afterwards nothing of the plan holds */
};

/* One allocation, all matching connections together. */
struct entry {
	__u64 rate_bytes_per_s; /* payload */
	__u32 window_segments;
	__u32 dscp; /* or HEADWAY_NO_DSCP: the application's own stays */
	__u64 standby_bytes_per_s; /* payload; 0: what the connections want is not watched */
	__u64 size_bytes;          /* announced; 0: not known */
	__u64 grant;               /* the epoch that gives the rate; 0: none does, the standby rate holds */
	__u32 way;                 /* a number for the circuits its packets cross; 0: not known */
	__u32 ahead_bytes;         /* a connection's application may have written unsent; 0: what its buffer holds */
	__u32 tail_coded;          /* parities follow the end of a transfer: parity.h */
	__u32 padding;
};

/* What the connections of a watched allocation want; written by the kernel part only. Behind 16 bytes of a timer. */
struct demanded {
	__u64 ended_grant; /* the newest grant that the end of a flight has used up */
	__u64 sent_bytes;  /* since the announcement */
	__u64 size_bytes;  /* the announcement that this is counted for */
	__u64 due_ns;      /* when the flight is over if nothing follows */
	__s32 waiting;     /* connections that have more to send than the last stretch */
	__u32 wants;
	__u32 armed;       /* the timer will ring */
	__u32 timer_made;
};

/* What the connections of one allocation have done and do; written by the kernel part; the agent ends fallbacks, too. */
struct counters {
	__u64 delivered_bytes;
	__u64 delivered_ns; /* when the last of them was confirmed, CLOCK_MONOTONIC */
	__u64 sent_segments;
	__u64 retransmitted_segments;
	__u32 greedy;        /* connections with more to send than goes out at once: they share what the lesser leave */
	__u32 lesser;        /* connections that use less than an equal part */
	__u32 connections;
	__u32 rtt_us;        /* smoothed, of the connection served last */
	__u64 slice_start_ns; /* what the lesser send together is measured in slices */
	__u64 slice_bytes;
	__u64 lesser_bytes_per_s;        /* in the last whole slice */
	__u64 lesser_bytes_per_s_before; /* in the one before */
	__u32 term;               /* each allocation that has had the slot has had another number; written by the agent */
	__u32 padding;
	__u64 delivered_segments; /* confirmed, cumulatively or selectively */
	__u64 accounted_ns;       /* when a connection was last looked at */
	__u64 loss_start_ns; /* of the period over which loss is judged, with the counts then */
	__u64 loss_fresh_segments;
	__u64 loss_delivered_segments;
	__u64 loss_retransmitted_segments;
	__u32 loss_behind_gap;
	__u32 behind_gap; /* of the delivered, those that a gap keeps from being confirmed, a window of each connection at most */
	__u64 fallback_since_ns;   /* catastrophic loss: the plan does not hold; 0 if it does */
	__u64 returned_ns;         /* when it held again */
	__u32 fallbacks;           /* one soon after the other */
	__u32 least_rtt_us;        /* of a round trip lately, of the connection served last; 0: none yet */
};

#endif
