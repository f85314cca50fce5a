"""The lab: its arguments and choices by tables, the machine itself by two boots."""

import doctest
import os
import subprocess
from pathlib import Path

import lab_cli
import lab_image
import pytest
from lab_brake import under_way
from lab_image import kernel_package, load_order
from lab_machine import Stream

LAB = str(Path(__file__).parent / "lab")
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the guest reads this machine's files as root")
LISTING = """\
linux-image-6.1.0-47-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.12.9+deb12-amd64 - old
linux-image-6.12.38+deb12-amd64-unsigned - newer, unsigned
linux-image-6.12.38+deb12-amd64 - newer
linux-image-6.12.99+deb12-cloud-amd64 - other modules
linux-image-6.12.99+deb12-rt-amd64 - other scheduler
"""
NETWORK = """
set -eu
ip netns add a; ip netns add b
ip link add va netns a type veth peer name vb netns b
for end in a b; do
    ip -n $end link set lo up; ip -n $end link set v$end up
    ip netns exec $end tc qdisc add dev v$end root netem delay 90ms limit 1000
done
ip -n a address add 10.0.0.1/24 dev va; ip -n b address add 10.0.0.2/24 dev vb
ip netns exec a ping -q -c 1 10.0.0.2 >/dev/null
ip netns exec a ping -q -i 0.2 -c 20 10.0.0.2 | tail -1
mkdir -p "$2"
echo "in the guest" >"$1/shared"; echo "in the guest" >"$2/private"
echo "to standard error" >&2
exit 7
"""


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(lab_image).failed == 0


@pytest.mark.parametrize(
    ("series", "package"),
    [("6.12", "linux-image-6.12.38+deb12-amd64"), ("6.1", "linux-image-6.1.0-47-amd64"), ("7.0", None)],
)
def test_the_newest_signed_ordinary_kernel_of_a_series_is_taken(series, package):
    assert kernel_package(LISTING, series) == package


def test_a_module_is_loaded_after_all_that_it_needs():
    dependencies = "net/9p/9pnet_virtio.ko: net/9p/9pnet.ko drivers/virtio.ko\nnet/9p/9pnet.ko:\ndrivers/virtio.ko:\n"
    assert load_order(dependencies, ["9pnet_virtio", "built_in"]) == [
        "drivers/virtio.ko",
        "net/9p/9pnet.ko",
        "net/9p/9pnet_virtio.ko",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no command"),
        (["uname"], "unrecognized arguments: uname"),
        (["--dilation", "0", "--", "true"], "'0' is not a whole number from 1"),
        (["--memory", "6", "--", "true"], "'6' is not a size"),
        (["--out", "/", "--", "true"], "the root folder cannot be shared"),
        (["--setup-only", "--", "true"], "runs no command"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        lab_cli.request(arguments, Path.cwd(), {})
    assert left.value.code == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("cut", range(1, 12))
def test_output_is_shown_as_it_comes_and_never_a_part_of_the_token(cut):
    whole, stream = b"abc\x01TOK\x017\n", Stream(b"\x01TOK\x01")
    shown = stream.released(whole[:cut]) + stream.released(whole[cut:])
    assert (shown, stream.ended, stream.held) == (b"abc", True, b"7\n")


def test_the_brake_holds_while_a_request_for_a_file_is_unanswered():
    asked = b" sh-1 [0] 1.0: 9p_client_req: client 7 request P9_TWALK tag  3\n"
    answered = b" sh-1 [0] 1.1: 9p_client_res: client 7 response P9_TWALK tag  3 err 0\n"
    other = asked.replace(b"tag  3", b"tag  4")
    assert under_way(asked, frozenset())
    assert under_way(answered, under_way(asked, frozenset())) == frozenset()
    assert under_way(answered, under_way(asked + other, frozenset())) == under_way(other, frozenset())
    assert under_way(b"some other line of the trace\n", frozenset()) == frozenset()


@pytest.mark.lab
@NEEDS_ROOT
@pytest.mark.timeout(300)
def test_a_command_in_the_lab_has_exact_time_its_own_exit_code_and_one_shared_folder(tmp_path):
    out, private = tmp_path / "out", tmp_path / "private"
    command = [LAB, "--dilation", "2", "--out", str(out), "--", "sh", "-c", NETWORK, "sh", str(out), str(private)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 7, done.stderr
    least_ms, mean_ms, most_ms, deviation_ms = map(float, done.stdout.split()[-2].split("/"))
    assert 180.0 <= least_ms <= mean_ms <= most_ms <= 180.1
    assert deviation_ms < 0.02
    assert "to standard error" in done.stderr
    assert (out / "shared").read_text() == "in the guest\n"
    assert not private.exists()


@pytest.mark.lab
@NEEDS_ROOT
@pytest.mark.timeout(300)
def test_a_command_that_takes_too_long_is_stopped_with_124():
    command = [LAB, "--timeout", "15", "--", "sh", "-c", "while :; do :; done"]
    assert subprocess.run(command, check=False, timeout=280).returncode == 124
