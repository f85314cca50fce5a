"""What a run of figure 2 sends, and how its real time in the lab is spent, so that what is left can be told. Pure."""

from itertools import accumulate

PART_BYTES = 1_344_012_290  # Freemon 2013 section IV.C: sent by each of base20 and base21
LOSS_PPM = 100  # section IV.A: 0.01% at random, each way
BOOT_S, SITE_S, FILL_S = 18.0, 95.0, 16.0
"""Of QEMU's CPU time at 1 Gbit/s: until the first line; until the site is up; until the standing flows fill it."""
SECOND_S = 6.0
"""The same, for each of the lab's seconds after that."""
IMAGE_SHARE = 0.88  # of the circuit's rate on the wire, as payload of the image


def shares(
    rate_bps: int, image_bytes: int, lead_s: float, tail_s: float, disk_bps: int | None = None
) -> tuple[float, ...]:
    """Return which part of the time has passed when the boot, the site, the filling, the lead and the image are done.

    >>> [round(share, 2) for share in shares(10**9, 672_006_144, 3.0, 3.0)]
    [0.09, 0.56, 0.64, 0.73, 0.91]
    """
    image_s = image_bytes * 8 / min(IMAGE_SHARE * rate_bps, disk_bps or rate_bps)
    spent = [BOOT_S, SITE_S, FILL_S, *(SECOND_S * seconds for seconds in (lead_s, image_s, tail_s))]
    return tuple(done / sum(spent) for done in accumulate(spent[:-1]))
