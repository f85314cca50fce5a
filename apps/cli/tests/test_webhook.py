"""``headway webhook``: a secret is made once and is its owner's; a try says of each server what came back."""

import json
import resource
import stat

import pytest

from apps.cli import webhook
from apps.cli.tests.running import CliRunner
from controller.northbound.tests.receiver import receiving
from controller.settings.webhooks import secret_of


def run(*arguments, exit_code=0):
    """Run a command; return what it prints."""
    done = CliRunner().invoke(webhook.app, arguments, env={"COLUMNS": "200"})
    assert done.exit_code == exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
    return done.stdout + done.stderr


@pytest.fixture
def secret(tmp_path):
    """A secret that was made."""
    path = tmp_path / "secret"
    run("secret", str(path))
    return path


@pytest.fixture
def config(tmp_path, secret):
    """Write a configuration with webhooks, by URL; nothing else of it is right."""

    def written(*urls):
        rows = ", ".join(f"{{url: '{url}', secret: {secret.name}}}" for url in urls)
        path = tmp_path / "c.yaml"
        path.write_text(f"nonsense: 1\nwebhooks: [{rows}]\n")
        return str(path)

    return written


def test_a_secret_is_its_owners_alone_and_is_never_written_over(secret):
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    before = secret.read_text()
    assert len(secret_of(secret)) == 32
    assert "File exists" in run("secret", str(secret), exit_code=1)
    assert secret.read_text() == before


def test_a_secret_that_cannot_be_written_leaves_no_file(tmp_path):
    path = tmp_path / "secret"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # as on a full disk
    try:
        said = run("secret", str(path), exit_code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (said, path.exists()) == (f"headway: {path}: File too large\n", False)
    run("secret", str(path))


def test_each_server_is_told_once_and_its_answer_is_printed(config):
    with receiving(204) as well, receiving(500) as ill:
        urls = (f"{well.url}/T0KEN", f"{ill.url}/T0KEN", "http://127.0.0.1:9/T0KEN")
        said = run("test", "--config", config(*urls), exit_code=1).splitlines()
        assert said[:2] == ["127.0.0.1: taken", "127.0.0.1: it answered 500"]
        assert said[2].startswith("127.0.0.1: ConnectError")
        assert "T0KEN" not in "".join(said), "the address may be a secret"
        assert [json.loads(body)["type"] for _, body in well.hears + ill.hears] == ["webhook.test"] * 2
        assert json.loads(run("test", "--json", "--config", config(well.url))) == [
            {"where": "127.0.0.1", "taken": True, "why": ""}
        ]


def test_what_is_not_configured_is_said(config, tmp_path):
    file = config()
    assert "there are no webhooks" in run("test", "--config", file, exit_code=2)
    assert "No such file" in run("test", "--config", str(tmp_path / "none"), exit_code=2)
    (tmp_path / "c.yaml").write_text("network: x\n")
    assert "there are no webhooks" in run("test", "--config", file, exit_code=2)
    (tmp_path / "c.yaml").write_text("webhooks: [{url: 'ftp://x', secret: secret}]\n")
    assert "webhooks[0].url" in run("test", "--config", file, exit_code=2)
