/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The arithmetic of the coded tail (../bpf/parity.h) as a library of this machine. */
#include <stdbool.h>
#include <linux/bpf.h>

#include "parity.h"

__u32 groups_of(__u32 cells, __u64 again, __u64 sent)
{
	return groups_for(cells, again, sent);
}

bool worth(__u32 cells, __u64 again, __u64 sent)
{
	return worth_it(cells, again, sent);
}

__u32 sent_as(__u32 cells, __u32 groups, __u32 number)
{
	return group_sent(cells, groups, number);
}

__u32 due(__u64 *used_ns, __u64 now_ns, __u64 rate_bytes_per_s, __u32 bytes, __u32 most)
{
	return due_packets(used_ns, now_ns, rate_bytes_per_s, bytes, most);
}

__u64 rows(__u32 cells, __u32 groups, __u32 group)
{
	return rows_of(cells, groups, group);
}

void add(struct piece *piece, const __u64 *words, __u64 owner, __u32 row, __u64 key)
{
	fold(piece, words, owner, row, piece_key(key, 0, row));
}

__u64 give_back(const struct piece *piece, __u64 *words, __u64 owner, __u32 row, __u64 key)
{
	return unfold(piece, words, owner, piece_key(key, 0, row));
}
