"""A site with a pair of controllers on a PostgreSQL of their own, and every agent's stream to both."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from mininet_tests.site.command import HEADWAY
from mininet_tests.site.emulation import (
    AGENTS_PORT,
    REST_URL,
    UP_WITHIN_S,
    Emulation,
    MoreSettings,
    emulation,
)
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.topos import CONTROLLER_ADDRESS, OPENFLOW_PORT, PacketModel
from mininet_tests.testing.eventually import eventually
from topology.network import Network

SECOND = 1  # added to each port of the first controller


class PairOfControllers:
    """The two, of which the first leads until it dies."""

    def __init__(self, site: Emulation) -> None:
        self.site = site
        self.second_url = f"http://127.0.0.1:{int(REST_URL.rpartition(':')[2]) + SECOND}"
        self._second = httpx.Client(base_url=self.second_url, timeout=30)

    def begin_second(self) -> None:
        """Start the second one, and let the switches call both; return once it stands by."""
        folder = self.site.directory / "config"
        config = yaml.safe_load((folder / "controller.yaml").read_text())
        config["listen"] = {name: _next(address) for name, address in config["listen"].items()}
        config["pair"] = {"address": self.second_url}
        (folder / "second.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        self.site.spawn("second", [str(HEADWAY), "controller", "--config", str(folder / "second.yaml")])
        eventually(lambda: self.leader()["standbys"], within_s=UP_WITHIN_S, what="the second controller stands by")
        called = [f"tcp:127.0.0.1:{port}" for port in (OPENFLOW_PORT, OPENFLOW_PORT + SECOND)]
        for switch in self.site.realised.network.switches:
            subprocess.run(["ovs-vsctl", "set-controller", switch.name, *called], check=True)
        eventually(self._is_at_rest, within_s=UP_WITHIN_S, what="the switches have called both")

    def leader(self) -> dict[str, Any]:
        """Return what the one that is asked now says of who leads."""
        return dict(self.site.get("/v1/leader") or {"leading": False, "standbys": []})

    def kill_first(self) -> None:
        """Kill the first one; from now on the second is asked."""
        self.site.processes["controller"].send_signal(signal.SIGKILL)
        self.site.processes.pop("controller").wait()
        self.site.api = self._second

    def leads_now(self) -> bool:
        """Return whether the one that is asked leads."""
        return bool(self.leader()["leading"])

    def _is_at_rest(self) -> bool:
        health = self.site.get("/healthz")
        return bool(health and health["ok"])


@contextmanager
def site_of_a_pair(network: Network, flows: list[dict[str, str]], directory: Path) -> Iterator[PairOfControllers]:
    """Give a site whose first controller leads and whose second stands by."""
    agents = [f"{CONTROLLER_ADDRESS}:{AGENTS_PORT + n}" for n in (0, SECOND)]
    with PrivatePostgres() as postgres:
        settings = MoreSettings(
            {"store": postgres.url, "pair": {"address": REST_URL}},
            {host: {"controllers": agents} for host in network.agents},
        )
        with emulation(network, flows, directory, packets=PacketModel(single=False), settings=settings) as site:
            pair = PairOfControllers(site)
            pair.begin_second()
            yield pair


def _next(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + SECOND}"
