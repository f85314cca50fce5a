"""Who asks for a change, and from where: carried from the request to what is remembered of it.

A handler need not hand it on: it goes with the context of the request (``contextvars``), into the threads of
``asyncio.to_thread`` too. Threads of our own have none, and what they do is the controller's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks.

    Attributes:
        who: the principal: ``token:NAME``, ``local``, ``anybody``; ``controller`` if nobody has asked.
        address: where from; ``unix`` for a Unix socket, empty if nobody has asked.
        request_id: names the request, in its answer too; empty if nobody has asked.
        groups: that it is in, without ``group:``.
        operates: whether it may change what is others', too.
    """

    who: str
    address: str = ""
    request_id: str = ""
    groups: frozenset[str] = frozenset()
    operates: bool = False

    @property
    def owners(self) -> frozenset[str]:
        """As whom it may own something: itself, and each of its groups."""
        return frozenset({self.who, *(f"{GROUP}{name}" for name in self.groups)})


GROUP = "group:"
OWNER_PATTERN = r"[\x21-\x7e]+( [\x21-\x7e]+)*"  # an issuer's groups may be words with a space between them
CONTROLLER = Asker("controller", operates=True)
_ASKER = ContextVar("asker", default=CONTROLLER)


@contextmanager
def asking(asker: Asker) -> Iterator[None]:
    """Let what is decided meanwhile be asked for by somebody."""
    token = _ASKER.set(asker)
    try:
        yield
    finally:
        _ASKER.reset(token)


def present_asker() -> Asker:
    """Return who asks here and now; the controller if nobody does."""
    return _ASKER.get()
