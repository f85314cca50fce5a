"""``headway top``: one look for scripts, and look after look for people."""

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from apps.cli import top, top_frame
from apps.cli.identity import NoLogin, NoTokenPrinted
from controller.tests.fakes import image, sending_image
from mininet_tests.testing.eventually import eventually

HEADWAY = str(Path(sys.executable).parent / "headway")


def test_a_site_that_is_well_is_0_and_says_so(cli):
    out, _ = cli.run("top", "--once")
    assert "All is as planned." in out
    assert "chile-illinois" in out
    assert "nothing is planned" in out


def test_what_needs_somebody_is_4_with_what_it_means_and_what_helps(cli):
    cli.site.reports.host_down("base20")
    out, _ = cli.run("top", "--once", exit_code=4)
    assert "1 thing needs you." in out
    assert "base20: its agent is not connected. What this host sends is not planned" in out
    assert "headway hosts" in out


def test_the_flows_and_the_classes_of_a_circuit_are_shown(cli):
    sending_image(cli.site)
    cli.site.converge()
    rows = [re.split(r"\s{2,}", line.strip()) for line in cli.run("top", "--once")[0].splitlines()]
    assert ["chile-illinois", "up", "ls1->ch1", "urgent", "884.1 Mbit/s", "0 bit/s", "░" * 10] in rows
    flows = {row[0]: row[2] for row in rows if row[0].startswith("image/")}
    assert flows == {"image/base20": "442 Mbit/s", "image/base21": "442 Mbit/s"}
    assert any(row[:2] == ["image", "○ promised"] for row in rows)


def test_one_look_as_json_has_all_that_the_frame_is_made_of(cli):
    cli.site.announce(image())
    seen = cli.json("top", "--once")
    assert set(seen) == {"needs", "plan", "circuits", "announcements"}
    assert [one["id"] for one in seen["announcements"]] == ["image"]


def test_what_is_announced_is_there_whole_and_what_is_late_comes_first(cli, monkeypatch):
    monkeypatch.setattr("headway.client.PAGE", 1)
    for name in ("first", "second"):
        cli.site.announce(image(name))
    seen = cli.json("top", "--once")
    assert [one["id"] for one in seen["announcements"]] == ["first", "second"]
    seen["announcements"][1]["state"] = "late"
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(top_frame.drawn(seen, "", 200))
    assert re.findall(r"^(first|second) ", console.export_text(), re.MULTILINE) == ["second", "first"]


@pytest.mark.parametrize("columns", [80, 160])
def test_a_frame_fits_its_terminal(cli, columns):
    sending_image(cli.site)
    cli.site.converge()
    console = Console(width=columns, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(top_frame.drawn(cli.json("top", "--once"), "", columns))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= columns
    assert any("image/base20" in line and "Mbit/s" in line for line in lines)


def test_while_there_is_no_answer_the_last_look_stays_and_says_since_when(cli):
    seen = cli.json("top", "--once")
    lines = top_frame.headline(seen["needs"], "nobody listens [there]")
    assert lines[0].startswith("[red]✕ No news since ")
    assert "nobody listens \\[there]" in lines[0]


def test_while_there_is_no_token_the_last_look_stays_too(cli, monkeypatch):
    seen, said = cli.json("top", "--once"), []
    looks = iter([NoLogin("the issuer is away"), NoTokenPrinted("oidc-agent is away"), seen])

    def look(_):
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    keys = iter(["", "", "", "q"])
    monkeypatch.setattr(top, "look", look)
    monkeypatch.setattr(top_frame, "drawn", lambda _, silent, __: said.append(silent) or "")
    monkeypatch.setattr(top, "_keys", lambda: contextlib.nullcontext(lambda _: next(keys)))
    top._followed(None, seen, 0.0)
    assert said == ["", "the issuer is away", "oidc-agent is away", ""]


def test_as_json_it_is_a_line_for_each_look_until_it_is_interrupted(cli):
    command = [HEADWAY, "top", "--json", "--interval", "0.5", "--url", cli.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        looks = [json.loads(process.stdout.readline())["needs"]["headline"] for _ in range(2)]
        process.terminate()
    assert looks == ["All is as planned."] * 2


def test_on_a_terminal_it_goes_on_until_q(cli):
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [HEADWAY, "top", "--url", cli.url], stdin=follower, stdout=follower, stderr=follower, close_fds=True
    ) as process:
        os.close(follower)
        shown = b""

        def is_shown() -> bool:
            nonlocal shown
            shown += os.read(leader, 1 << 16)
            return b"All is as planned." in shown

        eventually(is_shown, within_s=20, what="the first look")
        time.sleep(0.2)
        assert process.poll() is None
        os.write(leader, b"q")
        os.set_blocking(leader, False)

        def has_ended() -> bool:
            with contextlib.suppress(OSError):
                os.read(leader, 1 << 16)
            return process.poll() is not None

        eventually(has_ended, within_s=20, what="it ends")
        assert process.returncode == 0
    os.close(leader)
