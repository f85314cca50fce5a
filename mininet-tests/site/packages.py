"""The Debian packages to be tried: ours as the checkout is, and the previous version's as its commit was."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mininet_tests.lab.commands import ROOT
from mininet_tests.lab.image import cache_dir

NAMES = ("headway", "headway-controller", "headway-agent")
PREVIOUS = "e100d6da9409966e67c10bd41055c6a525b4308c"
"""The last commit before the database's fifth schema; from here it is brought up."""
PREVIOUS_VERSION = "0.1.0~previous"


def found(folder: Path) -> list[Path]:
    """Return the packages that are in a folder."""
    return [next(folder.glob(f"{name}_*.deb")) for name in NAMES]


def built(tree: Path, out: Path, *more: str) -> Path:
    """Make the packages of a tree in a folder; return it.

    Raises:
        RuntimeError: they could not be made.
    """
    shutil.rmtree(out, ignore_errors=True)
    script = tree / "contrib/packaging/build.py"
    done = subprocess.run(
        [sys.executable, script, "--out", out, *more], cwd=tree, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script}: {done.stderr or done.stdout}")
    return out


def image(debs: Path, archive: Path) -> Path:
    """Make the controller's OCI image of packages; return its archive.

    Raises:
        RuntimeError: it could not be made.
    """
    script = ROOT / "contrib/packaging/image.py"
    done = subprocess.run(
        [sys.executable, script, "--packages", debs, "--out", archive], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script}: {done.stderr or done.stdout}")
    return archive


def previous(commit: str = PREVIOUS) -> Path:
    """Return the folder of a previous version's packages; it is kept in the cache, as their commit stays the same.

    Raises:
        RuntimeError: they could not be made.
    """
    kept = cache_dir(dict(os.environ)) / f"packages-{commit[:12]}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent) as name:
            tree, out = Path(name) / "tree", Path(name) / "out"
            for folder in (tree, out):
                folder.mkdir()
            archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
            if archive.returncode:
                raise RuntimeError("the previous version's commit is not in this clone: git fetch --unshallow")
            subprocess.run(["tar", "x", "-C", tree], input=archive.stdout, check=True)
            built(tree, out, "--version", PREVIOUS_VERSION)
            out.rename(kept)
    return kept
