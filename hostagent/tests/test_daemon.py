"""The watch over the agent: who is told that it lives, and when nobody is."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from hostagent.agent import daemon
from hostagent.agent.daemon import Watchdog
from hostagent.agent.status import Identity, Sight
from hostagent.errors import BpfError
from hostagent.log import log
from mininet_tests.testing.eventually import eventually
from topology.telemetry import Telemetry

WHO = Identity("base20", "0.1", "6.1.0", "1a", "headway1a", 1_790_000_000)


class WatchedAgent:
    """Something to look at; its kernel may refuse."""

    def __init__(self) -> None:
        self.looks = 0
        self.asked = 0
        self.refuses = False

    def has_news(self) -> bool:
        self.asked += 1
        return self.asked % 2 == 0

    def report(self) -> Sight:
        self.looks += 1
        if self.refuses:
            raise BpfError("reading map hw_counters", 1)
        return Sight(time.monotonic_ns(), Telemetry(self.looks, 0))


@pytest.fixture
def watched(monkeypatch):
    """Runs a watch with short seconds; returns (agent, what was told, the watch)."""
    monkeypatch.setattr(daemon, "REPORT_S", 0.01)
    agent, told = WatchedAgent(), []
    watch = Watchdog(agent.report, WHO)
    threads: list[threading.Thread] = []

    def run(*others: threading.Thread):
        threads.append(threading.Thread(target=watch.run, args=(told.append, others)))
        threads[0].start()
        return agent, told, watch

    with log.captured():
        yield run
        watch.end()
        threads[0].join()


def a_thread(until: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=until)
    thread.start()
    return thread


def test_each_look_is_told_while_all_threads_live(watched):
    end = threading.Event()
    _, told, watch = watched(a_thread(end.wait))
    eventually(lambda: len(told) >= 3, within_s=5, what="three signs of life")
    end.set()
    assert told[0] == "no plan: epoch 2, 0 allocations; no controller"
    assert watch.current.epoch >= 4


def test_a_thread_that_has_ended_is_not_told_to_live(watched):
    ended = a_thread(bool)
    ended.join()
    agent, told, _ = watched(ended)
    eventually(lambda: agent.looks >= 5, within_s=5, what="five looks")
    assert told == []


def test_a_kernel_that_refuses_is_not_told_to_work_until_it_does_again(watched):
    agent, told, _ = watched()
    eventually(lambda: told, within_s=5, what="a sign of life")
    agent.refuses = True
    before = agent.looks
    eventually(lambda: agent.looks >= before + 5, within_s=5, what="five more looks")
    silent = len(told)
    assert agent.looks - silent >= 5
    agent.refuses = False
    eventually(lambda: len(told) > silent, within_s=5, what="signs of life again")


def test_news_are_told_before_the_second_is_over(monkeypatch):
    waits: list[float] = []
    agent = WatchedAgent()
    watch = Watchdog(agent.report, WHO, agent.has_news)
    monkeypatch.setattr(watch, "_ended", Waits(waits, most=6))
    watch.run(lambda _: None, ())
    half_s = daemon.REPORT_S / 2
    assert waits == [half_s] * 6
    assert agent.looks == 1 + 4, "two of a second, two with news after half of one"


def test_an_agent_without_the_library_of_its_metrics_says_what_to_install(tmp_path):
    """An installation by pip has it only with ``[metrics]``, and Debian's package recommends it."""
    config = tmp_path / "agent.yaml"
    config.write_text(f"{{host: a, controllers: ['127.0.0.1:1'], metrics: '127.0.0.1:0001', run_dir: {tmp_path}}}")
    start = (
        "import sys; sys.modules['prometheus_client'] = None; from pathlib import Path;"
        "from apps.agent import daemon; sys.exit(daemon(Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", start, config], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == daemon.EXIT_ENVIRONMENT
    assert "headway agent: no Python package prometheus_client (metrics): apt install python3-" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_on_a_kernel_that_cannot_tell_namespaces_apart_says_which_kernel_it_needs(tmp_path):
    """Linux 5.14 is the first that can."""
    config = tmp_path / "agent.yaml"
    config.write_text(f"{{host: a, controllers: ['127.0.0.1:1'], run_dir: {tmp_path}}}")
    start = (
        "import sys; from pathlib import Path; from apps.agent import daemon\n"
        "from hostagent.agent import daemon as run\n"
        "from hostagent.kernel.probe import Facts\n"
        "def refused(): raise OSError(92, 'Protocol not available')\n"
        "run.Namespace.of_this_process = refused\n"
        "run.probe.facts = lambda cgroup: Facts('5.10.0', (1 << 41) - 1, True, True, True)\n"
        "sys.exit(daemon(Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", start, config], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == daemon.EXIT_ENVIRONMENT
    assert done.stderr == "headway agent: the kernel is too old (uname -r: 5.10.0): boot Linux 6.0 or newer\n"


def test_an_agent_may_open_as_many_files_as_its_hard_limit_says(tmp_path):
    """The soft limit of systemd, 1024, is too low for a host with many interfaces."""
    config = tmp_path / "agent.yaml"
    config.write_text(f"{{host: a, controllers: ['127.0.0.1:1'], metrics: '127.0.0.1:0001', run_dir: {tmp_path}}}")
    start = (
        "import sys; sys.modules['prometheus_client'] = None; from pathlib import Path;"
        "from resource import RLIMIT_NOFILE, getrlimit, setrlimit; setrlimit(RLIMIT_NOFILE, (256, 512));"
        "from apps.agent import daemon; daemon(Path(sys.argv[1])); print(getrlimit(RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", start, config], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "(512, 512)\n"


class Waits:
    """An event that nobody waits for; it has come after so many waits."""

    def __init__(self, waits: list[float], most: int) -> None:
        self._waits, self._most = waits, most

    def wait(self, seconds: float) -> bool:
        if len(self._waits) == self._most:
            return True
        self._waits.append(seconds)
        return False
