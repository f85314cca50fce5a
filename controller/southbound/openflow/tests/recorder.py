"""A listener of switches that writes down what it hears."""

import time
from dataclasses import dataclass, field

from controller.database.terms import next_term
from controller.plan.wiring import SeenPort, SeenPorts


def new_term() -> int:
    """A term above every one that was used before, for sessions without a database."""
    return next_term(None, time.time_ns() // 1_000_000)


@dataclass
class RecordedSwitches:
    """What sessions have told of.

    Attributes:
        told: dpids of switches that came, negative of those that went, in order.
        lost_rules: dpids of switches on which somebody has deleted a rule of ours.
        said: (dpid, port number, is live), in order.
        names: the name of each port, by its number, as said last.
        claims: (dpid, address) of switches that were turned away.
        lost: dpids of switches that obey another controller, each time they were let go.
    """

    told: list[int] = field(default_factory=list)
    lost_rules: list[int] = field(default_factory=list)
    said: list[tuple[int, int, bool]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    claims: list[tuple[int, str]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    @property
    def live(self) -> dict[int, bool]:
        """Whether a port is live, by its number, as said last."""
        return {port_no: is_live for _, port_no, is_live in self.said}

    def switch_up(self, dpid: int, _address: str, ports: SeenPorts) -> None:
        """Note a switch, and its ports."""
        self.told.append(dpid)
        for port_no, port in ports.items():
            self.port_said(dpid, port_no, port)

    def switch_down(self, dpid: int) -> None:
        """Note that it went."""
        self.told.append(-dpid)

    def rule_gone(self, dpid: int) -> None:
        """Note a rule."""
        self.lost_rules.append(dpid)

    def port_said(self, dpid: int, port_no: int, port: SeenPort | None) -> None:
        """Note a port."""
        self.said.append((dpid, port_no, port is not None and port.is_live))
        if port is not None:
            self.names[port_no] = port.name

    def claimed(self, dpid: int, address: str) -> None:
        """Note who was turned away."""
        self.claims.append((dpid, address))

    def led_by_another(self, dpid: int, _address: str) -> None:
        """Note whom another controller leads."""
        self.lost.append(dpid)
