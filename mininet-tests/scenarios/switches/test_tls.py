"""Mutual TLS with a real Open vSwitch, for OpenFlow and for OVSDB."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller.security import pki_files
from controller.security.tls import ServerTls
from controller.southbound.errors import DatabaseGone
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.recorder import RecordedSwitches, new_term
from controller.southbound.ovsdb.queues import PortQueues, Queue
from controller.southbound.ovsdb.writer import QueueWriter
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.userspace_switch import DPID, bridge_settings, in_switch_namespace, listening, private_ovs
from mininet_tests.testing.eventually import eventually
from topology.certificates import OVSDB_URI, Kind, switch_uri

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or None in map(shutil.which, ("ovs-vswitchd", "openssl")),
        reason="needs root, openssl and Open vSwitch 2.17 or newer",
    ),
]


def openssl(*arguments: str) -> None:
    """Run openssl in silence."""
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def signed(directory: Path, name: str, authority: str) -> ServerTls:
    """A key and a certificate for ``name`` signed by an authority, which is made if need be."""
    key, request, certificate = (str(directory / f"{name}.{kind}") for kind in ("key", "csr", "pem"))
    ca_key, ca = (str(directory / f"{authority}.{kind}") for kind in ("key", "pem"))
    fresh = ["-newkey", "rsa:2048", "-nodes"]
    if not Path(ca).exists():
        openssl("req", "-x509", *fresh, "-keyout", ca_key, "-out", ca, "-subj", f"/CN={authority}", "-days", "2")
    openssl("req", *fresh, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    bound = directory / "switch.ext"
    bound.write_text(f"subjectAltName=URI:{switch_uri(DPID)}\n")
    own = ["-CAcreateserial", "-extfile", str(bound), "-out", certificate]
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, *own)
    return ServerTls(key, certificate, ca)


@pytest.fixture
def ovs(tmp_path: Path) -> Iterator[PrivateOvs]:
    """A switch without a bridge."""
    with private_ovs(tmp_path, {}) as switch:
        yield switch


def use(ovs: PrivateOvs, tls: ServerTls, target: str) -> None:
    """Give the switch its certificate and point it at the controller."""
    ovs.vsctl("set-ssl", tls.key, tls.certificate, tls.authority)
    ovs.vsctl(
        "--may-exist",
        "add-br",
        "s1",
        "--",
        "set",
        "bridge",
        "s1",
        *bridge_settings(),
        "--",
        "set-controller",
        "s1",
        target,
    )


def made_by(authority: Path, kind: Kind, *its_names: str) -> ServerTls:
    """Return the files of a certificate that the authority in a folder has made."""
    made = pki_files.make(authority, kind, its_names, pki_files.now(), days=2)
    return ServerTls(str(made.key), str(made.certificate), str(authority / "ca.pem"), str(authority / "crl.pem"))


def refused(logs: list[Any], event: str, why: str) -> bool:
    """Return whether somebody was turned away for a reason."""
    return any(each["event"] == event and why in str(each) for each in logs)


def test_only_the_certificate_of_its_own_datapath_id_makes_a_switch_until_it_is_revoked(ovs, tmp_path):
    pki_files.init(tmp_path, "test", pki_files.now(), days=2)
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, new_term())
    ours = made_by(tmp_path, Kind.CONTROLLER, "ctl")
    framework = listening(sessions, ours)
    target = f"ssl:127.0.0.1:{framework.port}"
    try:
        with capture_logs() as logs:
            use(ovs, made_by(tmp_path, Kind.AGENT, "base20"), target)
            not_a_switch = ("openflow.connection_failed", "not that of a switch")
            eventually(lambda: refused(logs, *not_a_switch), within_s=60, what="an agent's certificate is refused")
            use(ovs, made_by(tmp_path, Kind.SWITCH, "s2", switch_uri(DPID + 1)), target)
            not_its_own = ("switch.not_its_own", f"{DPID + 1:016x}")
            eventually(lambda: refused(logs, *not_its_own), within_s=60, what="another's certificate is refused")
            assert listener.told == []
            pki_files.make(tmp_path, Kind.CONTROLLER, ("ctl",), pki_files.now(), days=1, force=True)  # another key
            use(ovs, made_by(tmp_path, Kind.SWITCH, "s1", switch_uri(DPID)), target)
            eventually(lambda: listener.told == [DPID], within_s=60, what="our switch connects, to the new key")
            eventually(lambda: refused(logs, "tls.read", ""), within_s=60, what="the new files were read")
            pki_files.revoke(tmp_path, "s1", pki_files.now())
            eventually(lambda: listener.told[:2] == [DPID, -DPID], within_s=60, what="it is cut off")
            eventually(lambda: refused(logs, "openflow.connection_failed", "revoked"), within_s=60, what="it stays out")
            assert listener.told == [DPID, -DPID]
    finally:
        framework.stop()
        sessions.close()


def test_a_stranger_is_turned_away_and_a_switch_of_ours_keeps_its_connection_under_load(ovs, tmp_path):
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, new_term())
    framework = listening(sessions, signed(tmp_path, "controller", "ca"))
    target = f"ssl:127.0.0.1:{framework.port}"
    try:
        stranger = signed(tmp_path, "stranger", "other-ca")
        with capture_logs() as logs:
            use(ovs, ServerTls(stranger.key, stranger.certificate, str(tmp_path / "ca.pem")), target)
            eventually(
                lambda: "openflow.connection_failed" in [each["event"] for each in logs],
                within_s=10,
                what="the stranger has tried",
            )
        assert listener.told == []
        use(ovs, signed(tmp_path, "switch", "ca"), target)
        eventually(lambda: listener.told, within_s=20, what="our switch connects")
        deadline_s, reads = time.monotonic() + 3, 0
        while time.monotonic() < deadline_s:
            sessions.installed(DPID)
            reads += 1
        print(f"{reads} read-backs over TLS in 3 s")
        assert listener.told == [DPID]
    finally:
        framework.stop()
        sessions.close()


def test_the_end_of_a_switchs_certificate_is_known_anew_when_it_calls_again_and_not_when_it_is_gone(ovs, tmp_path):
    pki_files.init(tmp_path, "test", pki_files.now(), days=800)
    sessions = SwitchSessions(RecordedSwitches(), new_term())
    framework = listening(sessions, made_by(tmp_path, Kind.CONTROLLER, "ctl"))
    first = pki_files.make(tmp_path, Kind.SWITCH, ("s1", switch_uri(DPID)), pki_files.now(), days=2)
    shown = ServerTls(str(first.key), str(first.certificate), str(tmp_path / "ca.pem"))

    def seen() -> dict[int, int]:
        return {dpid: one.end_s for dpid, one in sessions.certificates().items()}

    try:
        with capture_logs() as logs:
            use(ovs, shown, f"ssl:127.0.0.1:{framework.port}")
            eventually(lambda: seen() == {DPID: first.issued.ends_s}, within_s=60, what="the end is known")
            assert refused(logs, "switch.certificate_ending", f"{DPID:016x}")
        renewed = pki_files.renew(tmp_path, Kind.SWITCH, "s1", pki_files.now(), days=700)
        first.key.touch()  # or Open vSwitch would not read the certificate: openvswitch/ovs-issues, 365
        with capture_logs() as logs:
            ovs.appctl("bridge/reconnect")
            eventually(lambda: seen() == {DPID: renewed.issued.ends_s}, within_s=60, what="the renewed one's is known")
            assert not refused(logs, "switch.certificate_ending", "")
        ovs.kill_switch()
        eventually(lambda: seen() == {}, within_s=60, what="of who is gone nothing is known")
    finally:
        framework.stop()
        sessions.close()


OVSDB_PORT = 16_640


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A site's authority, with that of what controllers show to switches."""
    folder = tmp_path / "pki"
    pki_files.init(folder, "test", pki_files.now(), days=2)
    pki_files.init(folder / pki_files.TO_SWITCHES, "test", pki_files.now(), days=2)
    return folder


def shown_to_switches(authority: Path) -> ServerTls:
    """The controller's files, of a new key."""
    own = authority / pki_files.TO_SWITCHES
    made = pki_files.make(own, Kind.OVSDB, ("ctl", OVSDB_URI), pki_files.now(), days=2, force=True)
    return ServerTls(str(made.key), str(made.certificate), str(authority / "ca.pem"), str(authority / "crl.pem"))


def serves_its_database(ovs: PrivateOvs, authority: Path, dpid: int = DPID) -> None:
    """Give the switch a certificate for a datapath id; it lets in whom the controllers' authority has signed."""
    made = pki_files.make(authority, Kind.SWITCH, ("s1", switch_uri(dpid)), pki_files.now(), days=2, force=True)
    trusted = authority / pki_files.TO_SWITCHES / "ca.pem"
    use(ovs, ServerTls(str(made.key), str(made.certificate), str(trusted)), "ptcp:0:127.0.0.1")
    ovs.vsctl("set-manager", f"pssl:{OVSDB_PORT}:127.0.0.1")


def drafted(ovs: PrivateOvs, tls: ServerTls, authority: str) -> subprocess.CompletedProcess[str]:
    """What headway network draft says of the switch's database; the namespace is that of who connects."""
    files = "--certificate", tls.certificate, "--authority", authority
    command = [HEADWAY, "network", "draft", f"ssl:127.0.0.1:{OVSDB_PORT}", *files]
    return subprocess.run(command, env=ovs.environment, capture_output=True, text=True, check=False, timeout=30)


def test_a_network_is_drafted_by_tls_and_each_end_must_know_the_other(ovs, authority):
    serves_its_database(ovs, authority)
    ours = shown_to_switches(authority)
    with in_switch_namespace():
        done = drafted(ovs, ours, ours.authority)
        assert f'switch: {{name: s1, dpid: "{DPID:016x}"}}' in done.stdout, done.stderr
        wrong = str(authority / pki_files.TO_SWITCHES / "ca.pem")
        unknown = drafted(ovs, ours, wrong)
        stranger = drafted(ovs, made_by(authority, Kind.SWITCH, "s9", switch_uri(9)), ours.authority)
    assert (unknown.returncode, stranger.returncode) == (1, 1)
    assert f"ssl:127.0.0.1:{OVSDB_PORT}: " in unknown.stderr
    assert "authority" in unknown.stderr, unknown.stderr
    assert f"ssl:127.0.0.1:{OVSDB_PORT}: " in stranger.stderr, stranger.stderr


def queue_writer(tls: ServerTls) -> QueueWriter:
    """A writer of the queues of our switch."""
    return QueueWriter(f"ssl:127.0.0.1:{OVSDB_PORT}", tls, frozenset({DPID}))


def writes(writer: QueueWriter, rate_bps: int) -> bool:
    """Whether queues are written now; the namespace is that of who connects."""
    queues = PortQueues(rate_bps, (Queue(0, rate_bps, rate_bps, 1_000_000),))
    with contextlib.suppress(DatabaseGone):
        writer.apply({"s1": queues}, timeout_s=10)
        return writer.installed("s1") == queues
    return False


def test_queues_are_written_by_tls_while_every_key_is_replaced_until_the_switch_is_revoked(ovs, authority):
    serves_its_database(ovs, authority)
    with in_switch_namespace(), capture_logs() as logs, queue_writer(shown_to_switches(authority)) as writer:
        assert writes(writer, 1_000_000_000)
        shown_to_switches(authority)
        eventually(lambda: refused(logs, "tls.read", "ovsdb"), within_s=20, what="our new files are read")
        assert writes(writer, 2_000_000_000)
        serves_its_database(ovs, authority)  # another key of the switch, which reads it by itself
        ovs.vsctl("del-manager")
        ovs.vsctl("set-manager", f"pssl:{OVSDB_PORT}:127.0.0.1")  # and the connection is made anew, with both
        eventually(lambda: writes(writer, 3_000_000_000), within_s=60, what="it goes on with the new keys")
        pki_files.revoke(authority, "s1", pki_files.now())
        eventually(lambda: refused(logs, "ovsdb.revoked", ""), within_s=20, what="the switch is cut off")
        eventually(lambda: refused(logs, "ovsdb.untrusted", "revoked"), within_s=60, what="and stays so")
        assert not writes(writer, 4_000_000_000)


def test_the_end_of_the_certificate_of_a_database_is_known_while_it_is_connected(ovs, authority):
    serves_its_database(ovs, authority)
    (first,) = (one for one in pki_files.listed(authority) if one.kind is Kind.SWITCH)
    with in_switch_namespace(), queue_writer(shown_to_switches(authority)) as writer:

        def seen() -> tuple[int, int] | None:
            shown = writer.certificate()
            return None if shown is None else (shown[0], shown[1].end_s)

        eventually(lambda: seen() == (DPID, first.ends_s), within_s=60, what="the end is known")
        renewed = pki_files.renew(authority, Kind.SWITCH, "s1", pki_files.now(), days=1)
        renewed.key.touch()
        ovs.appctl("-t", "ovsdb-server", "ovsdb-server/reconnect")
        eventually(lambda: seen() == (DPID, renewed.issued.ends_s), within_s=60, what="the renewed one's is known")
        ovs.stop_database()
        eventually(lambda: seen() is None, within_s=60, what="of who is gone nothing is known")


def test_no_other_switch_plays_the_database_and_no_agent_is_let_in(ovs, authority):
    serves_its_database(ovs, authority, DPID + 1)
    with in_switch_namespace(), capture_logs() as logs:
        with queue_writer(shown_to_switches(authority)) as writer:
            assert not writes(writer, 1_000_000_000)
        assert refused(logs, "ovsdb.untrusted", f"{DPID + 1:016x}, whose queues are not there")
        serves_its_database(ovs, authority)
        with queue_writer(made_by(authority, Kind.AGENT, "base20")) as agent:
            assert not writes(agent, 1_000_000_000)
        assert refused(logs, "ovsdb.untrusted", "refuses our certificate") or refused(logs, "ovsdb.untrusted", "hung")
        with queue_writer(shown_to_switches(authority)) as writer:
            assert writes(writer, 1_000_000_000)


def test_what_is_shown_to_switches_serves_openflow_too(ovs, authority):
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, new_term())
    framework = listening(sessions, shown_to_switches(authority))
    try:
        made = pki_files.make(authority, Kind.SWITCH, ("s1", switch_uri(DPID)), pki_files.now(), days=2)
        trusted = authority / pki_files.TO_SWITCHES / "ca.pem"
        use(ovs, ServerTls(str(made.key), str(made.certificate), str(trusted)), f"ssl:127.0.0.1:{framework.port}")
        eventually(lambda: listener.told == [DPID], within_s=60, what="the switch connects")
    finally:
        framework.stop()
        sessions.close()
