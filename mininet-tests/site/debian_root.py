"""A Debian 12 as ``mmdebstrap`` makes it, kept in the cache: only read, for each machine writes to a layer above it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from mininet_tests.lab.image import cache_dir, locked

Say = Callable[[str], None]

MIRROR = "deb http://deb.debian.org/debian bookworm main"
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "init-system-helpers"),
    *("openvswitch-switch", "iproute2", "ethtool", "procps", "python3"),
    *("python3-cryptography", "python3-pyroute2", "python3-yaml", "libbpf1"),
)
"""What a machine has before Headway comes; the last line is what the agent's package asks of Debian."""


def debian_root(say: Say) -> Path:
    """Return the folder, after making it if it is not there. It stays as it is until it is deleted.

    Raises:
        RuntimeError: it could not be made; the text says why.
    """
    cache = cache_dir(dict(os.environ))
    cache.mkdir(parents=True, exist_ok=True)
    root = cache / "debian-12"
    with locked(cache / "debian.lock", say):
        if root.exists() and (root / "etc/headway-root").read_text().split() != list(PACKAGES):
            shutil.rmtree(root)
        if not root.exists():
            say(f"making a Debian 12 in {root}")
            _make(root)
    return root


def _make(root: Path) -> None:
    unfinished = root.with_name(f"{root.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}", "--skip=check/qemu"]
    done = subprocess.run(
        [*command, "bookworm", unfinished, MIRROR],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"mmdebstrap failed:\n{done.stderr[-2000:]}")
    (unfinished / "etc/headway-root").write_text("\n".join(PACKAGES) + "\n")
    unfinished.rename(root)
