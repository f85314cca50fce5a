"""Certificates of all kinds, a controller's port and agents on the loopback; what each end says is kept."""

import contextlib
import os
import socket
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

from structlog.testing import capture_logs

from controller.security import pki, pki_files
from controller.security.tls import ServerTls
from controller.southbound.agents.hosts import HostSessions
from hostagent.agent.agent import Agent
from hostagent.agent.stream import ControllerStream
from hostagent.errors import NotAttached
from hostagent.kernel.layout import EntryCounters
from hostagent.log import log
from hostagent.settings import AgentSettings
from hostagent.trust import ClientTls
from mininet_tests.testing.loopback import free_port
from topology.certificates import Kind
from topology.protocol import Allocations, Hello, parsed_allocations, to_bytes

LEASE_MS = 300
NOT_AT_ONCE_S = 0.2  # within which a SYN that is not answered is not repeated
TODAY = pki_files.now()
BEFORE = TODAY - timedelta(days=100)


@dataclass(frozen=True)
class Pki:
    """An authority in a folder."""

    folder: Path

    @classmethod
    def made(cls, folder):
        pki_files.init(folder, "example", BEFORE, pki.AUTHORITY_DAYS)
        return cls(folder)

    def controller(self, *names, days=1000, revoked=True):
        """The controller's files, for the loopback if nothing else is said."""
        names = names or ("127.0.0.1",)
        made = pki_files.make(self.folder, Kind.CONTROLLER, names, BEFORE, days, force=True)
        crl = str(self.folder / "crl.pem") if revoked else ""
        return ServerTls(str(made.key), str(made.certificate), str(self.folder / "ca.pem"), crl)

    def agent(self, host="base20", days=1000, revoked=None):
        """An agent's files."""
        made = pki_files.make(self.folder, Kind.AGENT, (host,), BEFORE, days, force=True)
        return ClientTls(self.folder / "ca.pem", made.certificate, made.key, revoked)

    def revoke(self, name):
        pki_files.revoke(self.folder, name, TODAY)


def agents_of(tls):
    """A controller's files as if they were an agent's."""
    return ClientTls(Path(tls.authority), Path(tls.certificate), Path(tls.key))


def controllers_of(tls):
    """An agent's files as if they were a controller's."""
    return ServerTls(str(tls.key), str(tls.certificate), str(tls.authority))


class AgentsListener:
    """The controller's service: knows base20 and base21, and keeps what it hears."""

    def __init__(self, epoch=7):
        self.epoch = epoch
        self.up, self.again, self.down, self.applied, self.declined = [], [], [], [], []

    def host_up(self, hello):
        self.up.append(hello.host)
        return Allocations(self.epoch, LEASE_MS) if hello.host in {"base20", "base21"} else None

    def host_again(self, hello):
        self.again.append(hello)

    def host_down(self, host):
        self.down.append(host)

    def hosts_applied(self, said):
        self.applied += [applied.epoch for _, applied in said]

    def host_telemetry(self, host, telemetry):
        pass

    def host_declined(self, host, declined):
        self.declined.append(declined)

    def host_demand(self, host, demand):
        pass

    def host_repaired(self, host, repaired):
        pass


@contextlib.contextmanager
def controlled(tls, listener=None, port=None):
    """A controller's port with these files; yield its address."""
    sessions = HostSessions(listener or AgentsListener(), LEASE_MS, tls)
    address = f"127.0.0.1:{port or free_port()}"
    sessions.start(address)
    try:
        yield address
    finally:
        sessions.stop()


@contextlib.contextmanager
def far_from(address):
    """A port before a controller's, at which no connection is there at once as on the loopback; yield its address.

    The one place of those that wait to be accepted is taken at first. So the kernel drops a caller's SYN, which is
    repeated a second later.
    """
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as port,
        socket.create_connection(port.getsockname()) as taken,
    ):

        def serve():
            time.sleep(NOT_AT_ONCE_S)
            taken.close()
            port.accept()[0].close()
            caller, _ = port.accept()
            host, number = address.split(":")
            with caller, socket.create_connection((host, int(number))) as controller:
                back = threading.Thread(target=carry, args=(controller, caller))
                back.start()
                carry(caller, controller)
                back.join()

        port.settimeout(10)
        thread = threading.Thread(target=serve)
        thread.start()
        yield "{}:{}".format(*port.getsockname())
        thread.join()


def carry(one, other):
    """Carry what comes from one socket to another, until either ends."""
    with contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def attached(address, tls, host="base20"):
    """Call a controller; return why it did not work, or nothing."""
    stream = ControllerStream(address, tls)
    stream.send(to_bytes(Hello(host, "0", "6.12")))
    try:
        for heard in stream.messages():
            assert parsed_allocations(heard.data).epoch == 7
            stream.cancel()
    except NotAttached as error:
        return error.why
    return ""


@contextlib.contextmanager
def both_logged():
    """Collect what controllers and agents of this process log."""
    with capture_logs() as logs, log.captured(into=logs):
        yield logs


def both_say(controller_tls, agent_tls, host="base20", dialled="127.0.0.1"):
    """Let an agent call a controller; return what it says, and the reasons that the controller has logged."""
    with capture_logs() as logs, controlled(controller_tls) as address:
        said = attached(address.replace("127.0.0.1", dialled), agent_tls, host)
    return said, [entry["why"] for entry in logs if entry["event"] in {"host.untrusted", "host.refused"}]


class FakeKernel:
    """Takes every plan."""

    codes_tails = False

    def __init__(self):
        self.flips = SimpleNamespace(fd=os.eventfd(0), take=int)

    def apply(self, change, expires_ns, epoch):
        pass

    def demand(self):
        return {}

    def repaired(self):
        return ()

    def counters(self, slots):
        return [EntryCounters(*(0 for _ in EntryCounters.__dataclass_fields__)) for _ in slots]

    def walk(self):
        pass


@contextlib.contextmanager
def agent_running(*controllers, tls=None, host="base20"):
    """A real agent over a fake kernel part; yield it."""
    agent = Agent(AgentSettings(host, controllers, tls=tls, insecure=True), FakeKernel(), None)
    thread = threading.Thread(target=agent.serve)
    thread.start()
    try:
        yield agent
    finally:
        agent.stop()
        thread.join(10)
        assert not thread.is_alive()
