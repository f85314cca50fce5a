"""What the instruments show, held against what was really sent; and the namespaces that clean up after us."""

import os
import socket
import subprocess
import sys

import pytest

from hostagent.tests.kernel_counts import retransmitted
from mininet_tests.lab import commands
from mininet_tests.probes.sockets import Connections
from mininet_tests.testing.eventually import eventually

ISOLATED = str(commands.ISOLATED)

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces")]

COUNT = """
import socket, struct, subprocess
from mininet_tests.probes.counters import NftCounters, ruleset
subprocess.run(["nft", "-f", "-"], input=ruleset({"near": "127.0.0.1", "far": "192.0.2.1"}), text=True, check=True)
counters = NftCounters()
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
before = counters.read()
client.sendall(bytes(300_000))
left = 300_000
while left:
    left -= len(accepted.recv(left))
after = counters.read()
again = struct.unpack_from("<Q", client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 208)  # tcpi_bytes_retrans
# what came back are bare confirmations, headers alone: no payload; a busy machine sends again what is only late
print(after["near"].payload_bytes - before["near"].payload_bytes - again[0], after["far"].packets)
"""


def nft_works():
    """Whether this kernel has nftables."""
    return (
        subprocess.run(
            ["unshare", "--net", "nft", "add", "table", "inet", "x"], check=False, capture_output=True
        ).returncode
        == 0
    )


@pytest.mark.skipif(os.geteuid() != 0 or not nft_works(), reason="this kernel has no nftables (CONFIG_NF_TABLES)")
def test_the_counters_count_payload_to_the_byte():
    command = [ISOLATED, sys.executable, "-c", COUNT]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == ["300000", "0"]


def test_a_connections_own_account_shows_what_was_confirmed():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    client.sendall(bytes(100_000))
    left = 100_000
    while left:
        left -= len(accepted.recv(left))
    port, reader = client.getsockname()[1], Connections()

    def mine():
        return next(c for c in reader.read() if c.local_port == port)

    seen = eventually(lambda: mine() if mine().acked_bytes > 100_000 else None, within_s=5, what="all confirmed")
    assert seen.acked_bytes == 100_001  # and the SYN
    assert (seen.remote_port, seen.retransmitted_segments) == (server.getsockname()[1], retransmitted(client))


HTB = """
ip link add v type veth peer name w
tc qdisc add dev v root handle 1: htb
tc class add dev v parent 1: classid 1:fffe htb rate 984395312bit quantum 1514
tc class add dev v parent 1:fffe classid 1:2 htb rate 49219760bit quantum 1514
tc class add dev v parent 1:fffe classid 1:3 htb rate 100gbit quantum 1514
"$1" -c "from mininet_tests.site import qdiscs; print(sorted(qdiscs.htb_rates_bps('v').items()))"
"""


def test_the_rates_of_queues_are_read_exactly():
    command = ["unshare", "--net", "bash", "-euc", HTB, "bash", sys.executable]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "[(2, 49219760), (3, 100000000000), (65534, 984395312)]"


def test_whatever_a_killed_run_leaves_goes_with_its_namespaces(tmp_path):
    marker = f"headway-test-{os.getpid()}"
    script = f"ip link add {marker[-10:]} type dummy; echo up > {tmp_path}/up; exec -a {marker} sleep 300"
    run = subprocess.Popen([ISOLATED, "bash", "-c", script])
    eventually((tmp_path / "up").exists, within_s=10, what="the isolated command runs")
    run.kill()
    run.wait()

    def gone():
        return subprocess.run(["pgrep", "-f", f"^{marker}"], check=False, capture_output=True).returncode == 1

    eventually(gone, within_s=5, what="the kernel ends what the run left")
    assert subprocess.run(["ip", "link", "show", marker[-10:]], check=False, capture_output=True).returncode
