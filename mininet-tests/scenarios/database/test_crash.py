"""What was acknowledged survives the controller's death, fifty times, on either database."""

import pytest

from mininet_tests.scenarios.database.crashes import problems, survived
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import running

KILLS = 50

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/headway.db"
        return
    with PrivatePostgres() as postgres:
        yield postgres.url


def test_what_was_acknowledged_is_there_once_after_fifty_deaths(store, tmp_path):
    with running(tmp_path, store) as controller:
        clients = survived(controller, KILLS)
        told = sum(len(client.told.seen) for client in clients)
        assert told > KILLS, "too few reservations for the test to mean anything"
        assert problems(controller, clients) == []
        print(f"{told} acknowledged reservations over {KILLS} deaths")
