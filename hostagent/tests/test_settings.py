"""The configuration file."""

from pathlib import Path

import pytest

from hostagent.errors import AgentConfigError
from hostagent.settings import AgentSettings, loaded, parsed_settings

GOOD = 'host: dtn1\ncontrollers: ["192.0.2.1:50051", "[2001:db8::1]:50051", "unix:/run/c.sock"]\ninsecure: true\n'


def test_defaults_stand_for_what_is_not_said():
    addresses = ("192.0.2.1:50051", "[2001:db8::1]:50051", "unix:/run/c.sock")
    expected = AgentSettings("dtn1", addresses, None, Path("/run/headway"), True, insecure=True)
    assert parsed_settings(GOOD) == expected


def test_all_problems_are_told_at_once_with_their_paths():
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings('controllers: ["192.0.2.1:50051", "nonsense", "a:0"]\nreceive_windw: true\n')
    assert set(caught.value.problems) == {
        "host: is missing",
        'controllers[1]: "nonsense" is not an address and port, try "192.0.2.1:50051"',
        'controllers[2]: "a:0" is not an address and port, try "192.0.2.1:50051"',
        "receive_windw: no such key",
    }


@pytest.mark.parametrize("text", ["", "- a", "host: [", "host: ''\ncontrollers: ['a:1']", "host: a\ncontrollers: []"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(AgentConfigError):
        parsed_settings(text)


def test_a_missing_file_is_a_problem_with_its_name(tmp_path):
    with pytest.raises(AgentConfigError, match=r"agent\.yaml: No such file"):
        loaded(tmp_path / "agent.yaml")


def test_metrics_are_served_nowhere_unless_an_address_is_given():
    assert parsed_settings(GOOD).metrics is None
    assert parsed_settings(f"{GOOD}metrics: '127.0.0.1:9431'\n").metrics == "127.0.0.1:9431"
    with pytest.raises(AgentConfigError, match=r'metrics: "unix:/m" is not an address and port, try "127.0.0.1:9431"'):
        parsed_settings(f"{GOOD}metrics: 'unix:/m'\n")
