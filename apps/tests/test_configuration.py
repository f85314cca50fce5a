"""The configuration: every problem at once, each with its path."""

import socket

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.configuration import load, parsed
from controller.database.settings import DatabaseSettings
from controller.errors import ConfigError
from controller.plan.quotas import Quota
from controller.security.access_settings import AccessSettings
from controller.security.tokens import Role
from controller.settings.listen import UnixSocket
from controller.southbound.openflow import circuit_ports
from mininet_tests.testing.networks import FILES, chile_illinois, chile_illinois_2
from topology.network import Hop
from topology.network_text import section_of
from topology.protocol import FlowClass

GOOD = {
    "network": section_of(chile_illinois(10**10)),
    "flows": [{"name": "efd", "class": "predictable", "from": "base22", "to": "arch"}],
}


HALF = {"from": "2026-12-24T10:00:00Z", "until": "2026-12-24T12:00:00Z", "rate": "5 Gbit/s"}
OSCARS = {
    "url": "https://oscars.example:8201",
    "token_env": "HEADWAY_TEST_TOKEN",
    "a": {"device": "ls-cr1", "port": "ls-cr1:1/1/c9/1", "vlan": 2000},
    "z": {"device": "ch-cr1", "port": "ch-cr1:1/1/c9/1", "vlan": 2000},
}


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("HEADWAY_TEST_TOKEN", "secret-of-the-test")


def problems(data):
    """What is wrong with a configuration."""
    with pytest.raises(ConfigError) as error:
        parsed(data, "test.yaml")
    return error.value.problems


def test_a_configuration_becomes_a_site():
    settings = parsed(GOOD, "test.yaml")
    (circuit,) = settings.site.network.circuits
    assert circuit.rate_bps == 10**10
    assert settings.database == DatabaseSettings("sqlite:////var/lib/headway/headway.db", 90 * 86_400_000_000)
    assert [f.flow_class for f in settings.site.standing] == [FlowClass.PREDICTABLE]
    assert {link.vlan_vid for _, _, link in settings.site.network.links()} == {None}
    assert settings.ovsdb == {"ls1": "unix:/run/openvswitch/db.sock", "ch1": "unix:/run/openvswitch/db.sock"}


def test_a_circuit_may_be_handed_over_as_a_vlan_at_both_ends():
    network = parsed(GOOD | {"circuits": {"chile-illinois": {"vlan_vid": 300}}}, "test.yaml").site.network
    tags = {(tail, head): link.vlan_vid for tail, head, link in network.links() if link.vlan_vid is not None}
    assert tags == {("ls1", "ch1"): 300, ("ch1", "ls1"): 300}
    assert network.framing_of(("ls1", "ch1")).vlan_tags == 1


@pytest.mark.parametrize("remote", ["unix:/run/db.sock", "tcp:192.0.2.1:6640", "tcp:[2001:db8::1]:6640"])
def test_a_switch_s_database_is_at_a_path_or_an_address(remote):
    assert parsed(GOOD | {"ovsdb": {"ls1": remote}}, "test.yaml").ovsdb["ls1"] == remote


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"netwrok": {}}, "netwrok: there is no such key"),
        ({"network": {"name": "chile-illinois", "rate": "10 Gbit/s"}}, "network: write the name of the network's file"),
        ({"network": "mars.yaml"}, "network: mars.yaml: cannot be read: No such file"),
        ({"network": "a\0b"}, "network: has a NUL character"),
        ({"network": section_of(chile_illinois(10**7))}, "policy.urgent.guarantee: 0.02% of 10 Mbit/s"),
        (
            {"flows": [{"name": "a", "class": "urgent", "from": "base1", "to": "arch"}]},
            'flows[0]: there is no host "base1"',
        ),
        (
            {"flows": [{"name": "a", "class": "fast", "from": "base20", "to": "arch"}]},
            "flows[0].class: \"fast\" is none of 'predictable', 'urgent', 'background' or 'unplanned'",
        ),
        ({"policy": {"nonsense": 1}}, "policy.nonsense: \"nonsense\" is none of 'predictable', 'urgent',"),
        ({"policy": {"urgent": 1}}, "policy.urgent: must be `key: value` pairs"),
        ({"flows": 1}, "flows: must be a list"),
        (
            {"pair": {"address": "https://a.example", "others": ["https://b.example; script-src *"]}},
            'pair.others[0]: "https://b.example; script-src *" is no address, need https://HOST:PORT',
        ),
        ({"flows": [GOOD["flows"][0]] * 2}, "flows[1].name: there is already"),
        (
            {"flows": [GOOD["flows"][0] | {"name": "a\nb"}]},
            r"flows[0].name: 'a\nb' is not a name: one line of what can be seen",
        ),
        (
            {"flows": [GOOD["flows"][0] | {"name": "a\u202eb"}]},
            r"flows[0].name: 'a\u202eb' is not a name: one line of what can be seen",
        ),
        ({"flows": [{"name": "a", "class": "urgent", "from": "base20", "to": "base21"}]}, "flows[0]: to: base20 and"),
        ({"listen": {"rest": "8080"}}, 'listen.rest: "8080" is not an address'),
        ({"ovsdb": {"s9": "unix:/x"}}, "ovsdb.s9: there is no such switch"),
        ({"ovsdb": {"ls1": "foo"}}, 'ovsdb.ls1: "foo" is no database, need unix:/PATH, ssl:ADDRESS:PORT or tcp:ADD'),
        ({"ovsdb": {"ls1": "tcp:s1.example.org:6640"}}, 'ovsdb.ls1: "tcp:s1.example.org:6640" is no database, need'),
        ({"ovsdb": {"ls1": "ssl:192.0.2.1:66400"}}, 'ovsdb.ls1: "ssl:192.0.2.1:66400" is no database, need'),
        ({"lease": "1 ms"}, "lease: must be between 300 ms and 10 min"),
        ({"circuits": {"mars": {}}}, "circuits.mars: there is no such circuit; there are chile-illinois"),
        ({"circuits": {"chile-illinois": {"schedule": [HALF, HALF]}}}, "circuits.chile-illinois.schedule: two capac"),
        (
            {"circuits": {"chile-illinois": {"schedule": [HALF | {"rate": "20 Gbit/s"}]}}},
            "circuits.chile-illinois.schedule: 20 Gbit/s is more than the circuit's 10 Gbit/s",
        ),
        (
            {"circuits": {"chile-illinois": {"schedule": [HALF | {"from": "2026-12-24T10:00:00"}]}}},
            "circuits.chile-illinois.schedule[0].from",
        ),
        (
            {"circuits": {"chile-illinois": {"oscars": OSCARS | {"token_env": "NOT_SET"}}}},
            "circuits.chile-illinois.oscars: token_env or token_file: environment variable NOT_SET: is not set",
        ),
        (
            {"circuits": {"chile-illinois": {"oscars": OSCARS | {"a": OSCARS["z"]}}}},
            "circuits.chile-illinois.oscars: both ends",
        ),
        (
            {"circuits": {"chile-illinois": {"oscars": OSCARS | {"url": "ftp://x"}}}},
            "circuits.chile-illinois.oscars: need the URL",
        ),
        (
            {"circuits": {"chile-illinois": {"vlan_vid": 4095}}},
            "circuits.chile-illinois.vlan_vid: Input should be less than 4095",
        ),
        (
            {"circuits": {"chile-illinois": {"vlan_vid": 300, "oscars": OSCARS}}},
            "circuits.chile-illinois: vlan_vid is 300, and oscars.a.vlan is",
        ),
        (
            {"circuits": {"chile-illinois": {"oscars": OSCARS, "schedule": [HALF]}}},
            "circuits.chile-illinois: one that is bought has no schedule",
        ),
        ({"store": "mysql://x"}, "store: the database's URL cannot be used"),
        ({"store": {"retention": "999999999 d"}}, 'store.retention: "999999999 d" is not between "1 d" and "36500 d"'),
        ({"policy": {"urgent": {"guarantee": "60%", "cap": "50%"}}}, "policy: urgent: need 0 < guarantee <= cap"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_with_its_path(change, problem):
    assert any(p.startswith(problem) for p in problems(GOOD | change)), problems(GOOD | change)


def test_a_schedule_is_a_time_of_another_capacity_whether_yaml_takes_it_for_a_time_or_for_text():
    text = "schedule: [{from: 2026-12-24T10:00:00Z, until: '2026-12-24T09:00:00-03:00', rate: 0 bit/s}]"
    site = parsed(GOOD | {"circuits": {"chile-illinois": yaml.safe_load(text)}}, "test.yaml").site
    (period,) = site.schedules["chile-illinois"]
    assert (period.end_us - period.start_us, period.rate_bps) == (7_200_000_000, 0)
    assert site.ledger().calendar.capacity_bps(Hop("ch1", "ls1"), period.start_us) == 0


def test_a_circuit_of_oscars_has_a_lead_time_and_its_token_is_shown_nowhere():
    settings = parsed(GOOD | {"circuits": {"chile-illinois": {"oscars": OSCARS}}}, "test.yaml")
    assert settings.site.lead_us == {"chile-illinois": 155_000_000}
    assert "secret-of-the-test" not in repr(settings)


def test_all_problems_are_told_at_once():
    assert len(problems(GOOD | {"lease": "soon", "listen": {"rset": "x"}, "network": {"name": 3}})) == 3


def test_what_does_not_fit_is_told_together_with_what_is_not_well_formed():
    wrong = GOOD | {"lease": "soon", "flows": [{"name": "a", "class": "urgent", "from": "base1", "to": "arch"}]}
    assert [problem.partition(":")[0] for problem in problems(wrong)] == ["lease", "flows[0]"]


def test_a_key_that_stands_twice_and_what_else_is_wrong_are_told_with_their_lines(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(f"network: {FILES['chile-illinois']}\nlease: 3 s\nflows:\n  - name: a\nlease: soon\n")
    with pytest.raises(ConfigError) as error:
        load(file)
    doubled, *others = error.value.problems
    assert doubled == 'line 5: the key "lease" stands on line 2 already: take one of them out'
    assert others[0].startswith("line 5: lease: ")
    assert {*others[1:]} == {f"line 4: flows[0].{key}: is missing" for key in ("class", "from", "to")}


def test_two_that_listen_at_one_address_are_told_and_not_tried():
    same = GOOD | {"listen": dict.fromkeys(("openflow", "rest", "agents"), "127.0.0.1:7000")}
    assert problems(same) == (
        "listen.rest: 127.0.0.1:7000 is where openflow listens: give it another port",
        "listen.agents: 127.0.0.1:7000 is where openflow listens: give it another port",
    )


@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        ("tcp:0.0.0.0:7000", "127.0.0.1:7000"),
        ("127.0.0.1:7000", "0.0.0.0:7000"),
        ("tcp:[::]:7000", "127.0.0.1:7000"),
        ("[::1]:7000", "[::]:7000"),
        ("127.0.0.1:7000", "localhost:7000"),
    ],
)
def test_an_address_of_all_takes_the_port_of_each(taken, wanted):
    wrong = GOOD | {"listen": {"openflow": taken, "agents": wanted}, "insecure": True}
    where = taken.removeprefix("tcp:")
    assert problems(wrong) == (f"listen.agents: {wanted} is where openflow listens, at {where}: give it another port",)


@pytest.mark.parametrize("wanted", ["[::1]:7000", "0.0.0.0:7001"])
def test_a_port_of_another_family_or_number_is_free(wanted):
    right = GOOD | {"listen": {"openflow": "tcp:0.0.0.0:7000", "agents": wanted}, "insecure": True}
    assert str(parsed(right, "c.yaml").agents) == wanted


def test_a_path_to_listen_at_has_as_many_bytes_as_the_system_takes():
    for length, wrong in ((107, False), (108, True)):
        path = "/" + "é" * ((length - 1) // 2) + "x" * ((length - 1) % 2)
        listen = {"listen": {"agents": f"unix:{path}", "rest_socket": f"{path[:-1]}y"}}
        found = problems(GOOD | listen) if wrong else ()
        assert [one.partition(":")[0] for one in found] == (["listen.agents", "listen.rest_socket"] if wrong else [])
        assert all("a path to listen at has at most 107 bytes, this one has 108" in one for one in found)
        assert wrong or parsed(GOOD | listen, "c.yaml").agents == UnixSocket(path)


def test_rest_goes_by_the_names_that_are_said_by_this_machines_and_by_where_it_listens():
    listen = {"rest": "tcp:ctl.internal:80", "names": ["ctl.example.org"]}
    said = parsed(GOOD | {"listen": listen, "access": {}}, "c.yaml").names
    assert said == {"ctl.example.org", "ctl.internal", socket.gethostname()}
    (problem,) = problems(GOOD | {"listen": {"names": ["ctl.example.org", "http://ctl:8080"]}})
    assert problem.startswith('listen.names[1]: "http://ctl:8080" is not a name of a machine')


OPEN = GOOD | {"listen": {"rest": "tcp:0.0.0.0:8080"}}


def test_without_a_word_rest_is_for_this_machine_only():
    assert parsed(GOOD, "c.yaml").access == AccessSettings(None, Role.ADMIN, None)
    (problem,) = problems(OPEN)
    assert problem.startswith("listen.rest: 0.0.0.0:8080 can be reached from other machines")
    assert parsed(OPEN | {"insecure": True}, "c.yaml").access.anybody is Role.ADMIN
    assert parsed(OPEN | {"access": {"anybody": "read"}}, "c.yaml").access == AccessSettings(
        None, None, Role.READ, requests_per_s=50
    )
    assert problems(OPEN | {"access": {"anybody": "root"}}) != ()


def test_tokens_are_in_a_file_beside_the_configuration_that_others_cannot_read(tmp_path):
    said = OPEN | {"access": {"tokens": "tokens"}}
    assert parsed(said, "c.yaml", tmp_path).access == AccessSettings(tmp_path / "tokens", requests_per_s=50)
    (tmp_path / "tokens").touch(0o644)
    with pytest.raises(ConfigError, match=r"access\.tokens: .*chmod 600"):
        parsed(said, "c.yaml", tmp_path)


def test_quotas_are_of_groups_principals_and_of_all_who_have_none_of_their_own():
    quotas = {
        "group:lsst": {"rate": "60 Gbit/s", "bytes": "500 TB", "ahead": "90 days", "entries": 200},
        "default": {"entries": 50},
    }
    found = parsed(GOOD | {"access": {"quotas": quotas, "requests_per_s": 7}}, "c.yaml").access
    assert found.quotas.of("group:lsst") == Quota(60 * 10**9, 500 * 10**12, 90 * 86_400 * 10**6, 200)
    assert (found.quotas.of("token:ana"), found.requests_per_s) == (Quota(entries=50), 7)
    quotas = {"group:Domain Users": {"entries": 3}}
    found = parsed(GOOD | {"access": {"quotas": quotas}}, "c.yaml").access
    assert found.quotas.of("group:Domain Users") == Quota(entries=3)
    for wrong in ("group: lsst", "group:lsst ", "group:a  b", "group:a\nb"):
        (problem,) = problems(GOOD | {"access": {"quotas": {wrong: {"entries": 1}}}})
        assert "owns nothing" in problem
    (problem,) = problems(GOOD | {"access": {"quotas": {"lsst": {"entries": 1}}}})
    assert problem == 'access.quotas.lsst: "lsst" owns nothing, try "group:lsst", "token:ana" or "default"'
    (problem,) = problems(GOOD | {"access": {"quotas": {"group:lsst": {"rate": "60"}}}})
    assert problem.startswith("access.quotas.group:lsst.rate: ")


def test_the_network_is_in_place_or_in_a_file_whose_name_begins_at_the_configurations_folder(tmp_path):
    (tmp_path / "net.yaml").write_text(FILES["chile-illinois"].read_text())
    (tmp_path / "c.yaml").write_text("network: net.yaml\n")
    assert section_of(load(tmp_path / "c.yaml").site.network) == section_of(chile_illinois())


@pytest.mark.parametrize("text", ["a: [", "", "- 1", "just words", "\x00", "network: {name: [chile-illinois]}"])
def test_any_file_that_is_no_configuration_is_refused_in_one_tree(tmp_path, text):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError):
        load(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*GOOD, "lease", "listen", "ovsdb", "policy", "store", "circuits", "schedule", "oscars", "name", "rate"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


_tokens = st.sampled_from(
    [
        *GOOD,
        *[
            "circuits",
            "schedule",
            "from",
            "rate",
            ": ",
            "- ",
            "\n",
            "  ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "&a ",
            "*a",
            "? ",
            "| ",
            "!!int ",
        ],
        *[
            "2026-13-45",
            "2026-12-24T10:00:00Z",
            "0x_",
            "1e999",
            ".nan",
            "0b",
            "~",
            "'",
            '"',
            "#",
            "%",
            "@",
            "10 Gbit/s",
            "\x07",
        ],
    ]
)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60) | st.lists(_tokens, max_size=30).map(lambda parts: "".join(parts).encode()))
def test_nothing_but_a_config_error_ever_comes_of_any_file(tmp_path, content):
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    try:
        load(file)
    except ConfigError as error:
        assert error.problems


@pytest.mark.parametrize(
    "text", ["a: 2026-13-45", "a: 0x_", "[" * 5000, "a: &a [*a, *a]", "? [a]\n: b", "a: !!binary x"]
)
def test_what_a_yaml_reader_stumbles_over_is_refused_in_one_line(tmp_path, text):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(file)
    assert len(str(error.value).splitlines()) == len(error.value.problems)


@given(_json)
def test_nothing_but_a_config_error_ever_comes_of_a_wrong_file(data):
    try:
        parsed(data, "fuzz.yaml")
    except ConfigError as error:
        assert error.problems


def test_what_is_protected_and_when_a_line_is_used_again_can_be_set():
    usual, own = (parsed({"network": section_of(chile_illinois_2())} | more, "test") for more in ({}, FAILOVER))
    assert (usual.site.policy.protected, usual.site.return_after_us) == ({"urgent", "predictable"}, 10_000_000)
    assert (own.site.policy.protected, own.site.return_after_us) == ({"urgent"}, 500_000)


FAILOVER = {"failover": {"protect": ["urgent"], "return_after": "500 ms"}}


def test_a_switch_with_more_circuits_than_there_are_numbers_for_is_refused(monkeypatch):
    monkeypatch.setattr(circuit_ports, "MOST_CIRCUITS", 0)
    assert problems(GOOD)[0].startswith("network: switch ls1 has 1 circuits; 0 at most have meters")
