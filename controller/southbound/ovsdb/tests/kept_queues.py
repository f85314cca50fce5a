"""A writer of queues without a database behind it."""

from controller.southbound.errors import DatabaseGone


class KeptQueues:
    """A writer that keeps what it is told to write."""

    def __init__(self, remote="unix:none"):
        self.remote = remote
        self.ports = {}
        self.held = {}
        self.failing = {}  # by port, why it cannot have them
        self.is_gone = False
        self.swept = []  # which ports were to have queues, and of which switches no other
        self.asked = []  # what was asked for while it was gone

    def apply_each(self, ports, timeout_s):
        """Take queues by port."""
        self._answer(sorted(ports), timeout_s)
        failed = {name: why for name, why in self.failing.items() if name in ports}
        self.ports |= ports
        self.held |= {name: queues for name, queues in ports.items() if name not in failed}
        return failed

    def apply(self, ports, timeout_s):
        """Take queues by port; return how many."""
        self.apply_each(ports, timeout_s)
        return len(ports)

    def take_off_others(self, port_names, dpids, timeout_s):
        """Take note that other ports have none."""
        self._answer(sorted(port_names), timeout_s)
        self.swept.append((set(port_names), set(dpids)))

    def installed(self, port_name, timeout_s):
        """Return what a port was told."""
        self._answer([port_name], timeout_s)
        return self.held.get(port_name)

    def taken(self):
        """The ports that were named since this was asked last."""
        names, self.ports = set(self.ports), {}
        return names

    def _answer(self, names, timeout_s):
        if self.is_gone:
            self.asked.append((*names, timeout_s))
            raise DatabaseGone(self.remote, timeout_s)
