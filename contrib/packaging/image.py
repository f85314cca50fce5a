#!/usr/bin/env python3
"""Make an OCI image of the controller from the Debian packages: Debian 12 with Python, and what they hold.

Needs root, and Debian's packages mmdebstrap and umoci; nothing is pulled from a registry of images. ``podman load`` and
``docker load`` read the result, as does every tool that knows an OCI archive.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MIRROR = "deb http://deb.debian.org/debian bookworm main"
PACKAGES = "python3,ca-certificates"
UNUSED = ("man", "locale", "doc-base", "info", "lintian")
USER = 6653  # no user of a Debian package has it
STATE = "/var/lib/headway"
CONFIG = "/etc/headway/controller.yaml"
COMMAND = ("/usr/bin/headway", "controller", "--config", CONFIG)


def run(*command: str | Path) -> None:
    """Run a command; what it says is shown only if it fails.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def of_one_version(packages: Path) -> list[Path]:
    """Return the two packages of an image in a folder, the command's first.

    Raises:
        SystemExit: they are not there, or are of several versions, of which nobody has said one.
    """
    found = [sorted(packages.glob(f"{name}_*.deb")) for name in ("headway", "headway-controller")]
    debs = [deb for each in found for deb in each]
    if not all(found):
        sys.exit(f"image.py: no packages in {packages}: make packages")
    if len(debs) > len(found) or len({deb.name.split("_")[1] for deb in debs}) > 1:
        sys.exit(f"image.py: several versions in {packages}: {', '.join(deb.name for deb in debs)}: leave one")
    return debs


def filled(root: Path, debs: list[Path]) -> None:
    """Make the image's files in a folder: Debian's, ours, our user and its folder; units of systemd are left out."""
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNUSED]
    mmdebstrap = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={PACKAGES}", "--skip=check/qemu"]
    run(*mmdebstrap, *left_out, "bookworm", root, MIRROR)
    for deb in debs:
        unpacked = root.with_name(
            deb.name
        )  # not into the root: /lib of a package would take the place of Debian's link
        run("dpkg-deb", "-x", deb, unpacked)
        shutil.copytree(unpacked / "usr", root / "usr", dirs_exist_ok=True)
        shutil.rmtree(unpacked)
    shutil.rmtree(root / "usr/lib/sysusers.d")
    with (root / "etc/passwd").open("a") as users, (root / "etc/group").open("a") as groups:
        users.write(f"headway-controller:x:{USER}:{USER}:Headway controller:{STATE}:/usr/sbin/nologin\n")
        groups.write(f"headway-controller:x:{USER}:\n")
    (root / STATE.lstrip("/")).mkdir(mode=0o750)
    os.chown(root / STATE.lstrip("/"), USER, USER)


def packed(root: Path, version: str, out: Path) -> None:
    """Put files into an OCI archive, with how it is to be run."""
    layout = out.with_suffix(".layout")
    shutil.rmtree(layout, ignore_errors=True)
    reference = f"{layout}:{version}"
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", reference)
    run("umoci", "insert", "--image", reference, root, "/")
    words = [word for each in COMMAND for word in ("--config.entrypoint", each)]
    run(
        *("umoci", "config", "--image", reference, *words, "--config.user", f"{USER}:{USER}"),
        *("--config.workingdir", STATE, "--config.volume", STATE, "--config.stopsignal", "SIGTERM"),
        *("--config.exposedports", "6653/tcp", "--config.exposedports", "50051/tcp"),
        *("--config.label", "org.opencontainers.image.title=headway-controller"),
        *("--config.label", f"org.opencontainers.image.version={version}"),
    )
    run("umoci", "gc", "--layout", layout)
    run("tar", "--create", "--file", out, "--directory", layout, "index.json", "oci-layout", "blobs")
    shutil.rmtree(layout)


def main() -> None:
    """Make it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, default=Path("dist"), help="folder of make packages (default: dist)")
    parser.add_argument("--out", type=Path, help="the archive (default: beside them)")
    asked = parser.parse_args()
    missing = [name for name in ("mmdebstrap", "umoci", "dpkg-deb") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        sys.exit(f"image.py: needs root and {', '.join(missing) or 'nothing else'}: apt install mmdebstrap umoci")
    debs = of_one_version(asked.packages)
    version = debs[1].name.split("_")[1]
    out: Path = (asked.out or asked.packages / f"headway-controller_{version}.oci.tar").resolve()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        filled(root, debs)
        packed(root, version.replace("~", "-"), out)
    print(out)


if __name__ == "__main__":
    main()
