"""What the tests here have in common."""

import functools
import os
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SECONDS = 300  # as in setup.cfg: of a test that says nothing else
LABS = 2  # at a time: each takes a core, and a third made what goes by the clock miss its bounds


class LongestFileFirst(LoadFileScheduling):
    """Files side by side in the order of collection; none waits behind a long one while another process has nothing.

    Of those that boot the lab only so many run at a time, while there are others to run beside them.
    """

    def _reschedule(self, node: WorkerController) -> None:
        # A process keeps its last test until it knows of another one, or of the end: more than one is enough.
        if node.shutting_down or not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        labs = [other for other in self.assigned_work if any(map(_boots_the_lab, self._unfinished(other)))]
        if node in labs and self._is_at_its_end(node):
            labs.remove(node)
        if len(labs) >= LABS and (other := next((file for file in self.workqueue if not _boots_the_lab(file)), None)):
            self.workqueue.move_to_end(other, last=False)
        super()._assign_work_unit(node)

    def _unfinished(self, node: WorkerController) -> list[str]:
        return [file for file, tests in self.assigned_work[node].items() if not all(tests.values())]

    def _is_at_its_end(self, node: WorkerController) -> bool:
        """Return whether a process has only the rest of one file: what took minutes there was before its first test."""
        left = self._unfinished(node)
        return len(left) == 1 and any(self.assigned_work[node][left[0]].values())


@functools.cache
def _boots_the_lab(file: str) -> bool:
    """Return whether a file has such tests; asked where none is imported, so its text must say it."""
    return "pytest.mark.lab" in Path(__file__).parents[1].joinpath(file).read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Share out the files ourselves where the order of collection is kept: the lab's take minutes, others none."""
    return None if config.option.loadscopereorder else LongestFileFirst(config, log)


@pytest.hookimpl(trylast=True)  # when markers have deselected what is not asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of the lab without root, and begin with the longest: files that run side by side end together."""
    if os.geteuid() != 0:
        skip = pytest.mark.skip(reason="needs root: the lab shares this machine's files with its guest")
        for item in items:
            if item.get_closest_marker("lab"):
                item.add_marker(skip)
    items.sort(key=_allowed_s, reverse=True)


def _allowed_s(item: pytest.Item) -> float:
    """Return how long a test may take, seconds: the longest are allowed most."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else SECONDS
