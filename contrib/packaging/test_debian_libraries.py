"""The agent by the library that its package recommends: Debian's, which is older than the one beside its tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mininet_tests.testing.loopback import free_port

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PACKAGES = ("python3-prometheus-client", "python3-decorator")  # and what it needs
QUICKLY = ("-qq", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10")
SERVED = """
import sys, urllib.request
import prometheus_client
from hostagent.agent.metrics import metrics_server
from hostagent.agent.status import Identity, Sight, status_from
from topology.telemetry import Telemetry
status = status_from(Identity("base20", "0.1", "6.1.0", "1a", "headway1a", 1), (Sight(0, Telemetry(7, 3000)),), 0)
for address in sys.argv[1:]:
    _, end = metrics_server(address, lambda: status)
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
        print(answer.read().decode())
    end()
print(prometheus_client.__file__)
"""


@pytest.fixture
def library(tmp_path):
    """The folder of Debian's package, for Python's path."""
    got = subprocess.run(["apt-get", "download", *QUICKLY, *PACKAGES], cwd=tmp_path, capture_output=True, check=False)
    if got.returncode:
        pytest.skip(f"needs Debian's archive: {got.stderr.decode()}")
    for deb in tmp_path.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    return tmp_path / "usr/lib/python3/dist-packages"


def test_an_agent_serves_its_metrics_by_the_library_of_debian(library):
    asked = [f"{host}:{free_port()}" for host in ("127.0.0.1", "localhost", "[::1]")]
    done = subprocess.run(
        [sys.executable, "-c", SERVED, *asked],
        env=os.environ | {"PYTHONPATH": f"{library}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count('headway_agent_info{host="base20",kernel="6.1.0",version="0.1"} 1.0') == len(asked), done
    assert str(library) in done.stdout
