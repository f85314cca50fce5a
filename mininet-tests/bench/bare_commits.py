"""What a database itself can do: one row a transaction, by clients side by side, each commit on the disk."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

BUSY_S = 30


def commits_per_s(url: str, clients: int, seconds: float) -> float:
    """Return how many transactions of one row are on the disk a second, each client by a connection of its own."""
    engine = _engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS bare_commits (client INTEGER, number INTEGER)"))
    until_s = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as pool:
        counts = list(pool.map(lambda client: _commits(engine, client, until_s), range(clients)))
    with engine.begin() as connection:
        written = connection.execute(sa.text("SELECT count(*) FROM bare_commits")).scalar_one()
        connection.execute(sa.text("DROP TABLE bare_commits"))
    if written != sum(counts):
        raise AssertionError(f"{sum(counts)} commits were counted and {written} rows written")
    return round(sum(counts) / seconds, 1)


def _commits(engine: sa.Engine, client: int, until_s: float) -> int:
    number = 0
    with engine.connect() as connection:
        while time.monotonic() < until_s:
            row = {"client": client, "number": number}
            connection.execute(sa.text("INSERT INTO bare_commits VALUES (:client, :number)"), row)
            connection.commit()
            number += 1
    return number


def _engine(url: str) -> sa.Engine:
    """Return an engine whose commits are as sure as those of a controller's database."""
    known = sa.make_url(url)
    if known.get_backend_name() == "postgresql":
        return sa.create_engine(known.set(drivername="postgresql+psycopg"), poolclass=NullPool)
    engine = sa.create_engine(known, poolclass=NullPool, connect_args={"timeout": BUSY_S})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")

    return engine
