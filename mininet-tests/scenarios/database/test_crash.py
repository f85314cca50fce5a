"""What was acknowledged survives the controller's death, again and again, on either database."""

import pytest

from mininet_tests.scenarios.database.crashes import problems, survived
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import running

DISK_BYTES = 1 << 30  # in memory: a controller dies here, no machine

pytestmark = [pytest.mark.root, pytest.mark.timeout(1500)]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/headway.db"
        return
    with PrivatePostgres(disk_bytes=DISK_BYTES) as postgres:
        yield postgres.url


@pytest.mark.parametrize("kills", [5, pytest.param(45, marks=pytest.mark.long)])  # fifty in all
def test_what_was_acknowledged_is_there_once_after_many_deaths(database, kills, tmp_path):
    with running(tmp_path, database) as controller:
        clients = survived(controller, kills)
        told = sum(len(client.told.seen) for client in clients)
        assert told > kills, "too few reservations for the test to mean anything"
        assert problems(controller, clients) == []
        print(f"{told} acknowledged reservations over {kills} deaths")
