"""Every example in the documentation does what it says."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import uvicorn
import yaml

from controller.northbound.tests.site import api_of
from controller.settings import parsed
from controller.tests.fakes import ready_site
from hostagent.settings import parsed as parsed_agent

DOCS = Path(__file__).parents[2] / "docs"
DEFAULT_URL = "http://127.0.0.1:8080"
TIME = r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)"


def blocks(name, language):
    """The fenced blocks of a language in a document."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


def examples():
    """Each command in the console blocks of api.md, with what it is said to print."""
    for block in blocks("api.md", "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            head = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
            yield "\n".join(lines[:head]), " ".join(lines[head:])


@pytest.fixture
def url():
    """A served API of a site without switches."""
    site = ready_site()
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(api_of(site), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def as_pattern(said):
    """What a document says, as a pattern: dots stand for anything, a time for any time."""
    return "".join(
        ".*" if part == "..." else TIME if re.fullmatch(TIME, part) else re.escape(part)
        for part in re.split(rf"(\.\.\.|{TIME.replace('(', '(?:')})", " ".join(said.split()))
    )


def test_the_commands_print_what_the_document_says(url):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"HEADWAY_URL": url, "PATH": path, "COLUMNS": "200"}
    for command, said in examples():
        here = command.replace(DEFAULT_URL, url)
        done = subprocess.run(here, shell=True, capture_output=True, text=True, env=environment, check=False)  # noqa: S602
        printed = " ".join((done.stdout + done.stderr).split())
        assert re.fullmatch(as_pattern(said), printed), f"{command}\nsaid:    {said}\nprinted: {printed}"
        if command.startswith("curl"):  # the next example announces the same
            subprocess.run(["headway", "release", "image"], env=environment, check=True, capture_output=True)


def test_the_controllers_configuration_in_the_document_is_right_and_shows_the_defaults():
    (text,) = blocks("configuration.md", "yaml")
    written = yaml.safe_load(text)
    least = parsed({"network": {"name": "chile-illinois"}, "flows": written["flows"]}, "least")
    assert parsed(written, "configuration.md").site.policy == least.site.policy
    assert parsed(written, "configuration.md").ovsdb == least.ovsdb


def test_the_agents_configuration_in_the_document_is_right():
    (text,) = blocks("agent.md", "yaml")
    assert parsed_agent(text).host == "base20"


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
