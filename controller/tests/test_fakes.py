"""What tests stand on."""

import threading

import pytest

from controller.tests.fakes import FakeSite, closing
from mininet_tests.testing.eventually import eventually

URLS = {"in memory": "sqlite://", "a file": "sqlite:///{}/headway.db"}


def of_databases():
    """The threads of databases that there are now."""
    return {one for one in threading.enumerate() if one.name.startswith("database")}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_threads_of_a_sites_database_end_with_the_test(tmp_path, url):
    before = of_databases()
    with pytest.MonkeyPatch.context() as patch, closing(patch):
        site = FakeSite(database=url.format(tmp_path))
        site.use_cases.tick().result(30)
        assert of_databases() > before
    eventually(lambda: of_databases() <= before, within_s=20, what="they have ended")
