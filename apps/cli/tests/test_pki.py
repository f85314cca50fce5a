"""``headway pki`` and what the agent's configuration says of its certificates."""

import errno
import json
import re
from pathlib import Path

import pytest
from cryptography import x509

from apps.cli import pki
from apps.cli.tests.running import CliRunner
from hostagent.errors import AgentConfigError
from hostagent.settings import loaded, parsed_settings
from mininet_tests.testing.networks import FILES

NETWORK = str(FILES["chile-illinois"])
CONFIG = f"network: {NETWORK}\ntls: {{authority: ca.pem, certificate: not-yet.pem, key: not-yet.key}}\n"
AGENT = """\
host: base20
controllers: ["ctl.example.org:50051"]
tls: {authority: ca.pem, certificate: agents/base20.pem, key: agents/base20.key}
"""


@pytest.fixture
def run(tmp_path):
    """Runs a command on a folder; returns (standard output, standard error)."""

    def headway(command, *arguments, exit_code=0):
        done = CliRunner().invoke(pki.app, [command, str(tmp_path / "pki"), *arguments], env={"COLUMNS": "200"})
        assert done.exit_code == exit_code, f"{done.stdout}\n{done.stderr}\n{done.exception!r}"
        return done.stdout, done.stderr

    return headway


@pytest.fixture
def made(run, tmp_path):
    """A folder with an authority and an agent's certificate."""
    run("init", "--name", "La Serena")
    run("agent", "base20", "--network", NETWORK)
    return tmp_path / "pki"


def test_the_examples_of_the_help_are_those_of_the_page_which_are_run():
    page = (Path(__file__).parents[3] / "docs" / "pki.md").read_text().splitlines()
    for command in pki.app.registered_commands:
        (example,) = re.findall(r"Example: (.*)", command.callback.__doc__)
        assert f"$ {example}" in page


def test_a_host_of_the_configurations_network_gets_a_certificate_before_the_configuration_is_right(run, made, tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    run("agent", "arch", "--config", str(tmp_path / "c.yaml"))
    assert (made / "agents" / "arch.pem").exists()


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("init", "--name", "x"), 1, "ca.key exists"),
        (("agent", "base99", "--network", NETWORK), 2, 'there is no host "base99" with an agent in the network; '),
        (("agent", "base20", "--network", NETWORK), 1, "base20.key exists: headway pki renew"),
        (("agent", "base20", "--network", "mars"), 2, "mars: cannot be read: No such file"),
        (("agent", "base20"), 2, "say --config FILE, or --network FILE"),
        (("agent", "--network", NETWORK), 2, "say the hosts' names, or --all"),
        (("agent", "base20", "--config", "/nowhere.yaml"), 2, "/nowhere.yaml: cannot be read"),
        (("controller", "--name", "a b"), 2, '"a b" is neither a host name nor an address, try "ctl.example.org"'),
        (("revoke", "base99"), 1, 'no certificate was made for "base99"; there are base20'),
        (("renew", "base99"), 1, 'no certificate was made for "base99"'),
    ],
)
def test_what_cannot_be_done_is_one_line_and_an_exit_code(run, made, arguments, exit_code, said):
    command, *rest = arguments
    out, err = run(command, *rest, exit_code=exit_code)
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["ctl.example.org", "192.0.2.1", "2001:db8::1"])
def test_a_controller_is_named_to_agents_and_to_switches_by_its_name_or_address(run, made, name):
    for command, folder in (("controller", made), ("ovsdb", made / "ovsdb")):
        file = folder / "controllers" / f"{name.replace(':', '_')}.pem"
        assert run(command, "--name", name)[0].count(f"{file} and .key: {name}, ") == 1
        assert file.exists()


def test_no_name_of_a_controller_leads_out_of_the_folder(run, made):
    for command in ("controller", "ovsdb"):
        assert "is neither a host name nor an address" in run(command, "--name", "../../x", exit_code=2)[1]


def test_a_pairs_keys_for_switches_are_made_anew_together(run, made):
    names = ("--name", "ctl-a", "--name", "ctl-b")
    run("ovsdb", *names)
    before = (made / "ovsdb" / "ca.pem").read_bytes()
    assert "no switch would let in ctl-b any more" in run("ovsdb", "--name", "ctl-a", "--force", exit_code=1)[1]
    assert (made / "ovsdb" / "ca.pem").read_bytes() == before
    run("ovsdb", *names, "--force")
    assert (made / "ovsdb" / "ca.pem").read_bytes() != before
    authority = x509.load_pem_x509_certificate((made / "ovsdb" / "ca.pem").read_bytes())
    for name in ("ctl-a", "ctl-b"):
        pem = (made / "ovsdb" / "controllers" / f"{name}.pem").read_bytes()
        x509.load_pem_x509_certificate(pem).verify_directly_issued_by(authority)


def test_what_controllers_show_to_switches_is_not_made_anew_while_its_authoritys_key_is_elsewhere(run, made, tmp_path):
    run("ovsdb", "--name", "ctl-a")
    (made / "ovsdb" / "ca.key").rename(tmp_path / "kept")
    before = (made / "ovsdb" / "ca.pem").read_bytes()
    said = run("ovsdb", "--name", "ctl-b", exit_code=1)[1]
    assert f"put the authority's ca.key back into {made}/ovsdb" in said
    assert "no switch would let in ctl-a any more" in run("ovsdb", "--name", "ctl-b", "--force", exit_code=1)[1]
    assert (made / "ovsdb" / "ca.pem").read_bytes() == before
    assert {row["name"] for row in json.loads(run("list", "--json")[0])} == {"base20", "ctl-a"}


def test_of_what_switches_let_in_it_is_said_that_they_read_no_list_of_revoked_ones(run, made):
    run("controller", "--name", "ctl-a")
    run("ovsdb", "--name", "ctl-a", "--name", "ctl-b")
    assert run("revoke", "base20")[1] == ""
    (serial, _) = [row["serial"] for row in json.loads(run("list", "--json")[0]) if row["kind"] == "ovsdb"]
    said = (
        "headway: switches read no list of revoked ones: what they let in is made anew by "
        f"headway pki ovsdb {made} --name ctl-a --name ctl-b --force; copy it, to every switch too\n"
    )
    out, err = run("revoke", "ctl-a")
    assert out.startswith("revoked: controller ctl-a, serial ")
    assert err == said
    assert run("revoke", serial, exit_code=1) == ("", said)


def test_only_hosts_on_which_an_agent_runs_get_an_agents_certificate(run, made):
    network = str(FILES["two-switches"])
    run("agent", "--all", "--network", network)
    assert {path.stem for path in (made / "agents").iterdir()} == {"base20", "ts-a", "ts-c"}
    for name in ("ts-a.eth1", "ts-b"):  # an interface of ts-a, and a host without an agent
        said = run("agent", name, "--network", network, exit_code=2)[1]
        assert f'there is no host "{name}" with an agent in the network; there are ts-a, ts-c' in said


def test_a_folder_without_an_authority_says_how_to_make_one(run):
    for command in ("list", "revoke", "renew", "agent", "controller"):
        more = {"revoke": ("x",), "agent": ("arch", "--network", NETWORK), "controller": ("--name", "x")}
        assert "headway pki init" in run(command, *more.get(command, ()), exit_code=1)[1]


def test_a_full_disk_is_said_with_the_file_that_does_not_fit(run, monkeypatch, tmp_path):
    def full(_file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    said = run("init", "--name", "La Serena", exit_code=1)[1]
    assert said == f"headway: {tmp_path}/pki/crl.pem: No space left on device\n"


def test_a_sites_name_that_is_not_utf_8_is_said_to_be_none(run, tmp_path):
    said = run("init", "--name", "La Serena\udcff", exit_code=2)[1]
    assert said == "headway: --name: La Serena\\udcff is not UTF-8 text\n"
    assert not (tmp_path / "pki").exists()


def test_scripts_get_every_certificate_as_json(run, made):
    run("revoke", "base20")
    (row,) = json.loads(run("list", "--json")[0])
    assert (row["name"], row["kind"], row["days_left"], row["revoked"]) == ("base20", "agent", 730, True)
    assert len(row["serial"]) == 16


def test_only_what_ends_soon_is_renewed_and_nothing_twice(run, made):
    run("controller", "--name", "ctl", "--days", "20")
    assert run("renew")[0].startswith(f"{made}/controllers/ctl.pem and .key: ctl, until")
    assert run("renew")[0] == "no certificate ends within 30 days\n"


def test_of_a_renewed_switch_it_is_said_what_makes_it_show_that(run, made):
    assert "touch" not in run("renew", "base20")[0]
    run("switch", "ls1", "--network", NETWORK)
    renewed, then = run("renew", "ls1", "base20")[0].splitlines()[1:]
    assert renewed.startswith(f"{made}/switches/ls1.pem and .key: ls1, ")
    assert then.startswith("on each switch     ")
    assert then.endswith(": touch /etc/openvswitch/NAME.key; ovs-appctl bridge/reconnect")


def test_a_key_that_is_gone_keeps_no_other_certificate_from_being_renewed(run, made):
    run("agent", "arch", "base21", "--network", NETWORK)
    for host in ("arch", "base20"):
        (made / "agents" / f"{host}.key").unlink()
    out, err = run("renew", "--within", "900", exit_code=1)
    assert [line.partition(", until")[0] for line in out.splitlines()] == [f"{made}/agents/base21.pem and .key: base21"]
    # What ends sooner comes first; both are made within a second, or not.
    assert sorted(line.partition(": No such file")[0] for line in err.splitlines()) == [
        f"headway: {made}/agents/{host}.key" for host in ("arch", "base20")
    ]
    run("revoke", "arch")
    run("revoke", "base20")
    run("renew", "--within", "900")  # what is revoked is not renewed


def test_one_that_is_revoked_keeps_no_other_from_its_first_certificate(run, made):
    run("revoke", "base20")
    lines = run("agent", "--all", "--network", NETWORK)[0].splitlines()
    made_for = [line.partition(".pem and .key: ")[0] for line in lines if ".pem and .key: " in line]
    assert made_for == [f"{made}/agents/{host}" for host in ("base21", "base22", "base23", "arch")]
    run("switch", "--network", NETWORK)
    run("revoke", "ls1")
    assert run("switch", "--network", NETWORK)[0] == "every switch has a certificate already\n"


def test_an_authority_whose_key_is_gone_is_said_once_for_all(run, made):
    run("agent", "arch", "--network", NETWORK)
    (made / "ca.key").unlink()
    out, err = run("renew", "--within", "900", exit_code=1)
    assert (out, err.count("\n"), err.count("ca.key: ")) == ("", 1, 1)


def test_all_makes_those_that_are_missing(run, made):
    lines = run("agent", "--all", "--network", NETWORK)[0].splitlines()
    names = [line.partition(".pem")[0].rpartition("/")[2] for line in lines if " and .key: " in line]
    assert names == ["base21", "base22", "base23", "arch"]
    assert [line.partition("  ")[0] for line in lines[len(names) :]] == ["on each host", "agent.yaml"], "where to copy"
    assert run("agent", "--all", "--network", NETWORK)[0] == "every host has a certificate already\n"


def test_all_makes_those_that_a_full_disk_has_left_out(run, made):
    (made / "agents" / "base20.pem").unlink()
    (made / "agents" / "base21.key").touch()
    out, err = run("agent", "--all", "--network", NETWORK, exit_code=1)
    assert re.findall(r"(\w+)\.pem and", out) == ["base20", "base22", "base23", "arch"]
    assert err.startswith(f"headway: {made}/agents/base21.key is damaged")
    assert err.endswith("remove it\n")
    (made / "agents" / "base21.key").unlink()
    assert re.findall(r"(\w+)\.pem and", run("agent", "--all", "--network", NETWORK)[0]) == ["base21"]
    run("switch", "--network", NETWORK)
    (made / "switches" / "ls1.pem").unlink()
    assert re.findall(r"(\w+)\.pem and", run("switch", "--network", NETWORK)[0]) == ["ls1"]


def problems_of(text, folder):
    with pytest.raises(AgentConfigError) as caught:
        parsed_settings(text, folder)
    return caught.value.problems


def test_an_agents_files_begin_at_its_configurations_folder(made, monkeypatch, tmp_path):
    (made / "agent.yaml").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    assert loaded(made / "agent.yaml").tls.key == made / "agents" / "base20.key"


def test_an_agents_certificate_for_another_host_is_told(made):
    (problem,) = problems_of(AGENT.replace("host: base20", "host: base21"), made)
    assert problem == "tls.certificate: is for base20, not for base21"


def test_everything_wrong_with_an_agents_files_is_told_at_once(made):
    (made / "ca.pem").write_text("x")
    problems = problems_of(AGENT.replace("base20.key", "nobody.key"), made)
    assert problems == (
        f"tls.key: {made}/agents/nobody.key: No such file or directory",
        f"tls.authority: {made}/ca.pem is no certificate in PEM",
    )


@pytest.mark.parametrize("address", ["192.0.2.1:50051", "ctl:50051", "[2001:db8::1]:50051"])
def test_a_controller_on_another_machine_needs_tls_or_a_word(address, tmp_path):
    text = f"host: base20\ncontrollers: ['127.0.0.1:1', 'unix:/c', '{address}']\n"
    (problem,) = problems_of(text, tmp_path)
    assert problem.startswith(f"controllers[2]: {address} is on another machine")
    assert "headway pki agent DIR base20" in problem
    assert parsed_settings(f"{text}insecure: true\n", tmp_path).insecure


def test_tls_and_insecure_together_cannot_be_meant(made):
    (problem,) = problems_of(f"{AGENT}insecure: true\n", made)
    assert problem.startswith("insecure: says that TLS is not wanted")
