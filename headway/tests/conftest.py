"""What the client's tests share."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def slept(monkeypatch):
    """The waits of the client, which take no time."""
    waits = []
    monkeypatch.setattr("headway.transport.time", SimpleNamespace(sleep=waits.append))
    return waits
