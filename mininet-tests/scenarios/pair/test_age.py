"""How old a standby says that what it shows is, while its leader is asked for one reservation after the other."""

import os
import shutil
import threading
import time

import httpx
import pytest

from headway import Client
from mininet_tests.site.asking import Script
from mininet_tests.site.postgresql import PrivatePostgres, binaries
from mininet_tests.site.running import running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port

WRITERS, ASKS_S, DAY_S = 3, 4.0, 86_400
MOST = 1000  # of a page


def not_shown(answered, shown, as_of_s):
    """What was answered before some time, and is not shown by what is said to be no older than that."""
    return {name for name, at_s in answered.items() if at_s < as_of_s and name not in shown}


def test_what_is_said_to_be_younger_than_it_is_is_found():
    answered = {"a": 1.0, "b": 2.0}
    assert not_shown(answered, {"a"}, as_of_s=1.9) == set()
    assert not_shown(answered, {"a"}, as_of_s=2.1) == {"b"}


class Writers:
    """Scripts that reserve at the leader; when each reservation was answered, of ``time.monotonic``."""

    def __init__(self, url):
        self.answered, self._ended = {}, threading.Event()
        scripts = [
            Script((url,), ("la-serena", "champaign"), int(time.time()) + (1 + n) * DAY_S) for n in range(WRITERS)
        ]
        self._threads = [threading.Thread(target=self._write, args=(script,)) for script in scripts]

    def __enter__(self):
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        """End."""
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def _write(self, script):
        client = Client(script.urls[0])
        while not self._ended.is_set() and len(self.answered) < MOST - WRITERS:
            name = client.hold_reservation(script.wanted())["id"]
            self.answered[name] = time.monotonic()


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or binaries() is None or shutil.which("setpriv") is None,
    reason="needs root, PostgreSQL 14 or newer as Debian packages it, and setpriv",
)
def test_what_a_standby_shows_is_no_older_than_it_says_however_much_is_written(tmp_path):
    ports = [free_port(), free_port()]
    with PrivatePostgres() as postgres:
        pair = []
        for name, port in zip("ab", ports, strict=True):
            (tmp_path / name).mkdir()
            rest = f"127.0.0.1:{port}"
            pair.append(
                running(
                    tmp_path / name,
                    postgres.url,
                    insecure=True,
                    pair={"address": f"http://{rest}", "ttl": "4 s"},
                    listen={"rest": rest},
                )
            )
        with pair[0] as one, pair[1] as other:
            asked = httpx.Client(base_url=other.url, timeout=10)
            eventually(lambda: one.asks("GET", "/v1/leader").json()["standbys"], within_s=60, what="one stands by")
            lags_s, ages_s, read = [], [], set()
            with Writers(one.url) as writers:
                ends_s = time.monotonic() + ASKS_S
                while time.monotonic() < ends_s:
                    first_s = time.monotonic()
                    lag_s = asked.get("/v1/leader").json()["lag_s"]
                    second_s = time.monotonic()
                    found = asked.get("/v1/reservations", params={"limit": MOST})
                    shown, age_s = {known["id"] for known in found.json()["reservations"]}, int(found.headers["age"])
                    answered = dict(writers.answered)
                    assert not_shown(answered, shown, first_s - lag_s) == set()
                    assert not_shown(answered, shown, second_s - age_s) == set()
                    lags_s.append(lag_s)
                    ages_s.append(age_s)
                    read |= shown
    assert min(ages_s) >= 1
    assert len(read) > len(writers.answered) / 2, (len(read), len(writers.answered))
    print(f"{len(lags_s)} looks, {len(writers.answered)} written; lag at most {max(lags_s):.2f} s")
