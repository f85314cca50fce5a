"""The lab: its fast parts by tables, and two boots that ask the machine itself."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mininet_tests.lab import image
from mininet_tests.lab.brake import under_way
from mininet_tests.lab.capability import built_in_names, loaded_names
from mininet_tests.lab.cli import EXIT_LAB_BROKEN, memory_mib, request, run
from mininet_tests.lab.image import (
    FOLDERS_LIST,
    KEPT_FOLDERS,
    Image,
    _is_whole,
    _put,
    archive,
    cache_dir,
    device,
    directory,
    kernel_package,
    load_order,
)
from mininet_tests.lab.machine import Job, OutputStream, command_script, guest_environment
from mininet_tests.lab.qemu import KernelDiedError, Memory, kernel_arguments, qemu_command
from mininet_tests.testing.eventually import eventually

HERE = Path(__file__).parent
LAB = HERE / "boot"
BOOT_LIMIT_S = 240


def _job(command: tuple[str, ...] = ("true",)) -> Job:
    return Job(command, Path("/srv"), {}, dilation=2, memory_mib=1024, out_dir=None, timeout_s=None)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--dilation", "2"], "no command"),
        (["--dilation", "0", "--", "true"], "whole number from 1 to"),
        (["--dilation", "1.5", "--", "true"], "whole number from 1 to"),
        (["--memory", "6", "--", "true"], "try 6G"),
        (["--memory", "100M", "--", "true"], "at least 512M"),
        (["--timeout", "-1", "--", "true"], "--timeout"),
        (["--out", "/", "--", "true"], "root folder"),
        (["--out", "/etc/passwd", "--", "true"], "is a file"),
        (["--setup-only", "--", "true"], "leave one of the two out"),
        (["--dilatoin", "2", "--", "true"], "--dilatoin"),
        (["true"], "true"),
    ],
)
def test_a_wrong_argument_ends_in_one_line_and_exit_code_2(arguments, told, capsys):
    with pytest.raises(SystemExit) as end:
        request(arguments, Path("/srv"), {})
    text = capsys.readouterr().err
    assert end.value.code == 2
    assert told in text
    assert text.count("\n") == 1


def test_what_follows_the_first_double_dash_is_the_command_unchanged():
    asked = request(["--dilation", "4", "--", "sh", "-c", "x -- y", "--out", "z"], Path("/srv"), {})
    assert asked.job.command == ("sh", "-c", "x -- y", "--out", "z")
    assert asked.job.dilation == 4
    assert asked.job.out_dir is None


def test_the_shared_folder_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert request(["--out", "results", "--", "true"], tmp_path, {}).job.out_dir == tmp_path / "results"


def test_sizes_are_read_in_units_of_1024():
    assert memory_mib("6G") == 6 * memory_mib("1024M") == 6144


def test_the_command_knows_the_lab_and_keeps_path_but_not_the_users_other_variables():
    seen = guest_environment({"PATH": "/a:/b", "PYTHONPATH": "/c", "SECRET": "x", "HEADWAY_SEED": "7"}, dilation=4)
    assert seen["PATH"] == "/a:/b"
    assert seen["PYTHONPATH"] == "/c"
    assert (seen["HEADWAY_LAB"], seen["HEADWAY_DILATION"], seen["HEADWAY_SEED"]) == ("1", "4", "7")
    assert "SECRET" not in seen


def test_words_of_the_command_survive_the_shell():
    words = ("printf", "%s|", "a b", "$HOME", "it's", "")
    script = command_script(_job(command=words)).replace("cd /srv", "cd /")
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == "a b|$HOME|it's||"


LISTING = """\
linux-image-6.1.0-9-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.1.0-50-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.12.9+deb12-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.38+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.38+deb12-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.40+deb12-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.40+deb12-rt-amd64 - Linux 6.12 for 64-bit PCs (signed), PREEMPT_RT
linux-image-6.12-amd64-signed-template - Template for signed linux-image packages for amd64
linux-image-amd64 - Linux for 64-bit PCs (meta-package)
"""


@pytest.mark.parametrize(
    ("listing", "series", "package"),
    [
        (LISTING, "6.12", "linux-image-6.12.38+deb12-amd64"),
        (LISTING, "6.1", "linux-image-6.1.0-50-amd64"),
        (LISTING, "6.6", None),
        ("", "6.12", None),
        ("linux-image-6.12.41+deb13-amd64-unsigned - x", "6.12", "linux-image-6.12.41+deb13-amd64-unsigned"),
        (LISTING + "linux-image-6.12.39+deb12-amd64-unsigned - x", "6.12", "linux-image-6.12.39+deb12-amd64-unsigned"),
    ],
    ids=["newest, signed first", "numbers, not text", "no such series", "nothing", "unsigned only", "newer unsigned"],
)
def test_the_newest_plain_image_of_a_series_is_taken(listing, series, package):
    assert kernel_package(listing, series) == package


def test_modules_load_after_what_they_need_and_built_in_ones_are_left_out():
    dependencies = (
        "fs/9p/9p.ko: net/9p/9pnet.ko fs/netfs/netfs.ko\nnet/9p/9pnet.ko: fs/netfs/netfs.ko\nfs/netfs/netfs.ko:\n"
    )
    assert load_order(dependencies, ["9p", "virtio_console", "9pnet"]) == [
        "fs/netfs/netfs.ko",
        "net/9p/9pnet.ko",
        "fs/9p/9p.ko",
    ]


def test_an_archive_is_one_that_cpio_itself_would_read():
    made = archive([directory("dev"), device("dev/null", 1, 3)])
    assert made.startswith(b"070701")
    assert len(made) % 4 == 0
    assert made.count(b"070701") == 3
    assert b"TRAILER!!!\0" in made


def test_the_cache_follows_the_users_setting():
    assert cache_dir({"XDG_CACHE_HOME": "/var/cache"}) == Path("/var/cache/headway/lab")


def test_dilation_is_a_faster_processor_clock():
    assert "tsc_early_khz=4000000 " in kernel_arguments(4)


@pytest.mark.parametrize(
    ("out", "share"),
    [(Path("/a,b"), "path=/a,,b,security_model=none,multidevs=remap,readonly=off"), (None, "readonly=on")],
    ids=["one", "none"],
)
def test_only_the_named_folder_is_shared_writable(out, share):
    memory = Memory(Path("/m"), 1024, shared=False)
    command = qemu_command((Path("/k"), Path("/i")), 2, memory, Path("/run/c"), out)
    host, written = [word for word in command if word.startswith("local,")]
    assert host == "local,id=host,path=/,security_model=none,multidevs=remap,readonly=on"
    assert written.startswith("local,id=out,")
    assert written.endswith(share)


def test_a_guest_that_goes_on_from_a_snapshot_leaves_its_memory_as_it_was():
    kernel = Path("/k"), Path("/i")
    making, going_on = (
        qemu_command(kernel, 2, Memory(Path("/m"), 1024, shared=shared), Path("/c"), None) for shared in (True, False)
    )
    differing = [words for words in zip(making, going_on, strict=True) if words[0] != words[1]]
    assert differing == [
        (
            "memory-backend-file,id=memory,size=1024M,mem-path=/m,share=on",
            "memory-backend-file,id=memory,size=1024M,mem-path=/m,share=off",
        ),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_output_is_shown_without_the_token_however_it_is_cut(size):
    sent = b"one\x01two\x01ab\x01end\x0142\n"
    stream, shown = OutputStream(b"\x01end\x01"), b""
    for start in range(0, len(sent), size):
        shown += stream.released(sent[start : start + size])
    assert shown == b"one\x01two\x01ab"
    assert (stream.ended, stream.held) == (True, b"42\n")


def test_output_that_cannot_be_the_token_is_shown_at_once():
    stream = OutputStream(b"\x01end\x01")
    assert stream.released(b"50%\r") == b"50%\r"
    assert stream.released(b"60%\x01e") == b"60%"
    assert stream.released(b"x") == b"\x01ex"


@pytest.mark.parametrize(
    ("trace", "times"),
    [(" p9_virtio_request+0x1d1/0x220", 2), (" bpf_prog_6deef7357e7b4530_headway_init+0x12/0x90", 1)],
    ids=["of the lab itself", "with the agent"],
)
def test_a_command_whose_kernel_dies_runs_once_more_unless_the_agent_is_in_the_trace(trace, times, monkeypatch):
    runs = []

    def dying(job, image, say):
        runs.append(job)
        raise KernelDiedError(trace)

    monkeypatch.setattr("mininet_tests.lab.machine.run", dying)
    with pytest.raises(KernelDiedError):
        run(_job(), Image("6.12.1", Path("/cache")))
    assert runs == [_job()] * times


def test_the_brake_counts_requests_by_client_and_tag():
    begun = b"  sh-9 [000] ..... 1.0: 9p_client_req: client 18446612 request P9_TWALK tag  3\n"
    other = b"  sh-9 [000] ..... 1.0: 9p_client_req: client 18446700 request P9_TWALK tag  3\n"
    ended = b"  sh-9 [000] ..... 1.1: 9p_client_res: client 18446612 response P9_TWALK tag  3 err 0\n"
    assert under_way(begun + other, frozenset()) == {b"18446612 3", b"18446700 3"}
    assert under_way(ended, frozenset({b"18446612 3", b"18446700 3"})) == {b"18446700 3"}
    assert under_way(begun + ended + b"half a li", frozenset()) == frozenset()


def test_modules_are_known_loaded_or_built_in():
    assert loaded_names("sch_netem 24576 0 - Live 0x0\nveth 40960 1 x, Live 0x0\n") == {"sch_netem", "veth"}
    assert built_in_names("kernel/net/sched/sch-fq.ko\nkernel/fs/ext4/ext4.ko\n") == {"sch_fq", "ext4"}


def _lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LAB), "--timeout", str(BOOT_LIMIT_S), *arguments], capture_output=True, text=True, check=False, cwd=HERE
    )


FIRST = """
echo told; echo warned >&2; pwd; echo "$HEADWAY_LAB $HEADWAY_DILATION"
echo kept >"$1/inside"; echo lost >"$2/outside"; cat "$2/of-the-host"; exit 7
"""


@pytest.fixture(scope="module")
def first_boot(tmp_path_factory):
    """One boot that writes inside and outside of the shared folder and ends with 7."""
    out, elsewhere = tmp_path_factory.mktemp("out"), HERE / "out-of-test-lab"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "of-the-host").write_text("seen\n")
    try:
        done = _lab("--out", str(out), "--", "sh", "-c", FIRST, "sh", str(out), str(elsewhere))
        yield done, out, sorted(path.name for path in elsewhere.iterdir())
    finally:
        for path in elsewhere.iterdir():
            path.unlink()
        elsewhere.rmdir()


@pytest.mark.lab
def test_the_exit_code_is_the_commands_own(first_boot):
    assert first_boot[0].returncode == 7, first_boot[0].stderr


@pytest.mark.lab
def test_output_folder_and_environment_are_the_commands_own(first_boot):
    assert first_boot[0].stdout == f"told\n{HERE}\n1 1\nseen\n"
    assert "warned\n" in first_boot[0].stderr


@pytest.mark.lab
def test_only_the_shared_folder_outlives_the_run(first_boot):
    _, out, elsewhere = first_boot
    assert (out / "inside").read_text() == "kept\n"
    assert elsewhere == ["of-the-host"]


MEASURED = """
set -e
for n in a z; do ip netns add $n; done
ip link add a0 netns a type veth peer name z0 netns z
for e in a:1 z:2; do
    n=${e%:*}
    ip -n $n addr add 10.0.0.${e#*:}/24 dev ${n}0; ip -n $n link set ${n}0 up
    ip netns exec $n tc qdisc add dev ${n}0 root netem delay 90ms
done
ip netns exec a ping -q -c 2 10.0.0.2 >/dev/null
ip netns exec a ping -c 10 -i 0.2 10.0.0.2 >"$1/ping"
"$2" -B - "$1" <<'PYTHON'
import json, subprocess, sys, time
from pathlib import Path
from mininet_tests.lab import capability
began = time.monotonic()
subprocess.run([sys.executable, "-S", "-c", "import argparse"], check=True)
seed = [sys.executable, "-c", "from mininet_tests.site import qdiscs; print(qdiscs.seeded('a0', 7))"]
seeds = subprocess.run(["ip", "netns", "exec", "a", *seed], capture_output=True, text=True).stdout.strip()
found = {"problem": capability.native_problem(), "program_s": time.monotonic() - began, "seeded": seeds}
Path(sys.argv[1], "found").write_text(json.dumps(found))
PYTHON
"""


@pytest.fixture(scope="module")
def second_boot(tmp_path_factory):
    """Round-trip times, in ms, over 90 ms each way at dilation 2, and what else was found in that boot."""
    out = tmp_path_factory.mktemp("measured")
    done = _lab("--dilation", "2", "--out", str(out), "--", "sh", "-c", MEASURED, "sh", str(out), sys.executable)
    assert done.returncode == 0, done.stderr
    times_ms = [
        float(line.split("time=")[1].split()[0]) for line in (out / "ping").read_text().splitlines() if "time=" in line
    ]
    return times_ms, json.loads((out / "found").read_text())


@pytest.mark.lab
def test_the_clock_is_right_to_a_few_microseconds_under_dilation(second_boot):
    times_ms, _ = second_boot
    assert len(times_ms) == 10
    assert 180.0 <= min(times_ms) <= max(times_ms) <= 180.1, times_ms


@pytest.mark.lab
def test_the_scenario_finds_all_it_needs_in_the_lab(second_boot):
    assert second_boot[1]["problem"] is None
    assert second_boot[1]["seeded"] == "True"


@pytest.mark.lab
def test_the_clock_does_not_leap_while_files_of_the_host_are_read(second_boot):
    # Two Python programs and modprobe: half a second with the brake, 5 s and more without.
    assert second_boot[1]["program_s"] < 1.5


@pytest.mark.lab
@pytest.mark.long
def test_a_command_whose_kernel_dies_runs_once_more_and_each_trace_is_shown_from_its_first_line():
    done = _lab("--", "sh", "-c", "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")
    assert done.returncode == EXIT_LAB_BROKEN
    traces = done.stderr.split("its last words:\n")[1:]
    assert len(traces) == 2, done.stderr
    for trace in traces:
        assert "Kernel panic - not syncing: sysrq triggered crash" in trace.splitlines()[0]
        assert "sysrq_handle_crash" in trace


def _machines(launcher: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(launcher), "qemu"], capture_output=True, text=True, check=False).stdout
    return [int(word) for word in found.split()]


def _ended(pid: int) -> Callable[[], bool]:
    return lambda: not Path("/proc", str(pid)).exists()


@pytest.mark.lab
@pytest.mark.long
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda by: by.name)
def test_no_machine_is_left_when_the_launcher_ends(by):
    with subprocess.Popen([str(LAB), "--", "sleep", "1000"], stderr=subprocess.DEVNULL) as launcher:
        eventually(lambda: _machines(launcher.pid), within_s=60, what="QEMU starts")
        machine = _machines(launcher.pid)[0]
        launcher.send_signal(by)
        eventually(_ended(machine), within_s=20, what="QEMU ends")


def unpacked(folder: Path, *modules: str) -> Path:
    """A kernel as it comes out of its package."""
    for module in modules:
        (folder / "lib" / module).parent.mkdir(parents=True, exist_ok=True)
        (folder / "lib" / module).write_text(f"of {folder.name}")
    (folder / "modules.dep").write_text(" ".join(modules))
    (folder / FOLDERS_LIST).write_text("\n".join(KEPT_FOLDERS))
    return folder


def test_a_kernel_that_was_unpacked_before_there_were_more_folders_gets_the_rest(tmp_path: Path) -> None:
    old, new = unpacked(tmp_path / "old", "net/a.ko"), unpacked(tmp_path / "new", "net/a.ko", "fs/ext4/b.ko")
    (old / FOLDERS_LIST).unlink()
    assert not _is_whole(Image("6.12", old))
    assert _put(new, old) == old
    assert _is_whole(Image("6.12", old))
    assert (old / "lib/net/a.ko").read_text() == "of old", "a lab may be reading it"
    assert (old / "lib/fs/ext4/b.ko").read_text() == "of new"
    assert "b.ko" in (old / "modules.dep").read_text()


@pytest.mark.parametrize(("known", "taken"), [(LISTING, "downloaded"), ("", "6.1.0-50-amd64")])
def test_a_kernel_that_one_boot_asked_for_is_the_next_ones_only_where_apt_knows_no_better(
    known: str, taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (unpacked(tmp_path / "linux-6.1.0-50-amd64", "net/a.ko") / "vmlinuz").touch()
    monkeypatch.setattr(image, "_install_packages", lambda _: None)
    monkeypatch.setattr(image, "_downloaded", lambda *_: Image("downloaded", tmp_path))
    monkeypatch.setattr(image, "_known_package", lambda series: kernel_package(known, series[0]))
    assert image.prepared(tmp_path, print).version == taken
    assert image.prepared(tmp_path, print, "6.1").version == "6.1.0-50-amd64"
