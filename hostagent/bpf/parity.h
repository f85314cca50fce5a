/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The arithmetic of the coded tail: which cell belongs to which group, what a group comes to, and what it gives back.
 *
 * A block is a range of the sequence space, cut into cells of one full segment each, the last perhaps shorter. Cell i is
 * in row i / groups of group i % groups, so that neighbours, which are lost together, are in different groups. What a
 * group comes to is the exclusive or of its cells, and the sum of each of their words times a constant of its place and row. Of
 * the cells of a group one may be missing: the exclusive or of all others and of the parity is that one. The sum is no
 * linear function of the exclusive or, so one that was made of anything else does not agree with it.
 *
 *   groups = 4     row 0   0 1 2 3
 *                  row 1   4 x 6 7       x = 1 ^ 9 ^ parity of group 1
 *                  row 2   8 9
 */
#ifndef HEADWAY_PARITY_H
#define HEADWAY_PARITY_H

#define ROWS 64            /* a bit each */
#define LEAST_ROWS 8       /* parities are an eighth of what they are for, at most */
#define LEAST_GROUPS 8
#define MOST_GROUPS 1024
#define PIECE_WORDS 192
#define PIECE_BYTES (PIECE_WORDS * 8)
#define MOST_PIECES 6      /* of a cell: 9000 bytes */
#define MOST_CELL_BYTES (PIECE_BYTES * MOST_PIECES)
#define PIECE_STEP 0x9e3779b97f4a7c15ULL /* 2^64 by the golden ratio: constants of two pieces are not alike */
#define WORD_STEP 6364136223846793005ULL  /* Knuth's MMIX generator */
#define MOST_LOSSES 32 /* 1 - exp(-32^2 / (2 x 1024)): two of them in one of the most groups in 40% */
#define FAILING 25 /* groups = 25 x square of the losses that are expected: 2% of the blocks have two in one group */

/* What a group comes to, as far as one piece of its cells goes. */
struct piece {
	__u64 owner; /* the block whose it is; of another one it holds nothing */
	__u64 seen;  /* rows that are in it; of a cell's first piece */
	__u64 sum;
	__u64 words[PIECE_WORDS];
};

/* Losses expected of so many cells, in thousandths, on a path on which so many of the segments sent were sent again. */
static __always_inline __u64 losses_milli(__u32 cells, __u64 again, __u64 sent)
{
	return sent ? cells * again * 1000 / sent : 0;
}

/* Whether parities help: not where two losses are in one group more often than not. */
static __always_inline bool worth_it(__u32 cells, __u64 again, __u64 sent)
{
	return losses_milli(cells, again, sent) <= MOST_LOSSES * 1000;
}

/* How many groups a block of so many cells has, of a path on which so many of the segments sent were sent again. */
static __always_inline __u32 groups_for(__u32 cells, __u64 again, __u64 sent)
{
	__u64 losses = losses_milli(cells, again, sent);
	__u64 groups = losses > MOST_LOSSES * 1000 ? MOST_GROUPS : FAILING * losses * losses / 1000000;
	__u64 least = (cells + ROWS - 1) / ROWS;

	if (groups < LEAST_GROUPS)
		groups = LEAST_GROUPS;
	if (groups < least)
		groups = least;
	if (groups > cells / LEAST_ROWS)
		groups = cells < LEAST_ROWS ? 1 : cells / LEAST_ROWS;
	return groups < MOST_GROUPS ? groups : MOST_GROUPS;
}

/* The group whose parity goes out as this one: those of the last cells come last, so that after each cell there are as many
 * packets as groups, less one, before it can be made again. */
static __always_inline __u32 group_sent(__u32 cells, __u32 groups, __u32 number)
{
	return groups ? (cells + number) % groups : 0;
}

/* How many packets may leave at a rate since the time up to which it is used; moves that on by what they take. What is
 * less than a packet counts for the next: else of confirmations that come as fast as packets may go half would be lost. */
static __always_inline __u32 due_packets(__u64 *used_ns, __u64 now_ns, __u64 rate_bytes_per_s, __u32 bytes, __u32 most)
{
	__u64 count;

	if (!rate_bytes_per_s || !bytes || (__s64)(now_ns - *used_ns) <= 0)
		return 0;
	count = (now_ns - *used_ns) * (rate_bytes_per_s >> 10) / (1000000000ULL >> 10) / bytes;
	*used_ns = count < most ? *used_ns + count * bytes * 1000000000ULL / rate_bytes_per_s : now_ns;
	return count < most ? count : most;
}

/* The rows of a group that a block of so many cells has. */
static __always_inline __u64 rows_of(__u32 cells, __u32 groups, __u32 group)
{
	__u32 rows;

	if (!groups || group >= groups || group >= cells)
		return 0;
	rows = (cells - group - 1) / groups + 1;
	return rows >= ROWS ? ~0ULL : (1ULL << rows) - 1;
}

/* The constants of a piece of a cell in a row: those of no other are the same. */
static __always_inline __u64 piece_key(__u64 key, __u32 piece, __u32 row)
{
	return key + (piece * ROWS + row + 1) * PIECE_STEP;
}

/* An odd constant of a word's place. None waits for that of the word before, so a CPU works on several at once. */
static __always_inline __u64 constant_of(__u64 key, int word)
{
	key += word * WORD_STEP;
	return (key ^ key >> 32) | 1;
}

/* The sum of the words of a piece, each times the constant of its place, modulo 2^64. */
static __always_inline __u64 sum_of(const __u64 *words, __u64 key)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < PIECE_WORDS; i++)
		sum += words[i] * constant_of(key, i);
	return sum;
}

/* Adds the words of a cell to its group. */
static __always_inline void fold(struct piece *piece, const __u64 *words, __u64 owner, __u32 row, __u64 key)
{
	__u64 sum = 0;
	int i;

	if (piece->owner != owner) {
		piece->owner = owner;
		piece->seen = 0;
		piece->sum = 0;
		for (i = 0; i < PIECE_WORDS; i++)
			piece->words[i] = 0;
	}
	for (i = 0; i < PIECE_WORDS; i++) {
		piece->words[i] ^= words[i];
		sum += words[i] * constant_of(key, i);
	}
	piece->sum += sum;
	piece->seen |= 1ULL << (row & (ROWS - 1));
}

/* Makes the parity of a group what is missing in it; returns the sum of that, which must be the parity's less the
 * group's. */
static __always_inline __u64 unfold(const struct piece *piece, __u64 *words, __u64 owner, __u64 key)
{
	int i;

	if (piece->owner == owner)
		for (i = 0; i < PIECE_WORDS; i++)
			words[i] ^= piece->words[i];
	return sum_of(words, key);
}

#endif
