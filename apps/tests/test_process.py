"""What ends the threads of the controller's process."""

import threading

import pytest

from apps.process import Stop, working
from controller.tests.fakes import FakeSite


def test_a_start_that_fails_half_way_ends_the_threads_that_wait_for_the_end():
    stop, ended = Stop(), threading.Event()

    def work() -> None:
        stop.wait()
        ended.set()

    with pytest.raises(OSError, match="is taken"), working(work, "page", FakeSite().state, stop):
        raise OSError("the next port is taken")
    assert ended.is_set()
    assert not stop.failed


def test_a_signal_ends_what_was_about_to_begin_anew_and_nothing_begins_anew_after_it():
    stop = Stop()
    stop.begin_anew()
    assert stop.again
    stop.end_for_good()
    assert not stop.again
    stop.begin_anew()
    assert (stop.again, stop.is_set()) == (False, True)
