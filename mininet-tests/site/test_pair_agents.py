"""Agents that call are a process of their own: what they have done is asked of it, and its end is told."""

import threading
from multiprocessing import active_children

import pytest
from websockets.sync.server import serve

from mininet_tests.site.pair_agents import PairAgent, calling
from mininet_tests.testing.eventually import eventually

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def agents():
    """Two agents of a controller that listens and says nothing."""
    with serve(lambda connection: [*connection], "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"127.0.0.1:{server.socket.getsockname()[1]}"
        yield [PairAgent(name, (address,)) for name in "ab"]
        server.shutdown()


def test_what_agents_have_done_is_asked_of_their_process(agents):
    with calling(agents) as asked:
        eventually(lambda: all(one.calls_all for one in asked.seen()), within_s=20, what="both call")
        assert [one.host for one in asked.seen({"a": 3})] == ["a", "b"]
        assert asked.late_s() >= 0
        assert (asked.fallbacks, asked.obey(0, term=1)) == (0, False)


def test_who_asks_is_told_that_the_process_has_ended_and_so_is_who_let_it_begin(agents):
    with pytest.raises(RuntimeError, match="ended with -9"):
        _killed(agents)


def _killed(agents):
    with calling(agents) as asked:
        (process,) = active_children()
        process.kill()
        with pytest.raises(RuntimeError, match="has ended"):
            eventually(lambda: not asked.seen(), within_s=20, what="it is gone")
