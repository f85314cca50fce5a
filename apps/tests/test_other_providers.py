"""A kind of provider that another package brings: installed by pip, and known by the configuration."""

import subprocess
import sys
from pathlib import Path

import pytest

from apps.configuration import parsed
from controller.errors import ConfigError
from controller.plan.purchases import Period, PurchaseState
from controller.security import pki_files
from mininet_tests.testing.networks import chile_illinois
from topology.network_text import section_of

MODULE = '''"""Sells circuits of a portal that nobody else has."""

from controller.plan.purchases import Terms
from controller.providers.kinds import ProviderKind, Seller
from controller.providers.static import StaticProvider
from controller.settings.sections import Section


TERMS = Terms(lead_us=7_000_000, tail_us=0, min_duration_us=1, gap_us=1)


class PortalSection(Section):
    desk: str
    vlan: int


class Portal(StaticProvider):
    def __init__(self, now_us):
        super().__init__()
        self.now_us = now_us

    @property
    def terms(self):
        return TERMS


def _seller(section, mtu_bytes, problems):
    if section.desk == "closed":
        problems.at("desk").add("nobody is there")
        return None
    return Seller("portal", TERMS, {"vlan": section.vlan}, Portal)


PORTAL = ProviderKind(PortalSection, _seller)
'''
SETUP = """[metadata]
name = headway-portal
version = 1
[options]
py_modules = headway_portal
[options.entry_points]
headway.providers =
    portal = headway_portal:PORTAL
    broken = headway_portal_missing:KIND
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that pip has installed the package into."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "headway_portal.py").write_text(MODULE)
    (source / "setup.cfg").write_text(SETUP)
    (source / "pyproject.toml").write_text('[build-system]\nrequires = ["setuptools"]\n')
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--target", target, source], check=True)
    return Path(target)


@pytest.fixture
def beside(installed, monkeypatch):
    """It stands beside Headway."""
    monkeypatch.syspath_prepend(installed)


def configured(vlans=None, folder=Path(), **circuit):
    """The settings of a site whose circuit is sold by somebody; the network's file says the VLANs at its ends."""
    network = section_of(chile_illinois(10**10))
    for end, vlan in (vlans or {}).items():
        network["circuits"]["chile-illinois"][end]["vlan"] = vlan
    listen = {"rest": "127.0.0.1:8080", "openflow": "127.0.0.1:6653", "agents": "127.0.0.1:50051"}
    data = {"network": network, "listen": listen, "circuits": {"chile-illinois": circuit}}
    return parsed(data, "test.yaml", folder)


@pytest.mark.usefixtures("beside")
def test_a_provider_of_another_package_sells_a_circuit():
    settings = configured(portal={"desk": "open", "vlan": 300}, vlan_vid=300)
    assert settings.site.lead_us == {"chile-illinois": 11_000_000}
    provider = settings.sellers["chile-illinois"].connected(lambda: 7)
    assert provider.now_us() == 7
    assert provider.reserve("x", Period(0, 1, 1))
    assert provider.status("x").state is PurchaseState.UP


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize(
    ("circuit", "problem"),
    [
        ({"portal": {"desk": "closed", "vlan": 3}}, "circuits.chile-illinois.portal.desk: nobody is there"),
        ({"portal": {"desk": "open", "vlan": 3, "x": 1}}, "circuits.chile-illinois.portal.x: there is no such key"),
        (
            {"portal": {"desk": "open", "vlan": 3}, "vlan_vid": 4},
            "circuits.chile-illinois: vlan_vid is 4, and portal.vlan",
        ),
        (
            {"broken": {}},
            "circuits.chile-illinois.broken: headway_portal_missing:KIND cannot be loaded",
        ),
        ({"portal": {}, "nsi": {}}, "circuits.chile-illinois: it is bought of one provider, not of portal and nsi"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_its_place(circuit, problem):
    with pytest.raises(ConfigError) as error:
        configured(**circuit)
    assert any(found.startswith(problem) for found in error.value.problems), error.value.problems


def test_a_kind_that_is_not_installed_is_told_with_those_that_are():
    with pytest.raises(ConfigError, match="no such provider is installed; there are nsi, oscars"):
        configured(portal={})


NSI = {
    "url": "https://proxy.example/aggregator-proxy",
    "requester_nsa": "urn:ogf:network:site.example:2025:nsa:headway",
    "provider_nsa": "urn:ogf:network:aggregator.example:2025:nsa:safnari",
    "source": "urn:ogf:network:north.example:2025:topology:chile?vlan=2000",
    "dest": "urn:ogf:network:south.example:2025:topology:illinois?vlan=2000",
}


def test_a_circuit_of_nsi_has_its_lead_time_and_its_vlan():
    assert configured(nsi=NSI, vlan_vid=2000).site.lead_us == {"chile-illinois": 304_000_000}


def test_files_of_a_seller_begin_at_the_folder_of_the_configuration(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of-the-test")
    secret.chmod(0o600)
    pki_files.init(tmp_path, "example", pki_files.now(), 1000)
    login = {"url": "https://login.example/token", "client": "c", "secret_file": "secret"}
    for credentials in ({"token_file": "secret"}, {"login": login}):
        found = configured(folder=tmp_path, nsi=NSI | credentials | {"tls": {"ca": "ca.pem"}})
        assert "chile-illinois" in found.sellers
    with pytest.raises(ConfigError) as error:
        configured(folder=tmp_path, nsi=NSI | {"token_file": "none"})
    assert f"file {tmp_path}/none: cannot be read" in error.value.problems[0]


OPEN = NSI | {"dest": NSI["dest"].partition("?")[0]}


@pytest.mark.parametrize(
    ("vlans", "nsi"), [({"a": 100, "z": 200}, NSI), ({"a": 2000, "z": 200}, NSI), ({"a": 100, "z": 200}, OPEN)]
)
def test_a_circuit_that_is_bought_in_another_vlan_than_the_networks_file_says_is_told(vlans, nsi):
    with pytest.raises(ConfigError) as error:
        configured(vlans=vlans, nsi=nsi)
    (problem,) = error.value.problems
    assert problem.startswith("circuits.chile-illinois: the network's file hands it over in VLAN ")
    assert "nsi.source is 2000" in problem


@pytest.mark.parametrize(
    ("vlans", "nsi"),
    [
        ({}, NSI),
        ({"a": 2000}, NSI),
        ({"a": 2000, "z": 2000}, NSI),
        ({"a": 200, "z": 2000}, OPEN),
        ({"a": 200, "z": 300}, OPEN | {"source": NSI["source"].partition("?")[0]}),
    ],
)
def test_a_circuit_whose_vlans_are_not_said_otherwise_is_right(vlans, nsi):
    assert "chile-illinois" in configured(vlans=vlans, nsi=nsi).sellers


@pytest.mark.parametrize("url", ["https://login.example:8201x/token", "https://login.example:82011/token"])
def test_a_login_at_a_port_that_there_is_not_is_told_with_its_place(url, monkeypatch):
    monkeypatch.setenv("LOGIN_SECRET", "of-the-test")
    with pytest.raises(ConfigError) as error:
        configured(nsi=NSI | {"login": {"url": url, "client": "c", "secret_env": "LOGIN_SECRET"}})
    assert error.value.problems[0].startswith("circuits.chile-illinois.nsi.login: need the URL of a token endpoint")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"source": "chile"}, 'nsi: "chile" is no STP'),
        ({"provider_nsa": "safnari"}, 'nsi: "safnari" is no NSA'),
        ({"dest": NSI["source"]}, "nsi: both ends of the circuit are"),
        ({"url": "proxy"}, 'nsi: "proxy" is no URL'),
        ({"url": "https://proxy:8201x"}, 'nsi: "https://proxy:8201x" is no URL'),
        ({"callback": "https://us:82011"}, 'nsi: "https://us:82011" is no URL'),
        ({"rate_step": "1 kbit/s"}, "nsi: NSI sells whole Mbit/s"),
        ({"tls": {"ca": "/no/such/file"}}, "nsi.tls: cannot be used"),
        ({"token_env": "NO_SUCH_TOKEN"}, "nsi: token_env or token_file: environment variable NO_SUCH_TOKEN"),
        ({"login": {"url": "x", "client": "c"}}, "nsi.login: secret_env or secret_file"),
    ],
)
def test_what_is_wrong_with_a_circuit_of_nsi(change, problem):
    with pytest.raises(ConfigError) as error:
        configured(nsi=NSI | change)
    assert any(p.startswith(f"circuits.chile-illinois.{problem}") for p in error.value.problems), error.value.problems
