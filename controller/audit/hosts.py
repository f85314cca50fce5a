"""What a host says it holds, against what its kernel has confirmed. Pure."""

from controller.audit.drift import Compared, DriftKind, compared
from controller.state.reported import HostState

SETTLED_US = 1_000_000  # telemetry that was on its way when the agent confirmed is older than this


def host_compared(name: str, host: HostState) -> Compared:
    """Return what a host's telemetry says against what the host has confirmed; nothing if that is not settled yet."""
    said = host.telemetry
    if said is None or not host.connected or not host.sent_epoch or host.confirmed_epoch != host.sent_epoch:
        return Compared()
    if host.telemetry_us < host.confirmed_us + SETTLED_US:
        return Compared()
    if said.epoch == host.confirmed_epoch and {e.flow.name for e in host.sent} == {e.name for e in said.entries}:
        return Compared({DriftKind.HOST: 1 + len(host.sent)})
    wanted = {"": f"host {name}: epoch {host.confirmed_epoch}"}
    wanted |= {e.flow.name: f"host {name}: allocation {e.flow.name}" for e in host.sent}
    found = {"": f"host {name}: epoch {said.epoch}"}
    found |= {e.name: f"host {name}: allocation {e.name}" for e in said.entries}
    return compared(DriftKind.HOST, wanted, found)
