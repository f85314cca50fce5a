"""How the experiments with Debian packages are started: what they need is made, then they go their course."""

import argparse
import subprocess
from collections.abc import Callable
from pathlib import Path

from mininet_tests.lab import commands
from mininet_tests.site import packages
from mininet_tests.site.debian_root import debian_root
from mininet_tests.testing.progress import tell


def course_gone(
    description: str | None,
    name: str,
    commit: str = packages.PREVIOUS,
    more: Callable[[Path, Path], dict[str, Path]] = lambda _new, _out: {},
) -> int:
    """Make what is missing, and run an experiment's ``course`` in namespaces of its own; return its exit code.

    Args:
        description: of the experiment, for ``--help``.
        name: of the experiment, as it is started.
        commit: of the older version.
        more: what the course is given besides, by the folders of the new packages and of what it writes.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path(f"out/{name}"), help="folder (default: %(default)s)")
    parser.add_argument("--packages", type=Path, help="folder of make packages (default: they are made now)")
    asked = parser.parse_args()
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    tell(0.0, "a Debian, and the packages of both versions")
    root, old = debian_root(print), packages.previous(commit)
    new = asked.packages.resolve() if asked.packages else packages.built(commands.ROOT, out / "packages")
    arguments = {"root": root, "old": old, "new": new, "out": out, **more(new, out)}
    named = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
    course = commands.module(f"scenarios.{name.replace('-', '_')}.course", *named)
    return subprocess.run(commands.isolated(*course), check=False).returncode
