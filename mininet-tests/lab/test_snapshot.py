"""Snapshots are made once, for the machine they go on in; what QEMU refuses is an error. No QEMU runs here."""

import os
import socket
import threading
import time

import pytest

from mininet_tests.lab import snapshot
from mininet_tests.lab.image import Image
from mininet_tests.lab.qemu import PROMPT, MachineError, Monitor
from mininet_tests.lab.snapshot import UNUSED_S, taken


@pytest.fixture
def made(monkeypatch):
    """The snapshots that have been made; none of them by a boot."""
    found = []

    def make(one, *_):
        found.append(one)
        one.folder.mkdir()

    monkeypatch.setattr(snapshot, "_make", make)
    monkeypatch.setattr(snapshot, "initramfs", lambda image: image.version.encode())
    return found


def test_a_machine_boots_once(made, tmp_path):
    image = Image("6.12.1", tmp_path)
    assert taken(image, 2, 1024, print) == taken(image, 2, 1024, print)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("version", "dilation", "mib"),
    [("6.12.2", 2, 1024), ("6.12.1", 4, 1024), ("6.12.1", 2, 2048)],
    ids=["first files", "dilation", "memory"],
)
def test_another_machine_has_another_snapshot(made, tmp_path, version, dilation, mib):
    taken(Image("6.12.1", tmp_path), 2, 1024, print)
    taken(Image(version, tmp_path), dilation, mib, print)
    assert len({one.folder for one in made}) == 2


def test_what_was_not_used_for_a_week_is_deleted_when_another_is_made(made, tmp_path):
    image = Image("6.12.1", tmp_path)
    old, used = taken(image, 1, 1024, print), taken(image, 2, 1024, print)
    long_ago = time.time() - UNUSED_S - 60
    for one in (old, used):
        os.utime(one.folder, (long_ago, long_ago))
    taken(image, 2, 1024, print)
    taken(image, 4, 1024, print)
    assert (old.folder.exists(), used.folder.exists()) == (False, True)


def answering(*answers):
    """Our end of a monitor that greets, and then says these, one for each command, behind what was typed."""
    ours, theirs = socket.socketpair()

    def answer():
        with theirs, theirs.makefile("rwb", buffering=0) as lines:
            lines.write(b"QEMU 7.2.22 monitor - type 'help' for more information\r\n" + PROMPT)
            for text in answers:
                typed = lines.readline().strip()
                lines.write(typed + b"\x1b[K\r\n" + text.encode() + PROMPT)

    threading.Thread(target=answer, daemon=True).start()
    return ours


def status(word):
    """What the monitor says of a migration."""
    return f"globals:\r\nstore-global-state: on\r\nMigration status: {word}\r\ntotal time: 0 ms\r\n"


def test_a_state_is_loaded_when_qemu_says_so_and_not_before():
    answers = ("", "", status("active"), status("active"), status("completed"))
    Monitor(answering(*answers)).migrated("migrate_incoming", "exec:cat x")


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (["Error: no such thing\r\n"], "no such thing"),
        (["", "", status("failed")], "migrate_incoming failed"),
        ([""], "QEMU ended at migrate_incoming"),
    ],
    ids=["refused", "failed", "ended"],
)
def test_what_qemu_does_not_do_is_an_error(answers, told):
    with pytest.raises(MachineError, match=told):
        Monitor(answering(*answers)).migrated("migrate_incoming", "exec:cat x")
