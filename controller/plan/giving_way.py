"""Who gives way where what is bought does not carry all: who wants more than it was carried with, and nobody else."""

from collections.abc import Iterable, Mapping

from controller.plan.purchases import Period, are_covered


def kept(wanted: Mapping[str, Period], carried: Mapping[str, Period], bought: Iterable[Period]) -> dict[str, Period]:
    """Return what is kept of each use, by name: as it is wanted now, or as it was carried before; else it is left out.

    All stay as they were carried, as far as that is still bought; then each has what it wants now, if there is room.

    Args:
        wanted: what each wants now, who came to need it first first.
        carried: what of it was carried at last, in the order in which that is kept; a newcomer is not in it.
        bought: what there is.

    >>> old, new = Period(0, 10, 4), Period(0, 10, 3)
    >>> kept({"raised": Period(0, 10, 7), "new": new}, {"raised": old, "new": new}, [Period(0, 10, 7)])
    {'raised': Period(start_us=0, end_us=10, rate_bps=4), 'new': Period(start_us=0, end_us=10, rate_bps=3)}
    """
    there, found = tuple(bought), dict[str, Period]()
    for name in (name for name in carried if name in wanted):
        if are_covered((*found.values(), carried[name]), there):
            found[name] = carried[name]
    waiting = [name for name in wanted if found.get(name) != wanted[name]]
    while (fits := _first_that_fits(waiting, wanted, found, there)) is not None:
        found[fits] = wanted[fits]
        waiting.remove(fits)
    return found


def _first_that_fits(
    waiting: Iterable[str], wanted: Mapping[str, Period], found: Mapping[str, Period], bought: tuple[Period, ...]
) -> str | None:
    return next((n for n in waiting if are_covered({**found, n: wanted[n]}.values(), bought)), None)
