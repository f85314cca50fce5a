// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The coded tail: what is lost of the last window is made again by the receiver, out of parities that follow the last
 * segment, and TCP does not see that anything was lost. An object of its own: it is loaded only where that is asked for,
 * beside headway.bpf.c, of which it uses the plan, the connections and the counters. docs/decisions/0043 says why it is so.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "kernel.h"
#include "headway.h"
#include "plan.h"
#include "tail.h"
#include "coded.h"

#define FULL_WORDS 178 /* 1424 bytes: of a full segment at an MTU of 1500 only what is behind them may lack */

/* One piece of a cell in a packet. */
struct lump {
	__u64 owner;
	__u64 key;
	__u32 index; /* in hw_pieces */
	__u32 row;
	__u32 piece;
	__u32 offset; /* in the packet */
	__u32 bytes;
};

/* A number of bytes as the kernel can see it to be one that a piece has, from 1 on. What is none becomes another. */
static __always_inline __u32 piece_bytes(__u32 bytes)
{
	bytes = (bytes - 1) & 2047;
	asm volatile("" : "+r"(bytes)); /* the compiler would see through it, and the kernel through what that makes */
	if (bytes >= PIECE_BYTES)
		bytes = PIECE_BYTES - 1;
	return bytes + 1;
}

/* Loads a piece of a packet into scratch, with zeros behind it. */
static __always_inline __u64 *loaded(struct __sk_buff *skb, __u32 piece, __u32 offset, __u32 bytes)
{
	struct scratch *scratch = bpf_map_lookup_elem(&hw_scratch, &piece);
	int i;

	if (!scratch)
		return NULL;
	if (bytes < 8 * FULL_WORDS)
		for (i = 0; i < FULL_WORDS; i++)
			scratch->words[i] = 0;
	for (i = FULL_WORDS; i < PIECE_WORDS; i++)
		scratch->words[i] = 0;
	if (bpf_skb_load_bytes(skb, offset, scratch->words, piece_bytes(bytes)))
		return NULL;
	return scratch->words;
}

/* Adds a piece to its group. The functions that are not static are verified once each, and not for each call. */
__noinline int fold_lump(struct __sk_buff *skb, const struct lump *lump)
{
	struct piece *piece;
	__u64 *words;
	__u32 index;

	if (!lump)
		return 0;
	index = lump->index;
	piece = bpf_map_lookup_elem(&hw_pieces, &index);
	words = loaded(skb, 0, lump->offset, lump->bytes);
	if (piece && words)
		fold(piece, words, lump->owner, lump->row, piece_key(lump->key, lump->piece, lump->row));
	return 0;
}

struct folding {
	struct __sk_buff *skb;
	const struct block *block;
	__u32 half;
	__u32 first; /* cell */
	__u32 offset;
	__u32 bytes;
};

static long fold_cell(__u32 number, struct folding *folding)
{
	const struct block *block = folding->block;
	__u32 cell_bytes = block->cell_bytes, groups = block->groups, cell = folding->first + number, piece;
	__u32 done = number * cell_bytes, left = folding->bytes - done, group;
	struct lump lump = {.owner = block->owner, .key = block->key};
	struct piece *seen;

	if (!groups || done >= folding->bytes || cell / groups >= ROWS)
		return 1;
	if (left > cell_bytes)
		left = cell_bytes;
	group = cell % groups;
	lump.row = cell / groups;
	lump.index = piece_index(block, folding->half, group, 0);
	seen = bpf_map_lookup_elem(&hw_pieces, &lump.index);
	if (!seen || (seen->owner == block->owner && seen->seen >> lump.row & 1))
		return 0;
	for (piece = 0; piece < MOST_PIECES; piece++) {
		if (piece >= block->pieces)
			break;
		lump.piece = piece;
		lump.index = piece_index(block, folding->half, group, piece);
		lump.offset = folding->offset + done;
		lump.bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
		fold_lump(folding->skb, &lump);
		done += lump.bytes;
		left -= lump.bytes;
	}
	return 0;
}

/* Adds the cells of a packet to their groups. */
static __always_inline void fold_packet(struct __sk_buff *skb, const struct block *block, const struct packet *packet,
					__u32 half)
{
	struct folding folding = {
		.skb = skb, .block = block, .half = half, .offset = packet->data, .bytes = packet->bytes};
	__u32 from = packet->seq - block->base, cell_bytes = block->cell_bytes;

	if (!cell_bytes || from % cell_bytes)
		return;
	folding.first = from / cell_bytes;
	bpf_loop((packet->bytes + cell_bytes - 1) / cell_bytes, fold_cell, &folding, 0);
}

#include "coded_made.h"
#include "coded_out.h"
#include "coded_in.h"

SEC("tc")
int coded_egress(struct __sk_buff *skb)
{
	struct bpf_sock *bpf_sk;
	struct entry *entry;
	struct tcp_sock *tp;
	struct conn *conn;
	__u32 slot;

	if (skb->tc_index == SEED)
		return multiply(skb);
	if (skb->tc_index == MADE)
		return make(skb);
	bpf_sk = skb->sk;
	if (!bpf_sk || skb->tc_index == COPIED || skb->tc_index == PASSED)
		return TCX_NEXT;
	bpf_sk = bpf_sk_fullsock(bpf_sk);
	tp = bpf_sk ? bpf_skc_to_tcp_sock(bpf_sk) : NULL;
	if (!tp || !leased())
		return TCX_NEXT;
	conn = bpf_sk_storage_get(&hw_conns_8, tp, NULL, 0);
	if (!conn || !conn->held)
		return TCX_NEXT;
	slot = conn->slot;
	entry = bpf_map_lookup_elem(&hw_entries, &slot);
	return entry && entry->tail_coded ? leaves(skb, tp, (struct sock *)tp, conn) : TCX_NEXT;
}

SEC("tc")
int coded_ingress(struct __sk_buff *skb)
{
	struct packet packet = {};

	if (!looked_at(skb, &packet) || packet.header < TCP_HEADER)
		return TCX_NEXT;
	if (packet.bytes) {
		int verdict = comes(skb, &packet);

		if (verdict != TCX_NEXT)
			return verdict;
	}
	confirms(skb, &packet);
	return TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
