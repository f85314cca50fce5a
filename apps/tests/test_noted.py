"""What is remembered beside promises: purchases, tokens, and by what the controller runs."""

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from apps.configuration import load
from apps.tests.test_configuration import GOOD
from controller.database import ChangeQuery
from controller.database.database import STANDS_BY
from controller.database.verify import verified
from controller.noted import noted_configuration, noted_token
from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.security.token_file import TokenFile, write_tokens
from controller.security.tokens import Role, new_token
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois
from topology import __version__

NOW = datetime(2026, 11, 23, tzinfo=UTC)
CIRCUIT = "chile-illinois"


@pytest.fixture
def url(tmp_path):
    """Where a database is."""
    return f"sqlite:///{tmp_path}/headway.db"


@pytest.fixture
def site(url):
    """A site whose circuit is bought."""
    site = FakeSite(chile_illinois(), standing=(), database=url, lead_us={CIRCUIT: 0})
    yield site
    site.database.close()


def rows(site):
    """What is remembered: kind, id, who, old and new."""
    found = [row.change for row in site.database.changes(ChangeQuery(limit=100))]
    return [(c.kind, c.id, c.who, c.old and json.loads(c.old), json.loads(c.new)) for c in found]


def save(site, purchase):
    """Save a purchase."""
    with site.state.changed:
        saved = site.use_cases.saves.save_purchase(CIRCUIT, purchase)
    saved.result(30)


def test_a_purchase_is_remembered_from_its_making_to_its_end_in_the_chain(site, url):
    period = Period(1_000_000, 2_000_000, 10**9)
    save(site, Purchase("p1", period, PurchaseState.ASKED))
    save(site, Purchase("p1", period, PurchaseState.UP))
    with site.state.changed:
        gone = site.use_cases.saves.forget_purchase(CIRCUIT, "p1")
    gone.result(30)
    made, up, forgotten = rows(site)
    whole = {"circuit": CIRCUIT, "rate_bps": 10**9, "start_us": 1_000_000, "end_us": 2_000_000, "reason": ""}
    assert made == ("purchase.asked", "p1", "controller", None, whole | {"state": "asked"})
    assert up == ("purchase.up", "p1", "controller", {"state": "asked"}, {"state": "up"})
    assert forgotten == ("purchase.forgotten", "p1", "controller", whole | {"state": "up"}, {})
    assert site.database.load().purchases == ()
    assert verified(url).fault is None


def test_tokens_are_remembered_as_they_come_and_go_and_nothing_by_which_one_is_somebody(site, tmp_path):
    path = tmp_path / "tokens"
    first, kept = new_token("ana", Role.OPERATE, NOW, NOW + timedelta(days=1), ("lsst",))
    write_tokens(path, (kept,))
    file = TokenFile(path, lambda what, token: site.use_cases.saves.note(noted_token(what, token)).result(30))
    second, other = new_token("bob", Role.READ, NOW, NOW + timedelta(days=1))
    write_tokens(path, (kept, other))
    file.current()
    write_tokens(path, (other,))
    file.current()
    file.current()
    shown = {"name": "ana", "role": "operate", "groups": ["lsst"], "until": "2026-11-24T00:00:00Z"}
    assert rows(site) == [
        ("token.made", other.id, "controller", None, shown | {"name": "bob", "role": "read", "groups": []}),
        ("token.revoked", kept.id, "controller", shown, {}),
    ]
    text = str(rows(site))
    assert not any(secret in text for secret in (first, second, kept.sha256, other.sha256))


@pytest.mark.parametrize("why", [STANDS_BY, "the disk is full"])
def test_a_token_that_cannot_be_noted_is_said_in_the_log_with_all_that_would_have_been(site, tmp_path, why):
    path = tmp_path / "tokens"
    write_tokens(path, ())
    file = TokenFile(path, lambda what, token: site.use_cases.saves.note(noted_token(what, token)))
    secret, token = new_token("ana", Role.OPERATE, NOW, NOW + timedelta(days=1), ("lsst",))
    write_tokens(path, (token,))
    site.database._why = why
    with capture_logs() as logs:
        file.current()
        file.current()
    (said,) = [one for one in logs if one["event"] == "changes.not_noted"]
    assert (said["log_level"], said["what"], said["id"], said["old"]) == ("error", "token.made", token.id, None)
    assert said["new"] == {"name": "ana", "role": "operate", "groups": ["lsst"], "until": "2026-11-24T00:00:00Z"}
    assert why in said["why"]
    assert secret not in str(said)
    assert token.sha256 not in str(said)
    assert rows(site) == []


def test_a_start_is_remembered_with_the_digest_of_each_file_that_it_goes_by(site, tmp_path):
    network, config = tmp_path / "network.yaml", tmp_path / "controller.yaml"
    network.write_text(json.dumps(GOOD["network"]))
    config.write_text("network: network.yaml")
    settings = load(config)
    site.use_cases.saves.note(noted_configuration(settings.files)).result(30)
    ((kind, name, who, old, new),) = rows(site)
    assert (kind, name, who, old) == ("configuration.read", "configuration", "controller", None)
    assert new.pop("headway") == __version__
    assert new == {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in (network, config)}
