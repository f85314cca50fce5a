"""When audits happen, and what of them is counted and told."""

from dataclasses import replace

from controller.audit.drift import Compared, Deviation, DriftKind, Outcome, Shape
from controller.audit.switches import RULE_SORTS, Part
from controller.plan.admission import Request
from controller.plan.faults import PlaceFault
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.state.faults import note_failed
from controller.tests.fakes import LEASE_MS, START_US, FakeSite, ready_site
from topology.network import Hop
from topology.protocol import Applied, FlowClass, Hello
from topology.telemetry import EntryTelemetry, Telemetry

INTERVAL_US = 10_000_000
LOST = Deviation(DriftKind.FLOW, Shape.MISSING, wanted="rule", outcome=Outcome.REPAIRED)
DARK = Deviation(DriftKind.FLOW, Shape.SHADOWED, "ours", "theirs", Outcome.LEFT, "delete it")


def pass_interval(site: FakeSite) -> None:
    """Let one interval pass, and every place be audited."""
    site.clock.now_us += INTERVAL_US
    for _ in (*site.state.site.network.switches, "hosts"):
        site.audits.next()


def told(site: FakeSite, name: str):
    """The fields of every event of a name."""
    return [e.fields for e in site.state.events.since(0).events if e.name == name]


def is_due(site: FakeSite) -> bool:
    """Whether a place is to be audited now."""
    with site.state.changed:
        return site.audits.is_due()


def finds(site: FakeSite, *audits: Compared) -> None:
    """Let the audits of the first switch find something."""
    site.switches.found["ls1"] = list(audits)


def test_each_switch_is_audited_once_an_interval_with_what_it_should_hold():
    site = ready_site()
    site.audits.next()
    assert site.switches.audited_with == []
    pass_interval(site)
    installed = site.value.installed
    assert site.switches.audited_with == [(name, installed.meters, installed.queues) for name in ("ls1", "ch1")]
    site.audits.next()
    assert len(site.switches.audited_with) == 2
    assert site.audits.view().audits == {"ls1": 1, "ch1": 1, "hosts": 1}


def test_of_an_audit_amid_which_the_controller_ends_nothing_is_told():
    site = ready_site()
    finds(site, Compared(0, (DARK,)))
    audited = site.switches.audited

    def ends(*args):
        site.state.stop()
        return audited(*args)

    site.switches.audited = ends
    pass_interval(site)
    assert site.switches.audited_with
    assert told(site, "drift.found") == []
    assert site.audits.view().audits == {}


def test_a_database_that_an_audit_finds_silent_is_a_fault_that_no_audit_waits_for_again():
    site = ready_site()
    wan = Hop("ls1", "ch1")
    silent = PlaceFault("database unix:ls1", "no answer", ports=frozenset({wan}))
    seen, audited = [], site.switches.audited

    def finds_it_silent(switch, meters, queues, shut):
        seen.append(shut.ports)
        is_asked = switch.name == "ls1" and wan not in shut.ports
        return (Part(Compared(), fault=silent),) if is_asked else audited(switch, meters, queues, shut)

    site.switches.audited, site.switches.mended = finds_it_silent, lambda fault, *_: (fault,)
    pass_interval(site)
    assert told(site, "fault.began") == [{"place": silent.place, "why": silent.why}]
    assert told(site, "drift.alarm") == []
    site.converge()
    seen.clear()
    pass_interval(site)
    assert seen == [{wan}, {wan}]
    assert (site.reports.view().error, site.reports.troubles(frozenset({1, 2}))) == (str(silent), ())
    site.switches.mended = lambda *_: ()
    site.converge()
    assert [over["place"] for over in told(site, "fault.over")] == [silent.place]
    assert site.reports.view().error == ""


def test_one_that_has_stood_by_until_now_audits_an_interval_later_as_one_that_starts():
    site = ready_site()
    site.clock.now_us += 3 * INTERVAL_US
    assert is_due(site)
    site.state.stop()
    site.audits.run()  # it begins, and ends
    assert not is_due(site)
    site.clock.now_us += INTERVAL_US
    assert is_due(site)


def test_a_plan_that_left_the_queues_as_they_were_is_audited_too():
    site = ready_site()
    with site.state.changed:
        site.state.grant_anew()
    site.converge()
    assert site.value.installed.queues.epoch < site.value.installed.meters.epoch
    pass_interval(site)
    assert [name for name, _, _ in site.switches.audited_with] == ["ls1", "ch1"]


def test_a_switch_that_comes_back_is_audited_at_once_before_anything_else():
    site = ready_site()
    site.switch_up(2)
    site.switches.log.clear()
    site.convergence.step()
    assert site.switches.log == []
    site.audits.next()
    assert [name for name, _, _ in site.switches.audited_with] == ["ch1"]
    site.convergence.step()
    assert [place for place, _ in site.switches.log] == ["meters", "queues"]


def test_a_switch_that_has_lost_a_rule_is_audited_at_once_and_told_nothing_else():
    site = ready_site()
    site.switches.log.clear()
    assert not is_due(site)
    site.switch_reports.rule_gone(1)
    assert is_due(site)
    site.audits.next()
    site.convergence.step()
    assert [name for name, _, _ in site.switches.audited_with] == ["ls1"]
    assert site.switches.log == []
    assert not is_due(site)


def test_a_switch_that_loses_rules_again_and_again_keeps_no_other_place_waiting():
    site = ready_site()
    site.wire()
    site.switches.audited_with.clear()
    site.switch_reports.rule_gone(2)
    for _ in range(3):
        site.clock.now_us += 100_000
        site.switch_reports.rule_gone(1)
        site.audits.next()
    assert "ch1" in [name for name, _, _ in site.switches.audited_with]
    site.clock.now_us += 2 * INTERVAL_US
    for _ in range(3):
        site.switch_reports.rule_gone(1)
        site.audits.next()
    assert site.audits.view().audits["hosts"] == 1


def test_there_is_no_audit_while_a_transition_is_under_way():
    site = ready_site()
    site.switch_up(1)
    with site.state.changed:
        installed = site.state.installed
        site.state.put(installed=replace(installed, hosts_epoch=installed.hosts_epoch - 1))
    site.clock.now_us += INTERVAL_US
    site.audits.next()
    assert site.switches.audited_with == []
    site.convergence.step()
    site.audits.next()
    assert [name for name, _, _ in site.switches.audited_with] == ["ls1"]


def test_what_is_repaired_is_counted_and_told_each_time_it_is_found():
    site = ready_site()
    finds(site, Compared(deviations=(LOST, LOST)), Compared(deviations=(LOST,)), Compared())
    for _ in range(3):
        pass_interval(site)
    view = site.audits.view()
    key = ("ls1", DriftKind.FLOW, Shape.MISSING)
    assert (view.found, view.repaired) == ({key: 3}, {key: 3})
    assert [e["count"] for e in told(site, "drift.found")] == [2, 1]
    assert [e["count"] for e in told(site, "drift.repaired")] == [2, 1]
    assert not view.latest["ls1"].seen.deviations
    assert view.drifted["ls1"].seen.deviations == (LOST,)


def test_what_is_left_alone_is_counted_once_and_is_an_alarm_until_it_is_gone():
    site = ready_site()
    finds(site, Compared(deviations=(DARK,)), Compared(deviations=(DARK,)), Compared())
    for _ in range(3):
        pass_interval(site)
    assert site.audits.view().found == {("ls1", DriftKind.FLOW, Shape.SHADOWED): 1}
    assert [e["what"] for e in told(site, "drift.alarm")] == ["flow shadowed: theirs: delete it"]
    assert len(told(site, "drift.alarm_over")) == 1


def test_what_waits_for_a_person_is_not_over_while_nobody_can_look_at_it():
    site = ready_site()
    seen = [Part(Compared(deviations=(DARK,))), Part(Compared(), unseen=RULE_SORTS), Part(Compared())]
    site.switches.audited = lambda switch, *_: (seen.pop(0),) if switch.name == "ls1" else ()
    for over in (0, 0, 1):
        pass_interval(site)
        assert (len(told(site, "drift.alarm")), len(told(site, "drift.alarm_over"))) == (1, over)
        assert bool(site.value.reported.alarms["ls1"]) is not bool(over)
    assert site.audits.view().found == {("ls1", DriftKind.FLOW, Shape.SHADOWED): 1}


def test_that_a_switch_does_not_answer_is_not_over_because_it_is_known_by_now():
    site = ready_site()
    fault = PlaceFault("switch ls1", "did not confirm within 5 s", frozenset({"ls1"}))

    def is_silent(switch, _meters, _queues, shut):
        error = fault.why if switch.name == "ls1" and not shut else ""
        return (Part(Compared(), error=error, unseen=RULE_SORTS),)

    site.switches.audited, site.switches.mended = is_silent, lambda one, *_: (one,)
    pass_interval(site)
    with site.state.changed:
        note_failed(site.state, [fault])
    site.converge()
    pass_interval(site)
    assert (len(told(site, "drift.alarm")), told(site, "drift.alarm_over")) == (1, [])
    assert site.audits.view().latest["ls1"].errors == (fault.why,)
    assert site.reports.view().error == str(fault)
    assert site.value.reported.alarms["ls1"] == ()  # the fault says it, and when it is over
    site.switches.audited, site.switches.mended = (lambda *_: ()), (lambda *_: ())
    site.converge()
    pass_interval(site)
    assert len(told(site, "drift.alarm_over")) == 1


def test_two_hundred_rules_of_somebody_else_that_touch_nobody_of_ours_are_one_line_and_no_error():
    site = ready_site()
    strange = (Deviation(DriftKind.FLOW, Shape.FOREIGN, "", f"theirs {n}", Outcome.LEFT) for n in range(200))
    finds(site, *[Compared(deviations=tuple(strange))] * 2)
    for _ in range(2):
        pass_interval(site)
    assert [e["count"] for e in told(site, "drift.found")] == [200]
    assert told(site, "drift.alarm") == []
    assert site.reports.troubles(frozenset({1, 2})) == ()


def test_alarms_of_one_kind_are_told_in_one_line():
    site = ready_site()
    many = tuple(Deviation(DriftKind.FLOW, Shape.SHADOWED, "", f"theirs {n}", Outcome.LEFT, "go") for n in range(200))
    finds(site, Compared(deviations=many))
    pass_interval(site)
    assert [(e["what"], e["more"]) for e in told(site, "drift.alarm")] == [("flow shadowed: theirs 0: go", 199)]
    assert len(site.audits.view().latest["ls1"].alarms) == 200


def test_a_port_that_is_down_is_drift_and_no_reason_beside_what_is_watched_of_it():
    site = ready_site()
    down = Deviation(
        DriftKind.PORT, Shape.MISCONFIGURED, "port 9 ls1-wan to ch1", "down", Outcome.LEFT, "see to the cable"
    )
    finds(site, Compared(deviations=(down,)))
    pass_interval(site)
    assert [e["what"] for e in told(site, "drift.alarm")] == ["port misconfigured: down: see to the cable"]
    assert site.reports.troubles(frozenset({1, 2})) == ()


def test_while_somebody_else_s_queues_are_on_the_circuit_s_port_it_is_not_well_and_nothing_across_it_is_active():
    site = ready_site()
    request = Request("base20", "arch", FlowClass.URGENT, 100_000_000, START_US, START_US + 3_600_000_000)
    site.use_cases.hold(lambda _: request, lambda now_us: Created("r", now_us)).saved.result()
    site.use_cases.commit("r").saved.result()
    site.converge()
    todo = "ovs-vsctl clear port ls1-wan qos"
    displaced = Deviation(DriftKind.QUEUE, Shape.SHADOWED, "port ls1-wan: 4 queues", "", Outcome.LEFT, todo, "ls1-wan")
    finds(site, Compared(deviations=(displaced,)), Compared())
    pass_interval(site)
    site.use_cases.tick()
    why = f"ls1: queue shadowed: port ls1-wan: 4 queues: {todo}"
    known = site.use_cases.reservation("r")
    assert (known.state, known.reason) == (ReservationState.PROVISIONING, why)
    assert [*map(str, site.reports.troubles(frozenset({1, 2})))] == [why, f"reservation r: {why}"]
    pass_interval(site)
    site.use_cases.tick()
    assert site.use_cases.reservation("r").state is ReservationState.ACTIVE
    assert site.reports.troubles(frozenset({1, 2})) == ()


def telemetry(site: FakeSite, host: str, epoch: int, *names: str) -> None:
    """Let a host say what it holds."""
    entries = tuple(EntryTelemetry(name, 0, 0, 0, 0, 0, 0) for name in names)
    site.reports.host_telemetry(host, Telemetry(epoch, 3000, entries))


def say_all(site: FakeSite, *but: str) -> None:
    """Let every host say that it holds what it confirmed."""
    for name, state in site.value.reported.hosts.items():
        if name not in but:
            telemetry(site, name, state.confirmed_epoch, *(e.flow.name for e in state.acts_as_granted))


def test_a_host_that_holds_what_it_confirmed_is_sent_nothing():
    site = ready_site()
    site.clock.now_us += INTERVAL_US
    say_all(site)
    site.hosts.sent.clear()
    pass_interval(site)
    assert site.hosts.sent == []
    assert site.audits.view().latest["hosts"].seen.proper[DriftKind.HOST] >= 2


def test_a_host_that_lacks_an_entry_is_sent_its_allocations_again_and_is_an_alarm_if_that_does_not_help():
    site = ready_site()
    site.clock.now_us += INTERVAL_US
    say_all(site, "base23")
    state = site.value.reported.hosts["base23"]
    telemetry(site, "base23", state.confirmed_epoch)
    site.hosts.sent.clear()
    pass_interval(site)
    ((host, allocations),) = site.hosts.sent
    assert (host, allocations.epoch) == ("base23", state.sent_epoch)
    assert [e.name for e in allocations.entries] == [e.flow.name for e in state.acts_as_granted]
    view = site.audits.view()
    assert view.repaired == {("hosts", DriftKind.HOST, Shape.MISSING): 1}
    assert view.latest["hosts"].alarms == ()
    site.clock.now_us += INTERVAL_US
    say_all(site, "base23")
    telemetry(site, "base23", state.confirmed_epoch)
    pass_interval(site)
    assert [d.outcome for d in site.audits.view().latest["hosts"].seen.deviations] == [Outcome.FAILED]
    assert "base23" in told(site, "drift.alarm")[0]["what"]


def test_a_host_that_says_another_epoch_than_it_confirmed_is_sent_its_allocations_again():
    site = ready_site()
    site.clock.now_us += INTERVAL_US
    say_all(site, "base23")
    state = site.value.reported.hosts["base23"]
    telemetry(site, "base23", state.confirmed_epoch - 2, *(e.flow.name for e in state.acts_as_granted))
    site.hosts.sent.clear()
    pass_interval(site)
    assert [host for host, _ in site.hosts.sent] == ["base23"]


def test_what_a_host_said_before_it_confirmed_says_nothing():
    site = ready_site()
    telemetry(site, "base23", 0)
    site.hosts.sent.clear()
    pass_interval(site)
    assert site.hosts.sent == []


def test_the_lease_of_a_host_that_goes_amid_an_audit_runs_out():
    site = ready_site()
    site.clock.now_us += INTERVAL_US
    drifted = [name for name, state in site.value.reported.hosts.items() if state.sent]
    for name in drifted:
        telemetry(site, name, 0)
    send, site.hosts.sent = site.hosts.send, []

    def next_one_goes(host, allocations):
        send(host, allocations)
        if len(site.hosts.sent) == 1:
            site.reports.host_down(drifted[1])

    site.hosts.send = next_one_goes
    pass_interval(site)
    assert [host for host, _ in site.hosts.sent] == drifted[:1]
    site.clock.now_us += LEASE_MS * 1000
    gone = site.value.reported.hosts[drifted[1]]
    assert gone.leases.acting(site.state.elapsed_us()) == ()


def test_what_a_host_said_before_it_called_again_says_nothing():
    site = ready_site()
    telemetry(site, "base23", 0)
    site.reports.hosts_applied([("base23", Applied(site.value.reported.hosts["base23"].sent_epoch))])
    site.reports.host_down("base23")
    site.clock.now_us += 2_000_000
    site.reports.host_up(Hello("base23", "0", "6.12"))
    site.hosts.sent.clear()
    pass_interval(site)
    assert site.hosts.sent == []
    assert told(site, "drift.found") == []
