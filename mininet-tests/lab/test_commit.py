"""Which commit is measured, and when what is measured is none."""

import subprocess

import pytest

from mininet_tests.lab import commit


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of its own, of one commit."""
    monkeypatch.setattr(commit.commands, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("code.py", "docs/page.md"):
        (tmp_path / name).write_text("as committed")
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    return tmp_path


def test_a_file_that_is_another_one_than_the_commits_is_said(checkout):
    clean = commit.commit()
    assert len(clean) == 12
    (checkout / "code.py").write_text("changed")
    assert commit.commit() == clean + commit.CHANGED


def test_pages_and_figures_that_another_run_has_published_change_nothing_that_is_measured(checkout):
    clean = commit.commit()
    (checkout / "docs/page.md").write_text("published")
    assert commit.commit() == clean
