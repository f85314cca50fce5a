"""Two real controllers on one fenced database lose each other in any order, and nothing that must hold ever does not.

Five mistakes that a pair can be built with are each put in, and found.
"""

import contextlib
import shutil

import pytest

from controller.database.leader_row import SAVES
from controller.database.session import DatabaseSession
from controller.database.tables import META
from controller.plan.purchases import Release
from controller.southbound.openflow import wire
from controller.state import guard
from controller.state.value import leading
from controller.tests import pair_parts
from controller.tests.pair_parts import empty_database
from controller.tests.pair_world import PairWorld
from controller.work.buying import CircuitBuyer

SEEDS = range(25)
SEEDS_OF_A_MISTAKE = range(100)
STEPS = 150


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A database with a schema and nothing in it."""
    return empty_database(tmp_path_factory.mktemp("pair") / "empty.db")


@pytest.fixture
def played(empty, tmp_path):
    """Plays a world by its seed."""

    def play(seed, steps=STEPS):
        path = tmp_path / f"{seed}.db"
        shutil.copy(empty, path)
        world = PairWorld(seed, path)
        try:
            world.play(steps)
        finally:
            for one in world.controllers:
                one.ends()
            path.unlink()
        return world

    return play


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_to_a_pair_what_must_hold_does(played, seed):
    played(seed)


def one_generation_twice(patch):
    """A leader takes the row under the term that it has, and goes on where that has been led under."""
    a_row_without_terms(patch)
    lead = DatabaseSession._lead

    def unseen(self, kept):
        lead(self, None if kept == str(self._claimed) and not self.term else kept)

    patch.setattr(DatabaseSession, "_lead", unseen)


def a_row_without_terms(patch):
    """A leader takes the row under the term that it has."""
    patch.setattr(pair_parts, "next_term", lambda before, _clock_ms: before or 1)
    patch.setattr(pair_parts, "TERM_STEP", 0)


def equal_for_slave(patch):
    """Who stands by asks switches for a role that they do not fence."""

    def equal(datapath, term):
        return datapath.ofproto_parser.OFPRoleRequest(datapath, datapath.ofproto.OFPCR_ROLE_EQUAL, term)

    patch.setattr(wire, "standby_request", equal)


def no_generation(patch):
    """Who leads goes by its clock alone: every leader is of one generation to a switch."""

    def master(datapath, _term):
        return datapath.ofproto_parser.OFPRoleRequest(datapath, datapath.ofproto.OFPCR_ROLE_MASTER, 0)

    patch.setattr(wire, "role_request", master)


def no_fence(patch):
    """Who leads goes by its clock alone: the database writes what it is told."""

    @contextlib.contextmanager
    def writing(self, _batch=None):
        with self._connected().begin() as transaction:
            yield transaction
            self.saves += 1
            row = {"key": SAVES, "value": str(self.saves)}
            self._put(META, [row])

    patch.setattr(DatabaseSession, "_writing", writing)


def epochs_from_the_clock(patch):
    """A leader's epochs begin with its clock, not with its term."""
    patch.setattr(guard, "leading", lambda site, state, now, _term: leading(site, state, now, now.calendar_us // 2))


def release_before_write(patch):
    """The provider has a purchase back before that is written down."""
    carry_out = CircuitBuyer.carry_out

    def released(self, step, known, apart):
        if isinstance(step, Release):
            self._provider.release(step.name)
        carry_out(self, step, known, apart)

    patch.setattr(CircuitBuyer, "carry_out", released)


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [
        (one_generation_twice, "two lead|given twice|bit/s >"),
        (a_row_without_terms, "nobody leads"),
        (equal_for_slave, "stands by, and may write"),
        (no_generation, "not as is planned|bit/s >|has written to"),
        (no_fence, "has written to the database"),
        (epochs_from_the_clock, "does something else|not as is planned"),
        (release_before_write, "is given back, and the database has it as"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_mistake_that_a_pair_can_be_built_with_is_found(played, monkeypatch, mistake, seen):
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match=seen):
        for seed in SEEDS_OF_A_MISTAKE:
            played(seed)
