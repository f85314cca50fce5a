"""Backups by the command."""

import os
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from controller.database import Database
from controller.database.backup import backed_up
from controller.tests.database_child import reservation
from controller.tests.past_contract import done, of


def run(*arguments, **more):
    """Run the command; return exit code and all it said."""
    ended = CliRunner().invoke(app, arguments, **more)
    return ended.exit_code, ended.stdout + ended.stderr


def test_a_backup_is_made_while_the_controller_runs_and_restored_when_it_does_not(tmp_path):
    file, config, there = tmp_path / "b.jsonl", tmp_path / "c.yaml", f"sqlite:///{tmp_path}/there.db"
    config.write_text(f"store: sqlite:///{tmp_path}/here.db\nnetwork: none that is right\n")
    database = Database(f"sqlite:///{tmp_path}/here.db")
    database.open()
    done(database, of(reservation(1)))
    assert run("backup", str(file), "--config", str(config)) == (0, f"{file}: 1 reservations\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code, said = run("restore", str(file), "--config", str(config))
    assert (code, "in use by process" in said) == (1, True)
    database.close()
    assert "not empty" in run("restore", str(file), "--config", str(config))[1]
    assert run("restore", str(file), "--store", there)[0] == 0
    assert run("backup", "-", "--store", there)[1].count('"r1"') == 1


def test_the_database_of_a_configuration_may_be_a_section_and_one_that_is_not_right_is_said(tmp_path):
    config, here = tmp_path / "c.yaml", f"sqlite:///{tmp_path}/here.db"
    with closing(Database(here)) as database:
        database.open()
        done(database, of(reservation(1)))
        for said in (here, f'{{url: "{here}", retention: 730 d}}'):
            config.write_text(f"store: {said}\nnetwork: none that is right\n")
            assert run("backup", "-", "--config", str(config))[1].count('"r1"') == 1
    config.write_text("network: x\nstore: {uri: x}\n")
    code, said = run("backup", "-", "--config", str(config))
    assert (code, said) == (2, f"headway: {config}: line 2: store.uri: there is no such key\n")


@pytest.mark.parametrize("url", ["nonsense", "mysql://db/headway", ""])
@pytest.mark.parametrize("command", [("backup", "-"), ("restore", "-"), ("history", "--verify")])
def test_what_is_no_database_s_url_makes_no_sense(command, url):
    code, said = run(*command, "--store", url)
    assert (code, said.startswith("headway: the database's URL cannot be used: ")) == (2, True), said


def test_of_two_backups_into_one_file_at_once_the_later_one_is_left_whole(tmp_path, monkeypatch):
    file, url = tmp_path / "b.jsonl", f"sqlite:///{tmp_path}/here.db"
    with closing(Database(url)) as database:
        database.open()
        done(database, of(reservation(1)))
    whole, of_former = backed_up, []

    def slowly(url, rows):
        """The lines of one that is overtaken by another before its last line."""
        *first, last = whole(url, rows)
        yield from first
        monkeypatch.setattr("controller.database.backup.backed_up", whole)
        of_former.append(run("backup", str(file), "--store", url))
        yield last

    monkeypatch.setattr("controller.database.backup.backed_up", slowly)
    of_former.append(run("backup", str(file), "--store", url))
    assert of_former == [(0, f"{file}: 1 reservations\n")] * 2
    assert run("restore", str(file), "--store", f"sqlite:///{tmp_path}/there.db")[0] == 0
    assert [one.name for one in tmp_path.iterdir() if ".db" not in one.name] == ["b.jsonl"]


@pytest.fixture
def here(tmp_path):
    """The URL of a database with a reservation."""
    url = f"sqlite:///{tmp_path}/here.db"
    with closing(Database(url)) as database:
        database.open()
        done(database, of(reservation(1)))
    return url


def test_a_backup_into_a_pipe_is_written_into_it(tmp_path, here):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("backup", str(pipe), "--store", here) == (0, f"{pipe}: 1 reservations\n")
        assert stat.S_ISFIFO(pipe.lstat().st_mode)
        assert os.read(reading, 1 << 16).startswith(b'{"headway_backup":')
    finally:
        os.close(reading)


def test_a_backup_to_standard_output_by_one_of_its_names_goes_there_behind_what_is_there(tmp_path, here):
    name, file = tmp_path / "stdout", tmp_path / "all.jsonl"
    name.symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    file.write_text("yesterday's\n")
    command = [Path(sys.executable).parent / "headway", "backup", str(name), "--store", here]
    with file.open("ab") as out:
        ended = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, f"{name}: 1 reservations\n")
    assert name.is_symlink()
    first, second, *_, last = file.read_text().splitlines()
    assert (first, second[:18], last[:8]) == ("yesterday's", '{"headway_backup":', '{"rows":')


def test_a_backup_by_a_link_is_written_whole_where_that_leads(tmp_path, here):
    link, file = tmp_path / "latest", tmp_path / "b.jsonl"
    file.write_text("yesterday's")
    link.symlink_to("b.jsonl")
    assert run("backup", str(link), "--store", f"sqlite:///{tmp_path}/none.db")[0] == 1
    assert file.read_text() == "yesterday's"
    assert run("backup", str(link), "--store", here)[0] == 0
    assert link.is_symlink()
    assert file.read_text().startswith('{"headway_backup":')


def test_a_backup_that_fails_leaves_the_former_one(tmp_path):
    file = tmp_path / "b.jsonl"
    file.write_text("yesterday's")
    code, said = run("backup", str(file), "--store", f"sqlite:///{tmp_path}/none.db")
    assert (code, len(said.splitlines())) == (1, 1)
    assert [one.name for one in tmp_path.iterdir()] == ["b.jsonl"]
    assert file.read_text() == "yesterday's"
    assert run("restore", str(tmp_path / "gone"), "--store", f"sqlite:///{tmp_path}/x.db")[0] == 1
    assert run("backup", str(file), "--config", str(tmp_path / "none.yaml"))[0] == 2
