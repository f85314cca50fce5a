"""The configuration's sections on a database, and on a pair of controllers that share one."""

import re

import pytest
import yaml

from apps.configuration import load, parsed
from controller.errors import ConfigError
from mininet_tests.testing.networks import chile_illinois
from topology.network_text import section_of

GOOD = {"network": section_of(chile_illinois(10**10))}


@pytest.mark.parametrize(
    ("address", "listen"),
    [
        ("https://a.example:8080", {"proxies": ["127.0.0.1"]}),
        ("https://a.example:8080", {"proxies": ["192.0.2.7"], "rest": "tcp:192.0.2.1:8080"}),
        ("http://127.0.0.1:8080", {}),
        ("http://[::1]", {}),
        ("http://a.example:8080", {"rest": "tcp:192.0.2.1:8080"}),
    ],
)
def test_a_pair_is_asked_where_it_listens_or_where_its_proxy_does(address, listen):
    pair = {"pair": {"address": address}, "listen": listen, "access": {"anybody": "read"}}
    assert parsed(GOOD | pair | {"store": "postgresql:///headway"}, "a").pair.address == address


@pytest.mark.parametrize(
    ("address", "listen", "why"),
    [
        (
            "https://a.example",
            {},
            'others are passed on to "https://a.example", and only this machine reaches listen.rest',
        ),
        (
            "https://a.example",
            {"rest": "tcp:192.0.2.1:8080"},
            '"https://a.example" is TLS, and listen.rest is plain text',
        ),
    ],
)
def test_an_address_of_a_pair_at_which_nobody_answers_is_refused(address, listen, why):
    pair = {"pair": {"address": address}, "listen": listen, "access": {"anybody": "read"}}
    with pytest.raises(ConfigError, match=re.escape(f"pair.address: {why}")):
        parsed(GOOD | pair | {"store": "postgresql:///headway"}, "a")


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://root:secret@db.example.org/headway",
        {"url": "postgresql://root@db.example.org/headway?password=secret"},
    ],
)
def test_a_password_of_the_database_that_everybody_can_read_is_refused(tmp_path, store):
    file = tmp_path / "controller.yaml"
    file.write_text(yaml.safe_dump(GOOD | {"store": store}))
    file.chmod(0o644)
    why = f"store: everybody on this machine can read the database's password: chgrp headway-controller {file}; chmod"
    with pytest.raises(ConfigError, match=re.escape(why)) as refused:
        load(file)
    assert "secret" not in str(refused.value)
    file.chmod(0o640)
    assert load(file).database.url.startswith("postgresql://root")


@pytest.mark.parametrize("store", ["sqlite:////tmp/a.db", "postgresql://root@db/headway?passfile=/etc/headway/pgpass"])
def test_a_file_without_a_password_may_be_read_by_everybody(tmp_path, store):
    file = tmp_path / "controller.yaml"
    file.write_text(yaml.safe_dump(GOOD | {"store": store}))
    file.chmod(0o644)
    assert load(file).database.url == store


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///headway.db", "sqlite+pysqlite:///a/b.db"]
)
def test_promises_are_kept_neither_in_memory_nor_in_whichever_folder_a_controller_begins(url):
    why = "store: the database's URL cannot be used: an SQLite database is named by its absolute path; need sqlite:////"
    with pytest.raises(ConfigError, match=re.escape(why)):
        parsed(GOOD | {"store": url}, "a")
