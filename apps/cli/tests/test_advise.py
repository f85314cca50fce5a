"""``headway advise``: a table of movers in lock step for two hosts."""

import json

import pytest
import yaml

from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from mininet_tests.testing.networks import FILES, loaded
from topology.network_text import section_of

NETWORK = str(FILES["chile-illinois"])


def said(*arguments):
    """Output, errors and exit code."""
    done = CliRunner().invoke(app, ("advise", *arguments), env={"COLUMNS": "200"})
    return done.stdout, done.stderr, done.exit_code


def test_one_stream_of_16_mb_uses_43_percent_at_180_ms_and_four_of_64_mb_92():
    out, _, code = said(NETWORK, "--from", "base20", "--to", "arch", "--json")
    found = json.loads(out)
    shares = {one["streams"]: one["share_percent"] for one in found["movers"]}
    assert (shares[1]["16000000"], shares[4]["64000000"], code) == (43, 92, 0)
    assert found["rtt_us"] == 180_000


def test_the_block_that_it_says_is_enough_is_enough():
    out, _, _ = said(NETWORK, "--from", "base20", "--to", "arch", "--rate", "10 Gbit/s", "--json")
    enough = json.loads(out)["movers"][2]["block_for_95_percent"]
    out, _, _ = said(
        NETWORK, "--from", "base20", "--to", "arch", "--rate", "10 Gbit/s", "--mover", f"4 x {enough}", "--json"
    )
    (mover,) = json.loads(out)["movers"]
    assert list(mover["share_percent"].values()) == [95]


def test_two_hosts_without_ipv6_are_counted_without_its_header_whoever_else_has_it(tmp_path):
    network = section_of(loaded(FILES["chile-illinois"]))
    hosts = {name: host for site in network["sites"].values() for name, host in site["hosts"].items()}
    for number, name in enumerate(("base21", "arch")):
        hosts[name]["addresses"] = [hosts[name].pop("address"), f"2001:db8::{number + 1}"]
    file = tmp_path / "network.yaml"
    file.write_text(yaml.safe_dump(network))
    found = [json.loads(said(str(file), "--from", name, "--to", "arch", "--json")[0]) for name in ("base20", "base21")]
    assert [one["payload_bps"] for one in found] == [941_482_444, 928_478_543]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "base2", "--to", "arch"), '"base2"'),
        (("--from", "base20", "--to", "base21"), "are not joined by a circuit"),
        (("--from", "base20", "--to", "arch", "--mover", "fast"), 'try "4 x 16 MB"'),
        (("--from", "base20", "--to", "arch", "--mover", "4 x 16 Mb"), '"16 Mb" is not a size'),
        (("--from", "base20", "--to", "arch", "--rate", "1 GB/s"), "is not a rate"),
        (("--from", "base20", "--to", "arch", "--rate", "1 bit/s"), "--rate: 1 bit/s carries no payload"),
        (("--from", "base20", "--to", "arch", "--rate", "0 Gbit/s"), "--rate: 0 Gbit/s carries no payload"),
    ],
)
def test_a_mistake_is_said_in_words_and_ends_with_2(arguments, message):
    _, err, code = said(NETWORK, *arguments)
    assert message in err
    assert code == 2
