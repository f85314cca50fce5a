"""What the client's tests share."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def slept(monkeypatch):
    """The waits of the client, which take no time."""
    waits = []
    for module in ("transport", "hedged"):
        monkeypatch.setattr(f"headway.{module}.time", SimpleNamespace(sleep=waits.append))
    return waits
