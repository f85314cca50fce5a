"""The pages: who asks for which, and what is answered. What is looked at is in the modules beside this one."""

from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from controller.database import DatabaseFailed
from controller.database.text import without_paths
from controller.errors import NotKnown
from controller.northbound.access import COOKIE, AccessRules, asker_of
from controller.northbound.dependencies import Dependencies
from controller.northbound.events import FULL_RETRY_S, Stream
from controller.northbound.page.detail import Detail
from controller.northbound.page.details import Details
from controller.northbound.page.live import followed
from controller.northbound.page.oidc_login import DONE, NotLoggedIn, OidcLogin
from controller.northbound.page.screen import STALE_S, Screen
from controller.northbound.page.tonight import Tonight
from controller.northbound.page.watch import Watch
from controller.northbound.rest.answers import answer, problem
from controller.plan.admission import RESERVABLE
from controller.security.connections import Places, counted_as
from controller.security.tokens import Principal, Role
from topology import __version__

# Scripts, styles and pictures are files of ours; nothing is loaded from elsewhere, and nobody else's page frames ours.
CSP = "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
KINDS = {"css": "text/css", "js": "text/javascript", "txt": "text/plain", "svg": "image/svg+xml"}
ICON = "icon.svg"
MOST_PAGES, MOST_OF_ONE = 256, 64  # that follow at once, in all and of one address
SESSION_S = 12 * 3600  # a browser forgets a token after a night


class LoginIn(BaseModel):
    """A token, to be kept by a browser."""

    token: Annotated[str, Field(max_length=512)]


class Pages:
    """The handlers."""

    def __init__(self, dependencies: Dependencies, rules: AccessRules) -> None:
        self._behind = dependencies
        self._rules = rules
        self.watch, self.tonight = Watch(dependencies), Tonight(dependencies)
        others = self._behind.others  # a page asks whether these are there, without showing who it is
        self_and_others = " ".join(("'self'", *others))
        self._csp = f"{CSP}; connect-src {self_and_others}" if others else CSP
        self._screen = Screen(dependencies, self.watch, self.tonight)
        self._details = Details(dependencies)
        self._oidc = None if rules.issuer is None else OidcLogin(rules.issuer, rules.sessions)
        self._followers = Places(MOST_PAGES, MOST_OF_ONE)
        self._static = {one.name: one for one in files(__package__).joinpath("static").iterdir() if one.is_file()}

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to an application's router; they are no part of the API."""
        gets: dict[str, Callable[..., Any]] = {
            "/": self.screen,
            "/live": self.live,
            "/series": self.series,
            "/login": self.login,
            "/login/oidc": self.oidc,
            DONE: self.oidc_done,
            "/static/{version}/{name}": self.static,
            "/reservations/{name}": self.reservation,
            "/announcements/{name:path}": self.announcement,
            "/hosts/{name}": self.host,
            "/circuits/{name}": self.circuit,
            "/switches/{name}": self.switch,
            "/transitions": self.transitions,
            "/events": self.events,
        }
        for path, handler in gets.items():
            router.add_api_route(path, handler, methods=["GET"], response_class=Response)
        router.add_api_route("/session", self.log_in, methods=["POST"], response_class=Response)
        router.add_api_route("/session", self.log_out, methods=["DELETE"], response_class=Response)

    def screen(self, request: Request) -> Response:
        """Return the one screen."""
        network = self._behind.network
        pieces = {name: piece.text for name, piece in self._screen.pieces().items()}
        ends = [*dict.fromkeys((*network.sites, *(host.name for host in network.hosts)))]
        return self._page(request, "screen.html", pieces=pieces, ends=ends, classes=RESERVABLE, stale_s=STALE_S)

    async def live(self, request: Request) -> Response:
        """Tell a page what changes."""
        network = counted_as(request.client.host if request.client else "")
        if not self._followers.take(network):
            why = "as many pages follow as may, in all or from your address; close one"
            return problem(429, "too-many", why, {}, {"Retry-After": str(FULL_RETRY_S)})
        stream = followed(self._screen, lambda: self._behind.events.is_closed)
        return Stream(lambda: self._followers.leave(network), stream)

    def series(self) -> Response:
        """Return planned against delivered, for the last quarter of an hour."""
        self.watch.latest()
        return answer(self.watch.drawn())

    def login(self, request: Request) -> Response:
        """Return where a token is asked for."""
        offered = self._oidc is not None and self._oidc.is_offered
        return self._page(request, "login.html", oidc=offered)

    async def oidc(self, request: Request) -> Response:
        """Take a browser to the issuer, to log in there."""
        if self._oidc is None or not self._oidc.is_offered:
            return self._page(request, "error.html", 404, title="There is no such thing", why="no issuer is configured")
        try:
            return await self._oidc.begun(request)
        except NotLoggedIn as error:
            return self._page(request, "error.html", 503, title="You are not logged in", why=str(error))

    async def oidc_done(self, request: Request) -> Response:
        """Take in what a browser brings back from the issuer."""
        if self._oidc is None:
            return self._page(request, "error.html", 404, title="There is no such thing", why="no issuer is configured")
        try:
            who, session = await self._oidc.done(request)
        except NotLoggedIn as error:
            return self._page(request, "error.html", 403, title="You are not logged in", why=str(error))
        # A page of ours and not a redirect: of a way that began elsewhere, no browser sends a strict cookie.
        said = self._page(request, "logged_in.html", name=who.name, role=who.role.value)
        self._oidc.keep(request, said, COOKIE, session)
        return said

    async def log_in(self, request: Request, body: LoginIn) -> Response:
        """Let a browser keep a token, where no script can read it, and no page of others has it sent."""
        who = await run_in_threadpool(self._known, body.token.strip())
        if who is None:
            return problem(401, "not-authenticated", "the token is none of ours, or its end has come", {})
        said = answer({"name": who.name, "role": who.role})
        is_secret = request.url.scheme == "https"
        token = body.token.strip()
        said.set_cookie(COOKIE, token, max_age=SESSION_S, httponly=True, secure=is_secret, samesite="strict")
        return said

    def _known(self, token: str) -> Principal | None:
        return self._rules.tokens().principal(token, self._rules.now())

    async def log_out(self, request: Request) -> Response:
        """Let a browser forget its token."""
        if self._oidc is not None:
            self._oidc.end(request.cookies.get(COOKIE, ""))
        said = Response(status_code=204)
        said.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return said

    def static(self, version: str, name: str) -> Response:  # noqa: ARG002
        """Return a file that is shipped with the pages.

        The version is in the address so that a browser keeps none of an earlier one, nor a script what it imports.
        """
        found = self._static.get(name)
        kind = KINDS.get(name.rpartition(".")[2])
        if found is None or kind is None:
            return problem(404, "not-known", f'there is no file "{name}"', {})
        headers = {"Cache-Control": "max-age=86400"}
        if name == ICON:  # the page of another controller of a pair asks for it to know that we are there
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return Response(found.read_bytes(), media_type=kind, headers=headers)

    def reservation(self, request: Request, name: str) -> Response:
        """Return the page of a reservation."""
        who: Principal | None = getattr(request.state, "principal", None)
        may = who is not None and who.role.includes(Role.ADMIN)
        return self._detail(request, lambda: self._details.reservation(name, self.watch.latest(), with_changes=may))

    def announcement(self, request: Request, name: str) -> Response:
        """Return the page of an announcement."""
        return self._detail(request, lambda: self._details.announcement(name))

    def host(self, request: Request, name: str) -> Response:
        """Return the page of a host."""
        return self._detail(request, lambda: self._details.host(name, self.watch.latest()))

    def circuit(self, request: Request, name: str) -> Response:
        """Return the page of a circuit."""
        return self._detail(request, lambda: self._details.circuit(name, self.watch.latest()))

    def switch(self, request: Request, name: str) -> Response:
        """Return the page of a switch."""
        return self._detail(request, lambda: self._details.switch(name, self.watch.latest()))

    def transitions(self, request: Request) -> Response:
        """Return the page of the latest transitions."""
        return self._detail(request, self._details.transitions)

    def events(self, request: Request, words: Annotated[str, Query(max_length=100)] = "") -> Response:
        """Return the page of what happened lately."""
        return self._detail(request, lambda: self._details.events(words))

    def _detail(self, request: Request, made: Callable[[], Detail]) -> Response:
        try:
            return self._page(request, "detail.html", one=made())
        except NotKnown as unknown:
            return self._page(request, "error.html", 404, title="There is no such thing", why=str(unknown))
        except DatabaseFailed as failure:
            return self._page(request, "error.html", 503, title="It cannot be read now", why=without_paths(failure.why))

    def _page(self, request: Request, template: str, status: int = 200, **values: object) -> Response:
        who: Principal | None = getattr(request.state, "principal", None)
        offered = Role if self._behind.leader().takes else (Role.READ,)  # nothing is changed at one that stands by
        may = [role.value for role in offered if who is not None and who.role.includes(role)]
        text = self._screen.rendered(
            template,
            network=self._behind.network.name,
            who=who,
            may=may,
            owners=asker_of(who, "", "").owners,
            by_token=COOKIE in request.cookies,
            version=__version__,
            others=self._behind.others,
            **values,
        )
        headers = {"Content-Security-Policy": self._csp, "Cache-Control": "no-store"}
        return Response(text, status, headers, "text/html")
