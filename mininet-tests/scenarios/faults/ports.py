"""Ports that are gone, come back or have another number; queues and rules of somebody else's."""

import subprocess
import time
from functools import partial
from typing import Any

from mininet_tests.scenarios.faults.asked import SENDER, WITHIN_S, image, log_of, names, posted, unwell, well
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.running import Running
from mininet_tests.site.userspace_switches import add_port
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

AWAY_S = 3.0  # in which a fault that is said again and again shows
OTHER_NUMBER = 77
RULES = 20
AUDITS = 2  # of the switch, one of them begun after the rules came


def added_again(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Delete a circuit's port and add it: what is said of it, and how long it has no queues when it is back."""
    link = chile_illinois().link("ls1", "ch1")
    log, seen_bytes = log_of(controller), log_of(controller).stat().st_size

    def said(event: str) -> int:
        return log.read_text()[seen_bytes:].count(f"event={event} ")

    ovs.vsctl("del-port", "ls1", link.port_name)
    unwell(controller)
    answer = posted(controller, "/v1/announcements", image("without-its-port"))
    eventually(lambda: said("fault.began"), within_s=WITHIN_S, what="the fault is said")
    time.sleep(AWAY_S)
    add_port(ovs, "ls1", link)
    began_s = time.monotonic()
    has_queues = partial(ovs.vsctl, "get", "port", link.port_name, "qos")
    eventually(lambda: has_queues().strip() != "[]", within_s=WITHIN_S, what="the port has its queues")
    bare_s = time.monotonic() - began_s
    eventually(lambda: said("fault.over"), within_s=WITHIN_S, what="its end is said")
    controller.asks("DELETE", "/v1/announcements/without-its-port").raise_for_status()
    return {
        "announced": answer.status_code,
        "carried": answer.json().get("carried"),
        "reasons": answer.json().get("reasons"),
        "says_where": names("ls1", answer.json().get("reasons", [])),
        "began_lines": said("fault.began"),
        "over_lines": said("fault.over"),
        "without_queues_s": bare_s,
    }


def host_port_down(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Take a host's port away and give it back under its number."""
    link = chile_illinois().link("ls1", SENDER)
    ovs.vsctl("del-port", "ls1", link.port_name)
    return _told(controller, lambda: add_port(ovs, "ls1", link))


def host_port_moved(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Give a host's port another number, and its own again."""
    link = chile_illinois().link("ls1", SENDER)
    ovs.vsctl("del-port", "ls1", link.port_name)
    add_port(ovs, "ls1", link, OTHER_NUMBER)
    time.sleep(AWAY_S)  # it was gone, and that is said too; what counts is what is said once it is back

    def put_right() -> None:
        ovs.vsctl("del-port", "ls1", link.port_name)
        add_port(ovs, "ls1", link)

    return _told(controller, put_right)


def somebody_elses_queues(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Put queues of somebody else's onto a circuit's port, and take them off again."""
    port = chile_illinois().link("ls1", "ch1").port_name
    ovs.vsctl("set", "port", port, "qos=@theirs", "--", "--id=@theirs", "create", "qos", "type=linux-htb")

    def take_off() -> None:
        theirs = ovs.vsctl("get", "port", port, "qos").strip()
        ovs.vsctl("clear", "port", port, "qos", "--", "destroy", "qos", theirs)

    return _told(controller, take_off, port)


def rules_of_nobodys(controller: Running) -> dict[str, Any]:
    """Add rules that take no packet of a host's, wait for an audit, and take them away."""
    log, seen_bytes = log_of(controller), log_of(controller).stat().st_size
    ofctl = ["ovs-ofctl", "-O", "OpenFlow13"]
    match = "cookie=0x99,priority=60000,tcp,nw_src=192.0.2."
    rules = "".join(f"{match}{number + 1},actions=drop\n" for number in range(RULES))
    # in one bundle: an audit that saw a part of them would say so, and then say what is there anew
    subprocess.run([*ofctl, "--bundle", "add-flows", "ls1", "-"], check=True, input=rules, text=True)
    before = _audits(controller)
    eventually(lambda: _audits(controller) >= before + AUDITS, within_s=WITHIN_S, what="the switch is audited")
    health = controller.asks("GET", "/healthz")
    subprocess.run([*ofctl, "del-flows", "ls1", "cookie=0x99/-1"], check=True)
    lines = log.read_text()[seen_bytes:].splitlines()
    return {
        "rules": RULES,
        "status": health.status_code,
        "lines": sum("shape=foreign" in line for line in lines),
        "error_lines": sum(" ERROR " in line or "level=error" in line for line in lines),
    }


def _told(controller: Running, mend: Any, place: str = SENDER) -> dict[str, Any]:
    """Return after how long a fault was noticed, and after how long all is well once it is mended."""
    noticed_s, reasons = unwell(controller)
    mend()
    return {
        "noticed_s": noticed_s,
        "reasons": reasons,
        "says_where": names(place, reasons),
        "well_again_s": well(controller),
    }


def _audits(controller: Running) -> float:
    """Return how often the senders' switch was audited."""
    lines = controller.asks("GET", "/metrics").text.splitlines()
    return sum(
        float(line.rpartition(" ")[2]) for line in lines if line.startswith("headway_audits_total{") and "ls1" in line
    )
