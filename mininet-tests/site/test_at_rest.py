"""What lies about when a controller runs: files that no other user can read, and outputs that tell no secret."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.security import pki_files
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.running import Running, running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from topology.certificates import Kind

pytestmark = pytest.mark.root

PROVIDERS, CLIENTS, PASSWORD = "provider-secret-6f1d", "client-secret-93ab", "db-password-77e0"
READS = "topology reservations announcements plan circuits hosts switches drift receivers history changes whoami events"
COMMANDS = "reservations announcements plan circuits hosts switches drift bursts receivers history whoami maintenance"


@dataclass
class Secretive:
    """A controller that knows every kind of secret.

    Attributes:
        controller: the process.
        folder: where all its files are.
        secrets: what nothing may tell.
        said: all that was said, by what said it.
    """

    controller: Running
    folder: Path
    secrets: dict[str, str]
    said: dict[str, str] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """What the controller has said."""
        return self.controller.config.with_suffix(".log").read_text(errors="replace")

    def command(self, *words: str, **environment: str) -> str:
        """Run a command; return and keep all it says."""
        done = subprocess.run(
            [str(HEADWAY), *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HEADWAY_URL": self.controller.url, **environment},
        )
        said = self.said[f"{' '.join(words[:2])} {len(self.said)}"] = done.stdout + done.stderr
        return said


def written(path: Path, text: str) -> str:
    """Write a secret as one writes it."""
    path.touch(mode=0o600)
    path.write_text(text + "\n")
    return str(path)


@contextlib.contextmanager
def careless() -> Iterator[None]:
    """Have processes begin with no umask at all."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secretive]:
    """One that has run for a while, and was asked all there is."""
    folder = tmp_path_factory.mktemp("rest")
    tokens, silent = folder / "tokens", f"http://127.0.0.1:{free_port()}"
    secrets = {"of the provider": PROVIDERS, "of the client": CLIENTS, "of the database": PASSWORD}
    make = [str(HEADWAY), "token", "make"]
    for role in ("admin", "read"):
        made = subprocess.run(
            [*make, f"one-{role}", "--role", role, "--days", "9", "--file", str(tokens)],
            capture_output=True,
            text=True,
            check=True,
        )
        secrets[f"token, {role}"] = made.stdout.strip()
    subprocess.run([str(HEADWAY), "webhook", "secret", str(folder / "hook")], check=True, capture_output=True)
    secrets["of the webhook"] = (folder / "hook").read_text().strip().rpartition("_")[2]
    pki_files.init(folder / "pki", "rest", pki_files.now(), 100)
    own = pki_files.make(folder / "pki", Kind.CONTROLLER, ("127.0.0.1",), pki_files.now(), 90)
    secrets["key"] = own.key.read_text().splitlines()[1]
    oidc = {"issuer": silent, "audience": "headway", "groups": {"ops": "operate"}, "client": "page"}
    ends = {side: {"device": side, "port": f"{side}:1/1/c9/1", "vlan": 2000} for side in "az"}
    oscars = {"url": silent, "token_file": written(folder / "provider", PROVIDERS), **ends}
    with (
        careless(),
        running(
            folder,
            f"sqlite:///{folder}/headway.db",
            access={
                "local": "read",
                "tokens": str(tokens),
                "oidc": {**oidc, "secret": written(folder / "client", CLIENTS)},
            },
            webhooks=[{"url": f"{silent}/hook", "secret": str(folder / "hook")}],
            circuits={"chile-illinois": {"vlan_vid": 2000, "oscars": oscars}},
            listen={"rest_socket": str(folder / "rest.sock")},
            tls={"authority": f"{folder}/pki/ca.pem", "certificate": str(own.certificate), "key": str(own.key)},
        ) as controller,
    ):
        one = Secretive(controller, folder, secrets)
        asked(one)
        yield one


def asked(site: Secretive) -> None:
    """Ask all there is, rightly and wrongly, and keep what is said."""
    admin, read = site.secrets["token, admin"], site.secrets["token, read"]
    shown = (
        {"Authorization": f"Bearer {token}"} for token in (admin, read, admin[:-1] + "x", "eyJhbGciOiJub25lIn0.e30.")
    )
    for number, headers in enumerate(shown):
        with httpx.Client(base_url=site.controller.url, headers=headers, timeout=20) as client:
            for path in READS.split():
                if path != "events":
                    site.said[f"GET {path} {number}"] = client.get(f"/v1/{path}").text
            for path in ("/metrics", "/healthz", "/", "/login", "/openapi.json"):
                site.said[f"GET {path} {number}"] = client.get(path).text
            body: dict[str, Any] = {"from": "base20", "to": "arch", "class": "urgent", "rate": "1 Mbit/s"}
            site.said[f"POST {number}"] = client.post("/v1/reservations", json={**body, "description": admin[:8]}).text
    for command in COMMANDS.split():
        site.command(command, "--json", HEADWAY_TOKEN=admin)
        site.command(command, "--json", HEADWAY_TOKEN=read[:-2] + "zz")
    site.command("token", "list", "--file", str(site.folder / "tokens"), "--json")
    site.command("webhook", "test", "--config", str(site.controller.config))
    site.command("pki", "list", str(site.folder / "pki"), "--json")
    site.command("controller", "--check", "--config", str(site.controller.config))
    for url in (f"postgresql://headway:{PASSWORD}@127.0.0.1:{free_port()}/headway", f"mysql://headway:{PASSWORD}@h/x"):
        other = site.folder / "other.yaml"
        written(other, site.controller.config.read_text().replace(f"sqlite:///{site.folder}/headway.db", url))
        site.command("controller", "--config", str(other))
        site.command("backup", str(site.folder / "none"), "--store", url)
    with careless():
        site.command("backup", str(site.folder / "backup"), "--config", str(site.controller.config))
    eventually(lambda: "webhook" in site.log, within_s=30, what="a webhook that takes nothing is said")


def test_no_secret_is_in_any_output_or_in_the_log(site):
    said = {**site.said, "the log": site.log}
    assert len([text for text in said.values() if text]) > 70
    assert {
        f"{name} in {where}" for where, text in said.items() for name, secret in site.secrets.items() if secret in text
    } == set()
    assert any(json.loads(text) for name, text in said.items() if name.startswith("whoami")), "nobody was let in"


def test_files_of_the_controller_are_for_its_own_user_and_group(site):
    names = (
        "headway.db",
        "headway.db-wal",
        "headway.db-shm",
        "headway.db.lock",
        "backup",
        "tokens",
        "hook",
        "rest.sock",
    )
    files = [site.folder / name for name in names] + list((site.folder / "pki").rglob("*.key"))
    assert len(files) > len(names), "there is no key"
    open_ones = {str(file): oct(file.stat().st_mode) for file in files if file.stat().st_mode & 0o027}
    assert open_ones == {}
    assert {file.stat().st_uid for file in files} == {os.getuid()}


def test_a_database_that_all_could_read_is_closed_to_them_at_the_next_start(tmp_path):
    with careless(), running(tmp_path, f"sqlite:///{tmp_path}/headway.db") as controller:
        controller.end()
        for file in tmp_path.glob("headway.db*"):
            file.chmod(0o666)
        controller.start()
        assert {oct(file.stat().st_mode & 0o007) for file in tmp_path.glob("headway.db*")} == {"0o0"}


def test_secrets_and_keys_that_others_can_read_are_refused(site):
    for name in ("tokens", "hook", "provider", "client"):
        (site.folder / name).chmod(0o644)
        said = site.command("controller", "--check", "--config", str(site.controller.config))
        (site.folder / name).chmod(0o600)
        assert "chmod" in said, name
    (key,) = (site.folder / "pki").glob("controllers/*.key")
    key.chmod(0o644)
    said = site.command("controller", "--check", "--config", str(site.controller.config))
    key.chmod(0o600)
    assert f"chmod o= {key}" in said
