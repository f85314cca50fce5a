"""For all tests: Hypothesis judges answers, not how long a busy machine took to give them; and what root measures."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from mininet_tests.testing.precedence import precedence

settings.register_profile("headway", deadline=None)
settings.load_profile("headway")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test that goes by this machine's clock, with all it starts, go before what else the machine does."""
    if item.get_closest_marker("root") is None:
        return (yield)
    with precedence():
        return (yield)
