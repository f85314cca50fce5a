"""The configuration file."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from hostagent.errors import AgentConfigError
from hostagent.settings import AgentSettings, Fallback, loaded, parsed_settings
from hostagent.trust import ClientTls

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


@pytest.mark.parametrize("section", [AgentSettings, Fallback, ClientTls])
def test_the_manual_has_every_key(section):
    page = (Path(__file__).parents[2] / "docs/agent.md").read_text()
    block = page[page.index("## Configuration") :].split("```")[1]
    assert [one.name for one in fields(section) if not re.search(rf"\b{one.name}:", block)] == []


@pytest.mark.parametrize("text", ["", "- a", "host: [", "host: ''\ncontrollers: ['a:1']", "host: a\ncontrollers: []"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(AgentConfigError):
        parsed_settings(text)


def test_a_missing_file_is_a_problem_that_leaves_its_name_to_whoever_tells_it(tmp_path):
    with pytest.raises(AgentConfigError) as caught:
        loaded(tmp_path / "agent.yaml")
    assert caught.value.problems == ("cannot be read: No such file or directory",)


def test_a_file_that_is_no_utf_8_is_a_problem_with_its_place(tmp_path):
    (tmp_path / "agent.yaml").write_bytes(f"{GOOD}# café\n".encode("latin-1"))
    with pytest.raises(AgentConfigError) as caught:
        loaded(tmp_path / "agent.yaml")
    assert caught.value.problems == (f"is not UTF-8 text: invalid continuation byte at byte {len(GOOD) + 5}",)


@pytest.mark.parametrize("name", ["é..example.org", f"{'a' * 64}.example.org"])
def test_a_name_that_no_name_server_can_be_asked_for_is_refused(name):
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings(GOOD.replace('"192.0.2.1:50051"', f'"{name}:50051"'))
    (problem,) = caught.value.problems
    assert problem == f'controllers[0]: "{name}" is not the name of a host: a label of it is empty or too long'


@pytest.mark.parametrize("host", ["ctl#a", "me@ctl", "ctl/a", "ctl?a"])
def test_an_address_with_what_is_no_part_of_a_name_is_a_problem(host):
    with pytest.raises(AgentConfigError, match=r"^controllers\[1\]: .* is not an address and port"):
        parsed_settings(GOOD.replace("[2001:db8::1]", host))


@pytest.mark.parametrize("host", ["[2001:db8:1]", "[::1::]", "[192.0.2.1]"])
@pytest.mark.parametrize("key", [r"controllers\[1\]", "metrics"])
def test_an_address_of_ipv6_that_is_mistyped_is_a_problem(key, host):
    text = f"{GOOD}metrics: '{host}:9431'\n" if key == "metrics" else GOOD.replace("[2001:db8::1]", host)
    with pytest.raises(AgentConfigError, match=rf'^{key}: "{re.escape(host)}" is not an address of IPv6: '):
        parsed_settings(text)


def test_a_controller_that_is_listed_twice_is_a_problem():
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings('host: a\ncontrollers: ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.1:1"]\ninsecure: true\n')
    assert caught.value.problems == (
        "controllers[2]: 192.0.2.1:1 is there already, and all of them are dialled at once",
    )


@pytest.mark.parametrize(
    ("address", "again"), [("ctl.example.org:1", "CTL.Example.org:1"), ("[2001:db8::1]:1", "[2001:DB8::1]:1")]
)
def test_a_controller_in_letters_of_another_case_is_the_same(address, again):
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings(f'host: a\ncontrollers: ["{address}", "{again}"]\ninsecure: true\n')
    assert caught.value.problems == (f"controllers[1]: {again} is there already, and all of them are dialled at once",)


def test_paths_in_letters_of_another_case_are_two_controllers():
    paths = ("unix:/run/a.sock", "unix:/run/A.sock")
    assert parsed_settings(f"host: a\ncontrollers: {list(paths)}\n").controllers == paths


def test_metrics_are_served_nowhere_unless_an_address_is_given():
    assert parsed_settings(GOOD).metrics is None
    assert parsed_settings(f"{GOOD}metrics: '127.0.0.1:9431'\n").metrics == "127.0.0.1:9431"
    with pytest.raises(AgentConfigError, match=r'metrics: "unix:/m" is not an address and port, try "127.0.0.1:9431"'):
        parsed_settings(f"{GOOD}metrics: 'unix:/m'\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to be another user")
def test_a_store_that_the_agents_user_may_not_look_at_is_a_problem_with_its_cure(tmp_path):
    """As a folder in somebody's home: the unit's agent is not root."""
    (tmp_path / "home/received").mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    asked = (
        "import os, sys; from hostagent import errors, settings\n"
        "os.setuid(65534)\n"
        "try: settings.parsed_settings(sys.argv[1])\n"
        "except errors.AgentConfigError as error: print(error)\n"
    )
    config = f"{GOOD}stores: [{{path: {tmp_path}/home/received}}]\n"
    done = subprocess.run([sys.executable, "-c", asked, config], capture_output=True, text=True, check=False)
    assert "stores[0].path: " in done.stdout, done.stderr
    assert f"{tmp_path}/home/received: Permission denied" in done.stdout
