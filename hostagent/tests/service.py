"""A service manager as far as the agent's unit needs one: user, capabilities, notify socket, descriptor store."""

import contextlib
import fcntl
import os
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path, PurePosixPath

from hostagent.agent.supervisor import FIRST_DESCRIPTOR
from hostagent.systemd import units
from hostagent.tests.rig import REPOSITORY, START, NamespaceHost

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
OUT_OF_REACH = f"only root may enter a folder above {REPOSITORY}: check it out elsewhere, such as /srv"


def within_reach() -> bool:
    """Whether a user who is not root can run what is in this checkout."""
    command = [*AS_NOBODY, sys.executable, "-c", "import hostagent"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False).returncode == 0


SYSTEM = PurePosixPath("etc/systemd/system")
ABOVE = 200  # descriptors here are nobody else's


def unit(name: str) -> dict[str, str]:
    """The settings of a unit as it is written for this installation; the last of each name."""
    text = units.files(f"{Path(sys.executable).parent}/headway agent", "10Gbps", "180ms")[SYSTEM / name]
    lines = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key: value for key, _, value in lines}


class Manager:
    """Starts the agent in a host's network namespace as its unit says, hears it, and keeps its descriptors."""

    def __init__(self, host: NamespaceHost, folder: Path, config: Path) -> None:
        self._host = host
        self._config = config
        self._log = folder / "log"
        self._unit = unit("headway-agent.service")
        self.heard: list[str] = []
        self.kept: dict[str, int] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._address = folder / "notify"
        self._socket.bind(str(self._address))
        self._address.chmod(0o777)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        self.process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return self._log.read_text()

    def start(self) -> None:
        """Start the agent; it has not come up yet."""
        names, descriptors = list(self.kept), list(self.kept.values())
        moved = "".join(f"exec {FIRST_DESCRIPTOR + n}<&{fd};" for n, fd in enumerate(descriptors))
        script = f'{moved} export LISTEN_PID=$$; exec "$@"'
        capabilities = ",".join(f"+{name.lower().removeprefix('cap_')}" for name in self._capabilities())
        held = f"-all,{capabilities}"
        command = [
            *("bash", "-c", script, "bash", "nsenter", f"--net=/run/netns/{self._host.name}"),
            *(*AS_NOBODY, "--no-new-privs"),
            *(f"--bounding-set={held}", f"--inh-caps={held}", f"--ambient-caps={held}"),
            *(sys.executable, "-c", START, str(self._config)),
        ]
        environment = os.environ | {
            "NOTIFY_SOCKET": str(self._address),
            "LISTEN_FDS": str(len(names)),
            "LISTEN_FDNAMES": ":".join(names),
        }
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log, pass_fds=descriptors
            )

    def _capabilities(self) -> list[str]:
        assert self._unit["AmbientCapabilities"] == self._unit["CapabilityBoundingSet"]
        return shlex.split(self._unit["AmbientCapabilities"])

    def _listen(self) -> None:
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._socket, 4096, 4)
            if not message:
                return
            told = dict(line.partition("=")[::2] for line in message.decode().split("\n"))
            if "FDSTOREREMOVE" in told:
                self._forget(told["FDNAME"])
            if "FDSTORE" in told:
                assert told["FDPOLL"] == "0", "systemd would drop a BPF map that it polls"
                self._forget(told["FDNAME"])
                self.kept[told["FDNAME"]] = fcntl.fcntl(descriptors[0], fcntl.F_DUPFD_CLOEXEC, ABOVE)
                os.close(descriptors[0])
            self.heard.append(message.decode())

    def _forget(self, name: str) -> None:
        if name in self.kept:
            os.close(self.kept.pop(name))

    def close(self) -> None:
        """End the agent and the hearing."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=20)
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as last:
            last.connect(str(self._address))
            last.send(b"")
        self._thread.join()
        self._socket.close()
        for name in list(self.kept):
            self._forget(name)
