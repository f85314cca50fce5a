"""What the runs of a variant show together: a row for each item of the workload, and the promises that break. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from controller.whatif.outcomes import RunOutcome, TransferOutcome
from controller.whatif.response import Unheld, takes_us
from controller.whatif.supposed import WhatIf
from topology.network import hops
from topology.protocol import FlowClass
from topology.units import shown_time
from topology.wire import Layer, converted_bps

MOST_BROKEN = 100_000  # of one variant are told: some 30 MB of JSON


@dataclass(frozen=True, slots=True)
class ItemSummary:
    """What all transfers of one item come to.

    Attributes:
        item: its name.
        asked: how many there were.
        refused: how many were not promised.
        late: how many promises are broken.
        unfinished: how many were under way at the end, and not late.
        over: how many took longer than they were to take, or were refused; None if nothing was said of that.
        done_by_us: when the last was done, Unix time; None if none was.
        worst_us: the longest; None if none was done.
        median_us: half took no longer.
        low_us: 5% took no longer.
        high_us: 95% took no longer.
    """

    item: str
    asked: int
    refused: int
    late: int
    unfinished: int
    over: int | None
    done_by_us: int | None
    worst_us: int | None
    median_us: int | None
    low_us: int | None
    high_us: int | None


def share_us(sorted_us: Sequence[int], percent: int) -> int | None:
    """Return the least that at least so many percent do not exceed; None of nothing.

    >>> share_us([1, 2, 3, 4], 50), share_us([7], 5), share_us([], 50)
    (2, 7, None)
    """
    if not sorted_us:
        return None
    return sorted_us[max(0, -(-len(sorted_us) * percent // 100) - 1)]


def summary_of(runs: Sequence[RunOutcome], within_us: Mapping[str, int]) -> tuple[ItemSummary, ...]:
    """Return a row for each item of the workload, over all runs together.

    Args:
        runs: of one variant.
        within_us: by item, what each is to take at most.
    """
    by_item: dict[str, list[tuple[TransferOutcome, int]]] = {}
    for run in runs:
        for one in run.transfers:
            by_item.setdefault(one.item, []).append((one, run.until_us))
    return tuple(_row(item, found, within_us.get(item)) for item, found in by_item.items())


def _row(item: str, found: Sequence[tuple[TransferOutcome, int]], within_us: int | None) -> ItemSummary:
    took = sorted(one.took_us for one, _ in found if one.took_us is not None)
    late = [one for one, until_us in found if one.is_late(until_us)]
    unfinished = [o for o, until_us in found if o.done_us is None and not o.is_refused and not o.is_late(until_us)]
    over = None
    if within_us is not None:
        over = sum(is_over(one, within_us, until_us) for one, until_us in found)
    return ItemSummary(
        item,
        len(found),
        sum(one.is_refused for one, _ in found),
        len(late),
        len(unfinished),
        over,
        max((one.done_us for one, _ in found if one.done_us is not None), default=None),
        took[-1] if took else None,
        share_us(took, 50),
        share_us(took, 5),
        share_us(took, 95),
    )


def is_over(one: TransferOutcome, within_us: int, until_us: int) -> bool:
    """Return whether a transfer took longer than it was to take, or was not promised at all."""
    if one.is_refused:
        return True
    took_us = one.took_us if one.took_us is not None else until_us - one.begun_us
    return took_us > within_us


def broken(runs: Iterable[RunOutcome], most: int = MOST_BROKEN) -> list[dict[str, Any]]:
    """Return the promises that break and what was refused, as JSON has them, in the order of the runs.

    Of more than :data:`MOST_BROKEN` the first; :func:`broken_count` has them all.
    """
    return [_broken(seed, one) for seed, one in islice(_all_broken(runs), most)]


def broken_count(runs: Iterable[RunOutcome]) -> int:
    """Return how many promises break, with what was refused."""
    return sum(1 for _ in _all_broken(runs))


def _all_broken(runs: Iterable[RunOutcome]) -> Iterator[tuple[int, TransferOutcome]]:
    return ((r.seed, one) for r in runs for one in r.transfers if one.is_late(r.until_us) or one.is_refused)


def _broken(seed: int, one: TransferOutcome) -> dict[str, Any]:
    return {
        "seed": seed,
        "item": one.item,
        "number": one.number,
        "name": one.called or None,
        "begun": shown_time(one.begun_us),
        "promised": None if one.promised_us is None else shown_time(one.promised_us),
        "done": None if one.done_us is None else shown_time(one.done_us),
        "lacked_us": one.lacked_us,
        "refused": one.is_refused,
        "why": one.why,
    }


def strangers_us(supposed: WhatIf) -> dict[str, tuple[int, int]]:
    """Return, by transfer that nobody holds, how long it takes: the least and the most, microseconds.

    They have what the plan leaves to the class of the unplanned, of which those who cross a link share that evenly.
    """
    network = supposed.site.network
    cap_ppm = supposed.policy.classes[FlowClass.UNPLANNED].cap_ppm
    paths = [network.path(one.sender, one.target) for one in supposed.strangers]
    crossed = Counter(hop for path in paths for hop in hops(path))
    found = {}
    for one, path in zip(supposed.strangers, paths, strict=True):
        framing = network.framing_of(path)
        wire_bps = min(network.link(*hop).rate_bps * cap_ppm // (10**6 * crossed[hop]) for hop in hops(path))
        share_bps = max(1, converted_bps(wire_bps, Layer.WIRE, Layer.PAYLOAD, framing))
        way = Unheld(network.path_rtt_us(path), framing.mss_bytes, one.loss, one.streams)
        found[one.name] = takes_us(one.algorithm, one.size_bytes, way, share_bps)
    return found
