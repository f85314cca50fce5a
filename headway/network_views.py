"""Made from the API's description by contrib/api_client.py: the network, and what is at its ends."""

from typing import Literal, TypedDict

Brake = Literal["window", "reader", "disk", "memory"]

# A flow that has another rate because a receiver is slow.
ChangedFlowOut = TypedDict(
    "ChangedFlowOut",
    {
        "flow": str,
        "planned_bps": int,
        "without_bps": int,
    },
)

Choice = Literal["pace", "nothing", "stagger", "cap"]

# What some senders do at a port.
ChoiceOut = TypedDict(
    "ChoiceOut",
    {
        "choice": Choice,
        "senders": list[str],
        "needed_bytes": int,
        "reason": str,
        "offsets_us": list[int],
        "nic_bps": int | None,
    },
)

# What a switch's port needs when all that send through it start at one instant.
BurstOut = TypedDict(
    "BurstOut",
    {
        "link": str,
        "circuit": str | None,
        "senders": list[str],
        "window_bytes": int,
        "unpaced_bytes": int,
        "chosen_bytes": int,
        "buffer_bytes": int,
        "fits": bool,
        "choices": list[ChoiceOut],
    },
)

# One direction between two neighbours.
LinkOut = TypedDict(
    "LinkOut",
    {
        "from": str,
        "to": str,
        "circuit": str | None,
        "wire_bps": int,
        "delay_us": int,
        "buffer_bytes": int,
    },
)

# A host of the network.
NodeOut = TypedDict(
    "NodeOut",
    {
        "name": str,
        "site": str,
        "ip": str,
        "ours": bool,
        "agent": str | None,
        "addresses": list[str],
    },
)

# A store of a host, or the receiver of a flow that takes less than it could be sent.
ReceiverOut = TypedDict(
    "ReceiverOut",
    {
        "host": str,
        "store": str | None,
        "flow": str | None,
        "drains_bps": int | None,
        "room_bytes": int | None,
        "unread_bytes": int | None,
        "waiting": bool | None,
        "why": Brake | None,
        "since": str,
        "holds": list[ChangedFlowOut],
    },
)

# What receivers take, and who has what the flows that they hold do not use.
ReceiversOut = TypedDict(
    "ReceiversOut",
    {
        "receivers": list[ReceiverOut],
        "gained": list[ChangedFlowOut],
    },
)

# A switch of the network.
SwitchNodeOut = TypedDict(
    "SwitchNodeOut",
    {
        "name": str,
        "site": str,
        "dpid": str,
    },
)

# The network.
TopologyOut = TypedDict(
    "TopologyOut",
    {
        "name": str,
        "mtu_bytes": int,
        "sites": list[str],
        "circuits": list[str],
        "hosts": list[NodeOut],
        "switches": list[SwitchNodeOut],
        "links": list[LinkOut],
    },
)
