"""The controller process: the parts put together, started and stopped. No decision is made here."""

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from apps.configuration import ControllerSettings
from apps.openflow import OpenFlowApp
from apps.pair import begin_anew, leadership, opened, stood_by
from apps.plain_text import plain_ports
from apps.process import ALIVE_S, GIVE_BACK_S, Stop, fair, give_back, stop_signal, working
from apps.sellers import check_sellers, not_to_ask
from apps.web import web
from apps.web_local import local_socket
from controller.announced import Announced
from controller.audit.runner import AuditRunner
from controller.audit.switches import SwitchAudit
from controller.database import Database, DatabaseFailed, DatabaseTaken
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.dependencies import Dependencies
from controller.northbound.known import IssuerTokens
from controller.northbound.page.pages import Pages
from controller.northbound.webhooks import Webhook
from controller.noted import noted_configuration, noted_token
from controller.plan.leading import LeaderView
from controller.reports import Reports
from controller.reserved import Reserved
from controller.saves import Saves
from controller.security.issuer import Issuer
from controller.security.own_certificates import OwnCertificates
from controller.security.rates import RequestRate
from controller.security.token_file import TokenFile
from controller.security.tokens import Tokens
from controller.southbound.agents.hosts import HostSessions
from controller.southbound.openflow import osken_hub
from controller.southbound.openflow.listener import Address
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.ovsdb.writer import QueueWriter
from controller.southbound.site_switches import SiteSwitches
from controller.state.guard import GuardedState
from controller.switch_reports import SwitchReports
from controller.use_cases import UseCases
from controller.work.clock_watch import ClockWatch, machine_clock
from controller.work.convergence import Convergence
from controller.work.leadership import FOLLOWED_S, LOOK_S, Leadership
from controller.work.mending import Mending
from controller.work.pair import Pair
from controller.work.preparing import Preparing
from controller.work.purchasing import Purchasing
from controller.work.recovery import Recovery
from controller.work.repeating import Repeating
from controller.work.retention import Retention
from controller.work.standby_watch import StandbyWatch
from controller.work.timekeeper import Timekeeper
from hostagent.agent.supervisor import Supervisor

UP = "up; what is carried and what is not: /healthz"
TELLS_S = 0.5  # who has let another lead tells who asks where that is, and hangs up on agents once they obey it
ANSWERED_S = 0.05  # so long who lets another lead goes on answering what it was asked before
CALM_S = 0.2  # after a take-over, agents and who has asked meanwhile come before all else that a leader does

log = structlog.get_logger()


def _rules(settings: ControllerSettings, saves: Saves) -> AccessRules:
    """Return who may do what by REST.

    Raises:
        TokensUnusable: the file of the tokens.
    """
    access = settings.access
    file = TokenFile(access.tokens, lambda what, token: saves.note(noted_token(what, token))) if access.tokens else None
    tokens = partial(Tokens, ()) if file is None else file.current
    rate = None if access.requests_per_s is None else RequestRate(access.requests_per_s)
    issuer = None if access.oidc is None else IssuerTokens(Issuer(access.oidc))
    return AccessRules(
        tokens, partial(datetime.now, UTC), access.local, access.anybody, rate, access.certificates, issuer
    )


def _serve(
    parts: contextlib.ExitStack, behind: Dependencies, settings: ControllerSettings, state: GuardedState, stop: Stop
) -> None:
    """Serve REST and the pages until the end, and keep what the pages show."""
    saves = behind.use_cases.saves
    rules = _rules(settings, saves)
    pages = Pages(behind, rules)
    app = api(behind, rules, pages)
    local = parts.enter_context(local_socket(settings.rest_socket))
    parts.enter_context(web(app, settings.rest, tls=settings.rest_tls, proxies=settings.proxies, local=local))
    parts.callback(state.events.close)
    for work, name in ((pages.watch.run, "page"), (pages.tonight.run, "calendars")):
        parts.enter_context(working(partial(work, stop.wait), name, state, stop))


def _switches_address(settings: ControllerSettings) -> Address:
    """Return where switches connect, and how."""
    return Address(settings.openflow.bare_host, settings.openflow.port, settings.switches_tls)


def _queue_writers(settings: ControllerSettings, term: int) -> dict[str, QueueWriter]:
    """Return what writes queues, by server.

    Raises:
        OSError: a file of TLS cannot be read, or does not fit the others.
    """
    made = {}
    for remote in set(settings.ovsdb.values()):
        dpids = frozenset(one.dpid for one in settings.site.network.switches if settings.ovsdb[one.name] == remote)
        made[remote] = QueueWriter(remote, settings.ovsdb_tls if remote.startswith("ssl:") else None, dpids, term)
    return made


def _wait(stop: Stop, state: GuardedState, supervisor: Supervisor) -> None:
    """Wait for the end, and tell the supervisor meanwhile that we are alive."""
    gave_back_s = time.monotonic()
    while not stop.wait(ALIVE_S):
        with state.changed:  # a controller in which nobody gets the state's lock any more is not alive
            pass
        supervisor.alive(UP)
        if time.monotonic() - gave_back_s > GIVE_BACK_S:
            give_back()
            gave_back_s = time.monotonic()


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """The parts of a controller, before any of them is at work."""

    state: GuardedState
    reports: Reports
    hosts: HostSessions
    sessions: SwitchSessions
    writers: dict[str, QueueWriter]
    switches: SiteSwitches
    writing: threading.Lock  # round all that is written to switches: a plan's steps, and an audit's repairs
    audits: AuditRunner
    use_cases: UseCases
    clocks: ClockWatch
    repeating: Repeating | None  # of one of a pair


def _built(
    settings: ControllerSettings, database: Database, led: Leadership | None, *, trusts_wall: bool
) -> ControllerParts:
    """Return the parts, with what the database has."""
    clock = machine_clock(database.time(), trusts_wall=trusts_wall)
    state = GuardedState(settings.site, clock.now, database.term, stands_by=led is not None)
    reports = Reports(state)
    ignored = settings.audit.ignored
    dpids = frozenset(switch.dpid for switch in settings.site.network.switches)
    sessions = SwitchSessions(
        SwitchReports(state),
        database.term,
        ignored,
        others_term=None if led is None else lambda: led.seen_term,
        leads=(lambda: True) if led is None else led.may_decide,
        ours=dpids,
    )
    repeating = None if led is None else Repeating(state, sessions, lambda: led.standing)
    may_tell = None if led is None or repeating is None else lambda host: not led.has_resigned and repeating.may(host)
    hosts = HostSessions(reports, settings.site.lease_ms, settings.tls, may_tell)
    writers = _queue_writers(settings, database.term)
    by_switch = {name: writers[remote] for name, remote in settings.ovsdb.items()}
    numbers = MeterNumbers()
    switches = SiteSwitches(settings.site, sessions, by_switch, numbers)
    writing = threading.Lock()
    audit = SwitchAudit(settings.site, sessions, by_switch, ignored, numbers)
    audits = AuditRunner(state, audit, hosts, writing, settings.audit.interval_s)
    use_cases = UseCases(state, database, settings.access.quotas)
    clocks = ClockWatch(state, database, clock)
    at_work = audits, use_cases, clocks, repeating
    return ControllerParts(state, reports, hosts, sessions, writers, switches, writing, *at_work)


def _dependencies(
    built: ControllerParts,
    settings: ControllerSettings,
    database: Database,
    pair: Pair | None,
    led: Leadership | None,
    stop: Stop,
) -> Dependencies:
    """Return what the API stands on."""
    state = built.state
    return Dependencies(
        built.reports,
        built.use_cases,
        Reserved(built.use_cases, database),
        Announced(state, database),
        state.events,
        settings.site.network,
        state.now_us,
        built.sessions.dpids,
        built.audits.view,
        database.changes,
        settings.names,
        built.hosts.certificates,
        OwnCertificates(settings.tls, settings.rest_tls, switches=settings.ovsdb_tls).found,
        built.switches.certificates,
        tuple(Webhook(state.events, one) for one in settings.webhooks),
        LeaderView if pair is None else pair.view,
        tuple if led is None else led.others_now,
        stop.begin_anew,
        () if settings.pair is None else settings.pair.others,
    )


def _leading(
    built: ControllerParts,
    behind: Dependencies,
    settings: ControllerSettings,
    database: Database,
    stop: Stop,
    led: Leadership | None,
    may_decide: Callable[[], bool],
) -> Iterator[tuple[Callable[[], None], str]]:
    """Yield what is at work in a controller that leads, each with its name."""
    state, use_cases = built.state, built.use_cases
    for webhook in behind.webhooks:
        yield partial(webhook.run, stop.wait), "webhook"
    yield Convergence(state, built.switches, built.hosts, built.writing, may_decide).run, "convergence"
    if led is not None:
        yield partial(StandbyWatch(lambda: led.others, state.events).run, stop.wait), "standbys"
    if built.repeating is not None:
        yield built.repeating.run, "repeating"
    yield Mending(state, built.switches).run, "mending"
    yield built.audits.run, "audit"
    yield Timekeeper(state, use_cases, built.clocks).run, "clock"
    followed = None if settings.pair is None else partial(begin_anew, stop)
    yield Recovery(state, use_cases.saves, followed).run, "recovery"
    yield Retention(state, database, settings.database.retention_us).run, "retention"


def _let_another_lead(led: Leadership, behind: Dependencies, database: Database, state: GuardedState) -> None:
    """Leave the row once what we were asked before is answered; tell who asks where another leads, for a little.

    All threads of who leads end meanwhile: what is due from now on is not ours, nor what becomes of switches.
    """
    led.resign()
    behind.under_way.wait_for_none(ANSWERED_S)
    state.stop()
    database.finish()
    led.leave()
    database.close()
    if led.left.wait(FOLLOWED_S) and led.others:
        time.sleep(TELLS_S)


def run(settings: ControllerSettings, *, trusts_wall: bool = False) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code, 1 if a part has failed.

    ``trusts_wall``: the operator says that the wall clock is right, whatever the calendar was.

    Raises:
        OSError: a port is taken, or an address is not ours.
        DatabaseError: the database cannot be used.
        TokensUnusable: the file of the tokens cannot.
        SellersExchanged: something is bought of others than those who sell circuits now.
    """
    fair()
    stop = stop_signal()
    for plain in plain_ports(settings):
        log.warning(plain.event, address=plain.address, why=plain.why)
    supervisor = Supervisor.of_this_process(os.environ)
    with contextlib.ExitStack() as parts:
        url, pair_settings = settings.database.url, settings.pair
        led = None if pair_settings is None else leadership(parts, url, pair_settings, stop, supervisor)
        if stop.is_set():  # one of a pair has waited for the database until the end
            return int(stop.failed)
        database = opened(parts, url, led)
        built = _built(settings, database, led, trusts_wall=trusts_wall)
        state, hosts, left_alone = built.state, built.hosts, frozenset[str]()
        check_sellers(database, settings.site, state.now_us(), stands_by=led is not None)
        pair = None if led is None else Pair(led, state, database, built.use_cases.saves, built.clocks)
        gc.freeze()  # what is on the books lives long: the collector need not look at it again and again
        providers = {circuit: seller.connected(state.now_us) for circuit, seller in settings.sellers.items()}
        parts.callback(hosts.stop)
        hosts.start(str(settings.agents))
        behind = _dependencies(built, settings, database, pair, led, stop)
        _serve(parts, behind, settings, state, stop)
        parts.callback(osken_hub.start(OpenFlowApp, _switches_address(settings), listener=built.sessions).stop)
        if led is not None and pair is not None:
            preparing = Preparing(state, led, built.switches.prepare)
            for work, name in ((pair.follow, "standby"), (preparing.run, "preparing")):
                parts.enter_context(working(work, name, state, stop))
            if not stood_by(led, state, supervisor, stop):
                return int(stop.failed)
            try:
                pair.lead((built.sessions, *built.writers.values(), *behind.webhooks), hosts.lead)
                left_alone = not_to_ask(database, settings.site, state.now_us())
            except (DatabaseFailed, DatabaseTaken) as failure:  # the database is away again, or another one was quicker
                log.error("leader.does_not_lead", why=str(failure))  # noqa: TRY400 (the why is all there is)
                begin_anew(stop)
                return int(stop.failed)
            stop.wait(CALM_S)
            while not hosts.greeted.is_set() and not stop.wait(LOOK_S):
                pass
        built.use_cases.saves.note(noted_configuration(settings.files))
        may_decide = (lambda: True) if led is None else led.may_decide
        for work, name in _leading(built, behind, settings, database, stop, led, may_decide):
            parts.enter_context(working(work, name, state, stop))
        for circuit, provider in ((c, p) for c, p in providers.items() if c not in left_alone):
            buying = Purchasing(state, built.use_cases, circuit, provider, may_decide)
            parts.enter_context(working(buying.run, f"provider of {circuit}", state, stop))
        log.info("controller.up", openflow=settings.openflow, rest=settings.rest, agents=settings.agents)
        supervisor.ready(UP)
        _wait(stop, state, supervisor)
        if not stop.again:  # systemd would kill, a minute and a half later, what says that it ends and does not
            supervisor.stopping()
        log.info("controller.stopping")
        if led is not None:
            _let_another_lead(led, behind, database, state)
    log.info("controller.down", failed=stop.failed)
    if stop.again:
        begin_anew(stop)
    return int(stop.failed)
