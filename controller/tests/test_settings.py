"""The configuration: every problem at once, each with its path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.errors import ConfigError
from controller.settings import load, parsed
from topology.protocol import FlowClass

GOOD = {
    "network": {"name": "chile-illinois", "rate": "10 Gbit/s", "delay": "90 ms", "loss": "0.01%"},
    "flows": [{"name": "efd", "class": "predictable", "from": "base22", "to": "arch"}],
}


def problems(data):
    """What is wrong with a configuration."""
    with pytest.raises(ConfigError) as error:
        parsed(data, "test.yaml")
    return error.value.problems


def test_a_configuration_becomes_a_site():
    settings = parsed(GOOD, "test.yaml")
    assert settings.site.circuit.rate_bps == 10**10
    assert settings.site.path.rtt_us == 180_000
    assert [f.flow_class for f in settings.site.standing] == [FlowClass.PREDICTABLE]
    assert settings.ovsdb == {"ls1": "unix:/run/openvswitch/db.sock", "ch1": "unix:/run/openvswitch/db.sock"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"netwrok": {}}, "netwrok: there is no such key"),
        ({"network": {"name": "chile-illinois", "rate": "10g"}}, 'network.rate: "10g" is not a rate, try "10 Gbit/s"'),
        ({"network": {"name": "chile-illinois", "rate": "0 bit/s"}}, "network.rate: Input should be greater than 0"),
        ({"network": {"name": "mars"}}, 'network.name: there is no network "mars"; there are chile-illinois'),
        ({"network": {"name": "chile-illinois", "rate": "10 Mbit/s"}}, "policy.urgent.guarantee: 0.02% of 10 Mbit/s"),
        (
            {"flows": [{"name": "a", "class": "urgent", "from": "base1", "to": "arch"}]},
            'flows[0]: there is no host "base1"',
        ),
        (
            {"flows": [{"name": "a", "class": "fast", "from": "base20", "to": "arch"}]},
            "flows[0].class: Input should be",
        ),
        ({"flows": [GOOD["flows"][0]] * 2}, "flows[1].name: there is already"),
        ({"flows": [{"name": "a", "class": "urgent", "from": "base20", "to": "base21"}]}, "flows[0]: to: base20 and"),
        ({"listen": {"rest": "8080"}}, 'listen.rest: "8080" is not an address'),
        ({"ovsdb": {"s9": "unix:/x"}}, "ovsdb.s9: there is no such switch"),
        ({"lease": "1 ms"}, "lease: Input should be greater than or equal to"),
        ({"policy": {"urgent": {"guarantee": "60%", "cap": "50%"}}}, "policy: urgent: need 0 < guarantee <= cap"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_with_its_path(change, problem):
    assert any(p.startswith(problem) for p in problems(GOOD | change)), problems(GOOD | change)


def test_all_problems_are_told_at_once():
    assert len(problems(GOOD | {"lease": "soon", "listen": {"rset": "x"}, "network": {"name": 3}})) == 3


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
            st.sampled_from([*GOOD, "lease", "listen", "ovsdb", "policy", "name", "rate"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(_json)
def test_nothing_but_a_config_error_ever_comes_of_a_wrong_file(data):
    try:
        parsed(data, "fuzz.yaml")
    except ConfigError as error:
        assert error.problems
