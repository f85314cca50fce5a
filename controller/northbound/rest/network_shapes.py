"""What clients are told of the network, its switches and its hosts, as types; the rest is in ``shapes.py``."""

from typing import Annotated

from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.northbound.rest.shapes import WHOLE, Bps, PlanOut, Time
from controller.plan.bursts import Choice
from controller.plan.delays import DelaySource
from controller.plan.lines import LineState


@with_config(WHOLE)
class CountersOut(TypedDict):
    """One allocation as a host's kernel sees it."""

    name: Annotated[str, Field(description="Of the allocation.")]
    connections: Annotated[int, Field(description="Matching connections that are open now.")]
    active: Annotated[int, Field(description="Of these, how many share the rate now.")]
    delivered_bytes: Annotated[int, Field(description="Payload confirmed by the receiver; only grows.")]
    sent_segments: Annotated[int, Field(description="Segments sent, those sent again included; only grows.")]
    retransmitted_segments: Annotated[int, Field(description="Segments sent again; only grows.")]
    rtt_us: Annotated[int, Field(description="Smoothed round trip, microseconds; 0 if none yet.")]


@with_config(WHOLE)
class HostStateOut(TypedDict):
    """A host's agent, its lease and its counters."""

    name: Annotated[str, Field(description="Of the host.")]
    connected: Annotated[bool, Field(description="Whether its agent is connected.")]
    kernel: Annotated[str, Field(description="Its kernel's release.", examples=["6.12"])]
    codes_tails: Annotated[bool, Field(description="Whether its agent offers coded tails.")]
    sent_epoch: Annotated[int, Field(description="Of the plan it was sent last.")]
    confirmed_epoch: Annotated[int, Field(description="Of the plan its kernel confirmed last.")]
    lease_left_ms: Annotated[
        int | None,
        Field(description="How long its lease still holds, milliseconds; null if it has not said or is gone."),
    ]
    allocations: Annotated[list[CountersOut], Field(description="What it may send, and its counters.")]


@with_config(WHOLE)
class NodeOut(TypedDict):
    """A host of the network."""

    name: Annotated[str, Field(description="As in the agent's configuration.")]
    site: Annotated[str, Field(description="Where it stands.")]
    ip: Annotated[str, Field(description="Its first address on the data network.")]
    ours: Annotated[
        bool, Field(description="Whether it is at a site of ours; what one that is not sends cannot be planned.")
    ]
    agent: Annotated[
        str | None,
        Field(description="The host whose agent holds its plan: another for a further interface; null if it has none."),
    ]
    addresses: Annotated[list[str], Field(description="All of them, with the prefixes of what is behind it.")]


@with_config(WHOLE)
class SwitchNodeOut(TypedDict):
    """A switch of the network."""

    name: Annotated[str, Field(description="Of the switch.")]
    site: Annotated[str, Field(description="Where it stands.")]
    dpid: Annotated[str, Field(description="OpenFlow's name for it, hexadecimal.", examples=["0000000000000001"])]


@with_config(WHOLE)
class SwitchOut(SwitchNodeOut):
    """A switch, and whether it is connected."""

    connected: Annotated[bool, Field(description="Whether it is connected now.")]


_LinkEnds = TypedDict(
    "_LinkEnds",
    {
        "from": Annotated[str, Field(description="The node it leaves.", examples=["ls1"])],
        "to": Annotated[str, Field(description="The node it leads to.", examples=["ch1"])],
    },
)


@with_config(WHOLE)
class LinkOut(_LinkEnds):
    """One direction between two neighbours."""

    circuit: Annotated[str | None, Field(description="The circuit that it is; null on a site's own network.")]
    wire_bps: Bps
    delay_us: Annotated[int, Field(description="One way, microseconds: as the file says, as measured, or at most.")]
    buffer_bytes: Annotated[int, Field(description="What the sending port can hold, bytes.")]


@with_config(WHOLE)
class CircuitDelayOut(TypedDict):
    """How long a circuit takes, and how that is known."""

    one_way_us: Annotated[int, Field(description="What the plan goes by, microseconds.")]
    source: Annotated[
        DelaySource,
        Field(description="`file`: the network's file says it; `bound`: at most so long, nobody has measured it yet."),
    ]
    measured_at: Annotated[Time | None, Field(description="When it was confirmed last; null if not measured.")]
    measured_by: Annotated[list[str], Field(description="The hosts that saw the least of it, of either end.")]


@with_config(WHOLE)
class CircuitOut(TypedDict):
    """A circuit, and what becomes of the plan if it dies."""

    name: Annotated[str, Field(description="Its name.")]
    a_end: Annotated[str, Field(description="The switch at its A-end.")]
    z_end: Annotated[str, Field(description="The switch at its Z-end.")]
    wire_bps: Annotated[int, Field(description="Its rate, on the wire.")]
    state: Annotated[LineState, Field(description="Its line; one that is returning has not been up for long enough.")]
    in_use: Annotated[bool, Field(description="Whether the plan sends anything by it.")]
    delay: CircuitDelayOut
    if_it_dies: Annotated[
        PlanOut | None, Field(description="The plan that is held ready for that; null if there is no way round it.")
    ]


@with_config(WHOLE)
class TopologyOut(TypedDict):
    """The network."""

    name: Annotated[str, Field(description="Of the network.")]
    mtu_bytes: Annotated[int, Field(description="Largest IP packet, bytes.")]
    sites: Annotated[list[str], Field(description="By name.")]
    circuits: Annotated[list[str], Field(description="By name.")]
    hosts: Annotated[list[NodeOut], Field(description="Data transfer nodes.")]
    switches: Annotated[list[SwitchNodeOut], Field(description="At the edges of the sites.")]
    links: Annotated[list[LinkOut], Field(description="Each direction between neighbours.")]


Senders = Annotated[list[str], Field(description="The sending hosts.", examples=[["base20", "base21"]])]
Frames = Annotated[int, Field(description="Bytes of Ethernet frames.")]


@with_config(WHOLE)
class ChoiceOut(TypedDict):
    """What some senders do at a port."""

    choice: Annotated[
        Choice, Field(description="What keeps their start within the buffer; those with an agent are paced.")
    ]
    senders: Senders
    needed_bytes: Frames
    reason: Annotated[str, Field(description="Why, in one sentence.")]
    offsets_us: Annotated[
        list[int], Field(description="For stagger, when each starts after the first, microseconds; else empty.")
    ]
    nic_bps: Annotated[int | None, Field(description="For cap, the rate of each one's interface, bit/s; else null.")]


@with_config(WHOLE)
class BurstOut(TypedDict):
    """What a switch's port needs when all that send through it start at one instant."""

    link: Annotated[str, Field(description="The direction that leaves by the port.", examples=["ls1->ch1"])]
    circuit: Annotated[str | None, Field(description="The circuit that it is; null on a site's own network.")]
    senders: Senders
    window_bytes: Annotated[int, Field(description="The windows of all, bytes of Ethernet frames.")]
    unpaced_bytes: Annotated[int, Field(description="What the port needs if nobody is paced, bytes.")]
    chosen_bytes: Annotated[int, Field(description="What it needs if they do as chosen, bytes.")]
    buffer_bytes: Annotated[int, Field(description="What it holds, bytes.")]
    fits: Annotated[bool, Field(description="Whether it holds what it needs as chosen.")]
    choices: Annotated[list[ChoiceOut], Field(description="First those with an agent, then those without.")]
