"""Every parser that a stranger reaches, with what it may raise: that is all that is to come of any input."""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network

from controller.errors import ConfigError
from controller.providers.answers import Unclear
from controller.security.issuer import IssuerSilent
from controller.southbound.errors import SouthboundError
from mininet_tests.scenarios.fuzz import ports, texts
from topology import protocol
from topology.yaml_text import NotYaml

Made = tuple[Callable[[bytes], object], tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class Target:
    """One parser.

    Attributes:
        who: that can send it what it likes.
        make: returns what takes bytes, and examples of them; called in the process that fuzzes.
        declared: what may be raised, as its documentation says.
        part: of all inputs, per mille: dear ones get fewer.
    """

    who: str
    make: Callable[[], Made]
    declared: tuple[type[Exception], ...]
    part: int


def _allocations() -> Made:
    """Return what takes a controller's messages, as an agent does."""
    one = protocol.Allocation(
        "urgent/a", protocol.FlowClass.URGENT, ip_network("10.0.0.0/24"), 10**9, 14_000, circuits=("c",)
    )
    return protocol.parsed_allocations, (protocol.to_bytes(protocol.Allocations(7, 3000, (one,), 10**6)),)


TARGETS = {
    "agents' streams": Target("who reaches the agents' port", ports.agent_stream, (), 60),
    "agents' messages": Target("an agent", ports.agent_messages, (ValueError,), 100),
    "controllers' messages": Target("who an agent takes for its controller", _allocations, (ValueError,), 100),
    "OpenFlow": Target("a switch; by tcp: anybody", ports.openflow, (SouthboundError,), 150),
    "OVSDB": Target("a switch's database; by tcp: anybody", ports.ovsdb, (), 40),
    "requests": Target("who reaches REST", ports.requests, (), 10),
    "bearer tokens": Target("who reaches REST", texts.bearer_tokens, (), 150),
    "web tokens": Target("who reaches REST", texts.web_tokens, (IssuerSilent,), 60),
    "certificates": Target("who gives the operator a file", texts.certificate_files, (), 60),
    "shown certificates": Target("who has any certificate", texts.shown_certificates, (), 100),
    "OSCARS": Target("a provider", texts.oscars_answers, (Unclear,), 60),
    "NSI": Target("a provider", texts.nsi_answers, (Unclear,), 60),
    "networks": Target("who gives the operator a file", texts.network_files, (NotYaml,), 5),
    "configurations": Target("who gives the operator a file", texts.configuration_files, (ConfigError, NotYaml), 5),
    "quantities": Target("who reaches REST", texts.quantities, (ValueError,), 40),
}


def taken(target: Target, take: Callable[[bytes], object], data: bytes) -> bool:
    """Give a parser an input; return whether it took it, or refused it as it may."""
    try:
        take(data)
    except target.declared:
        return False
    return True
