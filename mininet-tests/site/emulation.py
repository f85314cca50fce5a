"""A running site: Open vSwitch, the network in Mininet, the controller and every agent."""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx
import yaml

from mininet_tests.site.certificates import certified
from mininet_tests.site.fallbacks import Fallbacks, fallbacks
from mininet_tests.site.fork_server import Forked, ForkServer, fork_server, unit_command
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.topos import (
    CONTROLLER_ADDRESS,
    OPENFLOW_PORT,
    PacketModel,
    Realised,
    call_controller,
    realise,
)
from mininet_tests.testing.eventually import eventually
from topology.network import Network
from topology.network_text import section_of

UP_WITHIN_S = 120.0  # of the machine's own time; starting Python programs is what takes long in the lab
END_WITHIN_S = 10.0
REST_URL = "http://127.0.0.1:8080"
AGENTS_PORT = 50051
_STARTED_NS = time.time_ns() - time.monotonic_ns()


@dataclass(slots=True)
class Emulation:
    """What a scenario works with.

    Attributes:
        realised: the network.
        directory: where configurations and logs are.
        api: the controller's REST API.
        ovs: its Open vSwitch.
        processes: everything started, by name.
    """

    realised: Realised
    directory: Path
    api: httpx.Client
    ovs: PrivateOvs
    processes: dict[str, subprocess.Popen[bytes] | Forked] = field(default_factory=dict)

    def spawn(
        self, name: str, command: list[str], *, host: str | None = None, stdin: int | IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program, on a host or on the controller's machine; its output is added to ``logs/<name>.log``."""
        prefix = ["mnexec", "-a", str(self.realised.net[host].pid)] if host else []
        with (self.directory / "logs" / f"{name}.log").open("ab") as log:
            started = subprocess.Popen([*prefix, *command], stdin=stdin or subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes[name] = started
        return started

    def get(self, path: str) -> Any:
        """Return what the API answers, None while it does not."""
        try:
            answer = self.api.get(path)
        except httpx.TransportError:
            return None
        return answer.json()

    def announce(self, name: str, size_bytes: int, senders: Sequence[str], receiver: str) -> Any:
        """Announce an image; return what the controller promises."""
        body = {"id": name, "bytes": size_bytes, "from": list(senders), "to": receiver}
        return self.asked("POST", "/v1/announcements", body)

    def release(self, name: str) -> None:
        """Give an announcement back."""
        self.asked("DELETE", f"/v1/announcements/{name}")

    def asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask the API to make something (POST) or to end it (DELETE); return its answer.

        Raises:
            RuntimeError: it did not do it; with what it said.
            httpx.TransportError: it does not answer.
        """
        answer = self.api.request(method, path, json=body)
        if answer.status_code != (httpx.codes.CREATED if method == "POST" else httpx.codes.OK):
            raise RuntimeError(f"{method} {path} was answered {answer.status_code}: {answer.text}")
        return answer.json()

    def ended(self) -> list[str]:
        """Return the names of programs that have ended with an error, each with the end of its log."""
        return [f"{name} (exit {p.returncode}): {self.tail(name)}" for name, p in self.processes.items() if p.poll()]

    def tail(self, name: str) -> str:
        """Return the last lines of a program's log."""
        return "\n".join((self.directory / "logs" / f"{name}.log").read_text(errors="replace").splitlines()[-5:])

    @property
    def fallbacks(self) -> Fallbacks:
        """What all agents have given back so far, and taken again."""
        return fallbacks(log.read_text(errors="replace") for log in (self.directory / "logs").glob("agent-*.log"))

    def stop(self, name: str) -> None:
        """End a program by SIGTERM, by SIGKILL if it does not."""
        process = self.processes[name]
        process.terminate()
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def controller_config(network: Network, flows: list[dict[str, str]]) -> dict[str, Any]:
    """Return the controller's configuration for a network, which is in it as in a file of its own."""
    return {
        "network": section_of(network),
        "listen": {
            "openflow": f"127.0.0.1:{OPENFLOW_PORT}",
            "rest": REST_URL.removeprefix("http://"),
            "agents": f"{CONTROLLER_ADDRESS}:{AGENTS_PORT}",
        },
        "flows": flows,
    }


def agent_config(host: str, folder: Path) -> dict[str, Any]:
    """Return a host's agent's configuration, with its certificates in the folder of an authority."""
    files = {"authority": "ca.pem", "certificate": f"agents/{host}.pem", "key": f"agents/{host}.key"}
    tls = {name: str(folder / file) for name, file in files.items()}
    return {"host": host, "controllers": [f"{CONTROLLER_ADDRESS}:{AGENTS_PORT}"], "tls": tls}


@dataclass(frozen=True, slots=True)
class MoreSettings:
    """What stands in configurations beside what they always have.

    Attributes:
        controller: in the controller's.
        agents: in the agents', by host.
    """

    controller: Mapping[str, object] = field(default_factory=dict)
    agents: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@contextmanager
def emulation(
    network: Network,
    flows: list[dict[str, str]],
    directory: Path,
    *,
    packets: PacketModel,
    without_agent: frozenset[str] = frozenset(),
    settings: MoreSettings | None = None,
) -> Iterator[Emulation]:
    """Give a running site; end all of it afterwards.

    To be called inside namespaces of our own (``isolated.sh``), whose end takes with it whatever this could not end.

    Args:
        network: what to build, and what the controller is configured with.
        flows: the standing flows, as the configuration has them.
        directory: where configurations and logs go.
        packets: how they cross the network.
        without_agent: hosts that no flow of the plan begins or ends at; to start an agent takes seconds.
        settings: more of the configurations.
    """
    for name in ("logs", "config"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    with ExitStack() as parts:
        forks = parts.enter_context(fork_server())  # before there is anything that must not be copied
        ovs = parts.enter_context(PrivateOvs(Directories.standard()))
        realised = realise(network, packets)
        parts.callback(realised.stop)
        api = parts.enter_context(httpx.Client(base_url=REST_URL, timeout=30))
        site = Emulation(realised, directory, api, ovs)
        parts.callback(_end_all, site)
        folder = directory.absolute() / "pki"
        tls = certified(folder, CONTROLLER_ADDRESS, network.agents)
        own = {"store": f"sqlite:///{directory.absolute() / 'headway.db'}", "tls": tls}
        more = settings or MoreSettings()
        _start(forks, site, "controller", {**controller_config(network, flows), **own, **more.controller})
        eventually(lambda: is_answering(site), within_s=UP_WITHIN_S, what="the controller answers")
        call_controller(realised)
        for host in (name for name in network.agents if name not in without_agent):
            _start(forks, site, "agent", {**agent_config(host, folder), **more.agents.get(host, {})}, host)
        eventually(lambda: _all_up(site, without_agent), within_s=UP_WITHIN_S, what="switches and agents hold the plan")
        parts.callback(_keep_logs, ovs, directory)
        yield site


def _start(forks: ForkServer, site: Emulation, program: str, config: dict[str, Any], host: str | None = None) -> None:
    """Write a configuration and start a controller or an agent on it, sparing it the loading of its modules."""
    name, file = _called(site, program, host)
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    inside = site.realised.net[host].pid if host else None
    site.processes[name] = forks.start(program, file, site.directory / "logs" / f"{name}.log", inside)


def started_again(site: Emulation, program: str, host: str | None = None) -> None:
    """Start ``headway controller`` or ``headway-agent`` on the configuration it had, as its unit does."""
    name, file = _called(site, program, host)
    site.spawn(name, unit_command(program, file), host=host)


def _called(site: Emulation, program: str, host: str | None) -> tuple[str, Path]:
    """Return a program's name here, and its configuration's."""
    name = f"{program}-{host}" if host else program
    return name, site.directory / "config" / f"{name}.yaml"


def is_answering(site: Emulation) -> bool:
    """Return whether the controller answers; a program that has ended ends the wait.

    Raises:
        RuntimeError: a program has ended with an error; with its last lines.
    """
    _none_has_ended(site)
    return site.get("/healthz") is not None


def _all_up(site: Emulation, without_agent: frozenset[str]) -> bool:
    """Return whether the plan is in force everywhere; a program that has ended ends the wait, as above."""
    _none_has_ended(site)
    health = site.get("/healthz") or {}
    return bool(health.get("ok") and without_agent >= {*health["hosts_missing"], *health["hosts_unconfirmed"]})


def _none_has_ended(site: Emulation) -> None:
    if ended := site.ended():
        raise RuntimeError("; ".join(ended))


def _end_all(site: Emulation) -> None:
    """End every program, the latest first."""
    for name in reversed(site.processes):
        site.stop(name)


def _keep_logs(ovs: PrivateOvs, directory: Path) -> None:
    """Copy Open vSwitch's logs beside ours."""
    for log in ovs.directories.log.glob("*.log"):
        (directory / "logs" / log.name).write_bytes(log.read_bytes())


def now_us() -> int:
    """Return the Unix time in microseconds, the clock of all samples; it does not follow a wall clock that is set."""
    return (_STARTED_NS + time.monotonic_ns()) // 1000


def in_lab() -> bool:
    """Return whether this is the lab's virtual machine."""
    return os.environ.get("HEADWAY_LAB") == "1"
