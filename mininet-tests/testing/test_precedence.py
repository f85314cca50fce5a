"""What goes before others, and that it does so no longer than it is measured."""

import os
import subprocess
import sys
import threading

import pytest

from mininet_tests.testing.precedence import NICE, precedence

SAYS = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"


def nice() -> int:
    """How this thread, its children and the threads it starts are placed."""
    return os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.root
def test_programs_and_threads_that_are_started_meanwhile_go_before_others_and_nothing_does_after():
    before, found = 0, []
    os.setpriority(os.PRIO_PROCESS, 0, before)  # conftest.py has let this test go before others
    with precedence():
        child = subprocess.run([sys.executable, "-c", SAYS], check=True, capture_output=True, text=True).stdout
        thread = threading.Thread(target=lambda: found.append(nice()))
        thread.start()
        thread.join()
    assert (int(child), found, nice()) == (NICE, [NICE], before)


def test_without_the_right_to_it_nothing_is_changed(monkeypatch):
    def refused(*_: int) -> None:
        if _[-1] == NICE:
            raise PermissionError

    monkeypatch.setattr(os, "setpriority", refused)
    with precedence():
        assert nice() != NICE
