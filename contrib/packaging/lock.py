#!/usr/bin/env python3
"""Write the lists of PyPI's packages, with versions and hashes, that the Debian packages hold, when it is run.

``controller.lock`` is all that a controller's machine needs, ``command.lock`` the part of it that the command needs,
``agent.lock`` the part of it that Debian 12 lacks for an agent. pip resolves the first; the others keep its versions.
"""

import configparser
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = Path(__file__).resolve().parent / "locks"
OF_DEBIAN = {"cryptography", "httpx", "pyroute2", "PyYAML"}
"""What an agent takes from Debian 12 (python3-cryptography, python3-pyroute2, python3-yaml), or does not need."""


def wanted() -> dict[str, list[str]]:
    """Return the requirements in ``setup.cfg``, by the lock that they are for."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    command = setup["options"]["install_requires"].split()
    controller = setup["options.extras_require"]["controller"].split()
    agent = [each for each in command if each.partition(">")[0] not in OF_DEBIAN]
    return {"controller": [*command, *controller], "command": command, "agent": agent}


def resolved(requirements: list[str], versions: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return version and sha256 of all that requirements need, by name."""
    with tempfile.TemporaryDirectory() as folder:
        kept, report = Path(folder) / "kept", Path(folder) / "report"
        kept.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "-c", str(kept)]
        subprocess.run([*command, "--report", str(report), *requirements], check=True)
        found = json.loads(report.read_text())["install"]
    return {
        one["metadata"]["name"]: (one["metadata"]["version"], one["download_info"]["archive_info"]["hashes"]["sha256"])
        for one in found
    }


def main() -> None:
    """Write the three lists."""
    versions: dict[str, str] = {}
    for name, requirements in wanted().items():
        found = resolved(requirements, versions)
        versions = versions or {one: version for one, (version, _) in found.items()}
        rows = [f"{one}=={version} --hash=sha256:{digest}\n" for one, (version, digest) in sorted(found.items())]
        (LOCKS / f"{name}.lock").write_text("".join(rows))


if __name__ == "__main__":
    main()
