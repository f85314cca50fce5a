"""The controller process: the parts put together, started and stopped. No decision is made here."""

import contextlib
import gc
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from apps.openflow import OpenFlowApp
from controller.book import Book
from controller.convergence import Convergence
from controller.edge import Edge
from controller.northbound.parts import Parts
from controller.northbound.rest import api
from controller.promises import Promises
from controller.providers.oscars import OscarsProvider
from controller.purchasing import Purchasing
from controller.service import Service
from controller.settings import Endpoint, Settings
from controller.southbound import osken_hub
from controller.southbound.hosts import HostSessions
from controller.southbound.ovsdb import QueueWriter
from controller.southbound.session import SwitchSessions
from controller.store import Store
from controller.timekeeper import Timekeeper

log = structlog.get_logger()


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code, 1 if a part has failed.

    Raises:
        OSError: a port is taken, or an address is not ours.
        StoreError: the database cannot be used.
    """
    book = Book(settings.site, lambda: time.time_ns() // 1000)
    service = Service(book)
    hosts = HostSessions(service, settings.site.lease_ms)
    sessions = SwitchSessions(lambda _: service.switch_changed(), lambda _: service.switch_changed())
    writers = {remote: QueueWriter(remote) for remote in set(settings.ovsdb.values())}
    edge = Edge(settings.site, sessions, {switch: writers[remote] for switch, remote in settings.ovsdb.items()})
    address = osken_hub.Address(settings.openflow.host, settings.openflow.port)
    stop = _stop_signal()
    with contextlib.ExitStack() as parts:
        store = Store(settings.store)
        parts.callback(store.close)
        store.open()
        promises = Promises(book, store)
        gc.freeze()  # what is on the books lives long: the collector need not look at it again and again
        providers = {circuit: OscarsProvider(one) for circuit, one in settings.oscars.items()}
        parts.callback(hosts.stop)
        hosts.start(str(settings.agents))
        behind = Parts(service, promises, book.events, settings.site.network, book.now_us, sessions.dpids)
        parts.enter_context(_web(api(behind), settings.rest))
        parts.callback(book.events.close)
        parts.callback(osken_hub.start(OpenFlowApp, address, listener=sessions).stop)
        parts.enter_context(_working(Convergence(book, edge, hosts).run, "convergence", book, stop))
        parts.enter_context(_working(Timekeeper(book, promises).run, "clock", book, stop))
        parts.enter_context(_working(Purchasing(book, promises, providers).run, "providers", book, stop))
        log.info("controller.up", openflow=settings.openflow, rest=settings.rest, agents=settings.agents)
        stop.wait()
        log.info("controller.stopping")
    log.info("controller.down", failed=stop.failed)
    return int(stop.failed)


class _Stop(threading.Event):
    """Set by SIGTERM and SIGINT, or by a thread that has failed."""

    failed = False


def _stop_signal() -> _Stop:
    """Return what SIGTERM and SIGINT set."""
    stop = _Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


@contextlib.contextmanager
def _web(app: FastAPI, endpoint: Endpoint) -> Iterator[None]:
    """Serve the API in a thread; the port is bound before this returns."""
    bound = socket.create_server((endpoint.host, endpoint.port))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="web", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        bound.close()


@contextlib.contextmanager
def _working(work: Callable[[], None], name: str, book: Book, stop: "_Stop") -> Iterator[None]:
    """Do some work in a thread until the end; one that fails ends the process, which its supervisor starts again."""

    def guarded() -> None:
        try:
            work()
        except Exception:
            log.exception("controller.failed", thread=name)
            stop.failed = True
            stop.set()

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with book.changed:
            book.stopping = True
            book.changed.notify_all()
        thread.join(timeout=5)
