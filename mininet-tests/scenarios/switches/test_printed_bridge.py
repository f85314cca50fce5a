"""What ``headway network ovs`` prints, typed where there is an Open vSwitch."""

import re
import shlex
import subprocess

import pytest

from apps.cli.network_text import bridge_lines
from controller.plan.wiring import port_links
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.recorder import RecordedSwitches, new_term
from mininet_tests.site.userspace_switch import NEEDS_OVS, listening, private_ovs
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import FILES, loaded

pytestmark = NEEDS_OVS


@pytest.mark.parametrize("others", [(), ("tcp:127.0.0.1:1",)], ids=["alone", "pair"])
def test_what_is_printed_makes_a_bridge_that_calls_with_its_ports_and_may_be_typed_again(tmp_path, others):
    """Userspace Open vSwitch, which must be told that it is; all else is as printed."""
    network = loaded(FILES["chile-illinois-2"])
    (switch, _) = network.switches
    names = {link.port_name: f"{link.port_name}-f" for _, link in port_links(network, switch.name)}
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, new_term())
    with private_ovs(tmp_path, names) as ovs:
        framework = listening(sessions)
        try:
            controllers = (f"tcp:127.0.0.1:{framework.port}", *others)
            ovs.vsctl("add-br", switch.name, "--", "set", "bridge", switch.name, "datapath_type=netdev")
            for _ in range(2):
                for line in bridge_lines(network, switch, controllers):
                    ovs.vsctl(*shlex.split(line, comments=True)[1:] or ["--version"])
            eventually(lambda: listener.told, within_s=60, what="the switch calls")
            assert sorted(ovs.vsctl("get-controller", switch.name).split()) == sorted(controllers)
            backoffs = ovs.vsctl("--bare", "--columns=max_backoff", "list", "controller").split()
            assert backoffs == ["1000"] * len(controllers)
            numbers = {name: int(ovs.vsctl("get", "interface", name, "ofport")) for name in names}
            assert numbers == {link.port_name: link.port_no for _, link in port_links(network, switch.name)}
            assert ovs.vsctl("get-fail-mode", switch.name).strip() == "secure"
            assert re.sub(r'["\s]', "", ovs.vsctl("get", "bridge", switch.name, "datapath_id")) == f"{switch.dpid:016x}"
            assert "OpenFlow13" in ovs.vsctl("get", "bridge", switch.name, "protocols")
            with pytest.raises(subprocess.CalledProcessError):
                ovs.vsctl("add-br", switch.name)  # that there was one was no mistake to it
        finally:
            framework.stop()
            sessions.close()
