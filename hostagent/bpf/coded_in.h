/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The receiver of a coded tail: keeps what each group comes to, and makes of a parity the one segment that its group
 * lacks. No segment is kept. What it makes has the bytes that were sent or is not made: the parity's sum is over all
 * cells of the group, and its key came with the anchor. */
#ifndef HEADWAY_CODED_IN_H
#define HEADWAY_CODED_IN_H

/* Makes a piece of a parity what is missing, in scratch, and says its sum there. */
struct sums {
	__u64 made;
	__u64 had;
};

__noinline int unfold_lump(struct __sk_buff *skb, const struct lump *lump, struct sums *sums)
{
	struct piece *piece;
	__u64 *words;
	__u32 index;

	if (!lump || !sums)
		return -1;
	index = lump->index;
	piece = bpf_map_lookup_elem(&hw_pieces, &index);
	words = loaded(skb, lump->piece, lump->offset, lump->bytes);
	if (!piece || !words)
		return -1;
	sums->made += unfold(piece, words, lump->owner, piece_key(lump->key, lump->piece, lump->row));
	if (piece->owner == lump->owner)
		sums->had += piece->sum;
	return 0;
}

/* Puts what was made behind the headers; its checksum, folded. */
__noinline int put_made(struct __sk_buff *skb, __u32 number, __u32 offset, __u32 bytes)
{
	struct scratch *scratch = bpf_map_lookup_elem(&hw_scratch, &number);

	if (!scratch || bpf_skb_store_bytes(skb, offset, scratch->words, piece_bytes(bytes), BPF_F_RECOMPUTE_CSUM))
		return -1;
	return folded(checksum_of(scratch->words));
}

static __always_inline __u32 lowest(__u64 bits)
{
	__u32 row = 0;

	if (!(bits & 0xffffffff)) {
		row += 32;
		bits >>= 32;
	}
	if (!(bits & 0xffff)) {
		row += 16;
		bits >>= 16;
	}
	if (!(bits & 0xff)) {
		row += 8;
		bits >>= 8;
	}
	if (!(bits & 0xf)) {
		row += 4;
		bits >>= 4;
	}
	if (!(bits & 3)) {
		row += 2;
		bits >>= 2;
	}
	return row + !(bits & 1);
}

/* Makes in scratch what a group lacks; true if the sum agrees. */
static __always_inline bool made_of(struct __sk_buff *skb, const struct block *block, const struct packet *packet,
				    __u32 group, __u32 row)
{
	struct lump lump = {.owner = block->owner, .key = block->key, .row = row, .offset = packet->data};
	struct parity_option option;
	struct sums sums = {};
	__u32 left = block->cell_bytes, piece;

	for (piece = 0; piece < MOST_PIECES; piece++) {
		if (piece >= block->pieces)
			break;
		lump.piece = piece;
		lump.index = piece_index(block, IN, group, piece);
		lump.bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
		if (unfold_lump(skb, &lump, &sums))
			return false;
		lump.offset += lump.bytes;
		left -= lump.bytes;
	}
	return !bpf_skb_load_bytes(skb, packet->tcp + 20, &option, sizeof(option)) &&
	       ((__u64)option.sum[1] << 32 | option.sum[0]) - sums.had == sums.made;
}

/* A parity has come: it becomes the segment that its group lacks, if that is one. */
static __always_inline int parity_came(struct __sk_buff *skb, const struct packet *packet, struct came *came)
{
	struct block *block = &came->block;
	__u32 cells = packet->ack >> 16, group, cell, bytes, done, piece, index, row, tcp[TCP_HEADER / 4];
	__u64 missing, data_sum = 0;
	__be16 window, urgent;
	struct piece *first;
	int checksum;

	if (packet->seq != block->base || (packet->ack & 0xffff) + 1 != block->groups || !block->groups ||
	    packet->bytes != block->cell_bytes || !has_pieces(block, IN) ||
	    bpf_skb_load_bytes(skb, packet->tcp + 14, &window, 2) || bpf_skb_load_bytes(skb, packet->tcp + 18, &urgent, 2))
		return DROP;
	group = bpf_ntohs(urgent);
	missing = rows_of(cells, block->groups, group);
	index = piece_index(block, IN, group, 0);
	first = bpf_map_lookup_elem(&hw_pieces, &index);
	if (!first)
		return DROP;
	if (first->owner == block->owner)
		missing &= ~first->seen;
	if (!missing) {
		COUNT(needless);
		return DROP;
	}
	if (missing & (missing - 1)) {
		COUNT(too_many);
		return DROP;
	}
	row = lowest(missing);
	cell = row * block->groups + group;
	bytes = cell == cells - 1 ? bpf_ntohs(window) : block->cell_bytes;
	if (!bytes || bytes > block->cell_bytes || !made_of(skb, block, packet, group, row)) {
		COUNT(refused);
		return DROP;
	}
	if (bytes < block->cell_bytes && bpf_skb_change_tail(skb, packet->data + bytes, 0))
		return DROP;
	for (piece = 0, done = 0; piece < MOST_PIECES; piece++) {
		if (done >= bytes)
			break;
		checksum = put_made(skb, piece, packet->data + done, bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES);
		if (checksum < 0)
			return DROP;
		data_sum += checksum;
		done += PIECE_BYTES;
	}
	__builtin_memcpy(tcp, came->tcp, TCP_HEADER);
	tcp[1] = bpf_htonl(block->base + cell * block->cell_bytes);
	((__u8 *)tcp)[TCP_FLAGS_OFFSET] = TCP_ACK | TCP_PSH;
	((__be16 *)tcp)[9] = 0;
	if (finish(skb, packet->ipv4, tcp, bytes, data_sum, BPF_F_RECOMPUTE_CSUM))
		return DROP;
	if (first->owner == block->owner)
		first->seen |= missing;
	COUNT(rebuilt);
	return TCX_NEXT;
}

/* An anchor has come. */
static __always_inline int anchor_came(struct __sk_buff *skb, const struct packet *packet, const struct flow *flow,
				       const struct notice *notice)
{
	struct came *came = bpf_map_lookup_elem(&hw_came, flow);
	struct came fresh = {};
	struct bpf_sock *sk;

	if ((came && came->block.key == notice->key) || !notice->groups || notice->groups > MOST_GROUPS || !notice->cell_bytes ||
	    notice->cell_bytes > MOST_CELL_BYTES || notice->groups * pieces_of(notice->cell_bytes) > POOL_PIECES)
		return DROP;
	sk = receiver_of(skb, packet->tcp - packet->ip);
	if (!sk)
		return TCX_NEXT; /* it is not for this host */
	bpf_sk_release(sk);
	fresh.block.key = notice->key;
	fresh.block.base = notice->base;
	fresh.block.groups = notice->groups;
	fresh.block.cell_bytes = notice->cell_bytes;
	fresh.block.pieces = pieces_of(notice->cell_bytes);
	fresh.block.owner = pieces_for(IN, notice->groups, fresh.block.pieces);
	if (!bpf_skb_load_bytes(skb, packet->tcp, fresh.tcp, TCP_HEADER) &&
	    !bpf_map_update_elem(&hw_came, flow, &fresh, BPF_ANY))
		COUNT(anchors);
	return DROP;
}

/* What comes with data: TCX_NEXT if TCP is to have it. */
static __always_inline int comes(struct __sk_buff *skb, const struct packet *packet)
{
	struct parity_option option;
	struct notice notice;
	struct came *came;
	struct flow flow;

	if (!flow_of(skb, packet, false, &flow))
		return TCX_NEXT;
	if (!packet->flags) {
		if (packet->header == TCP_HEADER && packet->bytes == sizeof(notice) &&
		    !bpf_skb_load_bytes(skb, packet->data, &notice, sizeof(notice)) && notice.magic == MAGIC)
			return anchor_came(skb, packet, &flow, &notice);
		came = bpf_map_lookup_elem(&hw_came, &flow);
		if (!came || packet->header != TCP_HEADER ||
		    bpf_skb_load_bytes(skb, packet->tcp + 20, &option, sizeof(option)) || option.kind != OPTION ||
		    option.length != sizeof(option) || option.mark != bpf_htons(OPTION_MARK))
			return TCX_NEXT;
		return parity_came(skb, packet, came);
	}
	came = bpf_map_lookup_elem(&hw_came, &flow);
	if (!came)
		return TCX_NEXT;
	/* Of what is sent again too: TCP takes nothing that was sent before what it had last (PAWS, RFC 7323 section 5). */
	if (packet->header == TCP_HEADER)
		bpf_skb_load_bytes(skb, packet->tcp, came->tcp, TCP_HEADER);
	if (!came->block.cell_bytes || !has_pieces(&came->block, IN) ||
	    (packet->seq - came->block.base) / came->block.cell_bytes >= came->block.groups * ROWS)
		return TCX_NEXT;
	fold_packet(skb, &came->block, packet, IN);
	return TCX_NEXT;
}

#endif
