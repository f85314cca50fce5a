"""Terms: the number under which a controller leads. Pure.

Each controller that becomes alone with a database leads under a term of its own, above that of every one before it. So
whoever is written to can tell a controller from its predecessors, whatever their clocks say: an agent by the epoch,
which begins at twice the term, a switch by the ``generation_id`` of OpenFlow 1.3, ``OFPT_ROLE_REQUEST``.
"""

TERM = "term"
"""Its key in the table ``meta``."""

TERM_STEP = 1 << 19
"""Between two terms at least. So many plans one controller may make, whatever the clock does, before the epochs of its
successor would not be above its own: one a second for six days."""


def next_term(before: int | None, clock_ms: int) -> int:
    """Return the term of a controller that begins.

    The clock counts so that a new database, or one that was restored, does not begin below terms that agents and
    switches have seen; it alone would not do, since a successor's may be behind.

    Args:
        before: the term before; None if the database has none yet.
        clock_ms: the wall clock, Unix time.
    """
    return clock_ms if before is None else max(clock_ms, before + TERM_STEP)
