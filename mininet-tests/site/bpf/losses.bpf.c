/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Loses single segments, also out of super-packets, at the ingress of an interface.
 *
 * netem loses a super-packet whole. Here each of its segments is decided on by itself. One of which something is lost is
 * sent by a veth that cuts it into its segments, and at the veth's other end those that were decided on are dropped. All
 * others are handed to that other end as they are: every packet waits once more in the same queue of the CPU, so that
 * none overtakes another. On several CPUs every count is right, and each super-packet loses what was decided for it; only
 * the random numbers may come twice. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MOST_SEGMENTS 64
#define REMEMBERED 4096 /* super-packets on their way through the veth; a power of two */
#define NEXT_HEADER (ETH_HLEN + 6) /* of IPv6 */
#define TCP 6
#define CUT 0x80000000u
#define NEXT -1 /* TCX_NEXT: what else looks at what comes sees what is left */

struct model {
	__u64 state;      /* of the random numbers (xorshift64), never 0 */
	__u32 enter;      /* of 2^32: a segment is lost if the one before it was not */
	__u32 stay;       /* of 2^32: a segment is lost if the one before it was */
	__u32 cutter;     /* index of the veth that cuts */
	__u32 dropper;    /* index of its other end */
	__u32 losing;     /* was the last one lost? */
	__u32 number;     /* of the last super-packet that was cut */
	__u64 segments;   /* seen */
	__u64 lost;
	__u64 cuts;
	__u64 dropped;    /* must become lost */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct model);
} models SEC(".maps");

struct cut {
	__u64 lost; /* a bit for each of its segments */
	__u64 next; /* segment to come by */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REMEMBERED);
	__type(key, __u32);
	__type(value, struct cut);
} cuts SEC(".maps");

static __always_inline __u32 drawn(struct model *model)
{
	__u64 x = model->state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	model->state = x;
	return x >> 32;
}

struct deciding {
	struct model *model;
	__u64 lost;  /* a bit for each segment */
	__u64 count; /* of them */
};

static long decide(__u32 i, struct deciding *now)
{
	struct model *model = now->model;

	model->losing = drawn(model) < (model->losing ? model->stay : model->enter);
	if (model->losing) {
		now->lost |= 1ull << (i & (MOST_SEGMENTS - 1));
		now->count++;
	}
	return 0;
}

/* IPv4, and IPv6's TCP: the neighbours' answers belong to the interface. */
static __always_inline bool is_lossy(struct __sk_buff *skb)
{
	__u8 next;

	if (skb->protocol == bpf_htons(ETH_P_IP))
		return true;
	return skb->protocol == bpf_htons(ETH_P_IPV6) && !bpf_skb_load_bytes(skb, NEXT_HEADER, &next, sizeof(next)) &&
	       next == TCP;
}

SEC("tc")
int lose(struct __sk_buff *skb)
{
	__u32 zero = 0, count = skb->gso_segs ? skb->gso_segs : 1, number, slot;
	struct model *model = bpf_map_lookup_elem(&models, &zero);
	struct deciding now = {.model = model};
	struct cut *cut;

	if (!model || !is_lossy(skb))
		return NEXT;
	if (count > MOST_SEGMENTS)
		count = MOST_SEGMENTS;
	bpf_loop(count, decide, &now, 0);
	__sync_fetch_and_add(&model->segments, count);
	if (!now.lost)
		return model->enter ? bpf_redirect(model->dropper, BPF_F_INGRESS) : NEXT;
	__sync_fetch_and_add(&model->lost, now.count);
	if (count == 1) {
		__sync_fetch_and_add(&model->dropped, 1);
		return TC_ACT_SHOT;
	}
	__sync_fetch_and_add(&model->cuts, 1);
	number = __sync_add_and_fetch(&model->number, 1);
	slot = number & (REMEMBERED - 1);
	cut = bpf_map_lookup_elem(&cuts, &slot);
	if (!cut)
		return NEXT;
	cut->lost = now.lost;
	cut->next = 0;
	skb->mark = CUT | number;
	return bpf_redirect(model->cutter, 0);
}

SEC("tc")
int drop(struct __sk_buff *skb)
{
	__u32 zero = 0, slot = skb->mark & (REMEMBERED - 1);
	struct model *model = bpf_map_lookup_elem(&models, &zero);
	struct cut *cut = bpf_map_lookup_elem(&cuts, &slot);
	__u64 segment;

	if (!model || !cut || !(skb->mark & CUT))
		return NEXT;
	skb->mark = 0;
	segment = __sync_fetch_and_add(&cut->next, 1) & (MOST_SEGMENTS - 1);
	if (!(cut->lost >> segment & 1))
		return NEXT;
	__sync_fetch_and_add(&model->dropped, 1);
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
