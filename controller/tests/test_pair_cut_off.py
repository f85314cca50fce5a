"""A leader is cut off from the database: what it goes on telling hosts, and for how long."""

import pytest

from controller.plan.leading import VOUCHED_US, PairStanding
from controller.tests.pair_parts import S, empty_database
from controller.tests.pair_world import FLOWS, LEASE_US, PairWorld
from controller.work.repeating import Repeating

STEP_US = 100_000
HOST = "base20"  # its flows cross both switches


class CutOff(PairWorld):
    """A pair at rest, whose database one of the two, or both, will not reach."""

    def __init__(self, path):
        super().__init__(1, path)
        self._depth = 1  # nobody dies
        self.flows = tuple(flow for flow in FLOWS if flow.host == HOST)
        self.passes_by(3 * S)
        (self.leader,) = [one for one in self.controllers if one.leads]
        (self.other,) = [one for one in self.controllers if not one.leads]
        assert self.acts()

    def passes_by(self, us):
        """Everybody does what he can, in steps, and all that must hold is checked after each."""
        for _ in range(us // STEP_US):
            self.round(STEP_US)
            self.check()

    def acts(self):
        return self.hosts[HOST].acting(self.now_us)

    def others_are_wanted(self):
        """What the host may send is to be others'."""
        self.flows = tuple(flow for flow in FLOWS if flow.host != HOST)
        for one in self.controllers:
            with one.state.changed:
                one.state.demand_changed()


@pytest.fixture
def world(tmp_path):
    """A pair at rest."""
    world = CutOff(empty_database(tmp_path / "pair.db"))
    yield world
    for one in world.controllers:
        one.ends()


def led_elsewhere(world):
    """A host reaches only who leads, and that one not the database; another leads, and plans otherwise."""
    world.parts(HOST, world.other)
    world.leader.is_cut = True
    world.passes_by(S)
    assert world.other.leads
    assert world.acts()  # it has not heard of that
    world.others_are_wanted()
    world.passes_by(LEASE_US + VOUCHED_US)


def test_a_host_that_reaches_only_one_that_led_goes_on_for_a_lease_and_no_longer(world):
    led_elsewhere(world)
    assert world.leader.leadership.standing is PairStanding.UNSURE
    assert not world.acts()
    world.passes_by(LEASE_US)
    assert not world.acts()


def test_a_leader_that_repeats_whoever_leads_by_now_is_found(world, monkeypatch):
    monkeypatch.setattr(Repeating, "may", lambda *_: True)
    with pytest.raises(AssertionError, match="bit/s >"):
        led_elsewhere(world)


def test_hosts_go_on_while_the_database_is_away(world):
    world.leader.is_cut = world.other.is_cut = True
    world.passes_by(4 * LEASE_US)
    assert world.leader.leadership.standing is PairStanding.UNSURE
    assert world.acts()


def test_a_host_whose_way_leads_over_a_switch_that_is_away_too_falls_back(world, monkeypatch):
    world.leader.is_cut = world.other.is_cut = True
    away, connects = next(iter(world.switches)), world.leader.connects
    world.leader.loses(away)
    monkeypatch.setattr(world.leader, "connects", lambda name: None if name == away else connects(name))
    world.passes_by(LEASE_US + VOUCHED_US)
    assert not world.acts()


def test_a_host_goes_on_where_no_switch_on_its_way_has_another_master(world, monkeypatch):
    for name in world.switches:
        world.other.loses(name)
    monkeypatch.setattr(world.other, "connects", lambda _name: None)
    world.parts(HOST, world.other)
    world.leader.is_cut = True
    world.passes_by(4 * LEASE_US)
    assert world.other.leads
    assert world.acts()


def test_one_that_lets_another_lead_does_not_name_itself_as_the_leader(world):
    assert world.leader.pair.view().address
    world.leader.leadership.resign()
    assert not world.leader.pair.view().address
