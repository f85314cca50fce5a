"""The page of a pair in Chromium: it goes to the leader by itself, and to nobody whom only the database names."""

import os
import shutil
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.page.pages import Pages
from controller.northbound.tests.site import dependencies_of
from controller.plan.leading import LeaderView, PairStanding
from controller.providers.tests.faulty import running
from controller.tests.fakes import ready_site
from mininet_tests.scenarios.page.browser import PATIENCE_S, browser
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("chromedriver"), reason="needs root and Chromium with its driver"
    ),
]
LINGERS_S = 8  # more than two looks of the page


class ServedPair:
    """Two controllers' pages on loopback; which of them leads is a test's to say."""

    def __init__(self, parts):
        self.parts, self.ports = parts, [free_port(), free_port()]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.serving = [ExitStack(), ExitStack()]
        for one in self.serving:
            parts.enter_context(one)

    def serve(self, number, *, leads, leader, others=()):
        """Serve the page of one, which names ``leader`` as the database does."""
        standing = PairStanding.LEADER if leads else PairStanding.STANDBY
        view = LeaderView(standing, leads, 7, leader, "the leader", others=("the other",) if leads else ())
        behind = dependencies_of(ready_site(), leader=lambda: view, others=tuple(others))
        rules = all_may(lambda: datetime.now(UTC))
        pages = Pages(replace(behind, now_us=lambda: time.time_ns() // 1000), rules)
        ends = threading.Event()
        for work in (pages.watch.run, pages.tonight.run):
            threading.Thread(target=work, args=(ends.wait,), daemon=True).start()
        self.serving[number].callback(ends.set)
        self.serving[number].enter_context(running(api(behind, rules, pages), self.ports[number]))


@pytest.fixture
def pair():
    with ExitStack() as parts:
        yield ServedPair(parts)


def where(window):
    """The address that a window shows."""
    return window._driver.current_url


def test_a_standby_s_page_goes_to_the_leader_that_the_configuration_names(pair):
    a, b = pair.urls
    pair.serve(0, leads=True, leader=a, others=[b])
    pair.serve(1, leads=False, leader=a, others=[a])
    with browser(b) as window:
        window.open("/?of=a-pair")
        eventually(lambda: where(window) == f"{a}/?of=a-pair", within_s=PATIENCE_S, what="it is at the leader's")
        assert [line for line in window.complaints() if "Content Security" in line] == []


def test_it_goes_to_nobody_whom_only_the_database_names(pair):
    a, b = pair.urls
    pair.serve(0, leads=True, leader=a)
    pair.serve(1, leads=False, leader=a, others=["http://127.0.0.1:9"])
    with browser(b) as window:
        window.open("/")
        window.shows("This controller stands by")
        time.sleep(LINGERS_S)
        assert where(window).startswith(b)


def test_a_page_whose_controller_dies_goes_to_the_other_one(pair):
    a, b = pair.urls
    pair.serve(0, leads=True, leader=a, others=[b])
    pair.serve(1, leads=True, leader=b, others=[a])  # it has taken over by then
    with browser(a) as window:
        window.open("/")
        window.shows("and is asked here")
        pair.serving[0].close()
        eventually(lambda: where(window).startswith(b), within_s=PATIENCE_S, what="it is at the one that lives")


def test_an_answer_of_a_proxy_is_said_and_the_button_can_be_used_again(pair):
    (a, _) = pair.urls
    pair.serve(0, leads=True, leader=a)
    with browser(a) as window:
        window.open("/circuits/chile-illinois")  # or the circuit of ready_site()
        window.one("#what-if")
        window._driver.execute_script("window.fetch = async () => new Response('<html>Gateway</html>', {status: 504})")
        window.click("#what-if")
        window.shows("504: not the controller's answer", "#answer", within_s=5)
        assert window.one("#what-if").is_enabled()
