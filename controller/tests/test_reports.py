"""The use cases, on a site without switches and agents."""

from dataclasses import replace
from ipaddress import ip_address

import pytest

from controller.errors import NotAllowed, NotKnown, Taken
from controller.plan.admission import Refused
from controller.plan.announcements import Announcement
from controller.plan.invariant import violations
from controller.plan.transitions import Stage
from controller.state import value
from controller.tests.fakes import LEASE_MS, FakeSite, image, ready_site, watch_of
from controller.work.timekeeper import Timekeeper
from topology.network import Hop
from topology.protocol import Applied, Declined, Demand, FlowClass, Hello, HostInterface

WAN = Hop("ls1", "ch1")


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def share(view, flow_class):
    """What a class's hosts may send, as a part of the circuit."""
    return view.layers[WAN].hosts_bps[flow_class] / view.layers[WAN].circuit_bps


def test_the_first_plan_reaches_switches_and_hosts(site):
    view = site.reports.view()
    assert view.installed == view.desired
    assert share(view, FlowClass.BACKGROUND) > 0.94


def test_a_host_that_lacks_an_address_of_the_network_is_said(site):
    for address in ("10.20.20.20", "10.9.9.9"):
        interface = HostInterface("eth0", (ip_address(address), ip_address("fe80::1")))
        site.reports.host_up(Hello("base20", "1", "6.12", interfaces=(interface,)))
    (said,) = [one for one in site.state.events.since(0).events if one.name == "host.other_address"]
    assert said.fields == {"host": "base20", "lacks": "10.20.20.20", "has": "10.9.9.9"}


def test_a_host_that_has_lost_an_address_of_the_network_while_it_is_connected_is_said(site):
    interface = HostInterface("eth0", (ip_address("10.9.9.9"),))
    site.reports.host_again(Hello("base20", "1", "6.12", interfaces=(interface,)))
    site.reports.host_again(Hello("base20", "1", "6.12"))  # only what it acts on has changed
    (said,) = [one for one in site.state.events.since(0).events if one.name == "host.other_address"]
    assert said.fields == {"host": "base20", "lacks": "10.20.20.20", "has": "10.9.9.9"}


def under_way(site):
    """An image that both of its senders want to send."""
    site.announce(image())
    site.converge()
    site.demand("base20", "base21")
    site.converge()


def test_an_announcement_leaves_the_background_its_share_until_the_image_can_be_sent(site):
    site.announce(image())
    site.converge()
    view = site.reports.view()
    assert share(view, FlowClass.URGENT) == pytest.approx(0.02, rel=0.01)
    assert share(view, FlowClass.BACKGROUND) > 0.92


def test_the_background_goes_down_before_the_image_comes_up(site):
    under_way(site)
    order = [(host, told.entries[0].rate_bps > 400_000_000) for host, told in site.hosts.sent[-3:]]
    assert order == [("base23", False), ("base20", True), ("base21", True)]
    view = site.reports.view()
    assert share(view, FlowClass.URGENT) > 0.93
    assert share(view, FlowClass.BACKGROUND) < 0.011
    assert not violations(view.layers)


def test_at_the_end_of_its_flight_the_background_gets_the_images_share_back(site):
    under_way(site)
    site.demand("base20", "base21", wants=False)
    site.converge()
    view = site.reports.view()
    assert share(view, FlowClass.BACKGROUND) > 0.92
    assert share(view, FlowClass.URGENT) == pytest.approx(0.02, rel=0.01)


def test_who_gains_most_is_told_first(site):
    under_way(site)
    site.demand("base20", "base21", wants=False)
    site.converge()
    assert [host for host, _ in site.hosts.sent[-3:]] == ["base23", "base20", "base21"]


def test_a_host_that_is_gone_keeps_the_share_of_its_announcement(site):
    under_way(site)
    before = site.value.desired.plan.entries
    site.demand("base20", wants=False)
    assert site.value.desired.plan.entries != before
    site.reports.host_down("base20")
    site.use_cases.tick()
    assert [e.frame_bps for e in site.value.desired.plan.entries] == [e.frame_bps for e in before]


@pytest.fixture
def plans(monkeypatch):
    """The epochs of the plans that are made."""
    made, plan = [], value.desired_plan
    monkeypatch.setattr(value, "desired_plan", lambda *asked: made.append(asked[-2]) or plan(*asked))
    return made


@pytest.mark.parametrize("come", [True, False], ids=["come", "go"])
def test_hosts_that_come_or_go_together_are_one_plan_which_the_clocks_thread_is_woken_for(site, plans, come):
    under_way(site)
    hosts = [host.name for host in site.state.site.network.hosts]
    if come:
        for host in hosts:
            site.reports.host_down(host)
        site.use_cases.tick()
    plans.clear()
    timekeeper = Timekeeper(site.state, site.use_cases, watch_of(site))
    for host in hosts:
        if come:
            site.attach(host)
        else:
            site.reports.host_down(host)
        with site.state.changed:
            assert timekeeper._woken()
            assert not timekeeper._cannot_rest()
    assert plans == []
    site.use_cases.tick()
    assert len(plans) == 1


def test_of_hosts_that_come_together_the_first_wakes_others_and_then_their_plan(site, monkeypatch):
    site.attach_all()
    site.use_cases.tick()
    woken, wake = [], site.state.changed.notify_all
    monkeypatch.setattr(site.state.changed, "notify_all", lambda: woken.append(1) or wake())
    for host in site.state.site.network.hosts:
        site.reports.host_up(Hello(host.name, "0", "6.12", epoch=0))
    assert len(woken) == 1
    with site.state.changed:
        site.state.replan()
    assert len(woken) == 2


def test_what_is_promised_does_not_wait_for_hosts_that_may_come(site):
    timekeeper = Timekeeper(site.state, site.use_cases, watch_of(site))
    site.reports.host_down("base20")
    site.use_cases.announce(image()).saved.result()
    with site.state.changed:
        assert timekeeper._cannot_rest()


def test_a_host_that_comes_back_sends_on_until_it_says_that_it_has_nothing_to_send(site):
    under_way(site)
    before = site.value.desired.plan.entries
    site.reports.host_down("base20")
    with site.state.changed:  # as for a controller that has started again
        site.state.put_host("base20", site.state.reported.hosts["base20"]._replace(wants={}))
    site.attach("base20")
    assert site.value.desired.plan.entries == before


def test_switches_are_told_once_of_hosts_that_end_together():
    site = ready_site(together_us=1_000)
    told = len(site.switches.log)
    site.announce(image())
    site.convergence.step()
    assert len(site.switches.log) == told
    site.clock.now_us += 1_000
    site.convergence.step()
    assert len(site.switches.log) > told


def test_a_flight_that_begins_again_before_its_end_was_heard_of_gets_a_newer_epoch(site):
    under_way(site)
    before = site.value.reported.hosts["base20"].sent_epoch
    site.reports.host_demand("base20", Demand(before, "image/base20", wants=True, standing_by=True))
    site.converge()
    state = site.value.reported.hosts["base20"]
    assert state.sent_epoch > before
    assert state.acts_as_granted == site.value.desired.plan.of_host("base20")


def test_a_release_gives_the_background_everything_back(site):
    before = site.reports.view().layers
    under_way(site)
    site.use_cases.forget("image")
    site.converge()
    assert site.reports.view().layers == before


def test_no_step_of_a_transition_goes_above_a_layer(site):
    under_way(site)
    steps = [s.stage for s in site.reports.steps()[-5:]]
    assert steps == [Stage.HOSTS, Stage.METERS, Stage.QUEUES, Stage.METERS, Stage.HOSTS]


def test_each_step_says_what_it_has_changed(site):
    under_way(site)
    shrunk, meters, *_, grown = site.reports.steps()[-5:]
    assert [(c.where, c.what) for c in shrunk.changes] == [("base23", "background/base23")]
    assert {c.where for c in meters.changes} == {"ls1->ch1"}  # the far end, where answers begin, need not be told
    assert {(c.where, c.to_bps > 400_000_000) for c in grown.changes} == {("base20", True), ("base21", True)}


def test_a_host_that_does_not_confirm_holds_the_others_up_until_its_lease_is_over(site):
    site.announce(image())
    site.converge()
    site.hosts.silent = {"base23"}
    site.demand("base20", "base21")
    site.converge()
    assert share(site.reports.view(), FlowClass.BACKGROUND) > 0.92  # not confirmed: counted with what it had
    assert share(site.reports.view(), FlowClass.URGENT) < 0.021
    site.clock.now_us += LEASE_MS * 1000 + 1
    assert share(site.reports.view(), FlowClass.BACKGROUND) < 0.011
    site.converge()
    assert share(site.reports.view(), FlowClass.URGENT) > 0.93


def test_a_host_that_is_gone_counts_until_its_lease_is_over(site):
    site.reports.host_down("base23")
    assert share(site.reports.view(), FlowClass.BACKGROUND) > 0.94
    site.clock.now_us += LEASE_MS * 1000 + 1
    assert share(site.reports.view(), FlowClass.BACKGROUND) == 0


def test_a_host_that_comes_back_gets_its_allocation_again(site):
    site.reports.host_down("base23")
    assert [e.name for e in site.reports.host_up(Hello("base23", "0", "6.12")).entries] == ["background/base23"]


@pytest.mark.parametrize(("hosts_mark", "dscp"), [(False, None), (True, 1)])
def test_a_host_is_told_its_class_mark_if_the_site_says_so(site, hosts_mark, dscp):
    site.state.site = replace(site.state.site, hosts_mark=hosts_mark)
    assert [e.dscp for e in site.reports.host_up(Hello("base23", "0", "6.12")).entries] == [dscp]


def test_a_host_that_calls_in_the_middle_of_a_step_is_not_sent_an_older_epoch(site):
    with site.state.changed:
        shrunk = site.state.grant("base23", site.state.desired.plan.epoch + 1, ())
    assert site.reports.host_up(Hello("base23", "0", "6.12")) == shrunk


def test_a_host_that_calls_before_there_is_a_plan_is_told_so_by_epoch_0():
    told = FakeSite().reports.host_up(Hello("base23", "0", "6.12"))
    assert (told.epoch, told.entries) == (0, ())


def test_a_controller_that_made_half_a_million_plans_is_outrun_by_the_next_one_whatever_its_clock(tmp_path):
    database = f"sqlite:///{tmp_path / 'headway.db'}"
    site = FakeSite(database=database)
    reached = site.value.desired.plan.epoch + 2 * 500_000
    site.database.close()
    assert FakeSite(database=database).value.desired.plan.epoch > reached


def test_what_a_host_declines_is_said_once_although_it_is_sent_again_and_again(site):
    seen = site.state.events.last
    for declined in (Declined(8, 10, "older"), Declined(8, 10, "older"), Declined(12, 10, "too many entries")):
        site.reports.host_declined("base23", declined)
    said = [(event.name, event.fields) for event in site.state.events.since(seen).events]
    assert said == [
        ("host.declined", {"host": "base23", "epoch": 8, "in_force": 10, "why": "older"}),
        ("host.declined", {"host": "base23", "epoch": 12, "in_force": 10, "why": "too many entries"}),
    ]


def test_that_hosts_obey_another_controller_is_said_of_the_first_until_one_obeys_us_again(site):
    ours, names = site.value.desired.plan.epoch, [host.name for host in site.state.site.network.hosts[:3]]
    theirs = Declined(ours, ours + 2**20, "an older epoch")

    def said(hosts):
        seen = site.state.events.last
        for host in hosts:
            site.reports.host_declined(host, theirs)
        return [(event.name, event.fields["host"]) for event in site.state.events.since(seen).events]

    assert said(names[:2]) == [("host.led_by_another", names[0])]
    assert said(names) == []
    told = site.reports.host_up(Hello(names[2], "0", "6.12"))
    site.reports.hosts_applied([(names[2], Applied(told.epoch))])
    theirs = replace(theirs, in_force=theirs.in_force + 2)
    assert said(names[:2]) == [("host.led_by_another", names[0])]


def test_a_host_of_another_network_is_not_let_in(site):
    assert site.reports.host_up(Hello("intruder", "0", "6.12")) is None


def test_a_switch_that_is_gone_is_reported_and_tried_again(site):
    site.switches.gone = True
    site.announce(image())
    site.converge()
    assert "is not connected" in site.reports.view().error
    site.switches.gone = False
    site.converge()
    view = site.reports.view()
    assert (view.error, view.installed) == ("", view.desired)


def test_an_image_that_cannot_be_due_is_refused_and_changes_nothing(site):
    before = site.reports.view().desired
    answer = site.announce(image(deadline_us=5_000_000))
    assert isinstance(answer, Refused)
    assert site.reports.view().desired == before


def test_an_announcement_nobody_releases_lapses(site):
    promise = site.announce(image())
    assert isinstance(promise, Announcement)
    site.clock.now_us = promise.lapses_us
    site.converge()
    assert site.use_cases.announcements() == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"flow_class": FlowClass.PREDICTABLE}, "class"),
        ({"size_bytes": 0}, "bytes"),
        ({"senders": ()}, "from"),
        ({"senders": ("base20", "base20")}, "from"),
        ({"target": "base22"}, "to"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_its_field(site, changes, field):
    with pytest.raises(NotAllowed) as refusal:
        site.announce(image(**changes))
    assert refusal.value.field == field


def test_a_host_nobody_knows_is_answered_with_those_there_are(site):
    with pytest.raises(NotKnown, match='no host "base99"; there are: base20'):
        site.announce(image(senders=("base99",)))


def test_the_same_name_for_something_else_is_refused(site):
    site.announce(image())
    with pytest.raises(Taken, match="was used for another announcement"):
        site.announce(replace(image(), size_bytes=5))


def test_releasing_what_is_not_there_says_so(site):
    with pytest.raises(NotKnown):
        site.use_cases.forget("image")


def test_what_a_host_says_that_it_holds_is_granted_again_as_it_was_and_counts(site):
    held = next(message for host, message in reversed(site.hosts.sent) if host == "base23")
    after = FakeSite(clock=site.clock)
    site.clock.now_us += 1_000_000
    with after.state.changed:
        after.state.grant_anew()
    again = after.reports.host_up(Hello("base23", "0", "6.12", held.epoch, 200, held.entries))
    assert (again.epoch, again.entries) == (held.epoch, held.entries)
    acting = after.value.reported.hosts["base23"].leases.acting(after.state.elapsed_us())
    assert acting == site.value.reported.hosts["base23"].sent


def test_what_a_host_holds_of_a_promise_that_is_over_counts_on_the_way_that_it_was_told(site):
    under_way(site)
    held = next(message for host, message in reversed(site.hosts.sent) if host == "base20")
    after = FakeSite(clock=site.clock)
    with after.state.changed:
        for _ in range(10):
            after.state.grant_anew()
    after.reports.host_up(Hello("base20", "0", "6.12", held.epoch, 200, held.entries))
    (entry,) = after.value.reported.hosts["base20"].leases.acting(after.state.elapsed_us())
    assert (entry.flow.path, entry.payload_bps) == (("base20", "ls1", "ch1", "arch"), held.entries[0].rate_bps)
    site.clock.now_us += 200_000
    after.reports.host_down("base20")
    assert after.value.reported.hosts["base20"].leases.acting(after.state.elapsed_us())  # it was granted that again


def test_a_host_that_holds_a_newer_plan_is_not_granted_it_again_but_it_counts(site):
    held = next(message for host, message in reversed(site.hosts.sent) if host == "base23")
    after = FakeSite(clock=site.clock)
    newer = held.epoch + 10**9  # a controller's first epoch is by the time at which it starts: this is days later
    told = after.reports.host_up(Hello("base23", "0", "6.12", newer, 200, held.entries))
    assert (told.epoch, told.entries) == (0, ())
    host = after.value.reported.hosts["base23"]
    assert host.leases.acting(after.state.elapsed_us()) == site.value.reported.hosts["base23"].sent
    site.clock.now_us += 200_000
    assert not host.leases.acting(after.state.elapsed_us())
