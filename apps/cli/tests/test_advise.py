"""``headway advise``: a table of movers in lock step for two hosts."""

import json

import pytest
from typer.testing import CliRunner

from apps.cli.main import app
from mininet_tests.testing.networks import FILES

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "base2", "--to", "arch"), '"base2"'),
        (("--from", "base20", "--to", "base21"), "are not joined by a circuit"),
        (("--from", "base20", "--to", "arch", "--mover", "fast"), 'try "4 x 16 MB"'),
        (("--from", "base20", "--to", "arch", "--mover", "4 x 16 Mb"), '"16 Mb" is not a size'),
        (("--from", "base20", "--to", "arch", "--rate", "1 GB/s"), "is not a rate"),
    ],
)
def test_a_mistake_is_said_in_words_and_ends_with_2(arguments, message):
    _, err, code = said(NETWORK, *arguments)
    assert message in err
    assert code == 2
