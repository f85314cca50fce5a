"""Who sells a circuit is not exchanged while something is bought of the one before: that one alone has it."""

import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from apps import main
from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from apps.configuration import load
from apps.sellers import check_sellers, not_to_ask
from apps.tests.test_other_providers import NSI
from controller.database import Database
from controller.errors import SellersExchanged
from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.plan.sold_by import SoldBy
from controller.tests.fakes import FakeSite
from mininet_tests.testing.loopback import OWN
from mininet_tests.testing.networks import FILES

CIRCUIT = "chile-illinois"
PORTS = {
    "a": {"device": "ls-cr1", "port": "ls-cr1:1/1/c9/1", "vlan": 2000},
    "z": {"device": "ch-cr1", "port": "ch-cr1:1/1/c9/1", "vlan": 2000},
}
OSCARS = {"url": "https://oscars.example:8201/", "token_file": "token", **PORTS}


@pytest.fixture
def configured(tmp_path):
    """Write a configuration with a circuit's section; return its file."""

    def written(section):
        listen = {"rest": f"{OWN}:{ports[0]}", "openflow": f"{OWN}:{ports[1]}", "agents": f"unix:{tmp_path}/agents"}
        store = f"sqlite:///{tmp_path}/headway.db"
        data = {"network": str(FILES[CIRCUIT]), "listen": listen, "store": store, "circuits": {CIRCUIT: section}}
        file = tmp_path / "controller.yaml"
        file.write_text(yaml.safe_dump(data))
        return file

    with socket.create_server((OWN, 0)) as rest, socket.create_server((OWN, 0)) as openflow:
        ports = [one.getsockname()[1] for one in (rest, openflow)]
    (tmp_path / "token").write_text("of-the-test")
    (tmp_path / "token").chmod(0o600)
    return written


def buy(settings, end_us):
    """Have something bought until then, as a controller with these settings does."""
    site = FakeSite(database=settings.database.url, lead_us=settings.site.lead_us, sold_by=settings.site.sold_by)
    purchase = Purchase("hw-1", Period(end_us - 10**10, end_us, 10**9), PurchaseState.UP)
    with site.state.changed:
        saved = site.use_cases.saves.save_purchase(CIRCUIT, purchase)
    saved.result()
    site.database.close()


@pytest.fixture
def file(configured):
    """The configuration whose circuit is bought of OSCARS, of which it has something for another hour."""
    file = configured({"oscars": OSCARS})
    buy(load(file), time.time_ns() // 1000 + 3600 * 10**6)
    return file


@pytest.fixture
def checked(monkeypatch):
    """Run the check of a file in this process, which has loaded all; return (exit code, standard error)."""
    monkeypatch.setattr(main, "load_reader", lambda: None)

    def run(file):
        done = CliRunner().invoke(app, ["controller", "--config", str(file), "--check"])
        return done.exit_code, done.stderr

    return run


def started(file):
    """Start a controller that ends by itself; return (exit code, what its standard error says to people)."""
    command = [str(Path(sys.executable).parent / "headway"), "controller", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, "\n".join(line for line in done.stderr.splitlines() if line.startswith("headway: "))


@pytest.mark.parametrize(
    ("section", "moved"),
    [({"nsi": NSI}, ""), ({"oscars": OSCARS | {"url": "https://other.example"}}, "; or say moved_from: ")],
)
def test_neither_a_check_nor_a_start_goes_by_another_seller_than_something_is_bought_of(
    configured, file, checked, section, moved
):
    code, said = checked(configured(section))
    assert code == 1
    assert said == f"{started(file)[1]}\n"
    (line,) = said.splitlines()
    assert f"{file}: circuits.{CIRCUIT}: 1 purchase (hw-1) of oscars (https://oscars.example:8201) is not over" in line
    assert ("; or say moved_from: https://oscars.example:8201 if" in line) == bool(moved)


@pytest.mark.parametrize(
    "section",
    [
        {"oscars": OSCARS},
        {"oscars": OSCARS | {"url": "https://new.example", "moved_from": "https://oscars.example:8201/"}},
    ],
)
@pytest.mark.usefixtures("file")
def test_a_check_goes_by_the_same_seller_also_where_its_server_has_moved(configured, checked, section):
    assert checked(configured(section)) == (0, "")


def test_an_aggregator_behind_another_proxy_is_the_same_seller(configured, checked):
    buy(load(configured({"nsi": NSI})), time.time_ns() // 1000 + 3600 * 10**6)
    assert checked(configured({"nsi": NSI | {"url": "https://other.example/proxy"}})) == (0, "")
    other = NSI | {"provider_nsa": "urn:ogf:network:aggregator.example:2025:nsa:other"}
    code, said = checked(configured({"nsi": other}))
    assert (code, f"or say moved_from: {NSI['provider_nsa']} if" in said) == (1, True)
    assert checked(configured({"nsi": other | {"moved_from": NSI["provider_nsa"]}})) == (0, "")


def test_one_of_a_pair_does_not_stand_by_with_another_seller(file):
    settings = load(file)
    other = replace(settings.site, sold_by={CIRCUIT: SoldBy("nsi", "urn")})
    database = Database(settings.database.url)
    database.open_to_read()
    now_us = time.time_ns() // 1000
    try:
        check_sellers(database, settings.site, now_us, stands_by=True)
        with pytest.raises(SellersExchanged, match=f"circuits.{CIRCUIT}: 1 purchase "):
            check_sellers(database, other, now_us, stands_by=True)
    finally:
        database.close()


def test_one_of_a_pair_that_leads_leaves_alone_what_was_bought_of_another_since_it_began(file):
    settings = load(file)
    other = replace(settings.site, sold_by={CIRCUIT: SoldBy("nsi", "urn")})
    database = Database(settings.database.url)
    database.open()
    now_us = time.time_ns() // 1000
    try:
        assert not_to_ask(database, settings.site, now_us) == frozenset()
        with capture_logs() as said:
            assert not_to_ask(database, other, now_us) == {CIRCUIT}
    finally:
        database.close()
    (event,) = said
    assert (event["event"], event["circuit"], event["log_level"]) == ("provider.exchanged", CIRCUIT, "error")


def test_one_of_a_pair_stands_by_before_there_is_anything_to_read(file, tmp_path):
    database = Database(f"sqlite:///{tmp_path}/none.db")
    site = load(file).site
    try:
        check_sellers(database, site, 0, stands_by=True)
    finally:
        database.close()
