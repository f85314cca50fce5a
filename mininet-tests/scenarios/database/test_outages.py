"""A database that is silent, stopped, full, read-only or killed, and back: hosts and people who look do not notice."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import yaml

from mininet_tests.site.machines import CabledMachine
from mininet_tests.site.needs import NEEDS_POSTGRESQL
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import Running, running
from mininet_tests.site.users import Users
from mininet_tests.testing.eventually import eventually

pytestmark = [*NEEDS_POSTGRESQL, pytest.mark.timeout(300)]

DISK_BYTES = 150 << 20
LASTS_S = {"silent": 8.0, "stopped": 4.0, "full": 3.0, "read-only": 3.0, "killed": 3.0}  # silent: TCP gives up at 6 s
ANSWERED_WITHIN_S = 2.0
BUSY_S = 2.0  # what a busy machine may take on top of that; a hang is many times as long
BACK_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def machine() -> Iterator[CabledMachine]:
    """A machine for the database."""
    with CabledMachine() as machine:
        yield machine


@pytest.fixture(scope="module")
def postgres(machine) -> Iterator[PrivatePostgres]:
    """The database on it, with a small disk."""
    with PrivatePostgres(machine, DISK_BYTES) as server:
        yield server


@pytest.fixture(scope="module")
def controller(postgres, tmp_path_factory) -> Iterator[Running]:
    """A controller on it."""
    with running(tmp_path_factory.mktemp("outages"), postgres.url) as controller:
        yield controller


@contextmanager
def killed(postgres: PrivatePostgres) -> Iterator[None]:
    """The server is killed, and started again."""
    postgres.kill()
    try:
        yield
    finally:
        postgres.start()


def fault(kind: str, machine: CabledMachine, postgres: PrivatePostgres) -> AbstractContextManager[None]:
    """What lasts as long as its ``with``."""
    faults: dict[str, Any] = {
        "silent": machine.silent,
        "stopped": postgres.stopped,
        "full": postgres.full,
        "read-only": postgres.read_only,
        "killed": lambda: killed(postgres),
    }
    made: AbstractContextManager[None] = faults[kind]()
    return made


def health(controller: Running) -> dict[str, Any]:
    """What ``/healthz`` says."""
    answer: dict[str, Any] = controller.asks("GET", "/healthz", timeout_s=30).json()
    return answer


@pytest.mark.parametrize("kind", LASTS_S)
def test_hosts_and_who_looks_do_not_notice_and_what_was_answered_is_there(kind, machine, postgres, controller):
    listen = yaml.safe_load(controller.config.read_text())["listen"]
    with Users(controller.url, listen["agents"]) as users:
        eventually(
            lambda: users.renewed_s and any(one.status == 201 for one in users.writes), within_s=20, what="all is well"
        )
        began_s = time.monotonic()
        with fault(kind, machine, postgres):
            eventually(lambda: any(one.status == 503 for one in users.writes), within_s=30, what="a write fails")
            noticed_s = time.monotonic()
            time.sleep(LASTS_S[kind])
            said = health(controller)
            ends_s = time.monotonic()  # it may be mended before the fault says that it is over
        over_s = time.monotonic()
        eventually(
            lambda: any(one.status == 201 and one.asked_s > over_s for one in users.writes),
            within_s=BACK_WITHIN_S,
            what="a write works again",
        )
        gap_s = users.longest_without_renewal_s(began_s)
    assert users.failures == []
    assert gap_s < users.lease_s
    assert said["error"].startswith("the database: ")
    assert said["unsaved_us"] >= LASTS_S[kind] * 1e6
    reads = [one for one in users.reads if one.asked_s > began_s]
    assert {one.status for one in reads if one.path != "/healthz"} == {200}
    assert len(reads) > LASTS_S[kind]
    writes = [one for one in users.writes if one.asked_s > began_s]
    assert {one.status for one in writes} == {201, 503}
    assert all(one.retry_after for one in writes if one.status == 503)
    told = [one for one in writes if noticed_s < one.asked_s and one.asked_s + one.took_s < ends_s]
    assert {one.status for one in told} <= {503}
    slowest = max((one for one in (*reads, *writes)), key=lambda one: one.took_s)
    assert slowest.took_s < ANSWERED_WITHIN_S + BUSY_S, slowest
    print(f"{kind}: {gap_s:.2f} s without a renewal, {slowest.path} took {slowest.took_s:.2f} s, {len(writes)} writes")
    assert health(controller)["unsaved_us"] < ANSWERED_WITHIN_S * 1e6
    assert {one.name for one in users.writes if one.name} - names(controller) == set()


def names(controller: Running) -> set[str]:
    """All reservations there are."""
    found: set[str] = set()
    query: dict[str, Any] = {"limit": 1000}
    while True:
        page = controller.asks("GET", "/v1/reservations", params=query, timeout_s=30).json()
        found |= {one["id"] for one in page["reservations"]}
        if not page["next"]:
            return found
        query["cursor"] = page["next"]
