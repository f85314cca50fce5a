"""The Debian packages from installation to purge: makes a Debian and both versions' packages, then goes the course."""

import argparse
import subprocess
import sys
from pathlib import Path

from mininet_tests.lab import commands
from mininet_tests.site import packages
from mininet_tests.site.debian_root import debian_root
from mininet_tests.testing.progress import tell


def main() -> int:
    """Make what is missing, and run the course in namespaces of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/deploy"), help="folder (default: %(default)s)")
    parser.add_argument("--packages", type=Path, help="folder of make packages (default: they are made now)")
    asked = parser.parse_args()
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    tell(0.0, "a Debian, and the packages of both versions")
    root, old = debian_root(print), packages.previous()
    new = asked.packages.resolve() if asked.packages else packages.built(commands.ROOT, out / "packages")
    image = packages.image(new, out / "controller.oci.tar")
    arguments = {"root": root, "old": old, "new": new, "image": image, "out": out}
    named = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    return subprocess.run(
        commands.isolated(*commands.module("scenarios.deploy.course", *named)), check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
