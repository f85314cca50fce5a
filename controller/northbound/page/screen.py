"""The one screen, piece by piece: each is made once for all who look on, and sent when it has changed."""

import threading
from html import escape
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic_core import to_json

from controller.northbound.dependencies import Dependencies
from controller.northbound.page import map_svg
from controller.northbound.page.look import Look
from controller.northbound.page.needs import pair_words
from controller.northbound.page.tonight import Tonight
from controller.northbound.page.watch import Watch
from controller.northbound.page.words import duration, when
from controller.plan.leading import PairStanding
from topology.printable import whole
from topology.units import shown_rate, shown_size

STALE_S = 5  # without news for longer than this, a page says so


def environment() -> Environment:
    """Return what renders the templates; whatever is put into one is escaped."""
    made = Environment(
        loader=PackageLoader("controller.northbound.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters.update(rate=shown_rate, size=shown_size, when=when, duration=duration)
    return made


class Piece(NamedTuple):
    """A part of the screen: what it is now, as text and as it goes over a stream."""

    text: str
    event: bytes


class Screen:
    """Makes the pieces of the screen of the latest look."""

    def __init__(self, dependencies: Dependencies, watch: Watch, tonight: Tonight) -> None:
        self._behind = dependencies
        self.watch = watch
        self._tonight = tonight
        self._templates = environment()
        frames = (map_svg.WIDE, map_svg.NARROW)
        self._places = {frame: map_svg.places(dependencies.network, frame) for frame in frames}
        self._lock = threading.Lock()  # held by who makes the pieces
        self._made_of: Look | None = None
        self.made: dict[str, Piece] = {}

    @property
    def is_current(self) -> bool:
        """Whether the pieces are those of the latest look."""
        return self._made_of is not None and self._made_of is self.watch.latest()

    def pieces(self) -> dict[str, Piece]:
        """Return the pieces by name, made anew if there was a look since."""
        if not self.is_current:
            with self._lock:
                if not self.is_current:
                    look = self.watch.latest()
                    self.made = {name: self._piece(name, text) for name, text in self._texts(look).items()}
                    self._made_of = look
        return self.made

    def _piece(self, name: str, text: str) -> Piece:
        before, text = self.made.get(name), whole(text)
        return before if before is not None and before.text == text else Piece(text, event(name, text))

    def _texts(self, look: Look) -> dict[str, str]:
        network = self._behind.network
        at = look.leader.address if look.leader.standing is PairStanding.STANDBY else ""
        pair = {"pair": pair_words(look.leader), "leader_at": at}
        said = self.rendered("headline.html", sentence=look.headline, needs=look.needs, now_us=look.at_us, **pair)
        pictures = (map_svg.drawn(network, where, look, frame) for frame, where in self._places.items())
        return {
            "headline": said,
            "map": "\n".join(pictures),  # a screen shows the one that fits
            "tonight": self.rendered("tonight.html", rows=self._tonight.rows()),
            "sample": to_json(self.watch.newest()).decode(),
            "tick": str(look.at_us // 1000),
        }

    def rendered(self, template: str, **values: object) -> str:
        """Return a template with values in it; a half of a surrogate pair in one leaves nobody without the page."""
        return whole(self._templates.get_template(template).render(**values))


def event(name: str, text: str) -> bytes:
    r"""Return a server-sent event (HTML standard, section 9.2).

    >>> event("map", "one\ntwo")
    b'event: map\ndata: one\ndata: two\n\n'
    """
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {escape(name)}\n{lines}\n".encode()
