/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The kernel's types as far as we touch them. CO-RE finds the real offsets at load time, so one object runs on every
 * kernel; nothing here may be written to that Linux 6.0 does not let a congestion control write. */
#ifndef HEADWAY_KERNEL_H
#define HEADWAY_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct ipv6_pinfo {
	__u8 tclass;
};

struct inet_sock {
	struct ipv6_pinfo *pinet6;
	__u8 tos;
};

struct tcp_rack {
	__u32 rtt_us; /* of the segment confirmed last */
};

struct tcp_sock {
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_wnd;
	__u32 write_seq;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 lost; /* segments ever marked lost */
	__u32 reordering; /* so many segments confirmed behind one that is missing say that it is lost */
	__u32 srtt_us; /* eighths of a microsecond */
	__u32 data_segs_out;
	__u32 delivered; /* segments, confirmed cumulatively or selectively */
	__u32 total_retrans;
	__u64 bytes_acked;
	__u64 bytes_sent;
	__u64 tcp_clock_cache; /* CLOCK_MONOTONIC, ns, refreshed for each ACK and before each transmission */
	__u64 tcp_wstamp_ns; /* when pacing lets the next segment go */
	struct tcp_rack rack;
	_Bool is_mptcp; /* a subflow of a connection of Multipath TCP; where the kernel knows that */
};

struct bpf_iter__tcp {
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* libbpf matches the members by name with the kernel's, so only those we fill stand here. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cong_control)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*min_tso_segs)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/* include/net/sock.h, include/net/tcp.h, include/uapi: numbers that are ABI or have not moved since 4.13 */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define TCP_CA_Loss 4
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define AF_INET 2
#define AF_INET6 10
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define IPPROTO_TCP 6
#define TCX_NEXT -1 /* enum tcx_action_base: the next program, or the qdisc */
#define CLOCK_MONOTONIC 1
#define SOL_IP 0
#define SOL_TCP 6
#define SOL_IPV6 41
#define IP_TOS 1
#define TCP_NODELAY 1
#define TCP_CONGESTION 13
#define TCP_NOTSENT_LOWAT 25
#define TCP_BPF_RTO_MIN 1004
#define TCP_RTO_MIN_US 200000 /* HZ / 5; the only least timeout that may be set back to */
#define IPV6_TCLASS 67

#endif
