"""The agent as a process: its parts put together, watched, answered for, and ended in order.

Threads: the main one waits for a signal; ``agent`` dials and applies; ``report`` looks once a second and tells the
controller and the service manager; ``status``, and ``/metrics`` if it is wanted, answer from what was seen last.
"""

import contextlib
import gc
import importlib.util
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable

from hostagent.agent.agent import REPORT_S, Agent
from hostagent.agent.status import LOSS_SIGHTS, AgentStatus, Identity, Sight, status_from
from hostagent.agent.status_socket import StatusSocket, socket_path
from hostagent.agent.supervisor import Supervisor
from hostagent.doctor.receive_window import TcpBuffers
from hostagent.errors import AgentError, EnvironmentLacking, Unregistered
from hostagent.kernel import probe
from hostagent.kernel.kernel import Kernel
from hostagent.kernel.leftovers import Namespace
from hostagent.log import log
from hostagent.settings import AgentSettings
from topology import __version__

EXIT_OK, EXIT_ENVIRONMENT = 0, 1
NO_METRICS = (
    "no Python package prometheus_client (metrics): apt install python3-prometheus-client, or pip install "
    "prometheus_client where the agent is installed by pip; or take `metrics:` out of the configuration"
)
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Watchdog:
    """Looks at the agent once a second, and keeps what it saw for those who ask.

    Args:
        look: looks, and tells the controllers.
        identity: who the agent is.
        has_news: whether to look after half a second already.

    Raises:
        AgentError: the kernel does not let the counters be read.
    """

    def __init__(
        self, look: Callable[[], Sight], identity: Identity, has_news: Callable[[], bool] = lambda: False
    ) -> None:
        self._look, self._has_news = look, has_news
        self._identity = identity
        self._sights: tuple[Sight, ...] = (look(),)
        self._ended = threading.Event()

    @property
    def current(self) -> AgentStatus:
        """How things stand by what was seen last."""
        return status_from(self._identity, self._sights, time.monotonic_ns())

    def run(self, tell: Callable[[str], None], others: tuple[threading.Thread, ...]) -> None:
        """Look once a second until ``end``; tell the status in one line while that works and the other threads live."""
        while not self._ended.wait(REPORT_S / 2):
            if not self._has_news() and self._ended.wait(REPORT_S / 2):
                return
            try:
                sight = self._look()
            except Unregistered:
                raise  # ends the process; the next one registers again
            except AgentError:
                log.exception("agent.no_counters")
                continue
            self._sights = (*self._sights, sight)[-LOSS_SIGHTS:]
            if all(thread.is_alive() for thread in others):
                tell(self.current.line)

    def end(self) -> None:
        """End ``run``, from another thread."""
        self._ended.set()


def run(settings: AgentSettings) -> int:
    """Run the agent until SIGTERM or SIGINT; return the exit code: 0, or 1 with the reasons on stderr."""
    # Blocked before any thread starts, so that the signal waits for the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # each interface takes up to four
    supervisor = Supervisor.of_this_process(os.environ)
    try:
        with contextlib.ExitStack() as undo:
            _check(settings)  # first: what is asked of the kernel below may be what it lacks
            namespace = Namespace.of_this_process()
            agent = _started(settings, namespace, supervisor, undo)
            watch = Watchdog(agent.report, _identity(settings, namespace), agent.has_news)
            gc.freeze()  # what is loaded lives long: looking through it would stop all threads for 5 to 10 ms
            answering = _answering(settings, namespace, watch, undo)
            return _served(agent, watch, supervisor, answering)
    except EnvironmentLacking as error:
        print(*(f"headway agent: {line}" for line in error.lines), sep="\n", file=sys.stderr)
    except (AgentError, OSError) as error:
        print(f"headway agent: {error}", file=sys.stderr)
    return EXIT_ENVIRONMENT


def _check(settings: AgentSettings) -> None:
    """Look whether this host has what an agent needs.

    Raises:
        EnvironmentLacking: it lacks something.
        OSError: a file of the system's cannot be read.
    """
    lacks = [str(lack) for lack in probe.lacking(probe.facts(settings.cgroup))]
    if settings.metrics is not None and importlib.util.find_spec("prometheus_client") is None:
        lacks.append(NO_METRICS)
    if lacks:
        raise EnvironmentLacking(tuple(lacks))


def _started(
    settings: AgentSettings, namespace: Namespace, supervisor: Supervisor, undo: contextlib.ExitStack
) -> Agent:
    """Return an agent with its kernel part loaded.

    Raises:
        AgentError: another agent runs here, or the kernel refused something.
        OSError: a file of the system's or of the run directory cannot be used.
    """
    kernel = Kernel(namespace, settings.cgroup, settings.run_dir, settings.tuning, supervisor.inherited)
    undo.callback(supervisor.forget, kernel.descriptors)
    undo.callback(kernel.close)
    supervisor.keep(kernel.descriptors)
    buffers: TcpBuffers | None = None
    if settings.receive_window:
        buffers = TcpBuffers(settings.run_dir / f"buffers-{namespace.id}.json")
        undo.callback(buffers.close)
    log.info("agent.started", host=settings.host, algorithm=namespace.algorithm)
    return Agent(settings, kernel, buffers)


def _identity(settings: AgentSettings, namespace: Namespace) -> Identity:
    kernel = os.uname().release
    return Identity(settings.host, __version__, kernel, namespace.id, namespace.algorithm, int(time.time()))


def _answering(
    settings: AgentSettings, namespace: Namespace, watch: Watchdog, undo: contextlib.ExitStack
) -> tuple[threading.Thread, ...]:
    """Answer for the agent on its socket, and to Prometheus if that is wanted; return the threads that do.

    Raises:
        OSError: the socket cannot be made, or the port is taken.
    """
    socket = StatusSocket(socket_path(settings.run_dir, namespace.id), lambda: watch.current)
    undo.callback(socket.close)
    if settings.metrics is None:
        return (socket.thread,)
    from hostagent.agent.metrics import metrics_server  # its library is loaded only where it is wanted

    thread, end = metrics_server(settings.metrics, lambda: watch.current)
    undo.callback(end)
    return socket.thread, thread


def _served(agent: Agent, watch: Watchdog, supervisor: Supervisor, answering: tuple[threading.Thread, ...]) -> int:
    """Serve until a signal comes or the agent fails; return the exit code."""
    failed = threading.Event()
    serving = threading.Thread(target=_guarded, args=(agent.serve, failed), name="agent")
    serving.start()

    def look() -> None:
        watch.run(supervisor.alive, (serving, *answering))

    reporting = threading.Thread(target=_guarded, args=(look, failed), name="report")
    reporting.start()
    supervisor.ready(watch.current.line)
    got = signal.sigwait(_STOP_SIGNALS)
    log.info("agent.stopping", signal=signal.Signals(got).name, failed=failed.is_set())
    supervisor.stopping()
    agent.stop()
    watch.end()
    serving.join()
    reporting.join()
    return EXIT_ENVIRONMENT if failed.is_set() else EXIT_OK


def _guarded(work: Callable[[], None], failed: threading.Event) -> None:
    """Work; a failure is logged and ends the process in order, so that the sockets are given back."""
    try:
        work()
    except Exception:
        log.exception("agent.failed")
        failed.set()
        os.kill(os.getpid(), signal.SIGTERM)
