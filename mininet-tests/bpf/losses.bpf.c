/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Loses single segments, also out of super-packets, at the ingress of an interface.
 *
 * netem loses a super-packet whole. Here each of its segments is decided on by itself. One of which something is lost is
 * sent by a veth that cuts it into its segments, and at the veth's other end those that were decided on are dropped. All
 * others are handed to that other end as they are: every packet waits once more in the same queue of the CPU, so that
 * none overtakes another. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MOST_SEGMENTS 64
#define REMEMBERED 4096 /* super-packets on their way through the veth; a power of two */
#define CUT 0x80000000u

struct model {
	__u64 state;      /* of the random numbers (xorshift64), never 0 */
	__u32 enter;      /* of 2^32: a segment is lost if the one before it was not */
	__u32 stay;       /* of 2^32: a segment is lost if the one before it was */
	__u32 cutter;     /* index of the veth that cuts */
	__u32 dropper;    /* index of its other end */
	__u32 losing;     /* was the last one lost? */
	__u32 number;     /* of the next super-packet that is cut */
	__u32 at;         /* which one is being dropped from */
	__u32 padding;
	__u64 index;      /* of its next segment */
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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REMEMBERED);
	__type(key, __u32);
	__type(value, __u64); /* a bit for each segment to be dropped */
} decided SEC(".maps");

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
	__u64 lost;
};

static long decide(__u32 i, struct deciding *now)
{
	struct model *model = now->model;

	model->losing = drawn(model) < (model->losing ? model->stay : model->enter);
	if (model->losing) {
		now->lost |= 1ull << (i & (MOST_SEGMENTS - 1));
		model->lost++;
	}
	return 0;
}

SEC("tc")
int lose(struct __sk_buff *skb)
{
	__u32 zero = 0, count = skb->gso_segs ? skb->gso_segs : 1, slot;
	struct model *model = bpf_map_lookup_elem(&models, &zero);
	struct deciding now = {.model = model};
	__u64 *kept;

	if (!model || skb->protocol != bpf_htons(ETH_P_IP)) /* ARP's answers belong to the interface */
		return TC_ACT_OK;
	if (count > MOST_SEGMENTS)
		count = MOST_SEGMENTS;
	bpf_loop(count, decide, &now, 0);
	model->segments += count;
	if (!now.lost)
		return model->enter ? bpf_redirect(model->dropper, BPF_F_INGRESS) : TC_ACT_OK;
	if (count == 1) {
		model->dropped++;
		return TC_ACT_SHOT;
	}
	model->cuts++;
	model->number = (model->number + 1) & (CUT - 1);
	slot = model->number & (REMEMBERED - 1);
	kept = bpf_map_lookup_elem(&decided, &slot);
	if (!kept)
		return TC_ACT_OK;
	*kept = now.lost;
	skb->mark = CUT | model->number;
	return bpf_redirect(model->cutter, 0);
}

SEC("tc")
int drop(struct __sk_buff *skb)
{
	__u32 zero = 0, slot = skb->mark & (REMEMBERED - 1);
	struct model *model = bpf_map_lookup_elem(&models, &zero);
	__u64 *kept = bpf_map_lookup_elem(&decided, &slot);
	__u64 index;

	if (!model || !kept || !(skb->mark & CUT))
		return TC_ACT_OK;
	if (model->at != skb->mark) {
		model->at = skb->mark;
		model->index = 0;
	}
	index = model->index++ & (MOST_SEGMENTS - 1);
	skb->mark = 0;
	if (!(*kept >> index & 1))
		return TC_ACT_OK;
	model->dropped++;
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
