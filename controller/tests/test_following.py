"""Who stands by reads what has changed: its books are those of one that reads all of the database each time."""

import contextlib
import gc
import re
import threading
from functools import partial
from random import Random

import pytest

from controller.database import Changes, Database, DatabaseFailed, SavedPoint, changed_since
from controller.database.live import prepare_changes
from controller.database.written import MOST_NAMES
from controller.errors import HeadwayError
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import Illegal
from controller.plan.maintenance import Maintenance
from controller.reports import Reports
from controller.state.guard import GuardedState
from controller.tests.database_contract import of, reservation
from controller.tests.fakes import START_US, Clock, FakeSite, image, value_of
from controller.tests.statements import statements
from controller.use_cases import UseCases
from topology.protocol import FlowClass, Hello
from topology.telemetry import EntryTelemetry, Telemetry

S = 1_000_000
HOSTS = ("base20", "base21", "base22", "base23")
NAMES = "abcdef"
CLASSES = tuple(FlowClass)


def leading(path):
    """A database of who leads a pair; that this is a file is known to its backend alone."""
    database = Database(f"sqlite:///{path}", save_within_s=30)
    database.open()
    database._session._claimed = database.term
    return database


class StandsBy:
    """Another controller of a site, which stands by: its state, what hosts tell it, and how it reads."""

    def __init__(self, site, path):
        self.database = Database(f"sqlite:///{path}")
        self.database.open_to_read()
        self.state = GuardedState(site.state.site, site.clock.instant, 0, stands_by=True)
        self.reports = Reports(self.state)
        self.saves = UseCases(self.state, self.database).saves
        for host in HOSTS:
            self.reports.host_up(Hello(host, "0", "6.12", 0))

    def books(self):
        """All that its promises are, and what it would save of them if it led."""
        with self.state.changed:
            ledger, value = self.state.wished.ledger, self.state.value
            return {
                "reservations": ledger.reservations,
                "announcements": ledger.announcements,
                "in plan": {known.reservation_id for known in ledger.in_plan()},
                "keys": ledger._by_key,
                "calendar": ledger.calendar,
                "claims": (ledger._admission.claims._by_owner, ledger._admission.claims._by_ends),
                "number": ledger.last_sequence,
                "used": set(ledger.ended._used),
                "flows": ledger._unsaved_announcements.of_clock().keys(),
                "reserved": ledger._unsaved.of_clock().keys(),
                "maintenance": value.wished.maintenance,
                "plan": set(value.desired.plan.entries),
            }

    def due(self):
        """What is to be looked at when, of what has not ended."""
        with self.state.changed:
            ledger, now_us = self.state.wished.ledger, self.state.now_us()
            known = {*ledger.reservations, *ledger.announcements}
            return {(at_us, name) for at_us, name in ledger._due._heap if name in known and at_us > now_us}

    def saves_again(self, number):
        """Whether an announcement that has ended would be saved once more, if it led."""
        with self.state.changed:
            return number in self.state.wished.ledger.ended.unsaved


def lately(state):
    """What a controller knows of announcements that have ended lately."""
    with state.changed:
        return dict(state.wished.ledger.ended.lately)


class Played:
    """One that leads, at random; and two that stand by."""

    def __init__(self, path, seed):
        self.draw, self.clock, self.count = Random(seed), Clock(), 0  # noqa: S311 - a seed, no secret
        self.site = FakeSite(database=leading(path), clock=self.clock)
        self.site.attach_all()
        self.site.converge()
        self.follows, self.reads_all = (StandsBy(self.site, path) for _ in range(2))
        self.saved = []

    def play(self):
        """Do something, perhaps not allowed."""
        often = self.hold, self.commit, self.announce, self.count_up
        act = self.draw.choice((*often, *often, self.change, self.release, self.forget, self.passes, self.maintain))
        with contextlib.suppress(HeadwayError, Illegal, KeyError):
            act()

    def wait(self):
        """Wait until all is saved that was decided."""
        for one in self.saved:
            one.saved.result(30)
        self.saved.clear()
        self.site.use_cases.tick()

    def _request(self):
        a_end, z_end = self.draw.choice([("la-serena", "champaign"), (self.draw.choice(HOSTS), "arch")])
        start_us = self.clock.now_us + self.draw.randrange(-5, 60) * S
        rate_bps = self.draw.choice([5, 50, 400]) * 10**6
        return Request(a_end, z_end, self.draw.choice(CLASSES), rate_bps, start_us, start_us + 90 * S)

    def hold(self):
        """Hold, mostly with a key, between hosts or sites."""
        self.count += 1
        asked, key = self._request(), self.draw.choice(["", f"key {self.count}", "key 1"])
        name = f"r{self.count}"
        self.saved.append(self.site.use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us, key)))
        if self.draw.random() < 0.5:
            self.saved.append(self.site.use_cases.commit(name))

    def _one(self):
        return f"r{self.draw.randint(1, max(1, self.count))}"

    def commit(self):
        """Promise what was held."""
        self.saved.append(self.site.use_cases.commit(self._one()))

    def change(self):
        """Change a reservation."""
        name, asked = self._one(), self._request()
        version = self.site.use_cases.reservation(name).version
        self.saved.append(self.site.use_cases.change(name, lambda _: asked, version))

    def release(self):
        """Give it back."""
        self.saved.append(self.site.use_cases.release(self._one()))

    def announce(self):
        """Announce by one of a few names."""
        changes = {"size_bytes": self.draw.choice([10**6, 10**9]), "key": self.draw.choice(["", f"k{self.count}"])}
        senders = (self.draw.choice(HOSTS),)
        self.saved.append(self.site.use_cases.announce(image(self.draw.choice(NAMES), senders=senders, **changes)))

    def forget(self):
        """Take an announcement back."""
        self.saved.append(self.site.use_cases.forget(self.draw.choice(NAMES)))

    def count_up(self):
        """A host tells all three what has arrived."""
        host, size_bytes = self.draw.choice(HOSTS), self.draw.randrange(2 * 10**6)
        counted_since_ns = self.draw.choice([1, 1, 1, 2])
        seen = EntryTelemetry(
            f"{self.draw.choice(NAMES)}/{host}", 1, 1, size_bytes, 9, 0, 180_000, counted_since_ns=counted_since_ns
        )
        for reports in (self.site.reports, self.follows.reports, self.reads_all.reports):
            reports.host_telemetry(host, Telemetry(0, 1_000, entries=(seen,)))

    def passes(self):
        """Time passes, for all of them."""
        self.clock.now_us += self.draw.choice([1, 10, 40]) * S
        self.site.converge()

    def maintain(self):
        """Plan the maintenance of the circuit, seldom."""
        if self.draw.random() < 0.1:
            start_us = self.clock.now_us + 600 * S
            circuit = self.site.state.site.network.circuits[0].name
            one = Maintenance(f"m{self.clock.now_us}", circuit, start_us, start_us + S, 'a "splice" \\')
            self.saved.append(self.site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True))

    def close(self):
        """End."""
        self.site.database.close()
        self.follows.database.close()
        self.reads_all.database.close()


@pytest.mark.parametrize("seed", range(24))
def test_books_that_follow_are_those_of_who_reads_all(tmp_path, seed):
    played = Played(tmp_path / "pair.db", seed)
    for _ in range(12):
        for _ in range(played.draw.choice([1, 1, 3, 10])):
            played.play()
        played.wait()
        played.follows.saves.follow()
        played.reads_all.saves.read_anew()
        follows, reads_all = played.follows.books(), played.reads_all.books()
        for name, books in reads_all.items():
            assert follows[name] == books, name
        assert played.follows.due() >= played.reads_all.due()
        known, led = lately(played.follows.state), lately(played.site.state)
        both = known.keys() & led.keys()
        assert {number: known[number] for number in both} == {number: led[number] for number in both}
        assert not any(played.follows.saves_again(number) for number in both)
    assert value_of(played.follows.state).wished.restored < 12, "it has read all each time"
    played.close()


def test_the_collector_does_not_look_while_all_is_read(tmp_path):
    played = Played(tmp_path / "pair.db", 0)
    for _ in range(60):
        played.play()
    played.wait()
    looks, threshold = [], gc.get_threshold()
    gc.callbacks.append(lambda phase, _: looks.append(phase))
    gc.set_threshold(10)
    try:
        looks.clear()
        played.reads_all.saves.read_anew()
        begun = looks.count("start")
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.pop()
    assert begun < 10, "but for before and after it"
    assert gc.isenabled()
    played.close()


def test_times_that_are_over_are_not_kept_while_nobody_acts_on_them(tmp_path):
    played = Played(tmp_path / "pair.db", 0)
    site, follows = played.site, played.follows
    a_year = Request("la-serena", "champaign", FlowClass.URGENT, 10**6, START_US, START_US + 365 * 86_400 * S)
    site.use_cases.hold(lambda _: a_year, lambda now_us: Created("a year", now_us)).saved.result(30)
    site.use_cases.commit("a year").saved.result(30)
    for number in range(50):
        site.use_cases.announce(image(NAMES[number % len(NAMES)], size_bytes=10**6, senders=HOSTS[:1])).saved.result(30)
        follows.saves.follow()
        played.clock.now_us += 3_600 * S
        site.use_cases.tick()
    follows.saves.follow()
    with follows.state.changed:
        assert len(follows.state.wished.ledger._due) < 10
    played.close()


@pytest.fixture
def pair(tmp_path):
    """Databases of who leads, and of who stands by."""
    path = tmp_path / "pair.db"
    leads, reads = leading(path), Database(f"sqlite:///{path}")
    reads.open_to_read()
    yield leads, reads
    for each in (leads, reads):
        each.close()


def saved(database, *changes):
    """Each of these is saved in a transaction of its own."""
    for one in changes:
        database.save(one).result(30)


def since(reads, point):
    """What has changed since a point; None if all is to be read."""
    return reads.asked(partial(changed_since, since=point))


def test_what_has_changed_is_read_by_its_names(pair):
    leads, reads = pair
    saved(leads, of(reservation(1)), Changes(announcements=(("a", "1"), ("b", "2"))))
    point = reads.load().until
    assert since(reads, point).until == point
    saved(leads, of(reservation(2)), Changes(announcements=(("a", None), ("c", "3"))))
    found = since(reads, point)
    assert [one.reservation_id for one in found.reservations] == ["r2"]
    assert found.announcements == {"a": None, "c": "3"}
    assert found.until == reads.load().until == SavedPoint(point.saves + 2, point.session)


def test_every_question_that_is_asked_of_what_has_changed_is_prepared(pair):
    leads, reads = pair
    saved(leads, Changes(announcements=(("a", "1"),)))
    point = reads.load().until
    saved(leads, Changes(announcements=(("b", "2"),), reservations=(reservation(1),)))
    with statements() as asked:
        assert since(reads, point).until != point
    with statements() as prepared:
        reads.asked(prepare_changes)
    assert {plain(one) for one in asked} <= {plain(one) for one in prepared}


def test_questions_are_prepared_again_when_the_connection_is_made_anew(pair):
    leads, reads = pair
    saved(leads, of(reservation(1)))
    point = reads.load().until
    with statements() as prepared:
        reads.asked(prepare_changes)
    reads._follower.close()
    with statements() as asked:
        assert since(reads, point).until == point
    assert {plain(one) for one in prepared} <= {plain(one) for one in asked}


def plain(statement):
    """A question, of however many names it asks."""
    return re.sub(r"\?(, \?)*", "?", statement)


def written_by_another(leads, _monkeypatch):
    leads._session._claimed = 0
    leads._session.open()  # as after a failure
    leads._session._claimed = leads.term
    saved(leads, of(reservation(3)))


def forgotten(leads, monkeypatch):
    monkeypatch.setattr("controller.database.written.KEPT", 4)
    saved(leads, *(of(reservation(n)) for n in range(3, 8)))


def too_much(leads, _monkeypatch):
    saved(leads, of(*(reservation(n) for n in range(3, MOST_NAMES + 4))))


def maintenance(leads, _monkeypatch):
    one = Maintenance("m", "c", START_US, START_US + S, words='a "splice" \\')
    saved(leads, Changes(maintenance=(one,)))


def lost(leads, _monkeypatch):
    """A server has lost what it had confirmed, and its numbers are given anew."""
    leads._session.saves -= 1
    leads._session._name = "after that"
    saved(leads, of(reservation(3)))


@pytest.mark.parametrize(
    "happens", [written_by_another, forgotten, too_much, maintenance, lost], ids=lambda one: one.__name__
)
def test_all_is_read_when_what_has_changed_is_not_known(pair, monkeypatch, happens):
    leads, reads = pair
    saved(leads, of(reservation(1)), of(reservation(2)))
    point = reads.load().until
    happens(leads, monkeypatch)
    assert since(reads, point) is None


def test_who_does_not_know_up_to_where_it_has_read_reads_all(pair):
    leads, reads = pair
    saved(leads, of(reservation(1)))
    assert since(reads, SavedPoint()) is None
    assert since(reads, SavedPoint(1, "")) is None


def refused():
    """The database is away."""
    raise OSError("connection refused")


def test_a_connection_that_broke_while_it_stood_by_is_no_save_that_waits(pair, monkeypatch):
    leads, reads = pair
    saved(leads, of(reservation(1)))
    point = reads.load().until
    reads._follower.close()
    assert since(reads, point).until == point  # by a new one
    with monkeypatch.context() as patch:
        patch.setattr(reads._follower._session, "open_to_read", refused)
        reads._follower.close()
        with pytest.raises(DatabaseFailed):
            since(reads, point)
    leads.close()
    reads.open()
    assert reads.unsaved_us == 0
    saved(reads, of(reservation(2)))


def test_a_database_that_hangs_does_not_keep_one_that_stands_by_from_ending(pair, monkeypatch):
    _, reads = pair
    monkeypatch.setattr("controller.database.database.CLOSE_WITHIN_S", 0.1)
    asked, answers = threading.Event(), threading.Event()

    def hangs(_):
        asked.set()
        answers.wait(30)

    threading.Thread(target=reads._follower.ask, args=(hangs,), daemon=True).start()
    assert asked.wait(5)
    closing = threading.Thread(target=reads.close, daemon=True)
    closing.start()
    closing.join(5)
    is_hung = closing.is_alive()
    answers.set()
    closing.join(5)
    assert not is_hung
