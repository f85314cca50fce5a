"""The controller process: the parts put together, started and stopped. No decision is made here."""

import contextlib
import gc
import os
import threading
import time
from datetime import UTC, datetime
from functools import partial

import structlog

from apps.configuration import ControllerSettings
from apps.openflow import OpenFlowApp
from apps.plain_text import plain_ports
from apps.process import GIVE_BACK_S, Stop, fair, give_back, stop_signal, working
from apps.web import web
from apps.web_local import local_socket
from controller.announced import Announced
from controller.audit.runner import AuditRunner
from controller.audit.switches import SwitchAudit
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.dependencies import Dependencies
from controller.northbound.known import IssuerTokens
from controller.northbound.page.pages import Pages
from controller.northbound.webhooks import Webhook
from controller.noted import noted_configuration, noted_token
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
from controller.store import Store
from controller.use_cases import UseCases
from controller.work.clock_watch import ClockWatch, machine_clock
from controller.work.convergence import Convergence
from controller.work.mending import Mending
from controller.work.purchasing import Purchasing
from controller.work.recovery import Recovery
from controller.work.retention import Retention
from controller.work.timekeeper import Timekeeper
from hostagent.agent.supervisor import Supervisor

ALIVE_S = 1.0
UP = "up; what is carried and what is not: /healthz"

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
    saves.note(noted_configuration(settings.files))
    pages = Pages(behind, rules)
    app = api(behind, rules, pages)
    local = parts.enter_context(local_socket(settings.rest_socket))
    parts.enter_context(web(app, settings.rest, tls=settings.rest_tls, proxies=settings.proxies, local=local))
    parts.callback(state.events.close)
    for work, name in ((pages.watch.run, "page"), (pages.tonight.run, "calendars")):
        parts.enter_context(working(partial(work, stop.wait), name, state, stop))
    for webhook in behind.webhooks:
        parts.enter_context(working(partial(webhook.run, stop.wait), "webhook", state, stop))


def _switches_address(settings: ControllerSettings) -> Address:
    """Return where switches connect, and how."""
    return Address(settings.openflow.host, settings.openflow.port, settings.switches_tls)


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


def run(settings: ControllerSettings, *, trusts_wall: bool = False) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code, 1 if a part has failed.

    ``trusts_wall``: the operator says that the wall clock is right, whatever the calendar was.

    Raises:
        OSError: a port is taken, or an address is not ours.
        StoreError: the database cannot be used.
        TokensUnusable: the file of the tokens cannot.
    """
    fair()
    stop = stop_signal()
    for plain in plain_ports(settings):
        log.warning(plain.event, address=plain.address, why=plain.why)
    supervisor = Supervisor.of_this_process(os.environ)
    with contextlib.ExitStack() as parts:
        store = Store(settings.store.url)
        parts.callback(store.close)
        store.open()
        clock = machine_clock(store.time(), trusts_wall=trusts_wall)
        state = GuardedState(settings.site, clock.now, store.term)
        reports = Reports(state)
        hosts = HostSessions(reports, settings.site.lease_ms, settings.tls)
        ignored = settings.audit.ignored
        sessions = SwitchSessions(reports, store.term, ignored)
        writers = _queue_writers(settings, store.term)
        by_switch = {name: writers[remote] for name, remote in settings.ovsdb.items()}
        numbers = MeterNumbers()
        switches = SiteSwitches(settings.site, sessions, by_switch, numbers)
        writing = threading.Lock()  # round all that is written to switches: a plan's steps, and an audit's repairs
        audit = SwitchAudit(settings.site, sessions, by_switch, ignored, numbers)
        audits = AuditRunner(state, audit, hosts, writing, settings.audit.interval_s)
        address = _switches_address(settings)
        use_cases = UseCases(state, store, settings.access.quotas)
        clocks = ClockWatch(state, store, clock)
        gc.freeze()  # what is on the books lives long: the collector need not look at it again and again
        providers = {circuit: seller.connected() for circuit, seller in settings.sellers.items()}
        parts.callback(hosts.stop)
        hosts.start(str(settings.agents))
        network = settings.site.network
        reserved, announced = Reserved(use_cases, store), Announced(state, store)
        behind = Dependencies(
            reports,
            use_cases,
            reserved,
            announced,
            state.events,
            network,
            state.now_us,
            sessions.dpids,
            audits.view,
            store.changes,
            settings.names,
            hosts.certificates,
            OwnCertificates(settings.tls, settings.rest_tls).found,
            tuple(Webhook(state.events, one) for one in settings.webhooks),
        )
        _serve(parts, behind, settings, state, stop)
        parts.callback(osken_hub.start(OpenFlowApp, address, listener=sessions).stop)
        parts.enter_context(working(Convergence(state, switches, hosts, writing).run, "convergence", state, stop))
        parts.enter_context(working(Mending(state, switches).run, "mending", state, stop))
        parts.enter_context(working(audits.run, "audit", state, stop))
        parts.enter_context(working(Timekeeper(state, use_cases, clocks).run, "clock", state, stop))
        parts.enter_context(working(Recovery(state, use_cases.saves).run, "recovery", state, stop))
        retention = Retention(state, store, settings.store.retention_us)
        parts.enter_context(working(retention.run, "retention", state, stop))
        for circuit, provider in providers.items():
            buying = Purchasing(state, use_cases, circuit, provider)
            parts.enter_context(working(buying.run, f"provider of {circuit}", state, stop))
        log.info("controller.up", openflow=settings.openflow, rest=settings.rest, agents=settings.agents)
        supervisor.ready(UP)
        _wait(stop, state, supervisor)
        supervisor.stopping()
        log.info("controller.stopping")
    log.info("controller.down", failed=stop.failed)
    return int(stop.failed)
