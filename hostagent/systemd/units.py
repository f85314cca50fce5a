"""The files with which systemd runs the agent, for this installation and a path."""

from importlib import resources
from pathlib import PurePosixPath

FILES = {
    "headway-agent.service": PurePosixPath("etc/systemd/system"),
    "headway-agent-sysctl.service": PurePosixPath("etc/systemd/system"),
    "headway-agent.conf": PurePosixPath("etc/sysusers.d"),
}


def files(agent: str, rate: str, rtt: str) -> dict[PurePosixPath, str]:
    """Return each file by its path below the root folder.

    Args:
        agent: the agent's command, with its absolute path: ``/opt/headway/bin/headway agent``.
        rate: of the path, on the wire, as people write it.
        rtt: of the path, as people write it.
    """
    values = {"@AGENT@": agent, "@RATE@": rate.replace(" ", ""), "@RTT@": rtt.replace(" ", "")}
    filled = {}
    for name, folder in FILES.items():
        text = resources.files(__package__).joinpath(name).read_text()
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        filled[folder / name] = text
    return filled
