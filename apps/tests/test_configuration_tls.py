"""The sections ``tls`` and ``insecure`` of the controller's configuration."""

import pytest

from apps.configuration import load, parsed
from apps.plain_text import plain_ports
from controller.errors import ConfigError
from controller.security import pki_files
from controller.settings.listen import UnixSocket
from controller.settings.network import network_in
from mininet_tests.testing import networks
from topology.certificates import CLIENT_URI, OVSDB_URI, REST_URI, Kind, switch_uri

NETWORK = str(networks.FILES["chile-illinois"])
LEAST = {"network": NETWORK}
FILES = {
    "authority": "ca.pem",
    "certificate": "controllers/ctl.pem",
    "key": "controllers/ctl.key",
    "revoked": "crl.pem",
}


@pytest.fixture
def folder(tmp_path):
    """The folder of an authority with a controller and an agent."""
    now = pki_files.now()
    pki_files.init(tmp_path, "example", now, 100)
    pki_files.make(tmp_path, Kind.CONTROLLER, ("ctl",), now, 50)
    pki_files.make(tmp_path, Kind.AGENT, ("base20",), now, 50)
    return tmp_path


def agents_at(address, **more):
    return LEAST | {"listen": {"agents": address}} | more


def problems_of(data, folder):
    with pytest.raises(ConfigError) as caught:
        parsed(data, "c.yaml", folder)
    return caught.value.problems


def test_paths_begin_at_the_folder_of_the_configuration(folder):
    tls = parsed(agents_at("0.0.0.0:50051", tls=FILES), "c.yaml", folder).tls
    assert tls.files == tuple(str(folder / FILES[name]) for name in ("key", "certificate", "authority", "revoked"))
    (folder / "c.yaml").write_text(f"network: {NETWORK}\ntls: {{authority: x, certificate: y, key: z}}\n")
    with pytest.raises(ConfigError, match=f"tls.authority: {folder}/x: No such file"):
        load(folder / "c.yaml")


@pytest.mark.parametrize("address", ["127.0.0.1:50051", "localhost:1", "[::1]:1", "unix:/run/headway/agents.sock"])
def test_on_the_machine_itself_nobody_is_asked(address, tmp_path):
    assert str(parsed(agents_at(address), "c.yaml", tmp_path).agents) == address


def test_a_path_to_listen_at_is_one(tmp_path):
    assert parsed(agents_at("unix:/run/a"), "c.yaml", tmp_path).agents == UnixSocket("/run/a")


@pytest.mark.parametrize("address", ["0.0.0.0:50051", "192.0.2.1:50051", "[::]:50051", "ctl.example.org:50051"])
def test_a_port_that_others_can_reach_needs_tls_or_a_word(address, tmp_path):
    (problem,) = problems_of(agents_at(address), tmp_path)
    assert problem.startswith(f"listen.agents: {address} can be reached from other machines")
    assert "headway pki init DIR" in problem
    assert parsed(agents_at(address, insecure=True), "c.yaml", tmp_path).tls is None


@pytest.mark.parametrize("address", ["ssl:0.0.0.0:50051", "tcp:127.0.0.1:50051", "[::1:50051", "a b:50051"])
def test_what_is_before_the_port_of_agents_is_an_address_or_a_name(address, folder):
    assert problems_of(agents_at(address, tls=FILES), folder) == (
        f'listen.agents: "{address}" is not an address to listen at, try "127.0.0.1:8080"',
    )


def switches_at(address, **more):
    return LEAST | {"listen": {"openflow": address}} | more


def test_switches_of_other_machines_are_asked_who_they_are_unless_it_is_said_that_they_are_not(folder):
    (problem,) = problems_of(switches_at("192.0.2.1:6653"), folder)
    assert problem.startswith("listen.openflow: 192.0.2.1:6653 can be reached from other machines")
    (problem,) = problems_of(switches_at("ssl:192.0.2.1:6653"), folder)
    assert problem == 'listen.openflow: "ssl:192.0.2.1:6653" needs the section tls, see docs/pki.md'
    secured = parsed(switches_at("ssl:192.0.2.1:6653", tls=FILES), "c.yaml", folder)
    assert (str(secured.openflow), secured.switches_tls) == ("192.0.2.1:6653", secured.tls)
    assert secured.tls is not None
    plain = [switches_at("tcp:192.0.2.1:6653", tls=FILES), switches_at("127.0.0.1:6653", tls=FILES)]
    plain += [switches_at("192.0.2.1:6653", insecure=True)]
    assert [parsed(one, "c.yaml", folder).switches_tls for one in plain] == [None, None, None]


REST = {"certificate": "rest/ctl.pem", "key": "rest/ctl.key"}


def rest_at(address, **more):
    return LEAST | {"access": {}, "listen": {"rest": address, **more}}


def test_rest_is_plain_for_other_machines_only_where_that_is_said(folder):
    pki_files.make(folder, Kind.REST, ("ctl", "192.0.2.1", REST_URI), pki_files.now(), 30)
    (problem,) = problems_of(rest_at("192.0.2.1:8080"), folder)
    assert "tokens be read on the way" in problem
    assert "headway pki rest DIR" in problem
    secured = parsed(rest_at("192.0.2.1:8080", tls=REST | {"clients": "ca.pem", "revoked": "crl.pem"}), "c", folder)
    assert secured.rest_tls is not None
    assert not secured.rest_tls.is_mutual
    assert secured.names >= {"ctl", "192.0.2.1"}, "it is asked for by the names of its certificate"
    assert str(secured.rest) == "192.0.2.1:8080"
    assert parsed(rest_at("tcp:192.0.2.1:8080"), "c", folder).rest_tls is None
    assert problems_of(rest_at("ssl:192.0.2.1:1"), folder) == (
        'listen.rest: "ssl:192.0.2.1:1" needs listen.tls, its certificate and key: see docs/pki.md',
    )
    (problem,) = problems_of(rest_at("tcp:192.0.2.1:1", tls=REST), folder)
    assert "is plain text, and there is listen.tls" in problem


def test_what_is_wrong_with_the_files_of_rest_is_told(folder):
    pki_files.make(folder, Kind.CLIENT, ("ana", f"{CLIENT_URI}ana"), pki_files.now(), 30)
    own = {"certificate": "clients/ana.pem", "key": "nowhere", "revoked": "crl.pem"}
    told = problems_of(rest_at("0.0.0.0:1", tls=own, proxies=["192.0.2.7", "proxy"]), folder)
    assert [one.partition(" ")[0] for one in told] == [
        "listen.tls.revoked:",
        "listen.tls.key:",
        "listen.tls.certificate:",
        "listen.proxies[1]:",
    ]
    assert "must be that of REST's port, and is that of a person or script" in told[2]
    (folder / "other.pem").write_text("nonsense")
    (problem,) = problems_of(rest_at("0.0.0.0:1", tls=REST | {"clients": "other.pem"} | own_rest(folder)), folder)
    assert problem == f"listen.tls.clients: {folder}/other.pem is no certificate in PEM"


def test_a_list_of_revoked_clients_is_of_their_authority_or_every_client_would_be_refused(folder):
    pki_files.init(folder / "other", "another", pki_files.now(), 30)
    of_another = own_rest(folder) | {"clients": "ca.pem", "revoked": "other/crl.pem"}
    assert problems_of(rest_at("0.0.0.0:1", tls=of_another), folder) == (
        f"listen.tls.revoked: {folder}/other/crl.pem is not signed by the authority",
    )
    (folder / "none.pem").write_text("nonsense")
    (problem,) = problems_of(rest_at("0.0.0.0:1", tls=of_another | {"revoked": "none.pem"}), folder)
    assert problem.startswith(f"listen.tls.revoked: {folder}/none.pem is no list of revoked ones"), "said once"


def test_who_is_known_by_a_certificate_must_be_asked_for_one(folder):
    known = {"access": {"certificates": {"ana": {"role": "reserve"}}}}
    for listen in ({}, {"listen": {"tls": own_rest(folder)}}):
        (problem,) = problems_of(LEAST | known | listen, folder)
        assert problem.startswith("access.certificates: nobody is asked for a certificate: say listen: {tls: {")
    asked = LEAST | known | {"listen": {"tls": REST | {"clients": "ca.pem"}}}
    assert parsed(asked, "c", folder).access.certificates["ana"].name == "certificate:ana"
    (problem,) = problems_of(LEAST | known | {"listen": {"tls": REST | {"client": "ca.pem"}}}, folder)
    assert problem == "listen.tls.client: there is no such key", "and nothing of what that has kept from being read"


def test_a_name_that_no_certificate_has_and_a_group_that_owns_nothing_are_refused(tmp_path):
    said = {
        "ana lopez": {"role": "read"},
        "ana@example.org": {"role": "read", "groups": ["lsst ops", "", "é"]},
    }
    problems = problems_of(LEAST | {"insecure": True, "access": {"certificates": said}}, tmp_path)
    assert problems == (
        "access.certificates.ana lopez: no certificate has this name, try that of headway pki client DIR NAME",
        'access.certificates.ana@example.org.groups[1]: "" is no group, try "lsst"',
        'access.certificates.ana@example.org.groups[2]: "é" is no group, try "lsst"',
    )


def own_rest(folder):
    """Files of REST that are good."""
    pki_files.make(folder, Kind.REST, ("ctl", REST_URI), pki_files.now(), 30, force=True)
    return REST


def test_a_switchs_database_is_asked_by_tls_with_what_switches_trust(folder):
    asked = LEAST | {"ovsdb": {"ls1": "ssl:192.0.2.1:6640"}}
    (problem,) = problems_of(asked | {"tls": FILES}, folder)
    assert problem.startswith('ovsdb.ls1: "ssl:192.0.2.1:6640" needs what is shown to switches')
    assert "headway pki ovsdb DIR" in problem
    (problem,) = problems_of(asked | {"tls": FILES | {"switches": shown_by("controllers/ctl")}}, folder)
    assert "tls.switches.certificate" in problem
    assert "must be that of a controller towards switches, and is that of a controller" in problem
    pki_files.init(folder / "ovsdb", "example", pki_files.now(), 30)
    pki_files.make(folder / "ovsdb", Kind.OVSDB, ("ctl", OVSDB_URI), pki_files.now(), 30)
    own = FILES | {"switches": shown_by("ovsdb/controllers/ctl")}
    settings = parsed(asked | {"tls": own, "listen": {"openflow": "ssl:0.0.0.0:6653"}}, "c", folder)
    assert settings.ovsdb_tls is not None
    assert settings.ovsdb_tls.certificate == str(folder / "ovsdb/controllers/ctl.pem")
    assert settings.ovsdb_tls.authority == str(folder / "ca.pem"), "which has signed for switches"
    assert settings.switches_tls == settings.ovsdb_tls, "a switch trusts one authority, for OpenFlow too"


def shown_by(stem):
    return {"certificate": f"{stem}.pem", "key": f"{stem}.key"}


def test_a_switchs_certificate_is_not_the_controllers(folder):
    pki_files.make(folder, Kind.SWITCH, ("ls1", switch_uri(1)), pki_files.now(), 30)
    own = FILES | {"certificate": "switches/ls1.pem", "key": "switches/ls1.key"}
    (problem,) = problems_of(agents_at("0.0.0.0:1", tls=own), folder)
    assert "must be that of a controller, and is that of a switch" in problem


def test_each_start_warns_of_each_port_that_speaks_plain_text_over_a_network(folder):
    own_rest(folder)
    at = {name: f"tcp:192.0.2.1:{port}" for port, name in enumerate(("rest", "openflow"), 6650)}
    open_to_all = {"local": "read", "anybody": "read"}
    plain = LEAST | {"listen": at | {"agents": "192.0.2.1:50051"}, "insecure": True, "access": open_to_all}
    plain |= {"ovsdb": {"ls1": "tcp:192.0.2.2:6640", "ch1": "tcp:127.0.0.1:6640"}}
    found = [
        (one.event.removesuffix(".plain_text"), one.address) for one in plain_ports(parsed(plain, "c.yaml", folder))
    ]
    assert found == [
        ("rest", "192.0.2.1:6650"),
        ("openflow", "192.0.2.1:6651"),
        ("agents", "192.0.2.1:50051"),
        ("ovsdb", "tcp:192.0.2.2:6640"),
    ]
    here = {"openflow": "127.0.0.1:6653", "rest": "[::1]:8080", "agents": "unix:/run/headway/agents.sock"}
    assert list(plain_ports(parsed(LEAST | {"listen": here}, "c.yaml", folder))) == []
    secured = {"listen": {"openflow": "ssl:192.0.2.1:6653", "agents": "192.0.2.1:50051"}, "tls": FILES}
    assert list(plain_ports(parsed(LEAST | secured, "c.yaml", folder))) == []


def test_tls_and_insecure_together_cannot_be_meant(folder):
    (problem,) = problems_of(agents_at("0.0.0.0:1", tls=FILES, insecure=True), folder)
    assert problem.startswith("insecure: says that TLS is not wanted")


@pytest.mark.parametrize("section", ["access", "listen"])
def test_a_section_that_is_not_well_formed_does_not_make_tls_look_unwanted(folder, section):
    (problem,) = problems_of(LEAST | {"tls": FILES, section: {"lokal": "read"}}, folder)
    assert problem == f"{section}.lokal: there is no such key"


def test_everything_wrong_with_the_files_is_told_with_everything_else(folder):
    (folder / "crl.pem").write_bytes(b"")
    files = FILES | {"certificate": "agents/base20.pem", "key": "nowhere.key"}
    other = "must be that of a controller, and is that of an agent; make it by: headway pki controller"
    assert problems_of(agents_at("here", tls=files), folder) == (
        'listen.agents: "here" is not an address to listen at, try "127.0.0.1:8080"',
        f"tls.key: {folder}/nowhere.key: No such file or directory",
        f"tls.revoked: {folder}/crl.pem is empty",
        f"tls.certificate: {folder}/agents/base20.pem {other}",
    )


def test_an_unknown_key_of_tls_is_refused(folder):
    assert problems_of(LEAST | {"tls": FILES | {"revoke": "x"}}, folder) == ("tls.revoke: there is no such key",)


def test_the_network_can_be_read_before_there_are_certificates(tmp_path):
    (tmp_path / "c.yaml").write_text(f"network: {NETWORK}\ntls: {{authority: nowhere}}\n")
    assert "base20" in {host.name for host in network_in(tmp_path / "c.yaml").hosts}
    (tmp_path / "c.yaml").write_text("network: nowhere.yaml\n")
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        network_in(tmp_path / "c.yaml")
