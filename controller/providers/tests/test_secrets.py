"""Secrets: where they come from, and that nobody sees them."""

import logging
import socket
import traceback
from copy import deepcopy
from dataclasses import FrozenInstanceError, asdict

import pytest
from structlog.testing import capture_logs

from controller.plan.purchases import Period
from controller.providers.errors import ProviderDenied, ProviderError, SecretUnusable
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_values import OscarsPort, OscarsSettings
from controller.providers.secrets import Secret, secret_from
from controller.providers.tests.buying import START_S, at_first
from controller.providers.tests.fake_oscars import TOKEN, Faults

VARIABLE = "HEADWAY_TEST_TOKEN"
PERIOD = Period((START_S + 1_000) * 10**6, (START_S + 90_000) * 10**6, 10**9)


@pytest.fixture
def file(tmp_path):
    """A file with the token that only its owner reads."""
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def oscars(url, token, timeout_s=10.0):
    """A provider with a token."""
    ends = OscarsPort("chic-cr6", "chic-cr6:1/1/c9/1", 2), OscarsPort("nash-cr6", "nash-cr6:1/1/c17/2", 2)
    return OscarsProvider(OscarsSettings(url, *ends, mtu_bytes=9000, token=token, timeout_s=timeout_s), at_first)


def test_a_secret_is_read_from_a_variable_of_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, TOKEN)
    secret = secret_from(VARIABLE, None)
    monkeypatch.delenv(VARIABLE)
    assert secret.reveal() == TOKEN


def test_a_secret_is_read_from_a_file_without_its_line_end(file):
    assert secret_from(None, file).reveal() == TOKEN


def test_a_renewed_file_is_read_again(file):
    secret = secret_from(None, file)
    file.write_text("renewed")
    assert secret.reveal() == "renewed"


@pytest.mark.parametrize("both", [True, False])
def test_exactly_one_place_is_given(file, both):
    with pytest.raises(SecretUnusable, match="either a variable of the environment or a file") as told:
        secret_from(VARIABLE if both else None, file if both else None)
    assert (VARIABLE in str(told.value)) is both


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(SecretUnusable, match=f"environment variable {VARIABLE}: is not set"):
        secret_from(VARIABLE, None)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SecretUnusable, match=f"file {tmp_path}/none: cannot be read: No such file"):
        secret_from(None, tmp_path / "none")


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o666])
def test_a_file_that_is_open_to_all_users_is_refused(file, mode):
    file.chmod(mode)
    with pytest.raises(SecretUnusable, match=f"{file}: is open to all users .mode {mode:o}.; try chmod 600"):
        secret_from(None, file)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_a_file_for_owner_and_group_is_accepted(file, mode):
    file.chmod(mode)
    assert secret_from(None, file).reveal() == TOKEN


@pytest.mark.parametrize(("content", "why"), [("", "empty"), (" \n", "empty"), ("a\nb", "one line"), ("a\x00b", "one")])
def test_what_cannot_stand_in_a_header_is_refused(monkeypatch, file, content, why):
    file.write_text(content)
    with pytest.raises(SecretUnusable, match=why):
        secret_from(None, file)
    if "\x00" not in content:
        monkeypatch.setenv(VARIABLE, content)
        with pytest.raises(SecretUnusable, match=why):
            secret_from(VARIABLE, None)


def test_text_that_is_not_ascii_is_refused_and_not_shown(file):
    file.write_bytes(b"s\xc3\xa9same")
    with pytest.raises(SecretUnusable, match="not ASCII") as told:
        secret_from(None, file)
    assert "same" not in "".join(traceback.format_exception(told.value))


def test_a_secret_cannot_be_changed_and_is_not_seen(file):
    secret = secret_from(None, file)
    with pytest.raises(FrozenInstanceError):
        secret._read = None
    settings = OscarsSettings(
        "http://o",
        OscarsPort("chic-cr6", "chic-cr6:1/1/c9/1", 2),
        OscarsPort("nash-cr6", "nash-cr6:1/1/c17/2", 2),
        9000,
        secret,
    )
    shown = f"{secret} {secret!r} {secret!s:>40} {deepcopy(secret)!r} {settings} {asdict(settings)}"
    assert TOKEN not in shown
    assert "Secret(...)" in shown


def everything(error):
    """All that a log could show of an exception: its text, its causes, and the variables of its frames but ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    assert trace is not None
    found = traceback.TracebackException(type(error), error, trace, capture_locals=True)
    return f"{error!r} {error} {vars(error)} {''.join(found.format())}"


FAULTS = [
    Faults(status=503),
    Faults(status=500),
    Faults(drop="before"),
    Faults(drop="after"),
    Faults(slow_s=5),
    Faults(answer=f'{{"you sent": "{TOKEN}"}}'),
    Faults(answer=TOKEN),
]


@pytest.mark.parametrize("faults", FAULTS, ids=lambda f: f"{f.status}{f.drop}{f.slow_s}{bool(f.answer)}")
def test_no_failure_shows_the_token(fake, url, file, caplog, capsys, faults):
    caplog.set_level(logging.DEBUG)
    provider = oscars(url, secret_from(None, file), timeout_s=0.3)
    fake.faults = faults
    with capture_logs() as logs:
        for call in (lambda: provider.reserve("CXA5", PERIOD), lambda: provider.status("CXA5")):
            with pytest.raises(ProviderError) as failed:
                call()
            assert TOKEN not in everything(failed.value)
    assert TOKEN not in f"{logs} {caplog.text} {capsys.readouterr()}"


def test_no_success_shows_the_token(fake, url, file, caplog):
    caplog.set_level(logging.DEBUG)
    provider = oscars(url, secret_from(None, file))
    with capture_logs() as logs:
        provider.reserve("CXA5", PERIOD)
        provider.release("CXA5")
    assert len(logs) == 2
    assert TOKEN not in f"{logs} {caplog.text} {provider!r} {vars(provider)}"


def test_a_token_that_is_not_accepted_is_not_shown(fake, url):
    provider = oscars(url, Secret(lambda: "no-such-token"))
    with pytest.raises(ProviderDenied) as denied:
        provider.reserve("CXA5", PERIOD)
    assert "no-such-token" not in everything(denied.value)


def test_nobody_listening_does_not_show_the_token(file):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ProviderError) as failed:
        oscars(f"http://127.0.0.1:{port}", secret_from(None, file)).status("CXA5")
    assert TOKEN not in everything(failed.value)


def test_a_token_that_is_gone_is_a_denial_that_names_its_file(fake, url, file):
    provider = oscars(url, secret_from(None, file))
    file.unlink()
    with pytest.raises(ProviderDenied, match=f"file {file}: cannot be read"):
        provider.status("CXA5")


def test_an_echo_of_a_token_that_was_renewed_meanwhile_is_not_shown(fake, url, file):
    secret = secret_from(None, file)

    def renewed_when_read():
        value = secret.reveal()
        file.write_text("renewed")
        return value

    provider = oscars(url, Secret(renewed_when_read))
    fake.faults = Faults(answer=TOKEN)
    with pytest.raises(ProviderError) as failed:
        provider.status("CXA5")
    assert TOKEN not in everything(failed.value)
