"""That nobody is asked for what was bought of another: a start is refused, and one of a pair leaves a circuit alone."""

import structlog

from controller.database import Database, DatabaseFailed
from controller.database.live import bought
from controller.errors import SellersExchanged
from controller.restored import exchanged
from controller.site import Site

log = structlog.get_logger()


def check_sellers(database: Database, site: Site, now_us: int, *, stands_by: bool) -> None:
    """Refuse a start with other sellers than those of whom something is bought.

    One of a pair may begin before there is a database that it can read: it looks again when it leads.

    Raises:
        SellersExchanged: there are such.
        DatabaseFailed: it is not known.
    """
    try:
        why = _exchanged(database, site, now_us)
    except DatabaseFailed:
        if stands_by:
            return
        raise
    if why:
        raise SellersExchanged(tuple(why.values()))


def not_to_ask(database: Database, site: Site, now_us: int) -> frozenset[str]:
    """Return the circuits whose sellers are not to be asked for anything; of each it is said why.

    Who led before may have bought of others since we have started. Somebody has to lead, and what is bought carries on.

    Raises:
        DatabaseFailed: it is not known.
    """
    found = _exchanged(database, site, now_us)
    for circuit, why in found.items():
        log.error("provider.exchanged", circuit=circuit, why=why)
    return frozenset(found)


def _exchanged(database: Database, site: Site, now_us: int) -> dict[str, str]:
    if not site.sold_by:
        return {}
    purchases, sold_by = database.asked(bought)
    return exchanged(site, purchases, sold_by, now_us)
