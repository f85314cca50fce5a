"""What is saved, as a ledger of the network that is configured now; and what of it has no place there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from controller.database import PurchaseRow, SavedRows
from controller.database.announcements import announcement_of
from controller.plan.announcements import Announcement
from controller.plan.keeping import NOT_AS_PROMISED, unkeepable
from controller.plan.kept_ledger import UNBACKED, KeptLedger
from controller.plan.lifecycle import ENDED
from controller.plan.maintenance import impose
from controller.plan.paths import Path
from controller.plan.purchases import PurchaseState
from controller.plan.reservations import Reservation
from controller.plan.sold_by import SoldBy
from controller.site import Site
from topology.units import shown_time

_NAMED = 3  # purchases of a circuit; of more it is said how many there are


@dataclass(frozen=True, slots=True)
class RestartView:
    """What becomes of promises at a start.

    Attributes:
        promises: how many have not ended.
        lost: of each that is not kept, what it is and why, for people.
        left: of what is bought and nobody would give back, what it is, for people.
        exchanged: of each circuit that keeps a controller from its start, for it has another seller, why, for people.
    """

    promises: int
    lost: tuple[str, ...]
    left: tuple[str, ...] = ()
    exchanged: tuple[str, ...] = ()


def restored(
    site: Site,
    rows: SavedRows,
    announcements: Iterable[Announcement],
    now_us: int,
    past: Iterable[Reservation] = (),
) -> KeptLedger:
    """Return the ledger of what is saved, by the site's network as it is now.

    Args:
        site: where.
        rows: what is saved.
        announcements: those of the rows, read.
        now_us: Unix time.
        past: reservations that have ended by what is saved, and are to be known as that.
    """
    ledger = site.ledger()
    for one in rows.maintenance:
        impose(ledger, one)
    ledger.ended.restore(rows.used_keys, rows.last_ended, rows.lately, now_us)
    ledger.restore((*rows.reservations, *past), announcements, now_us)
    return ledger


def at_a_restart(site: Site, rows: SavedRows, now_us: int) -> RestartView:
    """Return what would become of what is saved if a controller of a site started now.

    A promise whose path is gone is over for good, or goes on by the other one without a backup; one between two hosts
    without a common family is over too. A reservation that there is no room for any more stays, and fails when its
    circuit has less than all that is in force; one of which that is known already is no news.
    """
    announcements = tuple(announcement_of(body) for body in rows.announcements.values())
    live = tuple(known for known in rows.reservations if known.state not in ENDED)
    ledger = restored(site, rows, announcements, now_us)
    gone = dict(ledger.gone)
    unbacked = (known for known in live if known.backup and not ledger.reservations[known.reservation_id].backup)
    known_before = {known.reservation_id for known in live if known.reason.startswith(NOT_AS_PROMISED)}
    lost = [*_gone(live, announcements, gone)]
    lost += (f"{_shown(known)}: {UNBACKED}: {_ways(known.paths)}" for known in unbacked)
    lost += (
        f"{_shown(ledger.reservations[one.reservation_id])}: {one.reason}"
        for one in unkeepable(ledger, now_us)
        if one.reservation_id not in known_before
    )
    left = (
        f"{one.name} is bought of the provider of {one.circuit} until {shown_time(one.end_us)}, and would be given "
        "back by nobody, for no circuit of that name is bought now: release what needs it first, or give it back there"
        for one in left_bought(site, rows.purchases, now_us)
    )
    sold_anew = exchanged(site, rows.purchases, rows.sold_by, now_us)
    return RestartView(len(live) + len(announcements), tuple(lost), tuple(left), tuple(sold_anew.values()))


def left_bought(site: Site, purchases: Iterable[PurchaseRow], now_us: int) -> Iterator[PurchaseRow]:
    """Yield what is bought still, but of the provider of a circuit that is not bought any more."""
    for one in purchases:
        if one.circuit not in site.lead_us and _is_bought(one, now_us):
            yield one


def exchanged(
    site: Site, purchases: Iterable[PurchaseRow], sold_by: Mapping[str, SoldBy], now_us: int
) -> dict[str, str]:
    """Return, by circuit whose seller does not have what is bought of the one before, what to do about it, for people.

    Asked for a purchase, such a seller would say that there is none, which fails what is carried by it; and it would be
    the one to be given it back.

    Args:
        site: with the sellers of now.
        purchases: all that are saved.
        sold_by: by circuit, of whom they were bought.
        now_us: Unix time.
    """
    kept: dict[str, list[PurchaseRow]] = {}
    for one in purchases:
        before, seller = sold_by.get(one.circuit), site.sold_by.get(one.circuit)
        if before and seller and not seller.has_what_was_bought_of(before) and _is_bought(one, now_us):
            kept.setdefault(one.circuit, []).append(one)
    return {
        circuit: _shown_exchange(circuit, bought, sold_by[circuit], site.sold_by[circuit])
        for circuit, bought in kept.items()
    }


def _is_bought(one: PurchaseRow, now_us: int) -> bool:
    return one.state != PurchaseState.ENDED and one.end_us > now_us


def _shown_exchange(circuit: str, bought: list[PurchaseRow], before: SoldBy, seller: SoldBy) -> str:
    names = ", ".join(one.name for one in bought[:_NAMED]) + (", ..." if len(bought) > _NAMED else "")
    until = shown_time(max(one.end_us for one in bought))
    so_many = f"{len(bought)} purchase{'s' * (len(bought) > 1)} ({names})"
    moved = f"; or say moved_from: {before.server} if it is the same one" if seller.kind == before.kind else ""
    return (
        f"circuits.{circuit}: {so_many} of {before} {'are' if len(bought) > 1 else 'is'} not over until {until}, and "
        f"{seller} does not have {'them' if len(bought) > 1 else 'it'}: put the section of before back until then, and "
        f"give the circuit of {seller} another name if it is needed sooner{moved}"
    )


def _gone(
    reservations: Iterable[Reservation], announcements: Iterable[Announcement], why: Mapping[int, str]
) -> Iterator[str]:
    """Yield what is lost of some promises, of which is known by their number why."""
    for known in reservations:
        if known.sequence in why:
            yield f"{_shown(known)}: fails: {why[known.sequence]}: {_ways(known.paths)}"
    for one in announcements:
        if one.sequence in why:
            promised = f"announcement {one.announcement_id}, promised for {shown_time(one.promised_us)}"
            yield f"{promised}: lapses: {why[one.sequence]}: {_ways(flow.path for flow in one.flows)}"


def _shown(known: Reservation) -> str:
    return f"reservation {known.reservation_id}, {shown_time(known.start_us)} to {shown_time(known.end_us)}"


def _ways(paths: Iterable[Path]) -> str:
    return ", ".join(" - ".join(path) for path in paths)
