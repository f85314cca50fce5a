"""The instrument of the layers' scenario: nothing of the measuring process itself stops the flow that it measures."""

import contextlib
import gc
import socket
import threading
import time

import pytest

from mininet_tests.scenarios.layers import probe
from mininet_tests.scenarios.layers.probe import ArrivalLog
from topology.uncollected import uncollected

EVERY_S = 0.002
OVER_S = 2.0


@pytest.fixture
def sent():
    """The receiving end of a pair, while 100 bytes come in every 2 ms."""
    sender, receiver = socket.socketpair(type=socket.SOCK_DGRAM)
    ended = threading.Event()

    def send():
        while not ended.wait(EVERY_S):
            sender.send(bytes(100))

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    yield receiver
    ended.set()
    sending.join()
    receiver.shutdown(socket.SHUT_RDWR)
    sender.close()
    receiver.close()


def test_no_garbage_is_collected_between_the_first_and_the_last_arrival_that_counts(sent, monkeypatch):
    collected_s, kept, ended = [], [], threading.Event()
    ends_s, until = [], probe._until
    monkeypatch.setattr(probe, "_until", lambda when_s: (ends_s.append(when_s), until(when_s)))

    def seen(phase, _):
        if phase == "start":
            collected_s.append(time.monotonic())

    def litter():
        while not ended.wait(EVERY_S):
            kept.extend([] for _ in range(1000))  # more than a collection's threshold

    littering = threading.Thread(target=litter, daemon=True)
    gc.callbacks.append(seen)
    littering.start()
    try:
        assert ArrivalLog(sent).rate_bps(warm_up_s=0.1, over_s=OVER_S) > 0
    finally:
        ended.set()
        littering.join()
        gc.callbacks.remove(seen)
    assert gc.isenabled()
    assert [one for one in collected_s if ends_s[0] - OVER_S <= one < ends_s[0]] == []


def test_the_collector_is_left_as_it_was_found_however_the_measurement_ends():
    with contextlib.suppress(RuntimeError), uncollected():
        assert not gc.isenabled()
        raise RuntimeError
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
