"""A controller of a pair as a process: it stands by until it leads, and begins anew when another does."""

import contextlib
import importlib
import os
import socket
import sys
import threading
import time

import structlog

from apps.process import ALIVE_S, Stop
from controller.database import Database, DatabaseFailed
from controller.database.leader_row import LeaderRow
from controller.database.settings import PairSettings
from controller.plan.leading import PairStanding
from controller.state.clock import elapsed_us
from controller.state.guard import GuardedState
from controller.work.leadership import LOOK_S, Leadership
from hostagent.agent.supervisor import Supervisor

WAITS = "waits for the database"
STANDS_BY = "stands by; another controller leads"
LATER = ("ovs.db.idl", "ovs.jsonrpc", "ovs.poller", "ovs.stream", "pyroute2")
"""Imported by who leads when it first needs them, which takes up to 50 ms of a processor: here that is done before."""

log = structlog.get_logger()


def begin_anew(stop: Stop) -> None:
    """Become this very program from its beginning; of what this process was about to do, nothing is done.

    That is how a leader ends that has been followed: no thread of it acts once more, and what it remembers is gone.
    After a signal nothing is done, for the new process would not know of it: this one is about to end.
    """
    if stop.for_good:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 (our own program and arguments)


def leadership(
    parts: contextlib.ExitStack, url: str, pair: PairSettings, stop: Stop, supervisor: Supervisor
) -> Leadership:
    """Return whether we lead, known by a thread that works until the end, or begins anew when another one leads.

    Waits for the database, which must be there before anything can be shown; that is no start that takes too long.
    """
    row = LeaderRow(url, f"{socket.gethostname()}, process {os.getpid()}", pair.address)
    found = Leadership(row, elapsed_us, pair.ttl_us)
    said = ""
    while not stop.is_set():
        try:
            found.look()
            break
        except DatabaseFailed as failure:
            if failure.why != said:
                said = failure.why
                log.error("standby.waits", why=str(failure))  # noqa: TRY400 (the why is all there is)
                supervisor.ready(WAITS)
            supervisor.alive(WAITS)
            stop.wait(ALIVE_S)

    def work() -> None:
        found.run()
        if found.standing is PairStanding.DEPOSED:
            begin_anew(stop)

    thread = threading.Thread(target=work, name="leader", daemon=True)

    def end() -> None:
        found.stop()
        thread.join(timeout=5)
        if not thread.is_alive():
            found.close()

    parts.callback(end)
    thread.start()
    return found


def opened(parts: contextlib.ExitStack, url: str, led: Leadership | None) -> Database:
    """Return the database: of a controller that is alone, to lead; of one of a pair, to read.

    Raises:
        DatabaseError: it cannot be used.
    """
    database = Database(url)
    parts.callback(database.close)
    if led is None:
        database.open()
    else:
        database.open_to_read()
    return database


def stood_by(found: Leadership, state: GuardedState, supervisor: Supervisor, stop: Stop) -> bool:
    """Wait until we lead; return False if the end comes before that: then we take the row no more."""
    log.info("standby.up", leader=found.seen.holder if found.seen else "")
    supervisor.ready(STANDS_BY)
    for name in LATER:
        importlib.import_module(name)
    found.may_take = True
    alive_s = time.monotonic()
    while not stop.is_set():
        if found.led.wait(LOOK_S):
            return True
        if time.monotonic() - alive_s > ALIVE_S:
            with state.changed:  # as of a leader: nobody keeps the lock
                pass
            supervisor.alive(STANDS_BY)
            alive_s = time.monotonic()
    found.leave()
    return False
