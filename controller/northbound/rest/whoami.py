"""``/v1/whoami``: who asks, what that one may, and what is left of it."""

from typing import Annotated

from fastapi import Request, Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.asker import present_asker
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest.answers import Routes, answer
from controller.northbound.rest.shapes import WHOLE, Bps
from controller.plan.quotas import Live, Quota
from controller.security.tokens import Principal, Role


@with_config(WHOLE)
class QuotaOut(TypedDict):
    """What an owner may have; null for as much as there is."""

    rate_bps: Annotated[int | None, Field(description="Of all its reservations at any instant, bit/s on the wire.")]
    bytes: Annotated[int | None, Field(description="Payload of all its announcements in the plan.")]
    ahead_s: Annotated[int | None, Field(description="How far from now its reservations end at the latest, seconds.")]
    entries: Annotated[int | None, Field(description="How many reservations and announcements, together.")]


@with_config(WHOLE)
class UsedOut(TypedDict):
    """What an owner has."""

    rate_bps: Annotated[Bps, Field(description="The most at any instant from now on, bit/s on the wire.")]
    bytes: Annotated[int, Field(description="Payload of its announcements in the plan.")]
    entries: Annotated[int, Field(description="Its reservations and announcements that have not ended.")]


@with_config(WHOLE)
class OwnerOut(TypedDict):
    """An owner in whose name one may ask."""

    owner: Annotated[str, Field(description="The principal, or a group of it.", examples=["group:lsst"])]
    quota: Annotated[QuotaOut | None, Field(description="What it may have; null for who operates the site.")]
    used: Annotated[UsedOut, Field(description="What it has.")]
    left: Annotated[QuotaOut | None, Field(description="What is left of the quota; null if there is none.")]


@with_config(WHOLE)
class WhoamiOut(TypedDict):
    """Who asks."""

    name: Annotated[str, Field(description="The principal.", examples=["token:ana"])]
    role: Annotated[Role, Field(description="What it may.")]
    groups: Annotated[list[str], Field(description="That it is in.", examples=[["lsst"]])]
    owners: Annotated[list[OwnerOut], Field(description="In whose names it may ask: itself first.")]


class Whoami:
    """The handler."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._allowances = dependencies.use_cases.allowances
        self._now_us = dependencies.now_us

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("access")
        shown = {200: {"model": WhoamiOut, "description": "As it is now"}}
        routes.add("GET /v1/whoami", self.whoami, shown)
        return routes

    def whoami(self, request: Request) -> Response:
        """Return who asks, by what name, role and groups, and what is left of each quota that this one may use."""
        who: Principal = request.state.principal
        owners = sorted(present_asker().owners, key=lambda owner: (owner != who.name, owner))
        asked = not who.role.includes(Role.OPERATE)
        said: WhoamiOut = {
            "name": who.name,
            "role": who.role,
            "groups": sorted(who.groups),
            "owners": [self._owner(owner, asked=asked) for owner in owners],
        }
        return answer(said)

    def _owner(self, owner: str, *, asked: bool) -> OwnerOut:
        live, quota = self._allowances.live_of(owner), self._allowances.quotas.of(owner)
        used: UsedOut = {
            "rate_bps": live.peak_bps(self._now_us()),
            "bytes": live.size_bytes,
            "entries": live.entries,
        }
        return {
            "owner": owner,
            "quota": _quota(quota) if asked else None,
            "used": used,
            "left": _left(quota, live, used["rate_bps"]) if asked else None,
        }


def _quota(value: Quota) -> QuotaOut:
    ahead_s = None if value.ahead_us is None else value.ahead_us // 1_000_000
    return {"rate_bps": value.rate_bps, "bytes": value.size_bytes, "ahead_s": ahead_s, "entries": value.entries}


def _left(quota: Quota, live: Live, peak_bps: int) -> QuotaOut:
    """Return what is left; never less than nothing, where a quota has become smaller than what there is."""
    left = _quota(quota)

    def less(most: int | None, has: int) -> int | None:
        return None if most is None else max(0, most - has)

    return {
        "rate_bps": less(left["rate_bps"], peak_bps),
        "bytes": less(left["bytes"], live.size_bytes),
        "ahead_s": left["ahead_s"],
        "entries": less(left["entries"], live.entries),
    }
