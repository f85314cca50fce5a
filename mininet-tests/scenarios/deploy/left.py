"""What is on a machine: files, users, units and settings; and what of it was not there before."""

from collections.abc import Mapping
from dataclasses import dataclass

from mininet_tests.site.debian_machine import DebianMachine

OWN = (
    *("/proc", "/sys", "/run", "/root", "/dev", "/var/lib/dpkg", "/var/lib/apt", "/var/cache"),
    *("/var/log", "/var/lib/systemd/timers", "/var/lib/libuuid", "/usr/share/man", "/tmp", "/var/tmp"),  # noqa: S108
)
"""Folders that Debian writes to by itself: logs, lists of packages."""
SETTINGS = "sysctl -a -r ^net\\.(core|ipv4)\\.(tcp_|udp_|[rw]mem|optmem|default|netdev)"
VARIES = ("fastopen_key", "tcp_fastopen_key", "tcp_available_congestion_control")
"""Secrets; and algorithms, which are the kernel's: other tests' agents come and go. Ours are asked for by name."""


STAYS = frozenset(f"{user} ({kind})" for user in ("headway", "headway-controller") for kind in ("passwd", "group"))
"""Users and groups that purging leaves, for their numbers may own keys and tokens yet."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is on a machine.

    Attributes:
        files: paths.
        users: users and groups.
        units: of systemd, by name.
        settings: of the kernel's network, by name.
    """

    files: frozenset[str]
    users: frozenset[str]
    units: frozenset[str]
    settings: Mapping[str, str]

    def since(self, before: "Found") -> list[str]:
        """Return what is not as it was, sorted."""
        more = [*self.files - before.files, *self.users - before.users, *self.units - before.units]
        gone = [f"gone: {name}" for name in (*before.files - self.files, *before.users - self.users)]
        names = {*before.settings, *self.settings}
        changed = [
            f"{name}: {before.settings.get(name)} -> {self.settings.get(name)}"
            for name in names
            if before.settings.get(name) != self.settings.get(name)
        ]
        return sorted([*more, *gone, *changed])


def found(machine: DebianMachine) -> Found:
    """Return what is there now."""
    database = [
        f"{line.split(':')[0]} ({name})"
        for name in ("passwd", "group")
        for line in machine.done("getent", name).splitlines()
    ]
    pruned = " -o ".join(f"-path {folder}" for folder in OWN).split()
    units = machine.done("systemctl", "list-unit-files", "--no-legend", "--plain").splitlines()
    settings = (line.partition(" = ") for line in machine.done(*SETTINGS.split()).splitlines())
    return Found(
        frozenset(machine.done("find", "/", "-xdev", "(", *pruned, ")", "-prune", "-o", "-print").splitlines()),
        frozenset(database),
        frozenset(line.split()[0] for line in units),
        {name: value for name, _, value in settings if not name.endswith(VARIES)},
    )
