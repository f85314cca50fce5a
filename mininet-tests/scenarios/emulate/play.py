"""Who sends what, and when: the play of an emulation, from a YAML file or made up for a network. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from topology.addresses import families
from topology.network import Network, hops
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.units import duration_us, rate_bps, size_bytes

V = TypeVar("V")

TRANSFER_KEYS = ("name", "from", "to", "at", "for", "size", "announce", "reserve", "ipv6")
FLOW_KEYS = ("name", "class", "from", "to")
MOST_TRANSFERS = 30
STANDING_S, IMAGE_AT_S, IMAGE_S = 15.0, 5.0, 4.0  # of the play that is made up: the image takes so much of the circuit
PLANNED_CLASSES = (FlowClass.PREDICTABLE, FlowClass.URGENT, FlowClass.BACKGROUND)
ANNOUNCED_CLASSES = (FlowClass.URGENT, FlowClass.BACKGROUND)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One sender's bytes.

    Attributes:
        name: of the transfer, and of its promise if it has one.
        sender: the host they are from.
        receiver: the host they go to.
        at_s: when they begin, from the moment at which all is up.
        lasts_s: for how long they are sent without end; None if there are so many and no more.
        size_bytes: how many; None if they are sent for a time.
        announced: the class in which they are announced; None if they are not.
        is_ipv6: whether it is sent over IPv6.
        reserved: class and rate, counted on the wire, of their reservation; None if they have none.
    """

    name: str
    sender: str
    receiver: str
    at_s: float = 0.0
    lasts_s: float | None = None
    size_bytes: int | None = None
    announced: FlowClass | None = None
    reserved: tuple[FlowClass, int] | None = None
    is_ipv6: bool = False


@dataclass(frozen=True, slots=True)
class Play:
    """What is played on an emulated network.

    Attributes:
        flows: standing flows, as the controller's configuration has them.
        transfers: in the order of their beginnings.
    """

    flows: tuple[dict[str, str], ...] = ()
    transfers: tuple[Transfer, ...] = field(default=())

    @property
    def hosts(self) -> set[str]:
        """Those that something is planned for, or that send or receive."""
        ends = {end for transfer in self.transfers for end in (transfer.sender, transfer.receiver)}
        return ends | {flow[end] for flow in self.flows for end in ("from", "to")}


def made_up(network: Network) -> Play:
    """Return a play for a network: background from every host of its largest site, and an announced image beside it.

    Raises:
        ValueError: all hosts are at one site.
    """
    by_site: dict[str, list[str]] = {}
    for host in (host for host in network.hosts if host.has_agent and not host.interface_of):
        by_site.setdefault(host.site, []).append(host.name)
    if not any(host.site != site for host in network.hosts for site in by_site):
        raise ValueError("all hosts are at one site: nothing crosses a circuit")
    home = max(by_site, key=lambda site: len(by_site[site]))
    receiver = next(host.name for host in network.hosts if host.site != home)
    senders = by_site[home]
    flows = [{"name": f"standing-{s}", "class": "background", "from": s, "to": receiver} for s in senders]
    standing = [Transfer(f"standing-{s}", s, receiver, lasts_s=STANDING_S) for s in senders]
    path = network.path(senders[0], receiver)
    least_bps = min(network.link(*hop).rate_bps for hop in hops(path))
    image = Transfer(
        "image",
        senders[0],
        receiver,
        IMAGE_AT_S,
        size_bytes=round(least_bps / 8 * IMAGE_S / 2),
        announced=FlowClass.URGENT,
    )
    return Play(tuple(flows), (*standing, image))


def play_of(values: object, network: Network, problems: Problems) -> Play:
    """Return the play that YAML has said; what is wrong with it is added to ``problems``."""
    if not isinstance(values, dict):
        problems.add("need flows: and transfers:")
        return Play()
    _only(values, ("flows", "transfers"), problems)
    flows = [_flow(one, network, at) for one, at in _each(values, "flows", problems)]
    transfers = [_transfer(one, network, at) for one, at in _each(values, "transfers", problems)]
    found = [transfer for transfer in transfers if transfer is not None]
    if not problems.found and not 1 <= len(found) <= MOST_TRANSFERS:
        problems.at("transfers").add(f"need 1 to {MOST_TRANSFERS} of them")
    names = [transfer.name for transfer in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.at("transfers").add(f'"{name}" is the name of two: give each its own')
    ordered = sorted(found, key=lambda transfer: transfer.at_s)
    return Play(tuple(flow for flow in flows if flow is not None), tuple(ordered))


def _each(values: dict[Any, Any], key: str, problems: Problems) -> list[tuple[dict[Any, Any], Problems]]:
    listed = values.get(key) or []
    if not isinstance(listed, list):
        problems.at(key).add("need a list")
        return []
    found = []
    for number, one in enumerate(listed):
        at = problems.at(key, number)
        if isinstance(one, dict):
            found.append((one, at))
        else:
            at.add("need keys and values")
    return found


def _flow(values: dict[Any, Any], network: Network, problems: Problems) -> dict[str, str] | None:
    _only(values, FLOW_KEYS, problems)
    name = _name(values, problems)
    sender, receiver = (_host(values, end, network, problems) for end in ("from", "to"))
    flow_class = _read(values, "class", _planned_class, problems)
    if name is None or sender is None or receiver is None or flow_class is None:
        return None
    return {"name": name, "class": str(flow_class), "from": sender, "to": receiver}


def _transfer(values: dict[Any, Any], network: Network, problems: Problems) -> Transfer | None:
    _only(values, TRANSFER_KEYS, problems)
    before = len(problems.found)
    name = _name(values, problems)
    sender, receiver = (_host(values, end, network, problems) for end in ("from", "to"))
    if ("for" in values) == ("size" in values):
        problems.add("need either for: (how long) or size: (how much)")
    if "announce" in values and "size" not in values:
        problems.at("announce").add("what is announced has a size:")
    if "reserve" in values and "for" not in values:
        problems.at("reserve").add("what is reserved lasts for: a time")
    if "reserve" in values and "announce" in values:
        problems.add("is announced or reserved, not both")
    at_us, lasts_us = (_read(values, key, duration_us, problems, missing=True) for key in ("at", "for"))
    transfer = Transfer(
        name or "",
        sender or "",
        receiver or "",
        (at_us or 0) / 1e6,
        None if lasts_us is None else lasts_us / 1e6,
        _read(values, "size", size_bytes, problems, missing=True),
        _read(values, "announce", _announced_class, problems, missing=True),
        _reserved(values, problems),
        _is_ipv6(values, network, (sender, receiver), problems),
    )
    return transfer if len(problems.found) == before else None


def _is_ipv6(values: dict[Any, Any], network: Network, ends: tuple[str | None, str | None], problems: Problems) -> bool:
    """Return whether a transfer is over IPv6: if it is said to be, and where nothing else joins its two hosts."""
    known = [families(network.host(end).prefixes) for end in ends if end is not None]
    if values.get("ipv6", False) not in {True, False}:
        problems.at("ipv6").add("is yes or no")
    if values.get("ipv6") and not all(6 in each for each in known):
        problems.at("ipv6").add("needs two hosts with an address of IPv6")
    return bool(values.get("ipv6")) or not all(4 in each for each in known)


def _reserved(values: dict[Any, Any], problems: Problems) -> tuple[FlowClass, int] | None:
    if "reserve" not in values:
        return None
    at, inner = problems.at("reserve"), values["reserve"]
    if not isinstance(inner, dict):
        at.add("need {class: background, rate: 20 Mbit/s}")
        return None
    _only(inner, ("class", "rate"), at)
    flow_class, bps = _read(inner, "class", _planned_class, at), _read(inner, "rate", rate_bps, at)
    return None if flow_class is None or bps is None else (flow_class, bps)


def _planned_class(text: str) -> FlowClass:
    return _one_of(text, PLANNED_CLASSES)


def _announced_class(text: str) -> FlowClass:
    return _one_of(text, ANNOUNCED_CLASSES)


def _one_of(text: str, classes: tuple[FlowClass, ...]) -> FlowClass:
    if text not in classes:
        raise ValueError(f'"{text}" is not a class here, need one of {", ".join(classes)}')
    return FlowClass(text)


def _name(values: dict[Any, Any], problems: Problems) -> str | None:
    return _read(values, "name", str, problems)


def _host(values: dict[Any, Any], end: str, network: Network, problems: Problems) -> str | None:
    return _read(values, end, lambda name: network.host(name).name, problems)


def _read(
    values: dict[Any, Any], key: str, reader: Callable[[str], V], problems: Problems, *, missing: bool = False
) -> V | None:
    """Return what a reader makes of a value; None, with a problem, if it cannot or there is none."""
    if key not in values:
        if not missing:
            problems.add(f"{key}: is missing")
        return None
    try:
        return reader(str(values[key]))
    except ValueError as error:
        problems.at(key).add(error)
        return None


def _only(values: dict[Any, Any], known: tuple[str, ...], problems: Problems) -> None:
    for key in values:
        if key not in known:
            problems.at(str(key)).add(f"is not known here; there are {', '.join(known)}")
