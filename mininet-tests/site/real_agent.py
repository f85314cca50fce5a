"""The agent of a host as it is installed, kernel part and all, by TLS."""

import subprocess
from pathlib import Path

import yaml

from mininet_tests.site.command import HEADWAY


def real_agent(host: str, folder: Path, controller: str) -> subprocess.Popen[bytes]:
    """Start the agent of a host that calls a controller's address; its log is ``agent.log``.

    Its certificate is in the folder, as ``headway pki`` makes it there.
    """
    stem = folder / "agents" / host
    tls = {"authority": str(folder / "ca.pem"), "certificate": f"{stem}.pem", "key": f"{stem}.key"}
    config = {"host": host, "controllers": [controller], "tls": tls, "run_dir": str(folder / "run")}
    (folder / "agent.yaml").write_text(yaml.safe_dump(config))
    with (folder / "agent.log").open("wb") as log:
        return subprocess.Popen([HEADWAY, "agent", "--config", folder / "agent.yaml"], stdout=log, stderr=log)
