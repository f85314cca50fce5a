/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sender of a coded tail: opens a block when what waits to be sent is less than a window, adds to it what leaves for
 * the first time, and sends its parities when nothing waits any more.
 *
 * No timer can send a packet, but each confirmation that comes can, and for a round trip after the last segment they come
 * as fast as segments went: each lets so many parities go as the rate allows since the one before. A transfer that is
 * shorter than a window gets no confirmation before all of it has come: there the last departure goes as a copy, the
 * parities follow at once, and the packet itself becomes the last of them. If such a transfer is longer than a block, the
 * parities of a block that is full go before the next.
 *
 * TCP is told of all that is missing, and repeats it: that leaves on an idle line, and always before a confirmation of what
 * was rebuilt comes, because parities go after everything. So each hole that closes was sent again, and is no reordering
 * to TCP (RFC 8985), which would else wait for the rest of the connection a quarter of a round trip before it calls a
 * segment lost. */
#ifndef HEADWAY_CODED_OUT_H
#define HEADWAY_CODED_OUT_H

#define BURST 44        /* packets that leave together, as those of a super-packet */
#define TOGETHER_SHIFT 8 /* parities that leave together take no more than 4 ms of the rate, and are ... */
#define MOST_TOGETHER 240 /* ... no more than this */
#define ANCHORS 2
/* A receiver holds up the confirmation of what comes after a hole by a millisecond (tcp_comp_sack_delay_ns). The sender's TCP
 * would hear at once of a hole and of its end, and take that for reordering: so there are as many groups as the rate has
 * packets in that time, and each hole is heard of before it is made good. */
#define HELD_UP_SHIFT 10
#define MOST_RANGES 3 /* of a SACK option beside timestamps */
#define TIMESTAMPS 8 /* the option's kind, RFC 7323 */

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

/* How many parities may leave together: a meter's bucket holds 20 ms of the rate. */
static __always_inline __u32 together(const struct sock *sk, __u32 cell_bytes)
{
	__u64 packets = (sk->sk_pacing_rate >> TOGETHER_SHIFT) / (cell_bytes ? cell_bytes : 1);

	return packets < BURST ? BURST : packets < MOST_TOGETHER ? packets : MOST_TOGETHER;
}

/* Opens a block with the first byte of a packet; false if it would not help, or there is no room for one. */
static __always_inline bool open_block(struct __sk_buff *skb, const struct packet *packet, const struct flow *flow,
				       const struct tcp_sock *tp, const struct counters *counters, __u32 cell_bytes,
				       const struct sock *sk, const __u32 *from)
{
	__u32 least = (sk->sk_pacing_rate >> HELD_UP_SHIFT) / (cell_bytes ? cell_bytes : 1);
	__u32 most_together = together(sk, cell_bytes);
	__u32 zero = 0, left = tp->write_seq - packet->seq, cells = (left + cell_bytes - 1) / cell_bytes, groups;
	struct sent *fresh = bpf_map_lookup_elem(&hw_fresh, &zero);

	if (!fresh || !worth_it(cells, counters->retransmitted_segments, counters->sent_segments))
		return false;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->block.pieces = pieces_of(cell_bytes);
	fresh->block.cell_bytes = cell_bytes;
	groups = groups_for(cells, counters->retransmitted_segments, counters->sent_segments);
	if (tp->write_seq - tp->snd_una < tp->snd_cwnd * cell_bytes / 4 * 3 && groups > most_together)
		groups = most_together;
	if (groups < least)
		groups = least;
	if (groups * fresh->block.pieces > POOL_PIECES / 2)
		groups = POOL_PIECES / 2 / MOST_PIECES;
	if (groups < least || (groups > 1 && groups > cells / LEAST_ROWS))
		return false;
	fresh->block.groups = groups;
	fresh->block.base = fresh->next = packet->seq;
	fresh->from = from ? *from : packet->seq;
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

/* Sends so many parities, as far as there are some left. */
static __always_inline void send_parities(struct __sk_buff *skb, const struct flow *flow, struct sent *sent, __u32 count)
{
	__u32 left = sent->block.groups > sent->emitted ? sent->block.groups - sent->emitted : 0;

	if (count > left)
		count = left;
	if (!count)
		return;
	sent->emitted += count;
	emit(skb, flow, sent->interface, PARITY, sent->emitted - count, count);
}

/* Sends the parities of a short transfer, and makes the last of the packet: its data has gone. */
static __always_inline int end_short(struct __sk_buff *skb, const struct flow *flow, struct sent *sent)
{
	__u32 zero = 0;
	struct job *job = bpf_map_lookup_elem(&hw_job, &zero);

	send_parities(skb, flow, sent, sent->block.groups - 1);
	if (!job || bpf_skb_change_tail(skb, sent->header_bytes + sent->block.cell_bytes, 0))
		return TCX_NEXT; /* it goes twice */
	job->flow = *flow;
	job->kind = PARITY;
	job->number = sent->emitted++;
	return make(skb) == TCX_NEXT ? TCX_NEXT : DROP;
}

/* Whether parities have been sent, of a block or of those before it that are not all confirmed. */
static __always_inline bool parities_sent(const struct sent *sent)
{
	return sent->emitted || sent->from != sent->block.base;
}

/* Whether a block that is full belongs to a transfer of which nothing is confirmed yet. */
static __always_inline bool full_of_short(const struct sent *sent, const struct packet *packet, const struct tcp_sock *tp)
{
	return !sent->ended_ns && packet->seq == sent->next && sent->block.groups <= MOST_TOGETHER &&
	       (__s32)(tp->snd_una - sent->block.base) <= 0 && has_pieces(&sent->block, OUT);
}

/* What leaves of a held connection, for the first time or again. */
static __always_inline int leaves(struct __sk_buff *skb, struct tcp_sock *tp, struct sock *sk, struct conn *conn)
{
	struct packet packet = {};
	struct flow flow;
	struct sent *sent;
	struct counters *counters;
	__u32 slot = conn->slot, from, *kept_from = NULL, unsent, cell_bytes = skb->gso_size ? skb->gso_size : tp->mss_cache;
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
		if (sent && full_of_short(sent, &packet, tp))
			send_parities(skb, &flow, sent, sent->block.groups);
		if (sent && parities_sent(sent) && (__s32)(tp->snd_una - sent->next) < 0) {
			from = sent->from;
			kept_from = &from;
		}
		if (!open_block(skb, &packet, &flow, tp, counters, cell_bytes, sk, kept_from))
			return TCX_NEXT;
		sent = bpf_map_lookup_elem(&hw_sent, &flow);
		if (!sent || !keep_header(skb, sent, packet.ipv4))
			return TCX_NEXT;
		emit(skb, &flow, skb->ifindex, ANCHOR, 0, ANCHORS);
	}
	if (!unsent) {
		sent->rate_bytes_per_s = sk->sk_pacing_rate;
		sent->used_ns = now_ns;
		sent->last = tp->write_seq - (tp->reordering - 1) * cell_bytes;
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

/* Takes the time out of a confirmation that came after parities. What fills a hole was then sent before TCP repeated that
 * hole, and by its time TCP would know it: a repetition that was not needed is reordering to it. A time of 0 says nothing,
 * and TCP takes the round trip from segments that went once. */
static __always_inline void without_time(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 offset = packet->tcp + TCP_BYTES, none = 0;
	struct {
		__u8 nops[2], kind, length;
		__be32 value, echo;
	} times;

	if (!bpf_skb_load_bytes(skb, offset, &times, sizeof(times)) && times.nops[0] == NOP && times.nops[1] == NOP &&
	    times.kind == TIMESTAMPS && times.length == sizeof(times) - 2 &&
	    !bpf_skb_store_bytes(skb, offset + 8, &none, sizeof(none), 0))
		bpf_l4_csum_replace(skb, packet->tcp + TCP_CHECK_OFFSET, times.echo, 0, sizeof(none));
}

/* Takes out of a confirmation the ranges that lie in the last segments: so few that TCP would not repeat at once what it
 * misses before them, and would take what was rebuilt for reordering. A range without bytes it does not look at. */
static __always_inline void without_last(struct __sk_buff *skb, const struct packet *packet, const struct sent *sent)
{
	__u32 offset = packet->tcp + TCP_HEADER, i;
	struct {
		__u8 nops[2], kind, length;
	} option;
	struct {
		__be32 start, end;
	} range;

	if (packet->header < TCP_HEADER + 12 || bpf_skb_load_bytes(skb, offset, &option, sizeof(option)) ||
	    option.kind != SACK)
		return;
	for (i = 0; i < MOST_RANGES; i++) {
		offset = packet->tcp + TCP_HEADER + 4 + 8 * i;
		if (option.length < 10 + 8 * i || bpf_skb_load_bytes(skb, offset, &range, sizeof(range)))
			return;
		if (bpf_ntohl(range.start) - sent->last < sent->next - sent->last && range.end != range.start &&
		    !bpf_skb_store_bytes(skb, offset + 4, &range.start, 4, 0))
			bpf_l4_csum_replace(skb, packet->tcp + TCP_CHECK_OFFSET, range.end, range.start, 4);
	}
}

/* A confirmation of what a coded block sends: it lets parities go. */
static __always_inline void confirms(struct __sk_buff *skb, const struct packet *packet)
{
	struct flow flow;
	struct sent *sent;

	if (!(packet->flags & TCP_ACK) || !flow_of(skb, packet, true, &flow))
		return;
	sent = bpf_map_lookup_elem(&hw_sent, &flow);
	if (!sent)
		return;
	if (parities_sent(sent) && packet->ack - sent->from <= sent->next - sent->from) {
		without_time(skb, packet);
		if (sent->ended_ns)
			without_last(skb, packet, sent);
	}
	if (!sent->ended_ns || sent->emitted >= sent->block.groups || !has_pieces(&sent->block, OUT))
		return;
	send_parities(skb, &flow, sent,
		      due_packets(&sent->used_ns, bpf_ktime_get_ns(), sent->rate_bytes_per_s, sent->block.cell_bytes, BURST));
}

#endif
