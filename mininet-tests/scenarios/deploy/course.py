"""The Debian packages from installation to purge, in a Debian with systemd as its first process.

As ``docs/deploy.md`` and ``docs/operate.md`` have an operator do it: install the previous version, fill its database,
upgrade, take a network of three sites into force, kill, hang, boot again, remove, purge. Each step leaves aims in
``report.json``. Run inside ``isolated.sh``.
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.plan.delays import SAME_US
from mininet_tests.scenarios.deploy import container, left
from mininet_tests.scenarios.deploy.network import NETWORK, SENT, slow
from mininet_tests.site import packages
from mininet_tests.site.debian_machine import DebianMachine
from mininet_tests.testing.aims import Aim, above, at_most, equal, none_of, stated, within
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import print_aims, write_report

RESERVATIONS, LISTED = 300, 1000
UNITS = ("headway-agent-sysctl", "headway-agent", "headway-controller")
SERVICES = UNITS[1:]
SWITCHES = ("dl1", "pt1")
HOST = "dl-a"
BACK_WITHIN_S, WATCHED_WITHIN_S, UP_WITHIN_S = 60.0, 120.0, 60.0
SENDS_S, MEASURES_S = "6", "20"  # a delay is believed after ten seconds
MEMORY_MB = {"headway-controller": 256, "headway-agent": 80}
DISK_MB = {
    "the agent's package": ("/usr/lib/headway-agent", 40),
    "the controller's packages": ("/usr/lib/headway", 350),
    f"a database with {RESERVATIONS} reservations": ("/var/lib/headway", 8),
}
AS_A_UNIT = ("systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--working-directory=/root")
"""Before a command: below the machine's own control groups, where the agent looks for connections."""
ETC = Path(__file__).parent / "etc"
PROGRAMS = ("reserve.py", "send.py")
API = "http://127.0.0.1:8080"
SECRETS = ("ca.pem", "crl.pem", "ctl.example.org.pem", "ctl.example.org.key", "dl-a.pem", "dl-a.key")
"""What the operator puts into /etc/headway and takes away again."""
CHECK = (
    *("runuser", "-u", "headway-controller", "--", "headway", "controller"),
    "--config",
    "/etc/headway/controller.yaml",
)


class Deployment:
    """One machine's life with the packages; each step leaves aims."""

    def __init__(self, machine: DebianMachine, old: list[Path], new: list[Path]) -> None:
        """Take what was on the machine before."""
        self._machine = machine
        self._debs = {"old": old, "new": new}
        for name, debs in self._debs.items():
            (machine.files / "root" / name).mkdir()
            for deb in debs:
                shutil.copy(deb, machine.files / "root" / name)
        for file in (*ETC.iterdir(), *(ETC.parent / name for name in PROGRAMS)):
            shutil.copy(file, machine.files / "root")
        (machine.files / "root/network.yaml").write_text(slow(NETWORK.read_text()))
        self._before = left.found(machine)
        self._reserved: list[dict[str, Any]] = []
        self._algorithms: set[str] = set()
        self.aims: dict[str, Aim] = {}

    def steps(self) -> tuple[Callable[[], None], ...]:
        """Return the steps, in order."""
        return (
            self.installed,
            self.configured,
            self.filled,
            self.upgraded,
            self.network_grown,
            self.agent_started,
            self.killed,
            self.hung,
            self.booted_again,
            self.delay_measured,
            self.agent_removed,
            self.switches_cleaned,
            self.controller_purged,
        )

    def installed(self) -> None:
        """Install the previous version: nothing starts, and nothing fails, before it is configured."""
        self._apt("install", *(f"/root/old/{deb.name}" for deb in self._debs["old"]))
        states = {unit: self._machine.unit(unit, "ActiveState") for unit in UNITS[1:]}
        self.aims["installed: nothing runs before it is configured"] = equal(
            states, dict.fromkeys(SERVICES, "inactive")
        )
        self.aims["installed: nothing has failed"] = none_of(self._failed())

    def configured(self) -> None:
        """Certificates, configuration, switches: docs/deploy.md, sections 3 to 5."""
        machine = self._machine
        machine.done("headway", "pki", "init", "pki", "--name", "La Serena")
        machine.done("headway", "pki", "controller", "pki", "--name", "ctl.example.org", "--name", "127.0.0.1")
        machine.done("headway", "pki", "agent", "pki", "--all", "--network", "first-network.yaml")
        machine.done("install", "-m", "644", "controller.yaml", "pki/ca.pem", "pki/crl.pem", "/etc/headway")
        machine.done("install", "-m", "644", "first-network.yaml", "/etc/headway/network.yaml")
        owned = ("install", "-m", "600", "-o", "headway-controller")
        machine.done(*owned, *(f"pki/controllers/ctl.example.org.{end}" for end in ("pem", "key")), "/etc/headway")
        machine.done("install", "-m", "644", "lines.service", "/etc/systemd/system")
        machine.done("systemctl", "enable", "--now", "lines")
        machine.done("ovs-vsctl", "set-manager", "ptcp:6640:127.0.0.1")
        for switch in SWITCHES:
            machine.done("ovs-vsctl", "add-br", switch, "--", "set", "bridge", switch, "datapath_type=netdev")
            self._set_up(switch)
        machine.done("systemctl", "start", "headway-controller")
        self._switches_up()

    def _set_up(self, switch: str) -> None:
        """Type at a switch what is printed for it."""
        network, controller = "/etc/headway/network.yaml", "tcp:127.0.0.1:6653"
        asked = "headway", "network", "ovs", network, "--switch", switch, "--controller", controller
        self._machine.done("sh", "-ec", self._machine.done(*asked))

    def filled(self) -> None:
        """Fill the database."""
        ids = self._machine.done("python3", "reserve.py", str(RESERVATIONS)).split()
        self._reserved = self._reservations()
        self.aims["reservations that the previous version has"] = equal(len(ids), RESERVATIONS)
        self.aims["ids that are answered and not listed, or the other way"] = none_of(
            sorted({one["id"] for one in self._reserved} ^ set(ids))
        )

    def upgraded(self) -> None:
        """Upgrade: the controller starts anew, the database is brought up, all reservations stay."""
        before = self._machine.unit("headway-controller", "MainPID")
        self._apt("install", *(f"/root/new/{deb.name}" for deb in self._debs["new"]))
        self.aims["upgraded: started again"] = equal(
            self._machine.unit("headway-controller", "MainPID") != before, True
        )
        self._switches_up()
        self._all_stay("upgraded")
        migrated = self._machine.done("journalctl", "-u", "headway-controller", "-g", "store.migrated", "-o", "cat")
        self.aims["upgraded: the database's schema was brought up"] = equal("from_schema=0004" in migrated, True)
        self._machine.done("systemctl", "stop", "headway-controller")
        checked = self._machine.tried(*CHECK, "--check")
        self._machine.done("systemctl", "start", "headway-controller")
        self.aims["--check as the controller's user: what is wrong"] = none_of(checked.stderr)
        self._switches_up()

    def network_grown(self) -> None:
        """Take another network into force: a second interface, IPv6, a site that is not ours, in a VLAN."""
        machine = self._machine
        machine.done("install", "-m", "644", "network.yaml", "/etc/headway")
        machine.done("sh", "-ec", "cat more-flows.yaml >>/etc/headway/controller.yaml")
        bridge, port = ("add-br", "cern", "--", "set", "bridge", "cern", "datapath_type=netdev"), ("add-port", "cern")
        machine.done("ovs-vsctl", *bridge, "--", *port, "cern-wan", "trunks=300", "--", *port, "cern0", "tag=300")
        for switch in SWITCHES:
            self._set_up(switch)
        machine.done("systemctl", "restart", "headway-controller")
        self._switches_up()
        self._all_stay("another network")

    def agent_started(self) -> None:
        """The agent: docs/deploy.md, section 6; what it sends is held by the kernel at what is planned."""
        machine = self._machine
        machine.done("install", "-m", "644", "agent.yaml", "/etc/headway")
        key = [f"pki/agents/{HOST}.{end}" for end in ("pem", "key")]
        machine.done("install", "-m", "640", "-g", "headway", *key, "/etc/headway")
        machine.done("systemctl", "start", "headway-agent-sysctl", "headway-agent")
        self._agent_up()
        changed = [line for line in left.found(machine).since(self._before) if line.startswith("net.")]
        self.aims["agent: settings of TCP that it changes"] = above(len(changed), 0)
        self._held("agent", *SENT)

    def killed(self) -> None:
        """SIGKILL to both: systemd starts them again, the plan comes back."""
        self._machine.done("systemctl", "kill", "--signal=KILL", *SERVICES)
        self._restarted(1, BACK_WITHIN_S)
        self._agent_up()
        self._all_stay("killed")
        self._held("killed", "IPv6")

    def hung(self) -> None:
        """SIGSTOP to both: the watchdog ends them, systemd starts them again."""
        self._machine.done("systemctl", "kill", "--signal=STOP", *SERVICES)
        self._restarted(2, WATCHED_WITHIN_S)
        said = self._machine.done("journalctl", "-b", "-o", "cat", "-g", "Watchdog timeout")
        hung = [unit for unit in SERVICES if f"{unit}.service: Watchdog timeout" not in said]
        self.aims["hung: whom the watchdog did not end"] = none_of(hung)
        self._agent_up()
        self._all_stay("hung")

    def booted_again(self) -> None:
        """Boot again: everything comes up by itself."""
        machine = self._machine
        boot = machine.done("cat", "/proc/sys/kernel/random/boot_id")
        machine.power_off()
        machine.boot()
        self.aims["booted: another boot"] = equal(machine.done("cat", "/proc/sys/kernel/random/boot_id") != boot, True)
        self._switches_up()
        self._agent_up()
        self.aims["booted: nothing has failed"] = none_of(self._failed())
        first, second = (int(machine.unit(unit, "ActiveEnterTimestampMonotonic")) for unit in UNITS[:2])
        self.aims["booted: TCP's settings before the agent"] = equal(first < second, True)
        self._all_stay("booted")
        self._held("booted", *SENT)
        self._sized()

    def _sized(self) -> None:
        """Look at what is used, for docs/deploy.md to say: memory at its most since the boot, and the disk."""
        for unit, bound in MEMORY_MB.items():
            status = self._machine.done("cat", f"/proc/{self._machine.unit(unit, 'MainPID')}/status")
            most_kib = int(re.findall(r"VmHWM:\s+(\d+)", status)[0])
            self.aims[f"memory of {unit}, MB"] = at_most(round(most_kib * 1024 / 1e6), bound)
        for what, (path, bound) in DISK_MB.items():
            used = int(self._machine.done("du", "-sB1", path).split()[0])
            self.aims[f"disk of {what}, MB"] = at_most(round(used / 1e6, 1), bound)

    def delay_measured(self) -> None:
        """Of a circuit the file says no more than how long it takes at most: its host measures it, and it is kept."""
        machine, bound = self._machine, "s/delay: 60 ms/delay_at_most: 60 ms/"
        machine.done("sed", "-i", bound, "/etc/headway/network.yaml")
        machine.done("systemctl", "restart", "headway-controller")
        self._agent_up()
        self.aims["delay of a circuit, before anybody has measured it"] = equal(self._delay()["source"], "bound")
        sender, _, *addresses = SENT["in a VLAN to a site that is not ours"]
        sent = json.loads(machine.done(*AS_A_UNIT, "python3", "send.py", *addresses, MEASURES_S))
        measured, least_ms = self._delay(), float(re.findall(r"minrtt:([0-9.]+)", sent["shown"])[0])
        by = measured["source"], measured["measured_by"]
        self.aims["delay of a circuit: by whom"] = equal(by, ("measured", [sender]))
        # A lower one that was seen later, and is the same by SAME_US, is not followed.
        off_ms = abs(2 * measured["one_way_us"] / 1000 - least_ms)
        self.aims["delay of a circuit: both ways beside the kernel's least round trip, ms"] = at_most(
            off_ms, 2 * SAME_US / 1000
        )
        machine.done("systemctl", "restart", "headway-controller")
        self._switches_up()
        self.aims["delay of a circuit: after another start"] = equal(self._delay(), measured)

    def _delay(self) -> Any:
        """Return what is known of the delay of the circuit to the site that is not ours."""
        return next(one["delay"] for one in self._asked("/v1/circuits") if one["name"] == "rhine")

    def agent_removed(self) -> None:
        """Remove the agent's package: kernel part out, settings back, configuration there still; then purge it."""
        machine = self._machine
        self._apt("remove", "headway-agent")
        known = machine.done("sysctl", "-n", "net.ipv4.tcp_available_congestion_control").split()
        self.aims["agent removed: its kernel part"] = none_of([name for name in known if name in self._algorithms])
        changed = [line for line in left.found(machine).since(self._before) if line.startswith("net.")]
        self.aims["agent removed: settings that are not back"] = none_of(changed)
        kept = [name for name in ("/etc/headway/agent.yaml", "/etc/default/headway-agent") if self._is(name)]
        self.aims["agent removed: its configuration stays"] = equal(len(kept), 2)
        self._apt("purge", "headway-agent")
        self.aims["agent purged: its configuration"] = none_of([name for name in kept if self._is(name)])

    def switches_cleaned(self) -> None:
        """Take the switches back: docs/operate.md, Taking Headway away."""
        machine = self._machine
        machine.done("systemctl", "stop", "headway-controller")
        for switch in SWITCHES:
            machine.done("ovs-vsctl", "del-controller", switch)
            machine.done("headway", "clean", switch)
        seen = {
            switch: machine.done("ovs-ofctl", "-O", "OpenFlow13", "--no-stats", "dump-flows", switch)
            for switch in SWITCHES
        }
        self.aims["cleaned: rules"] = none_of(
            [line for text in seen.values() for line in text.splitlines() if "cookie" in line]
        )
        meters = [machine.done("ovs-ofctl", "-O", "OpenFlow13", "dump-meters", switch) for switch in SWITCHES]
        self.aims["cleaned: meters"] = none_of([text for text in meters if "meter=" in text])
        for table in ("qos", "queue"):
            self.aims[f"cleaned: rows of {table}"] = none_of(machine.done("ovs-vsctl", "--bare", "list", table))
        shaped = machine.done("tc", "qdisc", "show")
        self.aims["cleaned: queues in the kernel"] = none_of([line for line in shaped.splitlines() if " htb " in line])

    def controller_purged(self) -> None:
        """Purge all; with what the operator has put there away again, the machine is as it was."""
        machine = self._machine
        self._apt("remove", "headway-controller", "headway")
        self.aims["controller removed: the database stays"] = equal(self._is("/var/lib/headway/headway.db"), True)
        self._apt("purge", "headway-controller", "headway")
        for switch in (*SWITCHES, "cern"):
            machine.done("ovs-vsctl", "del-br", switch)
        machine.done("ovs-vsctl", "del-manager")
        machine.done("systemctl", "disable", "--now", "lines")
        machine.done("rm", "/etc/systemd/system/lines.service")
        machine.done("rm", *(f"/etc/headway/{name}" for name in SECRETS))
        machine.done("rmdir", "/etc/headway")
        machine.done("systemctl", "daemon-reload")
        more = left.found(machine).since(self._before)
        self.aims["purged: what is left"] = none_of([what for what in more if what not in left.STAYS])
        self.aims["purged: users and groups that stay"] = equal(len([what for what in more if what in left.STAYS]), 4)
        self.aims["purged: what has failed"] = none_of(self._failed())

    def _apt(self, verb: str, *names: str) -> None:
        self._machine.done("apt-get", "-q", "-y", "-o", "Dpkg::Options::=--force-confdef", verb, *names)

    def _is(self, path: str) -> bool:
        return self._machine.tried("test", "-e", path).returncode == 0

    def _failed(self) -> list[str]:
        return self._machine.done("systemctl", "list-units", "--failed", "--no-legend", "--plain").splitlines()

    def _asked(self, path: str) -> Any:
        """Return what the API answers; None while there is no controller."""
        code = f"import urllib.request; print(urllib.request.urlopen('{API}{path}').read().decode())"
        done = self._machine.tried("python3", "-c", code)
        return None if done.returncode else json.loads(done.stdout)

    def _reservations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = self._asked(f"/v1/reservations?limit={LISTED}{cursor}")
            found += [
                {name: one[name] for name in ("id", "state", "rate_bps", "start", "end")}
                for one in page["reservations"]
            ]
            if page["next"] is None:
                return sorted(found, key=lambda one: str(one["id"]))
            cursor = f"&cursor={page['next']}"

    def _all_stay(self, when: str) -> None:
        now = self._reservations()
        self.aims[f"{when}: reservations that stay as they were"] = equal(
            len([one for one in now if one in self._reserved]), RESERVATIONS
        )

    def _switches_up(self) -> None:
        def up() -> bool:
            switches = self._asked("/v1/switches")
            return bool(switches) and all(one["connected"] for one in switches)

        eventually(up, within_s=UP_WITHIN_S, what="the switches are connected")

    def _agent_up(self) -> None:
        def holds() -> bool:
            here = next((one for one in self._asked("/v1/hosts") or [] if one["name"] == HOST), None)
            return bool(
                here and here["connected"] and here["allocations"] and here["sent_epoch"] == here["confirmed_epoch"]
            )

        eventually(holds, within_s=UP_WITHIN_S, what="the agent holds the plan")

    def _restarted(self, times: int, within_s: float) -> None:
        def again() -> bool:
            counts = [self._machine.unit(unit, "NRestarts") for unit in SERVICES]
            states = [self._machine.unit(unit, "ActiveState") for unit in SERVICES]
            return (set(counts), set(states)) == ({str(times)}, {"active"})

        eventually(again, within_s=within_s, what=f"both started {times} times again")

    def _held(self, when: str, *ways: str) -> None:
        """Send, one after another, and look at what the kernel makes of it."""
        for each in ways:
            sender, receiver, *addresses = SENT[each]
            sent = json.loads(self._machine.done(*AS_A_UNIT, "python3", "send.py", *addresses, SENDS_S))
            self._algorithms.add(sent["algorithm"])
            allocations = self._asked("/v1/plan")["installed"]["allocations"]
            planned = sum(one["payload_bps"] for one in allocations if (one["from"], one["to"]) == (sender, receiver))
            how = f"{when}: {each}"
            self.aims[f"{how}: the kernel part has the connection"] = equal(bool(sent["algorithm"]), True)
            self.aims[f"{how}: its pace over the plan"] = within(sent["pacing_bps"] / planned, 0.995, 1.005)
            self.aims[f"{how}: delivered over the plan"] = within(sent["delivered_bps"] / planned, 0.995, 1.005)
            self.aims[f"{how}: bytes that have arrived"] = above(sent["acked_bytes"], 0)


def main() -> int:
    """Go through all of it; write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, what in (("root", "Debian's files"), ("old", "folder of packages"), ("new", "folder of packages")):
        parser.add_argument(f"--{name}", type=Path, required=True, help=what)
    parser.add_argument("--image", type=Path, required=True, help="the controller's OCI archive")
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json")
    asked = parser.parse_args()
    with DebianMachine(asked.root, asked.out) as machine:
        deployment = Deployment(machine, packages.found(asked.old), packages.found(asked.new))
        steps = deployment.steps()
        try:
            for number, step in enumerate(steps):
                tell(0.4 + 0.6 * number / len(steps), step.__name__.replace("_", " "))
                step()
        finally:
            (asked.out / "journal.log").write_text(machine.tried("journalctl", "--no-pager").stdout)
    report = stated(deployment.aims | container.aims(asked.image, NETWORK, asked.out / "image"))
    write_report(asked.out, report)
    print_aims(asked.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
