"""What can go wrong on the host.

- AgentError: everything an operator can read in one line
    - AgentConfigError: the configuration file; all its problems together
    - EnvironmentLacking: the host lacks something the agent needs
    - AlreadyRunning: another agent holds this network namespace
    - NotEncodable: a plan that the kernel part cannot hold
        - NoRoomBeside: not while it holds the plan before
    - BpfError: the kernel or libbpf refused a call
    - LayoutDiffers: the kernel part's structs are not what this daemon writes and reads
    - Unregistered: somebody has taken our congestion control out of the kernel's list
    - NotAttached: a controller that does not serve us
        - AttachmentRefused: one end does not trust the other, or the controller does not want this host
        - Lost: it could not be reached, or the stream broke off
"""

import os
from pathlib import Path


class AgentError(Exception):
    """Base of all errors of the agent."""


class AgentConfigError(AgentError):
    """The configuration has problems; nothing was started."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class EnvironmentLacking(AgentError):
    """The host lacks something; each line says what, where and what to do."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


class AlreadyRunning(AgentError):
    """Another agent holds this network namespace."""

    def __init__(self, namespace_id: str, evidence: str) -> None:
        super().__init__(f"another agent runs in this network namespace (id {namespace_id}): {evidence}")
        self.namespace_id = namespace_id
        self.evidence = evidence


class NotEncodable(AgentError):
    """Allocations that the kernel part cannot hold as they are; what was in force stays."""

    def __init__(self, names: tuple[str, ...], why: str) -> None:
        super().__init__(f"{', '.join(names)}: {why}")
        self.names = names
        self.why = why


class NoRoomBeside(NotEncodable):
    """The kernel part can hold them, but not together with what is in force."""


class BpfError(AgentError):
    """The kernel or libbpf refused a call.

    Attributes:
        doing: what was tried.
        errno: the system's error number.
        log: what libbpf printed meanwhile, the verifier's words included.
    """

    def __init__(self, doing: str, errno: int, log: tuple[str, ...] = ()) -> None:
        said = "".join(f"\n    {line}" for line in log)
        super().__init__(f"{doing}: {os.strerror(errno)} (errno {errno}){said}")
        self.doing = doing
        self.errno = errno
        self.log = log


class LayoutDiffers(AgentError):
    """A struct of the kernel part is not what this daemon writes and reads: object and daemon are of two versions."""

    def __init__(self, name: str, lacking: tuple[str, ...], unknown: tuple[str, ...]) -> None:
        differ = [f"has no {field}" for field in lacking] + [
            f"has {field}, which is not known here" for field in unknown
        ]
        super().__init__(f"struct {name} of the kernel part {', '.join(differ) or 'is not there'}")


class Unregistered(AgentError):
    """Our congestion control was taken out of the kernel's list; only a new agent can register it again."""

    def __init__(self) -> None:
        super().__init__("the congestion control was unregistered by somebody else; the agent must be started again")


class NotAttached(AgentError):
    """A controller does not serve us, or not any more; ``why`` in one line."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class AttachmentRefused(NotAttached):
    """One end does not trust the other, or the controller does not want this host; somebody must do something."""


class Lost(NotAttached):
    """The controller could not be reached, or the stream broke off; it may be better the next time."""


class GaveWay(Lost):
    """The controller has ended the stream for a newer one of the same host."""


class NoSuchFile(AgentError):
    """A file of the agent's own is missing: the installation is broken."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is missing; reinstall the package or run: make -C hostagent/bpf")
        self.path = path
