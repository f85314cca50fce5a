"""What once brought a controller down, from the network of somebody who has no business there, against a real one.

Each of these worked before there were principals and bounds. What they cost others: ``mininet-tests/run hostile``.
At the switches' port: ``mininet-tests/scenarios/switches/test_switch.py``.
"""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.northbound.api import MOST_BODY_BYTES
from mininet_tests.bench.hostile import resident_bytes
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.running import Running, running

pytestmark = pytest.mark.root

STRANGER = "127.0.0.2"
PER_S = 20
JSON = "application/json"


@dataclass
class Guarded:
    """A controller that wants to know who asks, and who may ask it."""

    controller: Running
    tokens: dict[str, str]

    def as_(self, who: str = "") -> httpx.Client:
        """Return somebody who asks."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        return httpx.Client(base_url=self.controller.url, headers=headers, timeout=30)

    def connected(self, said: bytes = b"", source: str = STRANGER) -> socket.socket:
        """Return a connection of a stranger who has said something."""
        host, _, port = self.controller.url.removeprefix("http://").rpartition(":")
        made = socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0))
        with contextlib.suppress(ConnectionError):  # he may have been turned away
            made.sendall(said)
        return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One whose owner is ana; bob may reserve too."""
    folder: Path = tmp_path_factory.mktemp("guarded")
    tokens = {}
    for name, role in (("ana", "reserve"), ("bob", "reserve"), ("op", "operate")):
        command = [str(HEADWAY), "token", "make", name, "--role", role, "--days", "9", "--file", str(folder / "tokens")]
        tokens[name] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    access = {"tokens": str(folder / "tokens"), "local": "read", "requests_per_s": PER_S}
    with running(folder, f"sqlite:///{folder}/headway.db", access=access) as controller:
        yield Guarded(controller, tokens)


def wish(**more: Any) -> dict[str, Any]:
    """Return what is asked for: an hour of tomorrow."""
    begins = datetime.now(UTC) + timedelta(days=1)
    when = {"start": begins.isoformat(), "duration_s": 3600}
    return {"from": "base20", "to": "arch", "class": "urgent", "rate": "1 Mbit/s", **when, **more}


def reserved(site: Guarded) -> str:
    """Return the path of a reservation of ana's."""
    with site.as_("ana") as ana:
        made = ana.post("/v1/reservations", json=wish())
        assert made.status_code == 201, made.text
        return f"/v1/reservations/{made.json()['id']}"


@pytest.mark.parametrize(("who", "status", "needs"), [("", 403, "reserve"), ("bob", 403, "operate")])
def test_nobody_releases_or_changes_the_reservation_of_another(site, who, status, needs):
    path = reserved(site)
    with site.as_(who) as stranger, site.as_("ana") as ana:
        before = ana.get(path)
        tried = (
            stranger.delete(path),
            stranger.post(f"{path}/commit"),
            stranger.patch(path, json={"rate": "2 Mbit/s"}, headers={"If-Match": before.headers["etag"]}),
        )
        assert [(one.status_code, one.json()["needs"]) for one in tried] == [(status, needs)] * 3
        assert ana.get(path).json() == before.json()


def test_nobody_sells_the_calendar_out_to_the_year_9999(site):
    with site.as_("op") as op, site.as_("ana") as ana:
        for far in ({"end": "9999-12-31T00:00:00Z"}, {"start": "9998-01-01T00:00:00Z", "end": "9998-01-02T00:00:00Z"}):
            body = {name: value for name, value in wish(**far).items() if name != "duration_s"}
            assert op.post("/v1/reservations", json=body).status_code in {409, 422}
        assert (
            op.get(
                "/v1/availability?from=base20&to=arch&start=2027-01-01T00:00:00Z&end=9999-01-01T00:00:00Z"
            ).status_code
            == 422
        )
        assert ana.post("/v1/reservations", json=wish()).status_code == 201


def test_a_hundred_megabytes_of_header_lines_are_not_kept(site):
    before_bytes = resident_bytes(site.controller.pid)
    with contextlib.closing(site.connected(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")) as one:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 100 << 20:
                one.sendall(b"X-A: b\r\n" * 8192)
                sent += 65_536
    assert sent < 10 << 20, "they were taken"
    assert resident_bytes(site.controller.pid) - before_bytes < 50 * 10**6


def test_who_sends_a_body_that_is_too_large_is_told_so_on_the_wire(site):
    with site.as_("ana") as ana:
        answer = ana.post("/v1/reservations", content=b" " * (MOST_BODY_BYTES + 1), headers={"Content-Type": JSON})
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")


def test_1100_idle_connections_shut_nobody_out(site):
    with contextlib.ExitStack() as open_ones, site.as_("ana") as ana:
        for _ in range(1_100):
            open_ones.enter_context(contextlib.closing(site.connected()))
        assert ana.get("/v1/topology").status_code == 200


def test_who_asks_again_and_again_is_told_to_wait_and_another_is_served(site):
    with site.as_("bob") as bob, site.as_("op") as op:
        answers = {bob.get("/v1/reservations").status_code for _ in range(60 * PER_S)}
        assert answers == {200, 429}
        assert op.get("/v1/reservations").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "attacker.example"}, 421),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_browser_on_an_operators_desk_commits_nothing_for_a_page_of_others(site, headers, status):
    path = reserved(site)
    with site.as_("ana") as ana:
        assert ana.post(f"{path}/commit", headers=headers).status_code == status
        assert ana.get(path).json()["state"] == "held"
