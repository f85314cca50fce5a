"""Which commit of the checkout is measured."""

import shutil
import subprocess

from mininet_tests.lab import commands

CHANGED = "-changed"


def commit() -> str:
    """Return the checkout's commit, with ``-changed`` behind it if a file that it has is another one now.

    Not one of ``docs``: those are not what is measured, and whatever else was published has changed them.
    """
    name = said("git", "-C", str(commands.ROOT), "rev-parse", "--short=12", "HEAD")
    status = said(
        "git", "-C", str(commands.ROOT), "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs"
    )
    return f"{name}{CHANGED}" if status else name


def said(*command: str) -> str:
    """Return what a program says; "unknown" if it is not there, or fails."""
    if shutil.which(command[0]) is None:
        return "unknown"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
