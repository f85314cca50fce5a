"""What a planned hand-over is made of, by what the logs of both controllers say. Pure."""

import re
import statistics
from collections.abc import Iterable
from datetime import datetime, timedelta

_SAID = re.compile(r"timestamp=(\S+) .*event=(controller\.stopping|leader\.taken|leader\.leads)\b")
_ERROR = re.compile(r"level=(?:error|critical) .*?event=(\S+)")
STEPS = ("controller.stopping", "leader.taken", "leader.leads")


def steps(logs: Iterable[str]) -> list[tuple[float, float]]:
    r"""Return of each hand-over how long it took, ms, from when the leader began to end until another had its row.

    And how long after that until it led. What is not followed by the next step within a second is no hand-over: the
    controllers' end, or a death.

    >>> lines = [f"timestamp=2026-11-26T07:28:32.9{n}0000Z level=info event={s}" for n, s in enumerate(STEPS)]
    >>> steps(["\n".join(lines[::2]), lines[1]])
    [(10.0, 10.0)]
    """
    said = sorted((datetime.fromisoformat(at), event) for log in logs for at, event in _SAID.findall(log))
    return [
        (_ms(taken - stopping), _ms(leads - taken))
        for (stopping, first), (taken, second), (leads, third) in zip(said, said[1:], said[2:], strict=False)
        if (first, second, third) == STEPS and (leads - stopping).total_seconds() < 1
    ]


def said_at_ends(logs: Iterable[str]) -> list[str]:
    r"""Return the errors that controllers said while they ended by intent, as who lets another lead does.

    >>> ends = "event=controller.stopping\nlevel=error event=store.failed why=closed\nlevel=info event=controller.down"
    >>> said_at_ends([ends, "level=error event=store.failed"])
    ['store.failed']
    """
    ends = (
        end.partition("event=controller.down")[0] for log in logs for end in log.split("event=controller.stopping")[1:]
    )
    return [event for end in ends for event in _ERROR.findall(end)]


def summed(found: Iterable[tuple[float, ...]]) -> dict[str, dict[str, float | int]]:
    """Return median and worst of the steps of some hand-overs; nothing if there was none."""
    names = "until the row is taken, ms", "until it leads after that, ms"
    return {
        name: {"count": len(values), "median": round(statistics.median(values), 1), "worst": max(values)}
        for name, values in zip(names, zip(*found, strict=True), strict=False)
    }


def _ms(span: timedelta) -> float:
    return round(span.total_seconds() * 1000, 1)
