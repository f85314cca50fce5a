"""What an interface's queue has dropped is seen as the kernel counts it, on an interface of our own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.root

FLOOD = """
set -eu
ip link add h0 type veth peer name h1
ip link set h1 up
ip link set h0 txqueuelen 123 up
ip address add 10.99.0.1/24 dev h0
ip neighbour replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev h0
tc qdisc add dev h0 root tbf rate 1mbit burst 2000 limit 4000
"""
SEEN = """
import socket
from hostagent.doctor import survey
before = survey.route_interface("10.99.0.2")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(40):
        sender.sendto(bytes(1400), ("10.99.0.2", 9))
after = survey.route_interface("10.99.0.2")
print(before.name, before.hardware.drops.queue_packets, before.hardware.drops.queued, after.hardware.drops.queued)
"""


def test_what_the_queue_of_a_host_drops_is_counted():
    course = f"{FLOOD}\nexec {sys.executable} -c '{SEEN}'"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", course], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    name, queue_packets, before, after = done.stdout.split()
    assert (name, queue_packets, before) == ("h0", "123", "0")
    assert 30 < int(after) < 40, "two wait, one is on its way; the others find the queue full"
