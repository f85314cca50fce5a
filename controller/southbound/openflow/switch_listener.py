"""What a switch's connections tell of it, and to whom."""

from typing import Protocol

from controller.plan.wiring import SeenPort, SeenPorts


class SwitchListener(Protocol):
    """Who hears of switches: the reports. Called by one thread of ours, and free to call the sessions at once."""

    def switch_up(self, dpid: int, address: str, ports: SeenPorts) -> None:
        """A switch has connected from an address, with all these ports."""

    def switch_down(self, dpid: int) -> None:
        """A switch has gone."""

    def rule_gone(self, dpid: int) -> None:
        """Somebody else has deleted a rule of ours on a switch; said once until that switch is read back."""

    def port_said(self, dpid: int, port_no: int, port: SeenPort | None) -> None:
        """A port has come or has changed; None: it has gone."""

    def claimed(self, dpid: int, address: str) -> None:
        """Somebody has called under the datapath id of a switch that is connected, and was turned away."""

    def led_by_another(self, dpid: int, address: str) -> None:
        """A switch obeys a controller of a later term, and not us; it was let go."""
