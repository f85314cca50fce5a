"""``headway export``, against an API of a site without switches."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from apps.cli import export
from controller.database import Changes
from controller.plan.lifecycle import ReservationState
from controller.tests.database_child import reservation
from controller.tests.fakes import image


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr("headway.transport.WAITS_S", (0.0,))


def ended(site, *numbers):
    """Let reservations have ended."""
    many = tuple(replace(reservation(n), state=ReservationState.EXPIRED) for n in numbers)
    site.database.save(Changes(reservations=many)).result(10)


def lines_of(text):
    """The lines of an export."""
    return [json.loads(line) for line in text.splitlines()]


def names(text):
    """What an export has, by name."""
    return [(one["reservation"] or one["announcement"])["id"] for one in lines_of(text)]


def test_all_that_has_ended_is_written_page_by_page_in_the_order_it_ended(cli):
    ended(cli.site, *range(2_000, 0, -1))
    cli.site.announce(image())
    cli.site.use_cases.forget("image").saved.result(5)
    cli.json(
        "reserve", "--from", "la-serena", "--to", "champaign", "--start", "22:00", "--for", "1h", "--rate", "1Mbps"
    )
    said, _ = cli.run("export")
    assert names(said) == [*(f"r{n}" for n in range(2_000, 0, -1)), "image"]
    first, last = lines_of(said)[0], lines_of(said)[-1]
    assert (first["reservation"]["state"], first["announcement"]) == ("expired", None)
    assert (last["announcement"]["state"], last["reservation"]) == ("released", None)
    assert names(cli.run("export", "--since", lines_of(said)[-3]["cursor"])[0]) == ["r1", "image"]


def test_a_file_is_gone_on_with_and_a_line_that_was_cut_off_is_written_anew(cli, tmp_path):
    file = tmp_path / "history.jsonl"
    ended(cli.site, 1, 2)
    cli.run("export", str(file))
    whole = file.read_text()
    cli.run("export", str(file))
    assert file.read_text() == whole
    file.write_text(whole[:-20])
    ended(cli.site, 3)
    cli.run("export", str(file))
    assert file.read_text().startswith(whole)
    assert names(file.read_text()) == ["r1", "r2", "r3"]


def test_of_two_at_once_the_second_waits_and_goes_on_after_the_first(cli, tmp_path, monkeypatch):
    file, begun, go_on = tmp_path / "history.jsonl", threading.Semaphore(0), threading.Event()
    pages = export._pages

    def slow(url, since):
        begun.release()
        assert go_on.wait(20)
        yield from pages(url, since)

    monkeypatch.setattr(export, "_pages", slow)
    ended(cli.site, 1, 2)
    both = [threading.Thread(target=export.export, args=(file, None, cli.url)) for _ in range(2)]
    for one in both:
        one.start()
    assert begun.acquire(timeout=20)
    assert not begun.acquire(timeout=0.5)
    go_on.set()
    for one in both:
        one.join(20)
    assert names(file.read_text()) == ["r1", "r2"]


def test_a_pipe_has_no_last_line_to_go_on_after(cli, tmp_path):
    ended(cli.site, 1, 2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        cli.run("export", str(pipe))
        assert names(os.read(reading, 1 << 16).decode()) == ["r1", "r2"]
    finally:
        os.close(reading)


def test_a_file_that_is_none_of_ours_stays_as_it_is(cli, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("do not touch\n")
    assert "last line is none of an export" in cli.run("export", str(file), exit_code=2)[1]
    assert file.read_text() == "do not touch\n"
    file.write_text("without an end of line")
    assert "is none of an export" in cli.run("export", str(file), exit_code=2)[1]
    assert file.read_text() == "without an end of line"
    assert "No such file" in cli.run("export", str(tmp_path / "no" / "folder"), exit_code=1)[1]
    assert "cursor" in cli.run("export", "--since", "nonsense", exit_code=2)[1]


def test_a_full_disk_behind_standard_output_is_told_as_that(cli):
    ended(cli.site, 1)
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        command = [Path(sys.executable).parent / "headway", "export", "--url", cli.url]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "headway: standard output: No space left on device\n")


def test_no_controller_is_an_error_and_leaves_the_file(cli, tmp_path):
    file = tmp_path / "history.jsonl"
    ended(cli.site, 1)
    cli.run("export", str(file))
    before = file.read_text()
    assert "no controller" in cli.run("export", str(file), exit_code=1, url="http://127.0.0.1:1")[1]
    assert file.read_text() == before
