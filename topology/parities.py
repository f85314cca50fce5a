"""How many parities follow a transfer whose tail is coded: ``hostagent/bpf/parity.h`` decides, and has no more."""

MOST_PARITIES = 1024  # MOST_GROUPS
SEGMENTS_A_PARITY = 8  # LEAST_ROWS: one is for so many segments at least


def most_parities(segments: int) -> int:
    """Return how many packets as long as a full segment parities come to, at most.

    >>> most_parities(100), most_parities(185_655)
    (13, 1024)
    """
    return min(MOST_PARITIES, -(-segments // SEGMENTS_A_PARITY))
