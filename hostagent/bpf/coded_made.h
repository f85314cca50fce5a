/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Making packets: a copy of one that passes is given the headers of the connection's data and what belongs behind them.
 *
 * The program that sees what leaves runs again for each copy. The first is cut or grown to the length that is wanted, so
 * that no copy of a super-packet is made twice; its copies are written to, each with its number, and it is dropped. */
#ifndef HEADWAY_CODED_MADE_H
#define HEADWAY_CODED_MADE_H

#define DROP 2 /* TCX_DROP */

struct multiplying {
	struct __sk_buff *skb;
	struct job *job;
	__u32 interface;
};

static long send_one(__u32 number, struct multiplying *now)
{
	now->job->number = now->job->first + number;
	bpf_clone_redirect(now->skb, now->interface, 0);
	return 0;
}

/* Sends as many copies of a packet as the job wants. */
static __always_inline int multiply(struct __sk_buff *skb)
{
	struct multiplying now = {.skb = skb};
	__u32 zero = 0, bytes;
	struct sent *sent;

	now.job = bpf_map_lookup_elem(&hw_job, &zero);
	sent = now.job ? bpf_map_lookup_elem(&hw_sent, &now.job->flow) : NULL;
	if (!sent)
		return DROP;
	bytes = sent->header_bytes + (now.job->kind == PARITY ? sent->block.cell_bytes : sizeof(struct notice));
	if (bpf_skb_change_tail(skb, bytes, 0))
		return DROP;
	skb->tc_index = MADE;
	now.interface = sent->interface;
	bpf_loop(now.job->count & 255, send_one, &now, 0);
	return DROP;
}

/* Adds with the carry brought round (RFC 1071). */
static __always_inline __u64 carried(__u64 sum, __u64 more)
{
	sum += more;
	return sum + (sum < more);
}

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The sum of the words of a piece as a checksum has it. */
static __always_inline __u64 checksum_of(const __u64 *words)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < PIECE_WORDS; i++)
		sum = carried(sum, words[i]);
	return sum;
}

/* Puts a piece behind the headers; the checksum of it, folded. */
__noinline int put_piece(struct __sk_buff *skb, __u32 index, __u32 offset, __u32 bytes)
{
	struct piece *piece = bpf_map_lookup_elem(&hw_pieces, &index);

	if (!piece || bpf_skb_store_bytes(skb, offset, piece->words, piece_bytes(bytes), 0))
		return -1;
	return folded(checksum_of(piece->words));
}

/* The sum of TCP's header, as a checksum has it. */
static __always_inline __u64 header_sum(const __u32 *tcp)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < TCP_HEADER / 4; i++)
		sum += tcp[i];
	return sum;
}

/* The sum of the pseudo-header. */
static __always_inline __u64 pseudo_sum(struct __sk_buff *skb, bool ipv4, __u32 tcp_bytes)
{
	__u64 sum = bpf_htons(IPPROTO_TCP) + bpf_htons(tcp_bytes);
	__u32 addresses[8] = {};
	int i;

	if (ipv4)
		bpf_skb_load_bytes(skb, ETHERNET_BYTES + 12, addresses, 8);
	else
		bpf_skb_load_bytes(skb, ETHERNET_BYTES + 8, addresses, 32);
	for (i = 0; i < 8; i++)
		sum += addresses[i];
	return sum;
}

/* Writes IP's length, TCP's header and its checksum. data_sum: of what follows it. flags: of bpf_skb_store_bytes. */
static __always_inline int finish(struct __sk_buff *skb, bool ipv4, __u32 *tcp, __u32 data_bytes, __u64 data_sum,
				  __u64 flags)
{
	__u32 offset = ETHERNET_BYTES + (ipv4 ? 20 : IPV6_BYTES), length = ETHERNET_BYTES + (ipv4 ? 2 : 4);
	__be16 was, now = bpf_htons((ipv4 ? 20 : 0) + TCP_HEADER + data_bytes), probe;
	__u64 pseudo = pseudo_sum(skb, ipv4, TCP_HEADER + data_bytes);
	__u16 *check = (__u16 *)tcp + TCP_CHECK_OFFSET / 2;

	if (bpf_skb_load_bytes(skb, length, &was, 2) || bpf_skb_store_bytes(skb, length, &now, 2, 0) ||
	    (ipv4 && bpf_l3_csum_replace(skb, ETHERNET_BYTES + 10, was, now, 2)))
		return -1;
	*check = 0;
	*check = ~folded(header_sum(tcp) + data_sum + pseudo);
	if (bpf_skb_store_bytes(skb, offset, tcp, TCP_HEADER, flags))
		return -1;
	if (flags)
		return 0;
	/* Where the interface completes the checksum, the field has the pseudo-header's sum. The kernel says which it is
	 * only by what it does with a difference that is not in the pseudo-header: nothing. */
	bpf_l4_csum_replace(skb, offset + TCP_CHECK_OFFSET, 0, bpf_htons(1), 2);
	bpf_skb_load_bytes(skb, offset + TCP_CHECK_OFFSET, &probe, 2);
	if (probe == *check)
		*check = folded(pseudo);
	return bpf_skb_store_bytes(skb, offset + TCP_CHECK_OFFSET, check, 2, 0);
}

/* Makes the payload and the fields of a parity. */
static __always_inline int make_parity(struct __sk_buff *skb, const struct sent *sent, __u32 number, __u32 *tcp,
				       __u64 *data_sum)
{
	const struct block *block = &sent->block;
	__u32 length = sent->next - block->base, cells, group, index, piece, done = 0, bytes;
	__u32 cell_bytes = block->cell_bytes ? block->cell_bytes : 1;
	struct parity_option option = {OPTION, sizeof(option), bpf_htons(OPTION_MARK)};
	struct piece *found;
	__u64 sum = 0;
	int checksum;

	cells = (length + cell_bytes - 1) / cell_bytes;
	group = group_sent(cells, block->groups, number);
	if (group >= cells || !has_pieces(block, OUT))
		return -1;
	for (piece = 0; piece < MOST_PIECES; piece++) {
		if (piece >= block->pieces)
			break;
		index = piece_index(block, OUT, group, piece);
		found = bpf_map_lookup_elem(&hw_pieces, &index);
		if (!found || found->owner != block->owner)
			return -1;
		sum += found->sum;
		bytes = cell_bytes - done < PIECE_BYTES ? cell_bytes - done : PIECE_BYTES;
		checksum = put_piece(skb, index, sent->header_bytes + done, bytes);
		if (checksum < 0)
			return -1;
		*data_sum += checksum;
		done += bytes;
	}
	option.sum[0] = sum;
	option.sum[1] = sum >> 32;
	tcp[2] = bpf_htonl(cells << 16 | (block->groups - 1));
	((__be16 *)tcp)[7] = bpf_htons(length - (cells - 1) * cell_bytes);
	((__be16 *)tcp)[9] = bpf_htons(group);
	__builtin_memcpy(tcp + 5, &option, sizeof(option));
	return 0;
}

/* Makes of a copy what it is to be; in the middle of it, it is nothing that TCP would take. */
static __always_inline int make(struct __sk_buff *skb)
{
	__u32 zero = 0, tcp[TCP_HEADER / 4] = {}, data_bytes = sizeof(struct notice);
	struct job *job = bpf_map_lookup_elem(&hw_job, &zero);
	struct notice notice = {};
	__u64 data_sum = 0;
	struct sent *sent;
	bool ipv4;
	int i;

	sent = job ? bpf_map_lookup_elem(&hw_sent, &job->flow) : NULL;
	if (!sent)
		return DROP;
	ipv4 = sent->header_bytes == ETHERNET_BYTES + 20 + TCP_HEADER;
	if (ipv4) {
		if (bpf_skb_store_bytes(skb, 0, sent->header, ETHERNET_BYTES + 20 + TCP_HEADER, BPF_F_INVALIDATE_HASH))
			return DROP;
		__builtin_memcpy(tcp, sent->header + ETHERNET_BYTES + 20, TCP_HEADER);
	} else {
		if (bpf_skb_store_bytes(skb, 0, sent->header, MOST_HEADER, BPF_F_INVALIDATE_HASH))
			return DROP;
		__builtin_memcpy(tcp, sent->header + ETHERNET_BYTES + IPV6_BYTES, TCP_HEADER);
	}
	tcp[1] = bpf_htonl(sent->block.base);
	((__u8 *)tcp)[TCP_FLAGS_OFFSET] = 0;
	if (job->kind == PARITY) {
		data_bytes = sent->block.cell_bytes;
		if (make_parity(skb, sent, job->number, tcp, &data_sum))
			return DROP;
		COUNT(parities);
	} else {
		notice = (struct notice){MAGIC, sent->block.key, sent->block.groups, sent->block.cell_bytes, sent->block.base, 0};
		if (bpf_skb_store_bytes(skb, sent->header_bytes, &notice, sizeof(notice), 0))
			return DROP;
		for (i = 0; i < (int)sizeof(notice) / 8; i++)
			data_sum = carried(data_sum, ((__u64 *)&notice)[i]);
		data_sum = folded(data_sum);
	}
	if (finish(skb, ipv4, tcp, data_bytes, data_sum, 0))
		return DROP;
	skb->tc_index = PASSED;
	return TCX_NEXT;
}

#endif
