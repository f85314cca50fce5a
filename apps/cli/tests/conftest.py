"""A controller's API, served, and the command run against it."""

import json
import time
from dataclasses import dataclass

import pytest
import structlog

from apps.cli import client
from apps.cli.tests.running import CliRunner
from controller.northbound.tests.site import api_of
from controller.tests.fakes import FakeSite
from controller.tests.serving import served
from mininet_tests.testing.networks import chile_illinois

ZONE = "America/Santiago"


@dataclass(frozen=True)
class Cli:
    """The command, its environment, and the site behind the API it calls."""

    url: str
    site: FakeSite

    def run(self, *arguments, exit_code=0, url=None):
        """Run a command; return (standard output, standard error)."""
        environment = {"HEADWAY_URL": url or self.url, "TZ": ZONE, "COLUMNS": "200"}
        done = CliRunner().invoke(client.app, arguments, env=environment)
        assert done.exit_code == exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
        return done.stdout, done.stderr

    def json(self, *arguments, **more):
        """Run a command; return the JSON that it prints."""
        return json.loads(self.run(*arguments, "--json", **more)[0])


@pytest.fixture(scope="module")
def _api():
    """One server for a module; the site behind it changes from test to test. It does not log: a command prints here."""
    behind = {}
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())

    async def app(scope, receive, send):
        await behind["app"](scope, receive, send)

    with served(app) as url:
        yield behind, url
    structlog.reset_defaults()


@pytest.fixture
def cli(_api):
    """The command against an idle site of 1 Gbit/s, all well, whose clock stands at this moment."""
    behind, url = _api
    site = FakeSite(chile_illinois(), standing=())
    site.clock.now_us = time.time_ns() // 1000
    site.attach_all()
    site.wire()
    behind["app"] = api_of(site)
    return Cli(url, site)
