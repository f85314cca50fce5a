"""Every example in the documentation does what it says."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import structlog
import yaml

from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from apps.configuration import parsed
from controller.database import Database
from controller.northbound.tests.site import api_of
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.security import pki_files
from controller.settings.network import network_at
from controller.tests.database_child import reservation
from controller.tests.fakes import FakeSite, ready_site, sending_image
from controller.tests.past_contract import done, of
from controller.tests.serving import served
from hostagent.settings import parsed_settings
from mininet_tests.testing.networks import FILES, chile_illinois, chile_illinois_2
from topology.certificates import OVSDB_URI, REST_URI, Kind
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems
from topology.protocol import FlowClass
from topology.telemetry import StoreBrake, StoreTelemetry, Telemetry
from topology.yaml_text import read

DOCS = Path(__file__).parents[2] / "docs"
DAY_US = 86_400_000_000
DEFAULT_URL = "http://127.0.0.1:8080"
TIME = r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)"
LOCAL_TIME = r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? -0[34]"  # Chile in summer and winter
NAME = r"\b[0-9a-f]{16}\b"
LINES = r"[\s━─┏┓┡┩└┘┳╇┴┃│╸╺]+"  # of tables, and the bars of charts


def blocks(name, language):
    """The fenced blocks of a language in a document."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


def examples(name):
    """Each command in the console blocks of a document, with what it is said to print."""
    for block in blocks(name, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            head = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
            yield "\n".join(lines[:head]), " ".join(lines[head:])


def idle_site():
    """A site whose circuit has 100 Gbit/s; its clock stands at this moment."""
    site = FakeSite(chile_illinois(100_000_000_000), standing=())
    site.clock.now_us = time.time_ns() // 1000
    site.attach_all()
    site.wire()
    return site


@pytest.fixture
def url():
    """A served API of a site without switches."""
    with served(api_of(ready_site())) as address:
        yield address


def as_pattern(said, names):
    """What a document says, as a pattern: dots stand for anything, a time for any time, a name for what it became.

    What stands between two dots is looked for once, where it comes first: to try all places takes minutes.
    """
    first, *more = (_without_dots(part, names) for part in said.split("..."))
    if not more:
        return first
    *between, last = more
    return first + "".join(f"(?>.*?{part})" for part in between) + f".*{last}"


def _without_dots(said, names):
    """A part of a document's saying, as a pattern."""
    pattern = ""
    for part in re.split(f"({TIME}|{LOCAL_TIME}|{NAME})", said):
        if re.fullmatch(NAME, part) and part not in names:
            pattern += f"(?P<n{part}>{NAME})"
        else:
            fitting = next((one for one in (TIME, LOCAL_TIME) if re.fullmatch(one, part)), None)
            pattern += fitting or re.escape(names.get(part, part))
    return pattern


def flat(text):
    """A text without line breaks and the lines of tables."""
    return re.sub(LINES, " ", text).strip()


def squeezed(text):
    """JSON without any white space: in a document its lines are broken."""
    return re.sub(r"\s+", "", text)


def shell(command, folder, environment):
    """What a shell prints."""
    done = subprocess.run(  # noqa: S602
        command, shell=True, cwd=folder, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    return done.stdout + done.stderr


def in_process(command, folder, environment):
    """What a plain call of the command prints, without the time that a new process takes to start."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, shlex.split(command)[1:], env=environment)
    return done.stdout + done.stderr


def follow(name, url, folder):
    """Run the commands of a document one after the other; each prints what is said."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"HEADWAY_URL": url, "PATH": path, "COLUMNS": "200", "TZ": "America/Santiago"}
    names = {}
    for command, said in examples(name):
        here = command.replace(DEFAULT_URL, url)
        for there, ours in names.items():
            here = here.replace(there, ours)
        plain_call = here.startswith("headway ") and not set("$|>&;`") & set(here)
        output = (in_process if plain_call else shell)(here, folder, environment)
        plain = squeezed if command.startswith("curl") else flat
        printed = plain(output)
        found = re.fullmatch(as_pattern(plain(said), names), printed)
        assert found, f"{command}\nsaid:    {plain(said)}\nprinted: {printed}"
        names |= {group[1:]: value for group, value in found.groupdict().items()}


@pytest.fixture(autouse=True)
def _no_logs():
    """The API's process is the command's here, and what it logs is nothing that the command prints."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)


def test_the_api_answers_what_the_document_says(url, tmp_path):
    follow("api.md", url, tmp_path)


def test_the_python_of_the_document_runs(tmp_path):
    (code,) = blocks("api.md", "python")
    with served(api_of(idle_site())) as url:
        command = [sys.executable, "-c", code.replace(DEFAULT_URL, url)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert said[0] == "provisioning 564889466"
    assert "base20 True" in said


def test_the_commands_print_what_the_document_says(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/headway.db")
    database.open()
    done(database, of(*map(reservation, range(4))))
    with served(api_of(idle_site())) as url:
        follow("cli.md", url, networked(tmp_path))
    database.close()


def test_the_agents_commands_print_what_the_document_says(tmp_path):
    follow("agent.md", DEFAULT_URL, tmp_path)


def test_the_bursts_are_shown_as_the_document_says(tmp_path):
    site = ready_site()
    sending_image(site)
    with served(api_of(site)) as url:
        follow("bursts.md", url, tmp_path)


def test_what_would_be_is_said_as_the_document_says(tmp_path):
    (said,) = blocks("what-if.md", "yaml")
    scenario = (DOCS.parent / "contrib/what-if/night.yaml").read_text()
    assert yaml.safe_load(said) == yaml.safe_load(scenario)
    (tmp_path / "night.yaml").write_text(scenario)
    (tmp_path / "whole-night.yaml").write_text((DOCS.parent / "contrib/what-if/whole-night.yaml").read_text())
    (tmp_path / "chile-illinois-2.yaml").write_text(FILES["chile-illinois-2"].read_text())
    with served(api_of(reserved_site())) as url:
        follow("what-if.md", url, tmp_path)


def reserved_site():
    """A site of two circuits on which more than the second one has is reserved for two days from this moment."""
    site = FakeSite(chile_illinois_2(), standing=())
    site.clock.now_us = now_us = time.time_ns() // 1000
    site.attach_all()
    site.wire()
    request = Request("la-serena", "champaign", FlowClass.URGENT, 600_000_000, now_us, now_us + 2 * DAY_US)
    site.use_cases.hold(lambda _: request, lambda at_us: Created("9f86d081884c7d65", at_us)).saved.result()
    site.use_cases.commit("9f86d081884c7d65").saved.result()
    site.converge()
    return site


def test_the_receivers_are_shown_as_the_document_says(tmp_path):
    site = ready_site()
    sending_image(site)
    address = site.state.site.network.host("base20").ip
    for _ in range(2):
        site.clock.now_us += 1_000_000
        disk = StoreTelemetry("data", 100_000_000, True, 0, 10**8, StoreBrake.DISK, senders=(f"{address}/32",))
        site.reports.host_telemetry("arch", Telemetry(0, 1_000, stores=(disk,)))
        site.converge()
    with served(api_of(site)) as url:
        follow("receiver.md", url, tmp_path)


def networked(folder):
    """A folder with the network of the document, which the others name."""
    text, *_ = blocks("network.md", "yaml")
    (folder / "network.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("text", blocks("network.md", "yaml"))
def test_each_network_of_the_document_is_right(text):
    problems = Problems()
    assert network_of(read(text).values, problems) is not None, problems.found


def certified(folder):
    """A folder with the network and the certificates that the documents' configurations name."""
    networked(folder)
    now = pki_files.now()
    pki_files.init(folder, "example", now, 30)
    rest = ("rest", REST_URI)
    for kind, names in ((Kind.CONTROLLER, ("ctl.example.org",)), (Kind.AGENT, ("base20",)), (Kind.REST, rest)):
        made = pki_files.make(folder, kind, names, now, 30)
        for path in (made.certificate, made.key):
            path.rename(folder / path.name)
    pki_files.init(folder / "to", "example", now, 30)
    made = pki_files.make(folder / "to", Kind.OVSDB, ("switches", OVSDB_URI), now, 30)
    for path in (made.certificate, made.key):
        path.rename(folder / path.name)
    return folder


def test_certificates_are_made_as_the_document_says(tmp_path):
    networked(tmp_path)
    follow("pki.md", DEFAULT_URL, tmp_path)


def test_a_site_is_set_up_as_the_document_says(tmp_path):
    follow("deploy.md", DEFAULT_URL, networked(tmp_path))


def test_the_configurations_of_the_first_hour_are_right(tmp_path):
    of_controller, of_agent = blocks("deploy.md", "yaml")
    settings = parsed(yaml.safe_load(of_controller), "deploy.md", certified(tmp_path))
    assert {switch.name for switch in settings.site.network.switches} == settings.ovsdb.keys()
    assert parsed_settings(of_agent, tmp_path).host == "base20"


def test_the_controllers_configuration_in_the_document_is_right_and_shows_the_defaults(tmp_path):
    (text,) = blocks("configuration.md", "yaml")
    written = yaml.safe_load(text)
    folder = certified(tmp_path)
    (folder / "webhook.secret").write_text("whsec_" + "QUJD" * 10)
    (folder / "webhook.secret").chmod(0o600)
    least = parsed({"network": written["network"], "flows": written["flows"]}, "least", folder)
    settings = parsed(written, "configuration.md", folder)
    assert settings.site.policy == least.site.policy
    assert settings.ovsdb == least.ovsdb


def test_the_network_in_the_document_is_that_of_the_experiments(tmp_path):
    assert section_of(network_at(networked(tmp_path) / "network.yaml")) == section_of(chile_illinois())


def test_the_ignore_list_in_the_document_is_right(tmp_path):
    (text,) = blocks("drift.md", "yaml")
    assert len(parsed(yaml.safe_load(text), "drift.md", networked(tmp_path)).audit.ignored) == 3


def test_the_agents_configuration_in_the_document_is_right(tmp_path):
    (text,) = blocks("agent.md", "yaml")
    assert parsed_settings(text, certified(tmp_path)).host == "base20"


def test_plan_and_hosts_are_tables_for_people_and_json_for_scripts(url):
    headway = str(Path(sys.executable).parent / "headway")

    def shown(*arguments):
        environment = os.environ | {"COLUMNS": "160"}
        command = [headway, *arguments, "--url", url]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert "47.073 Mbit/s" in shown("plan")  # what the database may send
    assert json.loads(shown("plan", "--json"))["violations"] == []
    assert "base23" in shown("hosts")
    assert {row["connected"] for row in json.loads(shown("hosts", "--json"))} == {True}
