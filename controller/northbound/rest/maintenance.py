"""``/v1/maintenance``: when a circuit is worked on, what that would break, and what is planned."""

import secrets
from functools import partial
from typing import Annotated, Self

from fastapi import Path, Response
from pydantic import ConfigDict, Field, model_validator, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.maintaining import Planned
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest.answers import Routes, answer, once_saved, problem
from controller.northbound.rest.bodies import (
    Body,
    Description,
    DurationS,
    Instant,
    Name,
    described_body,
    digest,
    one_of,
    us_of_seconds,
)
from controller.northbound.rest.pages import Key
from controller.northbound.rest.shapes import WHOLE, Creator, Time
from controller.plan.keeping import Unkeepable
from controller.plan.maintenance import Maintenance
from topology.units import shown_time

Id = Annotated[str, Path(alias="id", description="The maintenance's id.", examples=["5b1f0c9ad0e6f2b4"])]


class MaintenanceIn(Body):
    """When a circuit is to be worked on."""

    model_config = ConfigDict(json_schema_extra=described_body(("end", "duration_s")))

    circuit: Annotated[Name, Field(description="Which; nothing goes by it meanwhile.", examples=["chile-illinois"])]
    start: Instant = Field(default=None, description="RFC 3339 with its offset; now if absent or past.")
    end: Instant = Field(default=None, description="RFC 3339, not in it any more; this or `duration_s`.")
    duration_s: DurationS = Field(default=None, description="Seconds; this or `end`.")
    description: Description = Field(default="", description="Your own words.")
    only_look: bool = Field(default=False, description="Only say what it would break, and plan nothing.")
    force: bool = Field(default=False, description="Plan it though it breaks reservations.")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        one_of(self, "end", "duration_s")
        return self

    def value(self, name: str, key: str | None, now_us: int) -> Maintenance:
        """Return it as the plan knows it."""
        start_us = max(now_us, self.start or 0)
        end_us = start_us + us_of_seconds(self.duration_s or 0) if self.end is None else self.end
        asked, fingerprint = ("", "") if key is None else (key, digest(self))
        return Maintenance(name, self.circuit, start_us, end_us, self.description, key=asked, fingerprint=fingerprint)


@with_config(WHOLE)
class BrokenOut(TypedDict):
    """A reservation that a maintenance breaks, or interrupts."""

    id: Annotated[str, Field(description="Of the reservation.", examples=["9f86d081884c7d65"])]
    why: Annotated[str, Field(description="What lacks, where, from when and until when.")]
    until: Annotated[
        Time | None, Field(description="When it goes on after its last interruption; null if it fails instead.")
    ]
    instead: Annotated[str, Field(description="What would be granted instead at this moment; empty if nothing.")]


@with_config(WHOLE)
class MaintenanceOut(TypedDict):
    """A time in which a circuit carries nothing."""

    id: Annotated[str, Field(description="Its name.", examples=["5b1f0c9ad0e6f2b4"])]
    circuit: Annotated[str, Field(description="Which.", examples=["chile-illinois"])]
    start: Annotated[Time, Field(description="When it begins.")]
    end: Annotated[Time, Field(description="When it ends; not in it any more.")]
    description: Annotated[str, Field(description="What for.")]
    creator: Creator
    created: Annotated[Time, Field(description="When it was planned.")]


@with_config(WHOLE)
class PlannedOut(TypedDict):
    """What became of a wish for maintenance."""

    maintenance: Annotated[MaintenanceOut, Field(description="It, as it is or would be.")]
    breaks: Annotated[list[BrokenOut], Field(description="The reservations that it breaks, or would.")]
    beside: Annotated[
        list[MaintenanceOut],
        Field(description="Those of the circuit that share some of its time; nothing goes by it until all are over."),
    ]
    planned: Annotated[
        bool, Field(description="Whether it is; false if you only looked, or asked again for what is over.")
    ]


class MaintenanceRoutes:
    """The handlers."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._use_cases = dependencies.use_cases.maintaining

    def routes(self) -> Routes:
        """Return the routes."""
        routes = Routes("maintenance")
        many, one = "/v1/maintenance", "/v1/maintenance/{id}"
        listed = {200: {"model": list[MaintenanceOut], "description": "In the order of their start"}}
        planned = {
            201: {"model": PlannedOut, "description": "It is planned"},
            200: {"model": PlannedOut, "description": "You only looked, or it was asked for before"},
        }
        gone = {200: {"model": MaintenanceOut, "description": "It is taken back, or was"}}
        routes.add(f"GET {many}", self.all, listed)
        routes.add(f"POST {many}", self.plan, planned, 400, 404, 409, 413, 415, 422, 503)
        routes.add(f"DELETE {one}", self.cancel, gone, 404, 422, 503)
        return routes

    def all(self) -> Response:
        """Return the maintenance that is planned here and not over; that of the configuration is not among it."""
        return answer([_shown(one) for one in self._use_cases.all()])

    async def plan(self, body: MaintenanceIn, key: Key = None) -> Response:
        """Plan a maintenance; nothing goes by the circuit meanwhile, and nothing is promised for it.

        If it would break reservations it is refused with what they are and what would be granted instead, unless
        `force` is said: those that have time left when it is over are interrupted until then, others fail.
        `only_look` says that and plans nothing. Asked again with the same `Idempotency-Key` and the
        same body, it is the same maintenance.
        """
        asked = partial(body.value, secrets.token_hex(8), key)
        done = self._use_cases.plan(asked, only_look=body.only_look, force=body.force)
        await once_saved(done.saved)
        value: Planned = done.value
        breaks = [_broken(each) for each in value.breaks]
        if not (value.is_planned or body.only_look or done.is_repeated):
            detail = f"it would break {len(breaks)} reservations: say force to plan it all the same"
            return problem(409, "would-break", detail, {"breaks": breaks})
        said: PlannedOut = {
            "maintenance": _shown(value.maintenance),
            "breaks": breaks,
            "beside": [_shown(each) for each in value.beside],
            "planned": value.is_planned,
        }
        return answer(said, 201 if value.is_planned and not done.is_repeated else 200)

    async def cancel(self, name: Id) -> Response:
        """Take a maintenance back; what of it is over stays over. One that is taken back already stays so."""
        done = self._use_cases.cancel(name)
        await once_saved(done.saved)
        return answer(_shown(done.value))


def _shown(value: Maintenance) -> MaintenanceOut:
    return {
        "id": value.name,
        "circuit": value.circuit,
        "start": shown_time(value.start_us),
        "end": shown_time(value.end_us),
        "description": value.words,
        "creator": value.creator or None,
        "created": shown_time(value.created_us),
    }


def _broken(value: Unkeepable) -> BrokenOut:
    until = None if value.goes_on_us is None else shown_time(value.goes_on_us)
    return {"id": value.reservation_id, "why": value.why, "until": until, "instead": value.instead}
