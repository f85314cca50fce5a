"""A program that is followed: its output is shown, and it ends with us however we end."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
from collections.abc import Sequence

from mininet_tests.lab import commands
from mininet_tests.launcher.progress import Shown

TICK_S = 1.0
ENDS_WITHIN_S = 30.0


def followed(command: Sequence[str], shown: Shown) -> int:
    """Run a program, show each line of it and how far it is, and return its exit code."""
    environment = dict(os.environ, PYTHONUNBUFFERED="1", COLUMNS=str(shutil.get_terminal_size((120, 50)).columns))
    process = subprocess.Popen(
        [*commands.DIES_WITH_US, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    try:
        _relay(process, shown)
        return process.wait()
    finally:
        shown.end()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _relay(process: subprocess.Popen[bytes], shown: Shown) -> None:
    """Show what a program writes, line by line, until it closes its output."""
    assert process.stdout is not None  # noqa: S101 it is a pipe
    output, held = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if not selector.select(TICK_S):
                shown.tick()
                continue
            data = os.read(output, 65536)
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                shown.line(line.decode(errors="replace") + "\n")
            if not data:
                break
    if held:
        shown.line(held.decode(errors="replace") + "\n")
