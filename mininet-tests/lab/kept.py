"""A folder in memory for what a scenario writes, kept when it ends."""

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FAILURES = (AssertionError, RuntimeError, TimeoutError, subprocess.SubprocessError)


def kept(name: str, out: Path, scenario: Callable[[Path], object]) -> int:
    """Run a scenario on a folder in memory, copy that to ``out`` however it ends, and return the exit code.

    The lab's host files answer in real time, not in its own: nothing is written there while it runs. Keys are not kept.
    A thread that dies of an error is a failure: what it was to measure or to send is missing.
    """
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            with _died() as died:
                scenario(Path(scratch))
            if died:
                raise RuntimeError(f"a thread died: {'; '.join(died)}")
        except FAILURES as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            return 1
        finally:
            for keys in list(Path(scratch).rglob("pki")):
                shutil.rmtree(keys)
            out.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", f"{scratch}/.", str(out)], check=True)
    return 0


@contextmanager
def _died() -> Iterator[list[str]]:
    """Note which threads die of an error meanwhile, and of which; each says so by itself, too."""
    died: list[str] = []
    shown = threading.excepthook

    def dies(told: threading.ExceptHookArgs) -> None:
        died.append(f"{told.thread.name if told.thread else 'one that is gone'}: {told.exc_value!r}")
        shown(told)

    threading.excepthook = dies
    try:
        yield died
    finally:
        threading.excepthook = shown
