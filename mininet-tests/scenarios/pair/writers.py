"""Whether one who leads no more has written: by whose session each transaction was written. Pure."""

from collections.abc import Mapping


def stale_writes(sessions: Mapping[int, str], since: int) -> int:
    """Return how many transactions after one were written by a session when another had begun to write after it.

    Args:
        sessions: by a transaction's number, which session at the database has written it.
        since: the number of the last transaction that was looked at before.

    >>> stale_writes({1: "a", 2: "a", 3: "b", 4: "c"}, 0), stale_writes({1: "a", 2: "b", 3: "a", 4: "b"}, 2)
    (0, 1)
    """
    begun: set[str] = set()
    newest, count = "", 0
    for number, session in sorted(sessions.items()):
        if session not in begun:
            begun.add(session)
            newest = session
        count += number > since and session != newest
    return count
