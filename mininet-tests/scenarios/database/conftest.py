"""What the tests here have in common."""

from collections.abc import Iterator

import pytest

from mininet_tests.site.postgresql import PrivatePostgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[PrivatePostgres]:
    """A server."""
    with PrivatePostgres() as server:
        yield server


@pytest.fixture
def url(postgres) -> str:
    """The URL of an empty database."""
    return postgres.new_database()
