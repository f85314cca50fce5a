"""What the plan's tables are keyed by: a class's share of a link, what else can be booked, a flow; and their text.

A link's direction itself is a :class:`topology.network.Hop`. These are values; text in JSON, logs and the database.
"""

from typing import NamedTuple, NewType

from topology.network import Hop
from topology.protocol import FlowClass


class ClassShare(NamedTuple):
    """A class's share of one direction of a circuit.

    >>> str(ClassShare(Hop("ls1", "ch1"), FlowClass.URGENT))
    'ls1->ch1 urgent'
    """

    hop: Hop
    flow_class: FlowClass

    def __str__(self) -> str:
        """Return it as people and JSON have it."""
        return f"{self.hop} {self.flow_class}"


class Pool(NamedTuple):
    """The bandwidth of a reservation, on which announcements draw.

    >>> str(Pool("night"))
    'reservation night'
    """

    reservation_id: str

    def __str__(self) -> str:
        """Return it as people and JSON have it."""
        return f"{_POOL}{self.reservation_id}"


class StorePlace(NamedTuple):
    """A store of a host, which drains what is put there.

    >>> str(StorePlace("arch", "data"))
    'store:arch:data'
    """

    host: str
    name: str

    def __str__(self) -> str:
        """Return it as people and JSON have it."""
        return f"{_STORE}{self.host}:{self.name}"


Resource = Hop | ClassShare | Pool | StorePlace  # what can be booked
_POOL, _STORE = "reservation ", "store:"


def resource_of(text: str) -> Resource:
    """Return the resource of which this is the text, as the database has it.

    >>> [resource_of(text) for text in ("ls1->ch1", "reservation night")]
    [Hop(tail='ls1', head='ch1'), Pool(reservation_id='night')]
    >>> str(resource_of("ls1->ch1 urgent")), resource_of("store:arch:data")
    ('ls1->ch1 urgent', StorePlace(host='arch', name='data'))

    Raises:
        ValueError: it is none's.
    """
    if text.startswith(_POOL):
        return Pool(text.removeprefix(_POOL))
    if text.startswith(_STORE):
        host, _, name = text.removeprefix(_STORE).partition(":")
        return StorePlace(host, name)
    link, _, flow_class = text.partition(" ")
    tail, _, head = link.partition("->")
    if not tail or not head:
        raise ValueError(f'"{text}" names nothing that can be booked')
    hop = Hop(tail, head)
    return ClassShare(hop, FlowClass(flow_class)) if flow_class else hop


FlowId = NewType("FlowId", str)  # a text, for agents and operators know flows by it; nobody takes it apart


def flow_id(owner: str, host: str) -> FlowId:
    """Return the id of a flow from one of the sending hosts of a reservation or an announcement.

    >>> flow_id("image", "base20")
    'image/base20'
    """
    return FlowId(f"{owner}/{host}")
