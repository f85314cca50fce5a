"""``headway network draft`` at a real Open vSwitch: what it writes is what the switches show."""

import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from apps.cli.tests.test_network_draft import completed, network_in
from controller.plan.wiring import port_links
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.spoken_agents import agent_tls
from mininet_tests.site.userspace_switch import BRIDGE, DPID, NEEDS_OVS, bridge_settings, private_ovs
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from mininet_tests.testing.networks import FILES
from topology.protocol import ATTACH_PATH, Hello, HostInterface, to_bytes

pytestmark = NEEDS_OVS

OTHER = "s2"
PORTS = {BRIDGE: ("dtn1", "dtn2", "s1wan"), OTHER: ("store1", "s2wan")}


@pytest.fixture
def ovs(tmp_path):
    """Two bridges of one database, with ports of hosts and of a circuit, and one that is of the bridge itself."""
    names = {name: f"{name}-f" for names in PORTS.values() for name in names}
    with private_ovs(tmp_path, names) as ovs:
        for number, (bridge, ports) in enumerate(PORTS.items()):
            ovs.vsctl("add-br", bridge, "--", "set", "bridge", bridge, *bridge_settings(DPID + number))
            for port_no, port in enumerate(ports, 5):
                requested = "--", "set", "interface", port, f"ofport_request={port_no}"
                ovs.vsctl("add-port", bridge, port, *requested)
        yield ovs


def draft(ovs, *arguments, code=0):
    """What the command says."""
    command = [HEADWAY, "network", "draft", *arguments]
    done = subprocess.run(command, env=ovs.environment, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_what_is_drafted_and_completed_is_the_network_that_the_switches_show(ovs, tmp_path):
    network, problems = network_in(completed(draft(ovs, ovs.remote)))
    assert problems == []
    for switch in network.switches:
        shown = ovs.vsctl("get", "bridge", switch.name, "datapath_id")
        assert re.sub(r'["\s]', "", shown) == f"{switch.dpid:016x}"
        numbers = {link.port_name: link.port_no for _, link in port_links(network, switch.name)}
        assert numbers == {name: int(ovs.vsctl("get", "interface", name, "ofport")) for name in PORTS[switch.name]}
    assert [(circuit.a_end, circuit.z_end) for circuit in network.circuits] == [(BRIDGE, OTHER)]


def test_it_is_written_to_a_file_that_is_not_there_yet_and_may_be_of_one_bridge(ovs, tmp_path):
    file = tmp_path / "network.yaml"
    said = draft(ovs, ovs.remote, "--bridge", OTHER, "--out", str(file))
    text = file.read_text()
    assert said == f"{file}: {text.count('TODO') - 1} places to complete, each TODO\n"
    assert "store1" in text
    assert "dtn1" not in text
    assert "File exists" in draft(ovs, ovs.remote, "--out", str(file), code=1)
    assert file.read_text() == text
    assert 'there is no bridge "s9"; there are: s1, s2' in draft(ovs, ovs.remote, "--bridge", "s9", code=1)


def test_a_host_whose_agent_calls_meanwhile_has_its_name_and_addresses_in_the_draft(ovs):
    address = f"127.0.0.1:{free_port()}"
    with ThreadPoolExecutor() as pool:
        said = pool.submit(draft, ovs, ovs.remote, "--agents", address, "--wait", "8s")
        hello = Hello(
            "dtn1", "1", "6.12", interfaces=(HostInterface("eth0", (ip_address("192.0.2.20"),), 9000, 10**10),)
        )
        eventually(lambda: called(address, hello), within_s=25, what="somebody listens")
        text = said.result()
    assert "dtn1 has called" in text
    assert "1 agent has called" in text
    assert "dtn1: {address: 192.0.2.20, port: dtn1, number: 5, rate: 10 Gbit/s}  # guessed" in text
    assert "host.refused" not in text
    assert "is not where to listen" in draft(ovs, ovs.remote, "--agents", "here", code=2)


def test_agents_are_heard_by_tls_beside_a_database_in_plain_text(ovs, tmp_path):
    pki = str(tmp_path / "pki")
    agent = "agent", pki, "base20", "--network", str(FILES["chile-illinois"])
    for words in (("init", pki, "--name", "us"), ("controller", pki, "--name", "127.0.0.1"), agent):
        subprocess.run([HEADWAY, "pki", *words], check=True, capture_output=True, timeout=30)
    context = agent_tls(Path(pki), "base20")
    address = f"127.0.0.1:{free_port()}"
    shown = "--agents-certificate", f"{pki}/controllers/127.0.0.1.pem"
    by_tls = "--agents", address, "--wait", "8s", *shown, "--authority", f"{pki}/ca.pem"
    with ThreadPoolExecutor() as pool:
        said = pool.submit(draft, ovs, ovs.remote, *by_tls)
        eventually(lambda: called(address, Hello("base20", "1", "6.12"), context), within_s=25, what="somebody listens")
        assert "base20 has called" in said.result()
    assert "needs --authority" in draft(ovs, ovs.remote, "--agents", address, *shown, code=2)
    assert "needs --certificate" in draft(ovs, ovs.remote, "--authority", f"{pki}/ca.pem", code=2)


def called(address, hello, context=None):
    """Say hello; whether that was heard."""
    scheme = "ws" if context is None else "wss"
    try:
        with connect(f"{scheme}://{address}{ATTACH_PATH}", ssl=context, proxy=None, compression=None) as stream:
            stream.send(to_bytes(hello), text=True)
            stream.recv(timeout=5)
    except ConnectionClosed as closed:
        return "is not a host of this network" in closed.rcvd.reason
    except ConnectionRefusedError:
        return False


def test_a_database_that_is_not_there_or_does_not_answer_is_said(ovs, tmp_path):
    assert "ovs-vsctl set-manager" in draft(ovs, "unix:/nowhere/db.sock", code=1)
    assert 'try "tcp:192.0.2.11:6640"' in draft(ovs, "192.0.2.11", code=2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = draft(ovs, f"tcp:127.0.0.1:{silent.getsockname()[1]}", code=1)
    assert "timed out" in said
