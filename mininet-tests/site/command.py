"""Our own command, and one that is run to its end."""

import subprocess
import sys
from pathlib import Path

HEADWAY = Path(sys.executable).parent / "headway"


def run(*command: str, text: str | None = None) -> str:
    """Return the output of a command, which reads ``text``.

    Raises:
        RuntimeError: it failed; with what it said.
    """
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {said}")
    return done.stdout
