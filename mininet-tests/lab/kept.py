"""A folder in memory for what a scenario writes, kept when it ends."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FAILURES = (AssertionError, RuntimeError, TimeoutError, subprocess.SubprocessError)


def kept(name: str, out: Path, scenario: Callable[[Path], object]) -> int:
    """Run a scenario on a folder in memory, copy that to ``out`` however it ends, and return the exit code.

    The lab's host files answer in real time, not in its own: nothing is written there while it runs. Keys are not kept.
    """
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            scenario(Path(scratch))
        except FAILURES as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            return 1
        finally:
            for keys in list(Path(scratch).rglob("pki")):
                shutil.rmtree(keys)
            out.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", f"{scratch}/.", str(out)], check=True)
    return 0
