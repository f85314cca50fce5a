"""A listener of switches that writes down what it hears."""

from dataclasses import dataclass, field


@dataclass
class RecordedSwitches:
    """What sessions have told of.

    Attributes:
        told: dpids of switches that came, negative of those that went, in order.
        lost_rules: dpids of switches on which somebody has deleted a rule of ours.
        said: (dpid, port number, is live), in order.
    """

    told: list[int] = field(default_factory=list)
    lost_rules: list[int] = field(default_factory=list)
    said: list[tuple[int, int, bool]] = field(default_factory=list)

    @property
    def live(self) -> dict[int, bool]:
        """Whether a port is live, by its number, as said last."""
        return {port_no: is_live for _, port_no, is_live in self.said}

    def switch_up(self, dpid: int) -> None:
        """Note a switch."""
        self.told.append(dpid)

    def switch_down(self, dpid: int) -> None:
        """Note that it went."""
        self.told.append(-dpid)

    def rule_gone(self, dpid: int) -> None:
        """Note a rule."""
        self.lost_rules.append(dpid)

    def port_said(self, dpid: int, port_no: int, is_live: bool) -> None:
        """Note a port."""
        self.said.append((dpid, port_no, is_live))
