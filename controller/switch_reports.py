"""What switches report, written into the state."""

from dataclasses import replace

from controller.plan.wiring import Claim, SeenPort, SeenPorts, Wiring, is_carried, port_links
from controller.state.faults import note_back, note_failed, switch_gone
from controller.state.guard import GuardedState
from topology.network import Switch


class SwitchReports:
    """Which switches are there, with which ports and whose rules; who calls in the place of one."""

    def __init__(self, state: GuardedState) -> None:
        self._state = state
        self._switches = {switch.dpid: switch for switch in state.site.network.switches}
        self._led_by_another: set[int] = set()  # dpids that this was said of; under the lock

    def switch_up(self, dpid: int, address: str, ports: SeenPorts) -> None:
        """Note that a switch came: what it holds must be compared again, and what it has lost is drift."""
        switch, state = self._switches.get(dpid), self._state
        with state.changed:
            self._led_by_another.discard(dpid)
            if switch is None:
                self._put_wiring(state.reported.wiring.with_unknown(dpid, address))
                state.events.publish("switch.unknown", level="error", dpid=f"{dpid:016x}", address=address)
                return
            self._ports_said(switch, ports)
            self._audit_at_once(dpid)
            if (fault := state.installed.faults.get(f"switch {switch.name}")) is not None and fault.is_gone:
                note_back(state, [fault.place])
            self._doubt()

    def switch_down(self, dpid: int) -> None:
        """Note that a switch went: until it is back nothing waits for it, and what needs it is not carried."""
        switch, state = self._switches.get(dpid), self._state
        with state.changed:
            if state.stopping:  # we have let it go
                return
            if switch is None:
                self._put_wiring(state.reported.wiring.with_unknown(dpid, None))
                return
            self._put_wiring(state.reported.wiring.without(switch))
            if state.installed.in_force is not None:
                note_failed(state, [switch_gone(switch)])
            self._doubt()

    def claimed(self, dpid: int, address: str) -> None:
        """Note that another switch calls under a datapath id that a switch has; it calls again and again."""
        state = self._state
        with state.changed:
            before = state.reported.wiring
            self._put_wiring(before.with_claim(dpid, Claim(address, state.elapsed_us())))
            if dpid not in before.claims:
                name = self._switches[dpid].name if dpid in self._switches else ""
                fields = {"dpid": f"{dpid:016x}", "switch": name, "address": address}
                state.events.publish("switch.claimed_twice", level="error", **fields)

    def led_by_another(self, dpid: int, address: str) -> None:
        """Note that a switch obeys a controller of a later term; it is told once until the switch obeys us again."""
        with self._state.changed:
            if dpid not in self._led_by_another:
                self._led_by_another.add(dpid)
                name = self._switches[dpid].name if dpid in self._switches else ""
                fields = {"dpid": f"{dpid:016x}", "switch": name, "address": address}
                self._state.events.publish("switch.led_by_another", level="error", **fields)

    def rule_gone(self, dpid: int) -> None:
        """Note that somebody has deleted a rule of ours: that switch is audited at once."""
        with self._state.changed:
            self._audit_at_once(dpid)

    def port_said(self, dpid: int, port_no: int, port: SeenPort | None) -> None:
        """Note that a port has changed; a circuit whose line ends there lives and dies with it."""
        switch, state = self._switches.get(dpid), self._state
        with state.changed:
            if switch is None or dpid not in state.reported.wiring.ports:
                return  # it is about to show all its ports
            seen = dict(state.reported.wiring.ports[dpid])
            seen.pop(port_no, None)
            self._ports_said(switch, seen if port is None else {**seen, port_no: port})

    # Under the lock.

    def _ports_said(self, switch: Switch, seen: SeenPorts) -> None:
        """Take in all ports of a switch: lines live and die with theirs; what is not as it should be is drift."""
        state, network = self._state, self._state.site.network
        faults, elapsed_us = state.reported.wiring.faults, state.elapsed_us()
        lines = state.reported.lines
        for _, link in port_links(network, switch.name):
            if link.circuit is not None:
                end = switch.dpid, link.port_no
                lines = lines.said(link.circuit, end, elapsed_us, is_live=is_carried(link, seen))
        self._put_wiring(state.reported.wiring.with_ports(network, switch, seen))
        state.put(reported=replace(state.reported, lines=lines))
        state.note_lines()
        if state.reported.wiring.faults != faults:
            self._audit_at_once(switch.dpid)
        if faults.keys() - state.reported.wiring.faults.keys():
            self._doubt()  # a port that has come back has no queues

    def _put_wiring(self, wiring: Wiring) -> None:
        self._state.put(reported=replace(self._state.reported, wiring=wiring))
        self._state.changed.notify_all()

    def _audit_at_once(self, dpid: int) -> None:
        reported = self._state.reported
        self._state.put(reported=replace(reported, switches_back=reported.switches_back | {dpid}))
        self._state.changed.notify_all()

    def _doubt(self) -> None:
        """Note that switches may not hold any more what was installed."""
        reported = self._state.reported
        self._state.put(reported=replace(reported, doubts=reported.doubts + 1))
        self._state.changed.notify_all()
