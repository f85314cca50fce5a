"""Cells: measured one by one in the lab, many in one boot, each kept in a file of its own as soon as it is there.

A cell is plain data with a name. A run that is stopped is continued by starting it again: what has been measured is
not measured again, what has failed is. Delete a cell's file to have it anew.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.testing import progress

Cell = dict[str, Any]

MARK = "cell: "  # before what the guest has seen of a cell, in one line
ASKED = "cells.json"
EXIT_OK, EXIT_FAILED, EXIT_AGAIN, EXIT_INTERRUPTED = 0, 1, 75, 130  # 75: EX_TEMPFAIL of sysexits.h


@dataclass(frozen=True, slots=True)
class Batch:
    """Cells that one boot of the lab measures.

    Attributes:
        command: what measures them, run in the guest inside ``isolated.sh``; it is given ``--out FOLDER``.
        cells: in this order.
        dilation: of the lab.
        memory: of its machine, as the lab takes it.
        units: what a cell costs, in any unit: what is left is told by it.
    """

    command: tuple[str, ...]
    cells: tuple[Cell, ...]
    dilation: int = 1
    memory: str = "6G"
    units: Callable[[Cell], float] = field(default=lambda _: 1.0)


class Kept:
    """A folder of cells that have been measured."""

    def __init__(self, folder: Path) -> None:
        """Make it, if it is not there."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def seen(self, cell: Cell) -> Cell | None:
        """Return what a cell has come to; None if it was not measured, or was another one then."""
        file = self.folder / f"{cell['name']}.json"
        seen: Cell = json.loads(file.read_text()) if file.exists() else {}
        return seen if cell.items() <= seen.items() else None

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return those that are still to be measured, or to be tried again."""
        return [cell for cell in cells if (seen := self.seen(cell)) is None or "failed" in seen]

    def adopt(self, file: Path) -> None:
        """Keep the cells of a file of JSON lines, except those of which there is one here."""
        for line in file.read_text().splitlines():
            cell: Cell = json.loads(line)
            if not (self.folder / f"{cell['name']}.json").exists():
                self.keep(cell)

    def keep(self, seen: Cell) -> None:
        """Keep what a cell has come to; a file that is there is whole."""
        unfinished = self.folder / "unfinished"
        unfinished.write_text(json.dumps(seen) + "\n")
        unfinished.rename(self.folder / f"{seen['name']}.json")


class CellsProgress:
    """How far all batches are, and how long the rest will take."""

    def __init__(self, batches: Sequence[Batch], say: Callable[[str], None]) -> None:
        """Begin."""
        self._say, self._began_s = say, time.monotonic()
        self._count = sum(len(batch.cells) for batch in batches)
        self._units = sum(batch.units(cell) for batch in batches for cell in batch.cells)
        self._done = 0
        self._units_done = 0.0

    def done(self, batch: Batch, seen: Cell) -> None:
        """Say that a cell is done."""
        self._done += 1
        self._units_done += batch.units(seen)
        left_s = (time.monotonic() - self._began_s) / self._units_done * (self._units - self._units_done)
        failed = f" FAILED: {seen['failed']}" if "failed" in seen else ""
        took = f"{seen['name']}: {seen['wall_s']:.0f} s{failed}"
        progress.tell(self._units_done / self._units, f"{self._done} of {self._count} cells")
        self._say(f"{self._done} of {self._count}, {duration(left_s)} left: {took}")


def duration(seconds: float) -> str:
    """Return a duration as people say it.

    >>> duration(20), duration(700), duration(9000)
    ('20 s', '12 min', '2 h 30 min')
    """
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def measured(batches: Sequence[Batch], kept: Kept, facts: Cell, say: Callable[[str], None], *, jobs: int = 1) -> int:
    """Measure batches in the lab, and keep each cell at once; return an exit code.

    Args:
        batches: what is to be measured.
        kept: where it is kept.
        facts: what is kept with each cell beside what was seen of it.
        say: shows progress.
        jobs: how many labs run side by side; that changes no figure but the wall time.
    """
    boots = _Boots(kept, facts, CellsProgress(batches, say), say)
    with ThreadPoolExecutor(jobs) as pool:
        found = [pool.submit(boots.batch, number, batch) for number, batch in enumerate(batches)]
        try:
            codes = [one.result() for one in found]
        except KeyboardInterrupt:
            boots.end()
            say("interrupted; start it again to go on")
            return EXIT_INTERRUPTED
    return next((code for code in codes if code), EXIT_OK)


class _Boots:
    """Labs that run, and what they tell."""

    def __init__(self, kept: Kept, facts: Cell, progress: CellsProgress, say: Callable[[str], None]) -> None:
        self._kept, self._facts, self._progress, self._say = kept, facts, progress, say
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._ended = threading.Event()

    def end(self) -> None:
        """End all labs, and start none any more."""
        with self._lock:
            self._ended.set()
            for process in self._running:
                process.terminate()

    def batch(self, number: int, batch: Batch) -> int:
        """Measure a batch, in a boot more for each cell that fails; return an exit code."""
        left = list(batch.cells)
        while left and not self._ended.is_set():
            before = len(left)
            code = self._boot(self._kept.folder / f"boot-{number}", batch, left)
            if code not in (EXIT_OK, EXIT_AGAIN) or len(left) == before:
                if not self._ended.is_set() and code not in (EXIT_INTERRUPTED, -signal.SIGINT):
                    self._say(f"the lab ended with {code}")
                self.end()
                return code or EXIT_FAILED
        return EXIT_OK

    def _boot(self, folder: Path, batch: Batch, left: list[Cell]) -> int:
        """Measure in one boot what is left of a batch, which gets shorter by that; return the lab's exit code."""
        folder.mkdir(exist_ok=True)
        (folder / ASKED).write_text(json.dumps(left))
        options = "--dilation", str(batch.dilation), "--memory", batch.memory, "--out", str(folder)
        command = commands.in_lab(*options, command=[*batch.command, "--out", str(folder)])
        with self._lock:
            if self._ended.is_set():
                return EXIT_INTERRUPTED
            process = subprocess.Popen([*commands.DIES_WITH_US, *command], stdout=subprocess.PIPE, text=True)
            self._running.append(process)
        for told in _told(process):
            seen = told | self._facts | {"dilation": batch.dilation, "memory": batch.memory}
            with self._lock:
                self._kept.keep(seen)
                self._progress.done(batch, seen)
            left.pop(0)
        code = process.wait()
        with self._lock:
            self._running.remove(process)
        shutil.rmtree(folder)
        return code


def _told(process: "subprocess.Popen[str]") -> Iterator[Cell]:
    """Yield what is told of each cell, with the wall time since the one before; other lines are shown."""
    before_s = time.monotonic()
    assert process.stdout is not None  # noqa: S101 it is a pipe
    for line in process.stdout:
        if not line.startswith(MARK):
            print(line, end="", flush=True)
            continue
        now_s = time.monotonic()
        yield json.loads(line.removeprefix(MARK)) | {"wall_s": now_s - before_s}
        before_s = now_s


def asked(folder: Path) -> list[Cell]:
    """Return the cells that are to be measured. In the guest."""
    cells: list[Cell] = json.loads((folder / ASKED).read_text())
    return cells


def tell(cell: Cell, seen: Cell) -> None:
    """Hand over what a cell has come to. In the guest."""
    print(f"{MARK}{json.dumps(cell | seen)}", flush=True)


def leave(code: int) -> None:
    """End this process, whatever threads and children of it still run: the namespaces end with it. In the guest."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
