"""Tokens: found by what is shown and by nothing near it, kept as hashes in a file that is its owner's alone."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.security.token_file import TokenFile, TokensUnusable, read_tokens, write_tokens
from controller.security.tokens import Principal, Role, Tokens, new_token

NOW = datetime(2026, 11, 23, tzinfo=UTC)
END = NOW + timedelta(days=30)
TEXT, KEPT = new_token("ana", Role.RESERVE, NOW, END)


def test_a_token_is_its_principals_until_its_end():
    known = Tokens((KEPT, new_token("bo", Role.ADMIN, NOW, END)[1]))
    assert known.principal(TEXT, NOW) == Principal("token:ana", Role.RESERVE)
    assert known.principal(TEXT, END - timedelta(microseconds=1)) is not None
    assert known.principal(TEXT, END) is None
    assert Tokens(()).principal(TEXT, NOW) is None


@given(st.text() | st.integers(0, len(TEXT) - 1).map(lambda at: TEXT[:at] + chr(ord(TEXT[at]) ^ 1) + TEXT[at + 1 :]))
def test_nothing_else_is_anybodys(shown):
    assert Tokens((KEPT,)).principal(shown, NOW) is None
    assert Tokens((KEPT,)).principal(f"hw_{KEPT.id}_{shown}", NOW) is None


def test_the_secret_is_not_kept_and_no_two_are_alike(tmp_path):
    path = tmp_path / "tokens"
    write_tokens(path, (KEPT,))
    assert TEXT.split("_", 2)[2] not in path.read_text()
    assert len(TEXT) == len("hw_") + 8 + 1 + 43
    assert new_token("ana", Role.RESERVE, NOW, END)[0] != TEXT


def test_a_file_is_its_owners_alone_or_is_not_used(tmp_path):
    path = tmp_path / "tokens"
    assert read_tokens(path) == ()
    write_tokens(path, (KEPT,))
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_tokens(path) == (KEPT,)
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(TokensUnusable, match="chmod 600"):
            read_tokens(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"id": "x"}]', "\x00", "[" * 5_000])
def test_what_is_no_file_of_tokens_is_said_to_be_none(tmp_path, text):
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(TokensUnusable, match="no file of tokens"):
        read_tokens(path)


def test_a_revoked_token_is_worth_nothing_at_once_and_a_broken_file_changes_nothing(tmp_path):
    path = tmp_path / "tokens"
    other = replace(KEPT, id="00000000")
    write_tokens(path, (KEPT, other))
    file = TokenFile(path)
    assert file.current().principal(TEXT, NOW) is not None
    write_tokens(path, (other,))
    assert file.current().principal(TEXT, NOW) is None
    path.write_text("broken")
    assert file.current().all == (other,)
    os.unlink(path)  # noqa: PTH108
    assert file.current().all == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_could_not_be_read_is_read_again_once_its_owner_is_put_right(tmp_path, monkeypatch):
    path = tmp_path / "tokens"
    write_tokens(path, ())
    file = TokenFile(path)
    write_tokens(path, (KEPT,))
    with monkeypatch.context() as refused:
        refused.setattr(Path, "open", Mock(side_effect=PermissionError(13, "Permission denied")))
        assert file.current().all == ()
        with pytest.raises(TokensUnusable, match=f"Permission denied; .*: chown headway-controller {path}"):
            read_tokens(path)
    os.chown(path, 65534, -1)  # neither its mode nor its content changes
    assert file.current().all == (KEPT,)


def test_what_cannot_be_written_is_said_and_leaves_nothing_behind(tmp_path):
    with pytest.raises(TokensUnusable, match="No such file"):
        write_tokens(tmp_path / "nowhere" / "tokens", ())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "in").touch()
    with pytest.raises(TokensUnusable):
        write_tokens(tmp_path / "folder", ())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder"]
