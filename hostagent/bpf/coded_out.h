/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sender of a coded tail: opens a block when what waits to be sent is less than a window, adds to it what leaves for
 * the first time, and sends its parities when nothing waits any more.
 *
 * No timer can send a packet, but each confirmation that comes can, and for a round trip after the last segment they come
 * as fast as segments went: each lets so many parities go as the rate allows since the one before. A transfer that is
 * shorter than a window gets no confirmation before all of it has come: there the last departure goes as a copy, the
 * parities follow at once, and the packet itself becomes the end.
 *
 * What is missing in a block is kept from TCP until the block's end is confirmed, once the receiver has said that it
 * rebuilds: a hole that closes by itself is reordering to it (RFC 8985), and for the rest of the connection it would wait
 * a quarter of a round trip before it calls a segment lost. */
#ifndef HEADWAY_CODED_OUT_H
#define HEADWAY_CODED_OUT_H

#define BURST 44        /* packets that leave together, as those of a super-packet */
#define SHORT_GROUPS 64 /* parities of a transfer that is shorter than a window: they leave together */
#define ANCHORS 2
#define ENDS 4 /* each lets the receiver say once more what is missing */
#define MOST_BLOCKS 3 /* beside timestamps */
#define SHOWN_NS 50000000ULL

struct sack_option {
	__u8 nops[2], kind, length;
	struct sack_block blocks[MOST_BLOCKS];
};

/* Has the nested program make packets of a copy of this one. */
static __always_inline void emit(struct __sk_buff *skb, const struct flow *flow, __u32 interface, __u32 kind,
				 __u32 first, __u32 count)
{
	__u32 zero = 0;
	struct job *job = bpf_map_lookup_elem(&hw_job, &zero);

	if (!job)
		return;
	job->flow = *flow;
	job->kind = kind;
	job->first = first;
	job->count = count;
	skb->tc_index = SEED;
	bpf_clone_redirect(skb, interface, 0);
	skb->tc_index = 0;
}

/* Opens a block with the first byte of a packet; false if it would not help, or there is no room for one. */
static __always_inline bool open_block(struct __sk_buff *skb, const struct packet *packet, const struct flow *flow,
				       const struct tcp_sock *tp, const struct counters *counters, __u32 cell_bytes,
				       const struct sent *before)
{
	__u32 zero = 0, left = tp->write_seq - packet->seq, cells = (left + cell_bytes - 1) / cell_bytes, groups;
	struct sent *fresh = bpf_map_lookup_elem(&hw_fresh, &zero);

	if (!fresh || !worth_it(cells, counters->retransmitted_segments, counters->sent_segments))
		return false;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->block.pieces = pieces_of(cell_bytes);
	fresh->block.cell_bytes = cell_bytes;
	groups = groups_for(cells, counters->retransmitted_segments, counters->sent_segments);
	if (tp->write_seq - tp->snd_una < tp->snd_cwnd * cell_bytes / 4 * 3 && groups > SHORT_GROUPS)
		groups = SHORT_GROUPS;
	if (groups * fresh->block.pieces > POOL_PIECES / 2)
		groups = POOL_PIECES / 2 / MOST_PIECES;
	fresh->block.groups = groups;
	fresh->block.base = fresh->next = packet->seq;
	fresh->from = fresh->kept_to = fresh->said_to = packet->seq;
	if (before && (__s32)(before->kept_to - before->said_to) > 0) { /* it was no end: TCP has still to hear of these */
		fresh->from = before->from;
		fresh->kept_to = before->kept_to;
		fresh->said_to = before->said_to;
		__builtin_memcpy(fresh->ranges, before->ranges, sizeof(fresh->ranges));
	}
	fresh->block.key = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	fresh->block.owner = pieces_for(OUT, groups, fresh->block.pieces);
	fresh->interface = skb->ifindex;
	fresh->header_bytes = packet->data;
	if (!fresh->block.owner || bpf_map_update_elem(&hw_sent, flow, fresh, BPF_ANY))
		return false;
	COUNT(blocks);
	return true;
}

/* Keeps the headers of a packet, of which parities are made. */
static __always_inline bool keep_header(struct __sk_buff *skb, struct sent *sent, bool ipv4)
{
	sent->interface = skb->ifindex;
	if (ipv4)
		return !bpf_skb_load_bytes(skb, 0, sent->header, ETHERNET_BYTES + 20 + TCP_HEADER);
	return !bpf_skb_load_bytes(skb, 0, sent->header, MOST_HEADER);
}

/* Sends what is due of the parities, at most count, and the ends after the last. */
static __always_inline void go_on(struct __sk_buff *skb, const struct flow *flow, struct sent *sent, __u32 count)
{
	__u32 left = sent->block.groups > sent->emitted ? sent->block.groups - sent->emitted : 0;

	if (count > left)
		count = left;
	if (count) {
		sent->emitted += count;
		emit(skb, flow, sent->interface, PARITY, sent->emitted - count, count);
	}
	if (sent->emitted >= sent->block.groups && !sent->ends) {
		sent->ends = ENDS;
		emit(skb, flow, sent->interface, END, 0, ENDS);
	}
}

/* Sends the parities of a short transfer, and makes the end of the packet: its data has gone. */
static __always_inline int end_short(struct __sk_buff *skb, const struct flow *flow, struct sent *sent)
{
	__u32 zero = 0;
	struct job *job = bpf_map_lookup_elem(&hw_job, &zero);

	sent->ends = ENDS;
	go_on(skb, flow, sent, SHORT_GROUPS);
	emit(skb, flow, sent->interface, END, 0, ENDS - 1);
	if (!job || bpf_skb_change_tail(skb, sent->header_bytes + sizeof(struct notice), 0))
		return TCX_NEXT; /* it goes twice */
	job->flow = *flow;
	job->kind = END;
	return make(skb) == TCX_NEXT ? TCX_NEXT : DROP;
}

/* What leaves of a held connection, for the first time or again. */
static __always_inline int leaves(struct __sk_buff *skb, struct tcp_sock *tp, struct sock *sk, struct conn *conn)
{
	struct packet packet = {};
	struct flow flow;
	struct sent *sent;
	struct counters *counters;
	__u32 slot = conn->slot, unsent, cell_bytes = skb->gso_size ? skb->gso_size : tp->mss_cache;
	__u64 now_ns = bpf_ktime_get_ns();

	if (!looked_at(skb, &packet) || !packet.bytes || packet.header != TCP_HEADER ||
	    packet.flags & TCP_SYN_FIN_RST & ~1 || !cell_bytes || cell_bytes > MOST_CELL_BYTES ||
	    !flow_of(skb, &packet, false, &flow))
		return TCX_NEXT;
	counters = bpf_map_lookup_elem(&hw_counters, &slot);
	if (!counters)
		return TCX_NEXT;
	unsent = tp->write_seq - packet.seq - packet.bytes;
	sent = bpf_map_lookup_elem(&hw_sent, &flow);
	if (sent && (__s32)(packet.seq - sent->next) < 0 && (__s32)(packet.seq - sent->block.base) >= 0)
		return TCX_NEXT; /* again */
	if (sent && sent->ended_ns && !sent->emitted && packet.seq == sent->next &&
	    !((sent->next - sent->block.base) % cell_bytes))
		sent->ended_ns = 0; /* it was not the end */
	if (!sent || sent->ended_ns || packet.seq != sent->next || !has_pieces(&sent->block, OUT) ||
	    (packet.seq - sent->block.base + packet.bytes + cell_bytes - 1) / cell_bytes > sent->block.groups * ROWS ||
	    sent->block.cell_bytes != cell_bytes) {
		if (packet.seq != tp->snd_nxt && (__s32)(packet.seq - tp->snd_nxt) < 0)
			return TCX_NEXT;
		if (unsent / cell_bytes > tp->snd_cwnd / 8 * 7)
			return TCX_NEXT; /* it is not the tail yet */
		if (!unsent && packet.bytes <= cell_bytes)
			return TCX_NEXT; /* a lone segment: nothing goes before it */
		if (!open_block(skb, &packet, &flow, tp, counters, cell_bytes, sent))
			return TCX_NEXT;
		sent = bpf_map_lookup_elem(&hw_sent, &flow);
		if (!sent || !keep_header(skb, sent, packet.ipv4))
			return TCX_NEXT;
		emit(skb, &flow, skb->ifindex, ANCHOR, 0, ANCHORS);
	}
	if (!unsent) {
		sent->rate_bytes_per_s = sk->sk_pacing_rate;
		sent->refill_ns = now_ns;
		sent->shown_ns = now_ns + (__u64)(tp->srtt_us >> 3) * 1500 + SHOWN_NS;
		if (!keep_header(skb, sent, packet.ipv4))
			return TCX_NEXT;
	}
	fold_packet(skb, &sent->block, &packet, OUT);
	sent->next = packet.seq + packet.bytes;
	if (!unsent || packet.bytes % cell_bytes)
		sent->ended_ns = now_ns; /* behind a short cell there is none */
	if (unsent || sk->sk_pacing_status != SK_PACING_NEEDED || /* in the qdisc fq a copy overtakes what waits */
	    sent->next - tp->snd_una >= tp->snd_cwnd * cell_bytes / 4 * 3)
		return TCX_NEXT;
	skb->tc_index = PASSED;
	if (bpf_clone_redirect(skb, skb->ifindex, 0))
		return TCX_NEXT; /* it has not gone, so this one goes */
	return end_short(skb, &flow, sent);
}

/* Keeps what is not said to TCP now, together with what it overlaps or touches: a receiver remembers four blocks. */
__noinline int keep_range(struct sent *sent, __u32 start, __u32 end)
{
	__u32 i, room = MOST_RANGES;
	struct sack_block *range;

	if (!sent)
		return 0;
	for (i = 0; i < MOST_RANGES; i++) {
		range = &sent->ranges[i];
		if (range->start != range->end && (__s32)(start - range->end) <= 0 && (__s32)(range->start - end) <= 0) {
			if ((__s32)(range->start - start) < 0)
				start = range->start;
			if ((__s32)(range->end - end) > 0)
				end = range->end;
			range->start = range->end = 0;
		}
		if (range->start == range->end && room == MOST_RANGES)
			room = i;
	}
	if (room >= MOST_RANGES) {
		sent->shown_ns = 0; /* so many are lost that TCP knows better */
		return 0;
	}
	sent->ranges[room].start = start;
	sent->ranges[room].end = end;
	if ((__s32)(end - sent->kept_to) > 0)
		sent->kept_to = end;
	return 0;
}

/* Says what was kept, from the lowest on, as far as there is room for it; returns how many blocks there are then. */
__noinline int say_ranges(struct sent *sent, struct sack_option *now, __u32 said, __u32 count)
{
	struct sack_block *range, *lowest_one;
	__u32 i, turn;

	if (!sent || !now)
		return said;
	for (turn = 0; turn < MOST_BLOCKS; turn++) {
		if (said >= count || said >= MOST_BLOCKS || (__s32)(sent->kept_to - sent->said_to) <= 0)
			break;
		lowest_one = NULL;
		for (i = 0; i < MOST_RANGES; i++) {
			range = &sent->ranges[i];
			if (range->start != range->end && (__s32)(range->end - sent->said_to) > 0 &&
			    (!lowest_one || (__s32)(range->start - lowest_one->start) < 0))
				lowest_one = range;
		}
		if (!lowest_one)
			break;
		sent->said_to = lowest_one->end;
		now->blocks[said].start = bpf_htonl(lowest_one->start);
		now->blocks[said].end = bpf_htonl(lowest_one->end);
		said++;
	}
	return said;
}

/* Which of the blocks are said to TCP: what is missing in a coded block is not, until its end is confirmed. Then what was
 * kept is said from the lowest on, as much in each confirmation as there is room for: of what lies above what is said
 * TCP thinks nothing yet. Returns whether anything has changed. */
static __always_inline bool sift(struct sent *sent, const struct packet *packet, const struct sack_option *was,
				 struct sack_option *now, __u64 now_ns)
{
	__u32 base = sent->from, long_ago = sent->block.base - LONG_AGO, start, end, said = 0, count = (was->length - 2U) / 8, i;
	bool hides, passes;

	if (count && bpf_ntohl(was->blocks[0].start) == long_ago && !sent->answered) {
		sent->answered = 1;
		COUNT(answered);
	}
	if (count && bpf_ntohl(was->blocks[0].start) == long_ago + sizeof(struct notice))
		sent->shown_ns = 0;
	hides = sent->answered && sent->ended_ns && now_ns < sent->shown_ns;
	passes = !hides && (__s32)(sent->kept_to - sent->said_to) <= 0;
	for (i = 0; i < MOST_BLOCKS; i++) {
		if (i >= count)
			break;
		start = bpf_ntohl(was->blocks[i].start);
		end = bpf_ntohl(was->blocks[i].end);
		if ((__s32)(packet->ack - start) > (__s32)(LONG_AGO / 2))
			continue; /* the answer itself */
		if (!passes && (__s32)(start - packet->ack) >= 0 && (__s32)(end - base) > 0) {
			keep_range(sent, (__s32)(start - base) > 0 ? start : base, end);
			if ((__s32)(start - base) >= 0)
				continue;
			end = base;
		}
		now->blocks[said < MOST_BLOCKS ? said : 0].start = bpf_htonl(start);
		now->blocks[said < MOST_BLOCKS ? said : 0].end = bpf_htonl(end);
		said++;
	}
	if (hides)
		COUNT(hidden);
	else
		said = say_ranges(sent, now, said, count);
	if (said) {
		now->kind = SACK;
		now->length = 2 + 8 * said;
	}
	return !passes || said != count;
}

/* A confirmation of what a coded block sends. */
static __always_inline void confirms(struct __sk_buff *skb, const struct packet *packet)
{
	struct sack_option was = {}, now;
	__u32 option = packet->tcp + 20 + TIMESTAMPS_BYTES, bytes;
	__u64 now_ns, count;
	struct flow flow;
	struct sent *sent;
	__s64 change;

	if (!(packet->flags & TCP_ACK) || !flow_of(skb, packet, true, &flow))
		return;
	sent = bpf_map_lookup_elem(&hw_sent, &flow);
	if (!sent)
		return;
	now_ns = bpf_ktime_get_ns();
	if ((__s32)(packet->ack - sent->said_to) > 0)
		sent->said_to = packet->ack;
	if (packet->header > TCP_HEADER && !bpf_skb_load_bytes(skb, option, &was, 4) && was.kind == SACK &&
	    was.length >= 10 && was.length <= 2 + 8 * MOST_BLOCKS) {
		bytes = was.length + 2;
		__builtin_memset(&now, NOP, sizeof(now));
		if (bytes == sizeof(was) ? !bpf_skb_load_bytes(skb, option, &was, sizeof(was)) :
		    bytes == 20 ? !bpf_skb_load_bytes(skb, option, &was, 20) : !bpf_skb_load_bytes(skb, option, &was, 12)) {
			if (sift(sent, packet, &was, &now, now_ns)) {
				if (bytes < sizeof(now))
					((__u64 *)&now.blocks[2])[0] = ((__u64 *)&was.blocks[2])[0];
				if (bytes < 20)
					((__u64 *)&now.blocks[1])[0] = ((__u64 *)&was.blocks[1])[0];
				change = bpf_csum_diff((__be32 *)&was, sizeof(was), (__be32 *)&now, sizeof(now), 0);
				if (change >= 0 &&
				    !(bytes == sizeof(was) ? bpf_skb_store_bytes(skb, option, &now, sizeof(now), 0) :
				      bytes == 20 ? bpf_skb_store_bytes(skb, option, &now, 20, 0) :
						    bpf_skb_store_bytes(skb, option, &now, 12, 0)))
					bpf_l4_csum_replace(skb, packet->tcp + TCP_CHECK_OFFSET, 0, change, 0);
			}
		}
	}
	if (!sent->ended_ns || sent->ends || !has_pieces(&sent->block, OUT))
		return;
	count = (now_ns - sent->refill_ns) * (sent->rate_bytes_per_s >> 10) / (1000000000ULL >> 10) /
		(sent->block.cell_bytes ? sent->block.cell_bytes : 1);
	if (!count && sent->emitted < sent->block.groups)
		return;
	sent->refill_ns = now_ns;
	go_on(skb, &flow, sent, count < BURST ? count : BURST);
}

#endif
