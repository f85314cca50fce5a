"""What is measured of slow receivers: the cells, as data, and what they have in common. Pure.

Sizes are the paper's by ten, and so is its memory of 750 MB; rates are its own, so that the times are a tenth and the
gain alpha is the same.
"""

from collections.abc import Iterator

from mininet_tests.lab.cells import Batch, Cell
from mininet_tests.probes.arrivals import EVERY_S

RATE_BPS = 1_000_000_000
DISK_BPS = 280_000_000
SLOWED_BPS = 70_000_000
ROOM_BYTES = 75_000_000
DISK_BYTES = 2 << 30
RTT_MS = 10
PREDICTABLE_PPM = 200  # what is guaranteed a class of which nobody is here
SIZES_MB = (10, 40, 80, 100, 200, 300, 400, 500)
TABLE_3_ONLY_MB = 400
"""The paper has no rivals with 4 GB; programs that send datagrams, each a packet to the lab, are left out there."""
LONG_MB = 500
SHORT_MB, TIMES = 10, 5
"""A file that is stored in a third of a second is measured some times by ours: 1% of it is a third of a round trip."""
SENDERS, TOGETHER = (2, 4), 400_000_000
OF_DATAGRAMS = ("gridftp-udt", "srt", "uftp")
PROGRAMS = ("gridftp", *OF_DATAGRAMS)
ALGORITHMS = ("cubic", "bbr")
HELD, FREE = "headway, held", "headway, not held"
OURS = (HELD, FREE)
RIVALS = (*ALGORITHMS, *PROGRAMS)
SITE, LINE, DATAGRAMS = 2, 2, 4  # how fast a CPU they need: a program that sends datagrams sends each by itself
CELLS_A_BOOT = 8
OVERRUN_BPS = 800_000_000
NOISE_BPS, NOISE_LASTS_S = (200_000_000, 360_000_000), (0.5, 1.5)  # drawn anew: its rate, and for how long
NOISY_S = 600
NOISY_SLOWER = 10
"""Line, disk and page cache of the noisy cell are a tenth of the others': what counts there is when the plan changes.

Ten minutes at 1 Gbit/s take hours of a machine. Times are as at the full rates: how long a rate lasts, and how long the
page cache has something to write.
"""
COARSELY_S = 0.05  # what arrives is counted so often in ten minutes


def cells(*, quick: bool) -> list[Cell]:
    """Return all cells, those that say most first."""
    if quick:
        return [transfer(name, 200) for name in (HELD, FREE, "cubic")]
    sizes = sorted(SIZES_MB, key=lambda size: (size not in (LONG_MB, 200, 100), -size))
    ours = [transfer(HELD, size) for size in sizes] + [transfer(FREE, size) for size in sizes]
    rivals = [
        transfer(name, size) for size in sizes for name in RIVALS if name not in OF_DATAGRAMS or size != TABLE_3_ONLY_MB
    ]
    return [*ours, *others(), *rivals]


def others() -> list[Cell]:
    """Return the cells that the paper's tables have not."""
    base = {"who": HELD}
    several = [
        base | {"name": f"several-{count}", "experiment": "several", "senders": count, "size_bytes": TOGETHER // count}
        for count in SENDERS
    ]
    return [
        *several,
        base | {"name": "slows", "experiment": "slows", "seconds": [15, 20, 25]},
        base | {"name": "killed", "experiment": "killed"},
        base | {"name": "noisy", "experiment": "noisy", "seconds": [NOISY_S], "seed": 1, "slower": NOISY_SLOWER,
                "disk_bps": [bps // NOISY_SLOWER for bps in NOISE_BPS], "lasts_s": list(NOISE_LASTS_S)},
        base | {"name": "overrun", "experiment": "overrun", "size_bytes": 300_000_000, "udp_bps": OVERRUN_BPS},
    ]  # fmt: skip


def transfer(who: str, size_mb: int) -> Cell:
    """Return one file by one contestant."""
    name = f"{who.replace(', ', '-').replace(' ', '-')}-{size_mb}"
    times = {"times": TIMES} if who in OURS and size_mb <= SHORT_MB else {}
    return {"name": name, "experiment": "transfer", "who": who, "size_bytes": size_mb * 1_000_000, **times}


def batches(missing: list[Cell], line: tuple[str, ...], site: tuple[str, ...]) -> Iterator[Batch]:
    """Yield boots for cells: those of one boot are measured one after another on the same site, or on the bare line."""
    like: dict[tuple[bool, float, int, str, int], list[Cell]] = {}
    for cell in missing:
        site_of_it = is_endless(cell), counted_every_s(cell), slower(cell), _beside(cell["who"]), dilation(cell)
        like.setdefault(site_of_it, []).append(cell)
    for some in like.values():
        for first in range(0, len(some), CELLS_A_BOOT):
            yield Batch(site if some[0]["who"] in OURS else line, tuple(some[first : first + CELLS_A_BOOT]),
                        dilation(some[0]), units=units)  # fmt: skip


def is_endless(cell: Cell) -> bool:
    """Return whether a cell has a flow that never ends, to a disk of which nobody has said what it takes."""
    return cell["experiment"] in ("slows", "killed", "noisy")


def slower(cell: Cell) -> int:
    """Return how many times less than in others a cell's line carries, its disk writes and its page cache holds."""
    divisor: int = cell.get("slower", 1)
    return divisor


def counted_every_s(cell: Cell) -> float:
    """Return how often what arrives is counted."""
    return COARSELY_S if cell["experiment"] == "noisy" else EVERY_S


def _beside(who: str) -> str:
    """Return what those have in common that can be measured on one site: whether it holds, or which flow fills it."""
    return who if who in OURS or who == "bbr" else "cubic"


def dilation(cell: Cell) -> int:
    """Return how fast a CPU a cell needs."""
    if cell["who"] in OURS:
        return SITE
    return DATAGRAMS if cell["who"] in OF_DATAGRAMS else LINE


def units(cell: Cell) -> float:
    """Return what a cell costs, about, in seconds of its own time."""
    if "seconds" in cell:
        return float(sum(cell["seconds"]))
    size_bytes: int = cell.get("size_bytes", LONG_MB * 1_000_000) * cell.get("senders", 1)
    times: int = cell.get("times", 1)
    return (5 + size_bytes * 8 / DISK_BPS) * times
