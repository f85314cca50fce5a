"""Two machines with a controller's packages, each with a network of its own and Debian's systemd."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_tests.site.debian_machine import DebianMachine
from mininet_tests.site.machines import CabledMachine

NAMES = "ctl-a", "ctl-b"
REST, AGENTS, OPENFLOW = 8080, 50051, 6653
KILLED = ("journalctl", "-q", "-b", "-u", "headway-controller", "-o", "cat", "-g", "timed out|with signal SIGKILL")
TTL = "2 s"  # on a busy machine too the leader changes only when it is asked to
OWNED = ("install", "-m", "600", "-o", "headway-controller", "-g", "headway-controller")
TOKENS, TOKENS_FILE = "headway token make operator --role admin --days 1 --file pki/tokens", "tokens"


@dataclass(frozen=True, slots=True)
class PackagedController:
    """A machine on which the packages are installed.

    Attributes:
        name: of the machine.
        debian: it.
        address: its own.
    """

    name: str
    debian: DebianMachine
    address: str

    @property
    def url(self) -> str:
        """Where it takes requests."""
        return f"https://{self.address}:{REST}"

    def install(self, version: str) -> None:
        """Install, or upgrade to, the packages of a folder, by the manual's command."""
        folder = f"/root/{version}"
        files = (f"{folder}/headway_*.deb", f"{folder}/headway-controller_*.deb")
        self.debian.done("sh", "-ec", f"apt-get -q -y install {' '.join(files)}")

    @property
    def version(self) -> str:
        """The package's version, as dpkg has it."""
        return self.debian.done("dpkg-query", "-W", "-f", "${Version}", "headway-controller")

    @property
    def troubles(self) -> list[str]:
        """Return what has failed, and what systemd has done to the controller that nobody had asked for."""
        failed = self.debian.done("systemctl", "list-units", "--failed", "--no-legend", "--plain").splitlines()
        again, state = (self.debian.unit("headway-controller", what) for what in ("NRestarts", "SubState"))
        killed = self.debian.tried(*KILLED).stdout.splitlines()
        found = [*failed, *killed, *([] if again == "0" else [f"started again {again} times"])]
        return found if state == "running" else [*found, f"it is {state}"]

    def put(self, file: Path, as_name: str) -> None:
        """Put a file where the controller's configuration is; it is the controller's alone."""
        shutil.copy(file, self.debian.files / "root" / as_name)
        self.debian.done(*OWNED, as_name, "/etc/headway/")


@contextmanager
def two_machines(
    root: Path, folder: Path, versions: Mapping[str, Sequence[Path]]
) -> Iterator[list[PackagedController]]:
    """Give two machines that have booted, with the packages of each version in a folder of its name.

    Args:
        root: Debian's files.
        folder: for what the machines write.
        versions: packages by the version's name.
    """
    with ExitStack() as parts:
        found = []
        for number, name in enumerate(NAMES):
            cable = parts.enter_context(CabledMachine(number))
            debian = parts.enter_context(DebianMachine(root, folder / name, name, cable))
            for version, debs in versions.items():
                (debian.files / "root" / version).mkdir()
                for deb in debs:
                    shutil.copy(deb, debian.files / "root" / version)
            found.append(PackagedController(name, debian, cable.address))
        yield found


def certified(pair: Sequence[PackagedController], network: Path, keeps: Path) -> str:
    """Make an authority and all certificates, and give each machine its own; return the operator's token.

    Args:
        pair: the machines; the first one has the authority's folder.
        network: the file of one.
        keeps: folder for a copy of the authority's.
    """
    first = pair[0].debian
    first.done("headway", "pki", "init", "pki", "--name", "La Serena")
    for one in pair:
        named = ("--name", f"{one.name}.example.org", "--name", one.address)
        for kind in ("controller", "rest"):
            first.done("headway", "pki", kind, "pki", *named)
        first.done("headway", "pki", "ovsdb", "pki", *named[:2])
    shutil.copy(network, first.files / "root/network.yaml")
    first.done("headway", "pki", "switch", "pki", "--network", "network.yaml")
    first.done("headway", "pki", "agent", "pki", "--all", "--network", "network.yaml")
    token = first.done(*TOKENS.split()).split()[0]
    shutil.rmtree(keeps, ignore_errors=True)  # of a run before
    shutil.copytree(first.files / "root/pki", keeps)
    for one in pair:
        for name in ("ca.pem", "crl.pem", TOKENS_FILE):
            one.put(keeps / name, name)
        for kind, name in (("controllers", "agents"), ("rest", "rest"), ("ovsdb/controllers", "switches")):
            for end in ("pem", "key"):
                one.put(keeps / kind / f"{one.name}.example.org.{end}", f"{name}.{end}")
    return token


def configuration(pair: Sequence[PackagedController], number: int, more: dict[str, Any]) -> str:
    """Return a machine's ``controller.yaml``, as the manual of a pair has it.

    Args:
        pair: the machines.
        number: of this one.
        more: what is not this page's: network, flows, database, queues.
    """
    one, others = pair[number], [each for each in pair if each is not pair[number]]
    at = {"rest": f"{one.address}:{REST}", "agents": f"{one.address}:{AGENTS}"}
    said = {
        "listen": at | {"openflow": f"ssl:{one.address}:{OPENFLOW}", "tls": _files("rest")},
        "tls": {"authority": "ca.pem", "revoked": "crl.pem", "switches": _files("switches")} | _files("agents"),
        "access": {"tokens": TOKENS_FILE},
        "pair": {"address": one.url, "others": [each.url for each in others], "ttl": TTL},
    }
    return json.dumps(more | said, indent=1)  # which is YAML too


def _files(name: str) -> dict[str, str]:
    return {"certificate": f"{name}.pem", "key": f"{name}.key"}
