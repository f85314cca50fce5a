"""What is measured for ``make paper``, cell by cell, as data. Pure.

A cell says all that its result depends on: the path, what is sent over it, what the line loses by which
seed, how often. All contestants in a cell have the same seeds; run n of a cell begins with ``seed + n``.
"""

import zlib
from collections.abc import Iterable, Iterator

from mininet_tests.lab.cells import Batch, Cell
from mininet_tests.papers.freemon.limits import (
    IMAGE_SLICE_BYTES,
    LATENCIES_MS,
    LOSSES_PERCENT,
    RATE_BPS,
    SEGMENTS,
    SUPER_PACKETS,
)

CONNECTIONS = ("reused", "sender connects", "receiver connects")
PAPER_RTT_MS, PAPER_LOSS_PERCENT = 180, 0.01
MUCH_PERCENT = 0.1
RUNS, MANY_RUNS, LOAD_RUNS = 5, 20, 3
ALGORITHMS = ("cubic", "bbr", "reno", "scalable", "highspeed", "htcp")
STREAMS = (1, 8, 27, 64)
PROGRAMS = (  # name, congestion control beneath it, connections; those over UDP bring their own
    ("gridftp", "cubic", 8),
    ("gridftp", "cubic", 27),  # with 64 its sessions fill the CPU at 4
    ("gridftp", "bbr", 8),  # with which the number of connections makes no difference; a cell takes minutes
    ("gridftp-udt", "cubic", 1),
    ("srt", "cubic", 1),
)
OVER_UDP = {"gridftp-udt", "srt"}
QDISCS = (None, "fq")  # by TCP's own pacing where it has one, or by fq; the better one counts
POOL = 27  # connections that a site keeps open today
TEN_BYTES = 2 * 1_344_012_290  # Freemon 2013 section IV.C
TEN_BPS = 10 * RATE_BPS
USUAL, FAST, SITE, WIDE, DATAGRAMS, SINGLE = 2, 4, 6, 10, 12, 40  # dilations
SITE_EXPERIMENTS = ("night", "both", "tools")
TOOLS = ("iperf3", "nuttcp", "gridftp", "curl")
NIGHT_IMAGES, CYCLE_US = 12, 17_000_000  # Freemon 2013 section I: an image every 17 seconds
TEN_SENDERS = (2, 10)
BIN_MS = 10  # of figure 3
START_WAYS = ("headway", "htb", "pause", "window")  # what keeps senders that start at once from a port's buffer
PORT_BYTES, DEEP_BYTES = 4_000_000, 30_000_000  # a port's buffer: some of a switch, and more than all windows
MTUS_BYTES = (1500, 9000)
QUICK_CORNER = (800, 1.0)
CELLS_A_BOOT = 12  # a boot takes as long as a cell; labs side by side are to end together


def cells(*, quick: bool) -> list[Cell]:
    """Return all cells, in the order in which they are measured; ``quick`` for a part of them, with fewer runs."""
    return [
        *table_cells(quick=quick),
        *rival_cells(quick=quick),
        *load_cells(quick=quick),
        *sensitivity_cells(quick=quick),
        *ten_cells(quick=quick),
        *([] if quick else [*figure3_cells(), *starts_cells()]),
        *([] if quick else site_cells()),
    ]


def table_cells(*, quick: bool) -> list[Cell]:
    """Return the cells of Table 1 (new connections) and Table 2 (reused), in both loss models.

    Without loss the models are the same, and one run is like the next: such a cell is measured once. Cells at the
    paper's latency are measured many times; and of Table 2 those that lose most, which differ most from run to run.
    """
    found = []
    for rtt_ms in LATENCIES_MS:
        for connection in CONNECTIONS:
            for loss_percent in LOSSES_PERCENT:
                for model in (SUPER_PACKETS, SEGMENTS) if loss_percent else (None,):
                    if quick and not _is_quick(rtt_ms, connection, loss_percent, model):
                        continue
                    much = connection == CONNECTIONS[0] and loss_percent >= MUCH_PERCENT
                    runs = (MANY_RUNS if much or rtt_ms == PAPER_RTT_MS else RUNS) if loss_percent else 1
                    found.append(table_cell(rtt_ms, loss_percent, connection, model, min(runs, 3) if quick else runs))
    return found


def _is_quick(rtt_ms: int, connection: str, loss_percent: float, model: str | None) -> bool:
    """Return whether a cell of the tables is of the quick ones."""
    if (rtt_ms, loss_percent) == QUICK_CORNER or (rtt_ms == PAPER_RTT_MS and loss_percent in (0.01, 1.0)):
        return connection == "reused"
    return rtt_ms == PAPER_RTT_MS and loss_percent == 0.0 and model is None


def table_cell(rtt_ms: int, loss_percent: float, connection: str, model: str | None, runs: int) -> Cell:
    """Return one cell of the tables."""
    return {
        "name": f"table-{connection.replace(' ', '-')}-{model or 'no-loss'}-{rtt_ms}ms-{loss_percent:g}",
        "experiment": "table",
        "rate_bps": RATE_BPS,
        "size_bytes": IMAGE_SLICE_BYTES,
        "connection": connection,
        "rtt_ms": rtt_ms,
        "loss_percent": loss_percent,
        "loss_model": model,
        "runs": runs,
        "seed": seed(rtt_ms, loss_percent),
    }


def rival_cells(*, quick: bool) -> list[Cell]:
    """Return the contestants on the paper's path, the image alone: packets are lost one by one.

    The port has a buffer of rate x round trip; send buffers are as large as anybody may want.
    """
    ours = [rival_cell("headway", count) for count in ((1,) if quick else (1, POOL))]
    today = [rival_cell("bbr", POOL, "fq", pooled=True)]
    if quick:
        return _fewer([*ours, *today, rival_cell("cubic", 8, "fq")])
    rivals = [rival_cell(name, count, qdisc) for name in ALGORITHMS for count in STREAMS for qdisc in QDISCS]
    return [*ours, *today, *rivals, *(program_cell(*choice) for choice in PROGRAMS)]


def rival_cell(algorithm: str, count: int, qdisc: str | None = None, *, pooled: bool = False) -> Cell:
    """Return one contestant; ``pooled`` asks each connection for its part of the rate."""
    pacing = "-pooled" if pooled else f"-{qdisc}" if qdisc else ""
    return {
        "name": f"rivals-{algorithm}-{count}{pacing}",
        "experiment": "rivals",
        "rate_bps": RATE_BPS,
        "size_bytes": IMAGE_SLICE_BYTES,
        "algorithm": algorithm,
        "connections": count,
        "qdisc": qdisc,
        "pooled": pooled,
        "rtt_ms": PAPER_RTT_MS,
        "loss_percent": PAPER_LOSS_PERCENT,
        "loss_model": SEGMENTS,
        "runs": RUNS,
        "seed": seed(PAPER_RTT_MS, PAPER_LOSS_PERCENT),
    }


def program_cell(program: str, algorithm: str, count: int) -> Cell:
    """Return one contestant that is a program."""
    cell = rival_cell(algorithm, count, "fq")
    return cell | {"program": program, "name": f"rivals-{program}-{algorithm}-{count}"}


def load_cells(*, quick: bool) -> list[Cell]:
    """Return the contestants beside a background and a database flow that run by the same algorithm; rivals with fq."""
    alone = [
        rival_cell("headway", 1),
        rival_cell("bbr", POOL, "fq", pooled=True),
        *(rival_cell(name, count, "fq") for name in ALGORITHMS for count in STREAMS),
        *(program_cell(*choice) for choice in PROGRAMS),
    ]
    return _fewer(map(_loaded, alone[:1])) if quick else list(map(_loaded, alone))


def _loaded(cell: Cell) -> Cell:
    """Return a contestant beside other flows."""
    others = {"experiment": "load", "background_connections": STREAMS[1], "runs": LOAD_RUNS}
    return cell | others | {"name": cell["name"].replace("rivals", "load")}


def sensitivity_cells(*, quick: bool) -> list[Cell]:
    """Return paths that are not as they were planned: one connection, 180 ms and 0.01% of single packets in the plan.

    The keys that are added: ``plan_rtt_ms`` and ``plan_permille``, what the plan takes the round trip and the rate for;
    ``policed_permille``, what the provider lets through of its promise; ``run_length``, how many segments are lost in a
    row; ``jitter_ms`` and ``shuffled_ms``, by how much super-packets are moved about, in order or past each other.
    """
    cases: list[tuple[str, str, Cell]] = [
        ("shorter", "the path is 20% shorter than planned", {"rtt_ms": 144, "plan_rtt_ms": 180}),
        ("longer", "the path is 20% longer than planned", {"rtt_ms": 216, "plan_rtt_ms": 180}),
        ("twice", "360 ms, planned for 180 (Freemon V.H)", {"rtt_ms": 360, "plan_rtt_ms": 180}),
        ("loss-10", "10% of the packets are lost (Freemon V.D)", {"loss_percent": 10.0, "seed": seed(180, 10.0)}),
        ("runs-10", "losses in runs of 10", {"run_length": 10}),
        ("runs-100", "losses in runs of 100", {"run_length": 100}),
        ("jitter-1", "delays of 1 ms more or less, in order", {"jitter_ms": 1}),
        ("jitter-5", "delays of 5 ms more or less, in order", {"jitter_ms": 5}),
        ("reordering-1", "delays of 1 ms more or less, overtaking", {"shuffled_ms": 1}),
        ("reordering-5", "delays of 5 ms more or less, overtaking", {"shuffled_ms": 5}),
        ("policed", "policed at 99% of the promise", {"policed_permille": 990}),
        ("policed-99", "policed at 99%, planned for 99%", {"policed_permille": 990, "plan_permille": 990}),
        ("policed-98", "policed at 99%, planned for 98%", {"policed_permille": 990, "plan_permille": 980}),
    ]
    base = table_cell(PAPER_RTT_MS, PAPER_LOSS_PERCENT, CONNECTIONS[0], SEGMENTS, RUNS) | {"experiment": "sensitivity"}
    found = [base | {"name": f"sensitivity-{name}", "what": what} | keys for name, what, keys in cases]
    return [] if quick else found


def ten_cells(*, quick: bool) -> list[Cell]:
    """Return the image over 10 Gbit/s, from 2 and from 10 senders; and with nothing but single packets, once each."""
    choices = [
        (mtu_bytes, senders, loss_percent)
        for mtu_bytes in MTUS_BYTES
        for senders in TEN_SENDERS
        for loss_percent in (0.0, PAPER_LOSS_PERCENT)
    ]
    if quick:
        return _fewer([ten_cell(*choice) for choice in choices if choice == (1500, 2, 0.0)])
    usual = [ten_cell(*choice) for choice in choices]
    single = {"single_packets": True, "runs": 1}
    return usual + [cell | single | {"name": f"{cell['name']}-single"} for cell in usual if cell["senders"] == 2]


def ten_cell(mtu_bytes: int, senders: int, loss_percent: float) -> Cell:
    """Return one transfer of the whole image."""
    return {
        "name": f"ten-{mtu_bytes}-{senders}-senders-{loss_percent:g}",
        "experiment": "ten",
        "rate_bps": TEN_BPS,
        "mtu_bytes": mtu_bytes,
        "size_bytes": TEN_BYTES,
        "senders": senders,
        "rtt_ms": PAPER_RTT_MS,
        "loss_percent": loss_percent,
        "loss_model": SEGMENTS if loss_percent else None,
        "runs": RUNS if loss_percent else 1,
        "seed": seed(PAPER_RTT_MS, loss_percent),
    }


def figure3_cells() -> list[Cell]:
    """Return the transfer of figure 3: the first one of a cell of the tables, with the same losses, in bins of time."""
    found = []
    for connection in (CONNECTIONS[1], CONNECTIONS[0]):
        cell = table_cell(PAPER_RTT_MS, PAPER_LOSS_PERCENT, connection, SEGMENTS, 1)
        name = f"figure3-{connection.replace(' ', '-')}"
        found.append(cell | {"name": name, "experiment": "figure3", "bin_ms": BIN_MS})
    return found


def starts_cells() -> list[Cell]:
    """Return senders that start at once, each by an interface as fast as the port they meet at (Freemon V.A).

    First all ways to keep them from a port of usual size, then the port that no way is needed for; what nothing keeps
    from the usual one comes last, since an allocation that has lost so much is given back for a while.
    """
    *kept, nothing = (starts_cell(way, max(TEN_SENDERS), PORT_BYTES) for way in START_WAYS)
    return [*kept, *(starts_cell("window", senders, DEEP_BYTES) for senders in TEN_SENDERS), nothing]


def starts_cell(way: str, senders: int, buffer_bytes: int) -> Cell:
    """Return one start, without losses on the line."""
    return {
        "name": f"starts-{way}-{senders}-{buffer_bytes // 10**6}MB",
        "experiment": "starts",
        "rate_bps": RATE_BPS,
        "size_bytes": IMAGE_SLICE_BYTES,
        "way": way,
        "senders": senders,
        "buffer_bytes": buffer_bytes,
        "rtt_ms": PAPER_RTT_MS,
        "loss_percent": 0.0,
        "loss_model": None,
        "runs": 1,
        "seed": seed(PAPER_RTT_MS, 0.0),
    }


def site_cells() -> list[Cell]:
    """Return what needs a whole site: a night of images, all classes at once, and people's tools."""
    path = {"rtt_ms": PAPER_RTT_MS, "loss_percent": PAPER_LOSS_PERCENT, "loss_model": SUPER_PACKETS}
    path |= {"seed": seed(PAPER_RTT_MS, PAPER_LOSS_PERCENT)}
    slices = {"rate_bps": RATE_BPS, "size_bytes": IMAGE_SLICE_BYTES}
    whole = {"rate_bps": TEN_BPS, "size_bytes": TEN_BYTES}
    cycles, once = {"runs": NIGHT_IMAGES, "cycle_us": CYCLE_US}, {"runs": 1, "lead_s": 2}
    return [
        {"name": "night-1g", "experiment": "night", **path, **slices, **cycles},
        {"name": "both-1g", "experiment": "both", **path, **slices, **once},
        {"name": "both-10g", "experiment": "both", **path, **whole, **once},
        {"name": "tools-1g", "experiment": "tools", **path, **slices, "runs": len(TOOLS), "tools": list(TOOLS)},
    ]


def _fewer(some: Iterable[Cell]) -> list[Cell]:
    return [cell | {"runs": min(cell["runs"], 2)} for cell in some]


def seed(rtt_ms: int, loss_percent: float) -> int:
    """Return the first seed of all who are measured on a path.

    >>> seed(180, 0.01) == seed(180, 0.01) != seed(180, 0.1)
    True
    """
    return zlib.crc32(f"{rtt_ms} ms, {loss_percent:g} %".encode()) or 1


def batches(missing: list[Cell], line: tuple[str, ...], site: tuple[str, ...]) -> Iterator[Batch]:
    """Yield boots for cells: those of one boot are measured on one line, or each on a whole site of its own.

    Args:
        missing: the cells.
        line: the command that measures those on the bare line.
        site: the command that measures the others.
    """
    like: dict[tuple[object, ...], list[Cell]] = {}
    for cell in missing:
        like.setdefault(likeness(cell), []).append(cell)
    for some in like.values():
        for first in range(0, len(some), CELLS_A_BOOT):
            command = site if some[0]["experiment"] in SITE_EXPERIMENTS else line
            yield Batch(command, tuple(some[first : first + CELLS_A_BOOT]), dilation(some[0]), units=units)


def likeness(cell: Cell) -> tuple[object, ...]:
    """Return what cells have in common that are measured on one site."""
    single = cell.get("single_packets", False)
    tail = cell.get("tail_copies", True), cell.get("tail_coded", False)
    return cell["experiment"], cell["rate_bps"], cell.get("mtu_bytes", 1500), single, dilation(cell), tail


def dilation(cell: Cell) -> int:
    """Return how fast a CPU a cell needs.

    At 2, transfers that lose 1% of single packets leave 60% of it in the busiest tenth of a second: what is lost is
    looked for among tens of thousands of segments. Each of many paced connections sends only a few segments at once,
    a program that sends datagrams one: at 4, SRT fills the CPU, and so do ten senders that start at once into a port
    that is watched all the time. At 10 Gbit/s a hole that is filled makes 110 MB
    readable at once, and of single packets there are 813,000 in a second. A whole site is as the demo.
    """
    if cell["experiment"] in SITE_EXPERIMENTS:
        return SITE
    if cell.get("program") in OVER_UDP:
        return DATAGRAMS
    if cell.get("single_packets"):
        return SINGLE
    if cell["rate_bps"] > RATE_BPS or cell["experiment"] == "starts":
        return WIDE
    many = cell.get("connections", 1) > 1 or cell["experiment"] == "load" or "program" in cell
    return FAST if many or cell["loss_percent"] > max(LOSSES_PERCENT) else USUAL


def units(cell: Cell) -> float:
    """Return what a cell costs, about, in transfers of the image's slice at 1 Gbit/s."""
    if cell["experiment"] == "night":  # it lasts
        return float(cell["runs"] * cell["cycle_us"]) / 500_000
    transfers: float = cell["runs"] + (1 if cell.get("algorithm", "headway") != "headway" else 0.1)
    size_bytes: int = cell["size_bytes"]
    return transfers * size_bytes / IMAGE_SLICE_BYTES * (SINGLE if cell.get("single_packets") else 1)
