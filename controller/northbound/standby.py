"""What a controller of a pair does with requests while another leads: answer what only reads, pass on the rest."""

import asyncio
from collections.abc import Callable
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.northbound.access import SESSION_PATH
from controller.northbound.gate import READS
from controller.northbound.rest.answers import RETRY_AFTER_S, problem
from controller.northbound.under_way import UnderWay
from controller.plan.leading import LeaderView, PairStanding

EVENTS_PATH = "/v1/events"  # what happens, happens where it is led

LOOK_S, LOOKS = 0.001, 1_000  # while nobody leads a request is kept for a second at most

OF_A_PATH = "/:@!$&'()*+,;="  # what stands in a path as it is (RFC 3986, section 3.3), beside what quote leaves


class StandBy:
    """Stands behind the question who may, and before the handlers."""

    def __init__(self, app: ASGIApp, leader: Callable[[], LeaderView], under_way: UnderWay) -> None:
        self._app = app
        self._leader = leader
        self._under_way = under_way
        self._looking: asyncio.Task[None] | None = None  # for all whose requests are kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to its handler, or its client to who leads.

        What only reads says by ``Age`` (RFC 9111, section 5.1) how old it may be, in seconds.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] not in READS and scope["path"] != SESSION_PATH:
            await self._change(scope, receive, send)
            return
        leader = self._leader()
        if scope["path"] == EVENTS_PATH and not (leader := await self._led(leader)).takes:
            await self._pass_on(leader, scope, receive, send)
            return

        async def aged(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["age"] = str(-(-leader.age_us // 1_000_000))
            await send(message)

        await self._app(scope, receive, aged if leader.standing is PairStanding.STANDBY else send)

    async def _change(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that changes something; whoever lets another one lead waits until it is answered."""
        with self._under_way.counted():  # before it is looked whether we lead
            if (leader := self._leader()).takes:
                await self._app(scope, receive, send)
                return
        if not (leader := await self._led(leader)).takes:
            await self._pass_on(leader, scope, receive, send)
            return
        with self._under_way.counted():
            await self._app(scope, receive, send)

    @staticmethod
    async def _pass_on(leader: LeaderView, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"].decode("ascii")
        path = quote(scope["path"], safe=OF_A_PATH)
        await passed_on(leader, path + (f"?{query}" if query else ""))(scope, receive, send)

    async def _led(self, leader: LeaderView) -> LeaderView:
        """Return who leads, once that is known: while leaders change it is nobody, for milliseconds."""
        if not is_about_to_change(leader):
            return leader
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)
        return self._leader()

    async def _look(self) -> None:
        """Return once it is known who leads, or after a second; whoever waits for that, it is looked once."""
        for _ in range(LOOKS):
            await asyncio.sleep(LOOK_S)
            if not is_about_to_change(self._leader()):
                return


def is_about_to_change(leader: LeaderView) -> bool:
    """Return whether we have the leader's row and are about to lead, or know of nobody who has it."""
    if leader.standing is PairStanding.LEADER:
        return not leader.takes
    return leader.standing is PairStanding.STANDBY and not leader.address


def passed_on(leader: LeaderView, path: str) -> Response:
    """Return the answer to a request that changes something: who takes it, or when to ask again.

    Args:
        leader: who leads, as we know it; it is not us, or we do not know.
        path: of the request, with its query, percent-encoded.
    """
    again = {"Retry-After": str(RETRY_AFTER_S)}
    if leader.standing is PairStanding.STANDBY and leader.address:
        where = f"{leader.address.rstrip('/')}/{path.lstrip('/')}"  # never a part of the host's name
        detail = f"this controller stands by: {leader.address} leads, ask there"
        return problem(307, "stands-by", detail, {"leader": leader.address}, {"Location": where, **again})
    if leader.standing is PairStanding.UNSURE:
        detail = "the database does not say that this controller still leads: nothing is decided until it does"
        return problem(503, "leader-unsure", detail, {}, again)
    return problem(503, "no-leader", "no controller leads at this moment: one of the pair is about to", {}, again)
