"""An Open vSwitch of our own: its daemons, database and sockets, beside whatever the machine runs."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from mininet_tests.testing.eventually import eventually

_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_FROM_DATABASE = (  # so that ovs-vsctl's set-manager and set-ssl work, as they do with the distribution's start script
    "--remote=db:Open_vSwitch,Open_vSwitch,manager_options",
    "--private-key=db:Open_vSwitch,SSL,private_key",
    "--certificate=db:Open_vSwitch,SSL,certificate",
    "--ca-cert=db:Open_vSwitch,SSL,ca_cert",
)
_START_S = 20.0  # a virtual machine in virtual time is slow to start a process


@dataclass(frozen=True, slots=True)
class Directories:
    """Where the daemons keep what they write.

    Attributes:
        run: sockets and pid files.
        database: the database file.
        log: log files.
    """

    run: Path
    database: Path
    log: Path

    @classmethod
    def under(cls, directory: Path) -> Self:
        """Return all three as one directory of our own, which may run beside a system Open vSwitch."""
        return cls(directory, directory, directory)

    @classmethod
    def standard(cls) -> Self:
        """Return those the distribution's tools look in, so that a plain ``ovs-vsctl`` works.

        For a mount namespace whose ``/run/openvswitch``, ``/etc/openvswitch`` and ``/var/log/openvswitch`` are ours.
        """
        return cls(Path("/run/openvswitch"), Path("/etc/openvswitch"), Path("/var/log/openvswitch"))


@contextmanager
def network_namespace(name: str) -> Iterator[str]:
    """Make a network namespace whose loopback is up; remove it, and with it its devices, at the end."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


class PrivateOvs:
    """ovsdb-server and ovs-vswitchd, started and stopped by us, by process id.

    As in ``with PrivateOvs(Directories.under(tmp_path)) as ovs: ovs.vsctl("add-br", "s1")``.
    """

    def __init__(self, directories: Directories, namespace: str | None = None) -> None:
        """Prepare; nothing runs before :meth:`start`.

        Args:
            directories: where the daemons write.
            namespace: name of the network namespace they run in; None for the caller's own.
        """
        self.directories = directories
        self.remote = f"unix:{directories.run / 'db.sock'}"
        self._prefix = ["ip", "netns", "exec", namespace] if namespace else []
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> Self:
        """Start both daemons; return once ovs-vswitchd has taken in its configuration.

        Raises:
            AssertionError: one did not come up in time.
            subprocess.CalledProcessError: the database cannot be made.
        """
        for directory in {self.directories.run, self.directories.database, self.directories.log}:
            directory.mkdir(parents=True, exist_ok=True)
        database = self.directories.database / "conf.db"
        if not database.exists():
            subprocess.run(["ovsdb-tool", "create", database, _SCHEMA], check=True, env=self.environment)
        try:
            self.start_database()
            self.vsctl("--no-wait", "init")
            self.start_switch()
        except BaseException:
            self.stop()
            raise
        return self

    def start_database(self) -> None:
        """Start ovsdb-server; return once it answers."""
        socket = self.directories.run / "db.sock"
        self._start(
            "ovsdb-server", str(self.directories.database / "conf.db"), f"--remote=p{self.remote}", *_FROM_DATABASE
        )
        eventually(socket.exists, within_s=_START_S, what="ovsdb-server listens")

    def start_switch(self) -> None:
        """Start ovs-vswitchd; return once it has taken in its configuration."""
        self._start("ovs-vswitchd", self.remote)
        self.vsctl(f"--timeout={_START_S:.0f}", "set", "open_vswitch", ".", "other_config:headway-started=true")
        self.vsctl("remove", "open_vswitch", ".", "other_config", "headway-started")

    def kill_switch(self) -> None:
        """Kill ovs-vswitchd at once, as a crash would."""
        daemon = self._daemons.pop("ovs-vswitchd")
        daemon.kill()
        daemon.wait()

    def end_switch(self) -> None:
        """End ovs-vswitchd in order; what the kernel's datapath forwards by stays."""
        daemon = self._daemons.pop("ovs-vswitchd")
        daemon.send_signal(signal.SIGTERM)
        self._end(daemon)

    def stop_database(self) -> None:
        """Stop ovsdb-server alone."""
        daemon = self._daemons.pop("ovsdb-server")
        daemon.send_signal(signal.SIGTERM)
        self._end(daemon)

    def stop(self) -> None:
        """Stop both daemons and remove the bridges' devices; safe to call twice."""
        if "ovs-vswitchd" in self._daemons:
            self.appctl("exit", "--cleanup")
            self._end(self._daemons.pop("ovs-vswitchd"))
        if "ovsdb-server" in self._daemons:
            self.stop_database()

    def vsctl(self, *arguments: str) -> str:
        """Return what ``ovs-vsctl`` prints; it waits for ovs-vswitchd unless told ``--no-wait``.

        Raises:
            subprocess.CalledProcessError: it refused.
        """
        return self._output("ovs-vsctl", f"--db={self.remote}", *arguments)

    def ofctl(self, *arguments: str) -> str:
        """Return what ``ovs-ofctl -O OpenFlow13`` prints.

        Raises:
            subprocess.CalledProcessError: it refused.
        """
        return self._output("ovs-ofctl", "-O", "OpenFlow13", *arguments)

    def appctl(self, *arguments: str) -> str:
        """Return what ``ovs-appctl`` prints about ovs-vswitchd.

        Raises:
            subprocess.CalledProcessError: it refused.
        """
        return self._output("ovs-appctl", *arguments)

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Open vSwitch's tools find this one."""
        run, database, log = (
            str(path) for path in (self.directories.run, self.directories.database, self.directories.log)
        )
        return {**os.environ, "OVS_RUNDIR": run, "OVS_DBDIR": database, "OVS_LOGDIR": log, "OVS_SYSCONFDIR": database}

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        """Stop."""
        self.stop()

    def _start(self, daemon: str, *arguments: str) -> None:
        """Start a daemon as our child: no --detach, so that its process id is ours to know."""
        command = [*self._prefix, daemon, "-vconsole:off", *arguments, f"--pidfile={self.directories.run / daemon}.pid"]
        command += [f"--log-file={self.directories.log / daemon}.log"]
        self._daemons[daemon] = subprocess.Popen(command, env=self.environment)

    def _output(self, *command: str) -> str:
        done = subprocess.run(command, check=True, env=self.environment, stdout=subprocess.PIPE, text=True, timeout=60)
        return done.stdout

    @staticmethod
    def _end(daemon: subprocess.Popen[bytes]) -> None:
        """Wait for a daemon that was told to end; kill it if it does not."""
        try:
            daemon.wait(timeout=10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
