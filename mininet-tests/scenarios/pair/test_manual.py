"""The manual sets up a pair by its own commands, as they are written there, on a real PostgreSQL."""

import os
import re
import shutil
import ssl
import subprocess
from contextlib import ExitStack

import pytest
import yaml

from apps.tests.test_examples import blocks, flat, shell
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.postgresql import PrivatePostgres, binaries
from mininet_tests.site.running import Running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from mininet_tests.testing.networks import chile_illinois
from topology.network_text import section_of

CONFIG, STARTED = "/etc/headway/controller.yaml", "systemctl restart headway-controller"
VARIES = {  # what the page says, and what it becomes
    r"ctl-[ab], process \d+": r"\S+, process \d+",
    r"\d{4}-\d\d-\d\dT[\d:.]+Z": r"\S+Z",
    r"term \d+": r"term \d+",
    r"\.\.\.": r".*",
}


class PageSite:
    """The machines of the page: two controllers, and a database without anything in it."""

    def __init__(self, folder, parts):
        self._folder, self._parts = folder, parts
        postgres = parts.enter_context(PrivatePostgres())
        self._socket = re.findall("host=(.+)", postgres.url)[0]
        self.pair = {name: f"127.0.0.1:{free_port()}" for name in "ab"}
        path = f"{HEADWAY.parent}:{os.environ['PATH']}"
        at = {"PGHOST": self._socket.replace("%2F", "/"), "PGUSER": "headway", "PGDATABASE": "postgres"}
        self._environment = at | {"PATH": path, "COLUMNS": "200", "HEADWAY_CA": str(folder / "pki/ca.pem")}
        made = ("init pki --name Site", "rest pki --name 127.0.0.1")
        for each in (*(f"pki {one}" for one in made), "token make operator --role admin --file tokens"):
            printed = subprocess.run([HEADWAY, *each.split()], cwd=folder, check=True, capture_output=True, text=True)
        self._environment["HEADWAY_TOKEN"] = self._token = printed.stdout.split()[0]
        self._trusts = ssl.create_default_context(cafile=folder / "pki/ca.pem")

    def here(self, text):
        """What the page says, with this site's addresses."""
        for name, rest in self.pair.items():
            text = text.replace(f"https://ctl-{name}.example.org:8080", f"https://{rest}")
        text = text.replace("runuser -u headway-controller -- ", "")  # the user is made by the package
        return text.replace("@db.example.org/headway", f"@/headway?host={self._socket}")

    def configured(self, name):
        """Write a machine's file, with the lines of the page."""
        (lines,) = blocks("pair.md", "yaml")
        section = re.sub(r"^   ", "", self.here(lines), flags=re.MULTILINE)
        section = section.replace("ttl: 500 ms", "ttl: 4 s")  # a machine that stands still changes no leaders
        if name == "b":
            a, b = self.pair.values()
            section = section.replace(a, "first").replace(b, a).replace("first", b)
        said = yaml.safe_load(section)
        said["listen"] |= {"rest": self.pair[name]}  # the page's is of all addresses: there is one machine here
        said["listen"] |= {of: f"127.0.0.1:{free_port()}" for of in ("openflow", "agents")}
        said["network"] = section_of(chile_illinois(100_000_000_000))
        config = self._folder / name / "controller.yaml"
        config.parent.mkdir()
        for end in ("pem", "key"):
            shutil.copy(self._folder / f"pki/rest/127.0.0.1.{end}", config.parent / f"rest.{end}")
        shutil.copy(self._folder / "tokens", config.parent)
        config.touch(mode=0o640)  # it has the database's password
        config.write_text(yaml.safe_dump(said))
        return config

    def stands_by(self):
        """Whether one leads and the other stands by."""
        command = [HEADWAY, "leader", "--json", "--url", ",".join(f"https://{rest}" for rest in self.pair.values())]
        asked = subprocess.run(command, check=True, capture_output=True, env=self._environment)
        return b'"standbys": []' not in asked.stdout

    def follow(self, block, config=CONFIG):
        """Do what a block of the page says, and find that it prints what it says."""
        for command, said in parts_of(block):
            if command.startswith("export "):
                name, value = self.here(command).removeprefix("export ").split("=")
                self._environment[name] = value
            elif command == STARTED:
                url = f"https://{self.pair[config.parent.name]}"
                one = Running(config, url, trusts=self._trusts, token=self._token)
                self._parts.callback(one.end)
                one.start()
            else:
                printed = flat(shell(self.here(command).replace(CONFIG, str(config)), self._folder, self._environment))
                assert re.fullmatch(pattern(self.here(said).replace(CONFIG, str(config))), printed), (command, printed)


def parts_of(block):
    """Each command of a block, and what it prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        yield command, " ".join(lines)


def pattern(said):
    """What is said, as a pattern."""
    text, found, at = flat(said), "", 0
    for one in re.finditer("|".join(f"({what})" for what in VARIES), text):
        found += re.escape(text[at : one.start()]) + [*VARIES.values()][one.lastindex - 1]
        at = one.end()
    return found + re.escape(text[at:])


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or binaries() is None, reason="needs root, and PostgreSQL 14 or newer as Debian packages it"
)
def test_a_pair_is_set_up_by_the_commands_of_the_page(tmp_path):
    database, machine, anywhere, *_ = blocks("pair.md", "console")
    with ExitStack() as parts:
        site = PageSite(tmp_path, parts)
        site.follow(database)
        for name in site.pair:
            site.follow(machine, site.configured(name))
        eventually(site.stands_by, within_s=60, what="one stands by")
        site.follow(anywhere)
