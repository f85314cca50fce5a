"""``/v1/drift``: what the latest audits have found, and what was done about it."""

from typing import Annotated

from fastapi import Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.audit.drift import Audit, DriftKind, Outcome, Shape
from controller.audit.record import Counted, DriftView
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest.answers import Routes, answer
from controller.northbound.rest.shapes import WHOLE, Time
from topology.units import shown_time

MOST_SHOWN = 200  # deviations of one audit; a switch that has lost all its rules has a thousand


@with_config(WHOLE)
class DeviationOut(TypedDict):
    """An object that was not as it should be."""

    kind: Annotated[DriftKind, Field(description="What sort of object it is; `htb` is a queue as the kernel has it.")]
    shape: Annotated[Shape, Field(description="How it differed.")]
    wanted: Annotated[str, Field(description="What it should be; empty if it should not be there.")]
    found: Annotated[str, Field(description="What it was; empty if it was not there.")]
    outcome: Annotated[Outcome, Field(description="What was done about it.")]
    todo: Annotated[str, Field(description="What a person has to do; empty if nothing.")]


@with_config(WHOLE)
class AuditOut(TypedDict):
    """One audit."""

    at: Annotated[Time, Field(description="When it began.")]
    took_us: Annotated[int, Field(description="How long it took, repairs included, microseconds.")]
    proper: Annotated[dict[DriftKind, int], Field(description="How many objects were as they should be.")]
    deviations: Annotated[list[DeviationOut], Field(description=f"The others, at most {MOST_SHOWN}.")]
    more: Annotated[int, Field(description="How many deviations are not shown.")]
    messages: Annotated[int, Field(description="How many changes were sent to put things right.")]
    errors: Annotated[list[str], Field(description="What kept it from looking at everything.")]
    alarms: Annotated[list[str], Field(description="What a person has to look after, and how.")]


@with_config(WHOLE)
class PlaceOut(TypedDict):
    """A switch, or all hosts."""

    place: Annotated[str, Field(description="The switch's name, or `hosts`.", examples=["ls1"])]
    audits: Annotated[int, Field(description="How many there were since the controller started.")]
    messages: Annotated[int, Field(description="How many changes they sent.")]
    latest: Annotated[AuditOut | None, Field(description="The latest audit; null before the first.")]
    drifted: Annotated[AuditOut | None, Field(description="The latest one that found drift; null if none has.")]


@with_config(WHOLE)
class TallyOut(TypedDict):
    """How often something was found since the controller started; what lasts counts once."""

    place: Annotated[str, Field(description="The switch's name, or `hosts`.")]
    kind: Annotated[DriftKind, Field(description="What sort of object it was.")]
    shape: Annotated[Shape, Field(description="How it differed.")]
    found: Annotated[int, Field(description="How often.")]
    repaired: Annotated[int, Field(description="How often it was put right.")]


@with_config(WHOLE)
class DriftOut(TypedDict):
    """What audits have seen."""

    interval_s: Annotated[float, Field(description="How often each place is audited, seconds.")]
    places: Annotated[list[PlaceOut], Field(description="Every switch, then the hosts.")]
    tallies: Annotated[list[TallyOut], Field(description="What was found since the controller started.")]


class Drift:
    """The handler."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("state")
        routes.add("GET /v1/drift", self.drift, {200: {"model": DriftOut, "description": "As of the latest audits"}})
        return routes

    def drift(self) -> Response:
        """Return the latest audit of every switch and of the hosts: what was found, and what was done about it."""
        return answer(
            _view(self._dependencies.drift(), [*(s.name for s in self._dependencies.network.switches), "hosts"])
        )


def _view(view: DriftView, places: list[str]) -> DriftOut:
    keys = sorted({*view.found, *view.repaired})
    return {
        "interval_s": view.interval_s,
        "places": [
            {
                "place": place,
                "audits": view.audits.get(place, 0),
                "messages": view.messages.get(place, 0),
                "latest": _audit(view.latest.get(place)),
                "drifted": _audit(view.drifted.get(place)),
            }
            for place in places
        ],
        "tallies": [_tally(view, key) for key in keys],
    }


def _tally(view: DriftView, key: Counted) -> TallyOut:
    place, kind, shape = key
    found, repaired = view.found.get(key, 0), view.repaired.get(key, 0)
    return {"place": place, "kind": kind, "shape": shape, "found": found, "repaired": repaired}


def _audit(value: Audit | None) -> AuditOut | None:
    if value is None:
        return None
    shown = value.seen.deviations[:MOST_SHOWN]
    return {
        "at": shown_time(value.at_us),
        "took_us": value.took_us,
        "proper": dict(value.seen.proper),
        "deviations": [
            {
                "kind": d.kind,
                "shape": d.shape,
                "wanted": d.wanted,
                "found": d.found,
                "outcome": d.outcome,
                "todo": d.todo,
            }
            for d in shown
        ],
        "more": len(value.seen.deviations) - len(shown),
        "messages": value.messages,
        "errors": list(value.errors),
        "alarms": list(value.alarms),
    }
