"""``headway agent``: what its commands print, and with which exit code."""

import errno
import json
import socket
import sys
import threading
from dataclasses import replace
from itertools import count

import pytest

from apps.cli import agent_setup, agent_store, agent_tables
from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from hostagent.agent import status
from hostagent.agent.status import AgentState, AgentStatus, EntryStatus, Identity
from hostagent.stores.measure import StoreMeasure

WHO = Identity("base20", "0.1", "6.1.0", "1a", "headway1a", 1_790_000_000)
ENTRY = EntryStatus(
    name="urgent/base20",
    flow_class="urgent",
    dest="192.0.2.0/24",
    dest_port=443,
    local_port=0,
    planned_bps=800_000_000,
    window_segments=14_000,
    connections=4,
    active=2,
    delivered_bps=640_000_000,
    delivered_bytes=10**9,
    sent_segments=10**6,
    retransmitted_segments=100,
    loss_ppm=100,
    rtt_us=180_400,
    fallback="",
)


def run(*arguments, exit_code, environment=None):
    """Run the command; return (standard output, standard error)."""
    done = CliRunner().invoke(app, ["agent", *arguments], env={"COLUMNS": "200"} | (environment or {}))
    assert done.exit_code == exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
    return done.stdout, done.stderr


@pytest.fixture
def answering(tmp_path):
    """Has a status answered once on the socket of namespace 1a; returns the run directory."""

    def answer(state=AgentState.HOLDING, **changed):
        said = {"controller": "192.0.2.9:50051", "attached_s": 1, "epoch": 7, "lease_ms": 3000, "lease_left_ms": 2400}
        said |= {"buffers": {}, "buffers_may_take_bytes": 2_000_000_000, "age_ms": 10, "entries": (ENTRY,)} | changed
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "status-1a.sock"))
        listener.listen()

        def serve():
            with listener, listener.accept()[0] as asking:
                asking.sendall(status.status_bytes(AgentStatus(identity=WHO, state=state, **said)))

        threading.Thread(target=serve).start()
        return ("status", "--run-dir", str(tmp_path), "--namespace", "1a")

    return answer


def test_the_status_shows_the_rate_against_the_plan(answering):
    told, _ = run(*answering(), exit_code=0)
    for words in (
        "base20: holding; attached to 192.0.2.9:50051 since",
        "epoch 7, lease 2.4 s of 3 s left; windows may take 2 GB of memory at most",
        "192.0.2.0/24 port 443",
        "2 of 4",
        "640 Mbit/s",
        "████████░░ 80.0% of 800 Mbit/s",
        "180.4 ms",
        "0.010%",
    ):
        assert words in told


@pytest.mark.parametrize("state", [one for one in AgentState if one is not AgentState.HOLDING])
def test_a_plan_that_is_not_held_is_exit_code_1(answering, state):
    told, _ = run(*answering(state), exit_code=1)
    assert f"base20: {state}" in told


def test_a_controllers_address_of_ipv6_is_shown(answering):
    told, _ = run(*answering(controller="[fd00::1]:50051"), exit_code=0)
    assert "attached to [fd00::1]:50051 since" in told


def test_an_agent_without_a_plan_shows_no_lease(answering):
    told, _ = run(*answering(AgentState.NO_PLAN, epoch=0, lease_left_ms=0, entries=()), exit_code=1)
    assert "lease" not in told


def test_json_is_the_whole_status(answering):
    told = json.loads(run(*answering(), "--json", exit_code=0)[0])
    assert told["entries"][0]["delivered_bps"] == 640_000_000
    assert told["identity"]["host"] == "base20"


def test_a_watch_as_json_is_a_line_for_each_look(capsys, monkeypatch):
    waits, epochs = iter((1, 1)), count(7)

    def wait(_):
        if next(waits, None) is None:
            raise KeyboardInterrupt

    def ask():
        return AgentStatus(
            identity=WHO,
            state=AgentState.HOLDING,
            controller="192.0.2.9:50051",
            attached_s=1,
            epoch=next(epochs),
            lease_ms=3000,
            lease_left_ms=2400,
            buffers={},
            buffers_may_take_bytes=0,
            age_ms=10,
            entries=(ENTRY,),
        )

    monkeypatch.setattr(agent_tables.time, "sleep", wait)
    assert agent_tables.show_status(ask, watch=True, as_json=True) == 0
    assert [json.loads(line)["epoch"] for line in capsys.readouterr().out.splitlines()] == [7, 8, 9]


def test_an_agent_that_does_not_run_is_one_line_and_exit_code_1(tmp_path):
    _, said = run("status", "--run-dir", str(tmp_path), exit_code=1)
    assert len(said.splitlines()) == 1
    assert "no agent answers at" in said


def test_on_a_kernel_that_no_agent_can_run_on_its_status_is_one_line(tmp_path, monkeypatch):
    def refused():
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    monkeypatch.setattr(agent_setup.Namespace, "of_this_process", refused)
    _, said = run("status", "--run-dir", str(tmp_path), exit_code=1)
    assert said == "headway: no agent runs on this kernel: Protocol not available; headway agent check\n"


def test_an_agent_that_does_not_answer_in_time_is_said_to_be_so(tmp_path, monkeypatch):
    def hangs(_):
        raise TimeoutError("timed out")

    monkeypatch.setattr(agent_setup.status_socket, "asked_status", hangs)
    _, said = run("status", "--run-dir", str(tmp_path), "--namespace", "1a", exit_code=1)
    assert "status-1a.sock: timed out; is it running?" in said


def test_an_agent_of_another_version_is_one_line(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "status-1a.sock"))
        listener.listen()

        def hang_up():
            listener.accept()[0].close()

        threading.Thread(target=hang_up).start()
        _, said = run("status", "--run-dir", str(tmp_path), "--namespace", "1a", exit_code=1)
    assert "another version" in said


def test_a_check_has_a_row_for_everything_and_the_command_that_cures_it():
    # No host of ours carries 100 Tbit/s.
    told, _ = run("check", "--rate", "100Tbps", "--rtt", "180ms", "--to", "127.0.0.1", exit_code=1)
    for words in ("100 Tbit/s over 180 ms", "kernel", "tcp_rmem[2]", "window scale", "sysctl -w net.ipv4.tcp_rmem="):
        assert words in told
    found = json.loads(run("check", "--rate", "100Tbps", "--rtt", "180ms", "--json", exit_code=1)[0])
    assert found["fit"] is False
    assert {"what", "now", "needed", "verdict", "why", "fix"} == set(found["rows"][0])


def test_the_sysctl_file_comes_alone_and_by_the_environment_too():
    environment = {"HEADWAY_RATE": "10Gbps", "HEADWAY_RTT": "180ms"}
    told, said = run("check", "--sysctl", exit_code=0, environment=environment)
    lines = told.splitlines()
    assert said == ""
    assert lines[0] == "# for 10 Gbit/s on the wire, 180 ms: headway agent check --sysctl"
    assert all(line.startswith("net.") and " = " in line for line in lines[1:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "--rate", "10G", "--rtt", "180ms"), '--rate: "10G" is not a rate, try "10 Gbit/s"'),
        (("check", "--rate", "10Gbps", "--rtt", "0s"), "--rtt: must be more than 0"),
        (("check", "--rate", "10Gbps", "--rtt", "180ms", "--to", "base20"), "base20"),
        (("check", "--rate", "10Gbps", "--rtt", "180ms", "--mtu", "60"), "MTU 60 B"),
        (("units", "--rate", "fast", "--rtt", "180ms"), '--rate: "fast" is not a rate'),
        ((), "say --config FILE"),
        (("--config", "/none.yaml", "status"), "/none.yaml"),
        (("--config", "/none.yaml", "check", "--rate", "10Gbps", "--rtt", "180ms"), "/none.yaml"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_code_2(arguments, words):
    _, said = run(*arguments, exit_code=2)
    assert words in said
    assert len(said.splitlines()) == 1


def test_the_units_name_this_command_and_this_path(tmp_path):
    told, _ = run("units", "--rate", "10 Gbit/s", "--rtt", "180ms", "--root", str(tmp_path), exit_code=0)
    files = [tmp_path / line.removeprefix(f"{tmp_path}/") for line in told.splitlines()]
    assert [file.name for file in files] == [
        "headway-agent.service",
        "headway-agent-sysctl.service",
        "headway-agent.conf",
    ]
    texts = "".join(file.read_text() for file in files)
    assert not any(name in texts for name in ("@AGENT@", "@RATE@", "@RTT@"))
    assert "HEADWAY_RATE=10Gbit/s HEADWAY_RTT=180ms" in texts
    assert "AmbientCapabilities=CAP_BPF CAP_NET_ADMIN CAP_PERFMON\n" in texts
    assert "agent --config /etc/headway/agent.yaml" in texts


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        ("/usr/bin/headway-agent", "/usr/bin/headway-agent"),
        ("/opt/headway/bin/headway", "/opt/headway/bin/headway agent"),
    ],
)
def test_the_units_run_the_command_that_wrote_them_as_it_is_called(tmp_path, monkeypatch, command, agent):
    monkeypatch.setattr(sys, "argv", [command])
    run("units", "--rate", "10Gbps", "--rtt", "180ms", "--root", str(tmp_path), exit_code=0)
    systemd = tmp_path / "etc/systemd/system"
    text, sysctl = ((systemd / f"headway-{name}.service").read_text() for name in ("agent", "agent-sysctl"))
    assert f"ExecStart={agent} --config /etc/headway/agent.yaml\n" in text
    assert f"{agent} check " in sysctl


def test_an_agent_is_down_while_the_settings_are_put_back_and_made_anew():
    told, _ = run("units", "--rate", "10Gbps", "--rtt", "180ms", exit_code=0)
    unit = told.partition("headway-agent.service\n")[2].partition("[Service]")[0]
    assert "\nPartOf=headway-agent-sysctl.service\n" in unit
    after = unit.partition("\nAfter=")[2].partition("\n")[0]
    assert "headway-agent-sysctl.service" in after.split()


def test_what_a_store_takes_is_measured_and_leaves_nothing_there(tmp_path):
    done = CliRunner().invoke(
        app, ["agent", "check", "--store", str(tmp_path), "--rate", "1Gbps", "--bytes", "5MB", "--json"]
    )
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (found["written_bytes"], found["rate_bps"], found["path"]) == (5_000_000, 10**9, str(tmp_path))
    assert found["drain_bps"] > 0
    assert {"room_bytes", "largest_bytes", "is_held_up", "took_s"} <= found.keys()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_idles_at_first_is_said_with_its_cure(tmp_path):
    late = StoreMeasure(10**9, 10**9, 60.0, 2 * 10**8, 10**8, is_held_up=True, idle_s=30.2)
    *_, note = agent_store.said(tmp_path, late)
    assert note.startswith("the disk wrote nothing for 30.2 s")
    assert "vm.dirty_expire_centisecs" in note
    for idle_s in (0.2, None):
        assert "wrote nothing" not in "".join(agent_store.said(tmp_path, replace(late, idle_s=idle_s)))


def test_a_machine_without_the_cpu_for_a_rate_is_not_called_a_slow_disk(tmp_path):
    busy = StoreMeasure(10**10, 10**9, 9.4, 9 * 10**8, 10**9, is_held_up=False, came_bps=9 * 10**8)
    *_, note = agent_store.said(tmp_path, busy)
    assert note == "this machine wrote 900 Mbit/s, for want of CPU: measure again when it has time"
    *_, note = agent_store.said(tmp_path, replace(busy, came_bps=10**10))
    assert note.startswith("the writer was never held up")


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--store", "/no/such/place"], 2, "--store: /no/such/place is no folder here"),
        (["--store", ".", "--bytes", "0"], 2, "--bytes: must be more than 0"),
        (["--store", ".", "--bytes", "900TB"], 1, "would be written: say less, --bytes 1GB"),
        ([], 2, "--rtt: say the round trip of the longest path, e.g. 180ms"),
        (["--rtt", "1ms", "--sysctl", "--json"], 2, "--sysctl prints a file of settings, and nothing else"),
        (["--store", ".", "--sysctl"], 2, "--sysctl prints a file of settings, and nothing else"),
    ],
)
def test_what_is_wrong_with_a_check_is_one_line(more, code, said):
    done = CliRunner().invoke(app, ["agent", "check", "--rate", "1Gbps", *more])
    assert done.exit_code == code
    assert said in done.stderr
