"""Whether what OSCARS shows is what was asked of it. Pure."""

from controller.plan.purchases import Period, PurchaseState
from controller.providers.errors import NotInForce
from controller.providers.oscars_values import SECOND_US, OscarsPeriod
from controller.providers.oscars_wire import OscarsConnection

BEGIN_NOTICE_US = 30 * SECOND_US  # a begin nearer than this becomes now + 30 s
END_NOTICE_US = 60 * SECOND_US  # an end nearer than this becomes now + 60 s


def compare(name: str, asked: OscarsPeriod, there: OscarsConnection | None, *, begun: bool) -> Period:
    """Return what is there, if it does what was asked: see ``OscarsProvider`` for how exactly.

    Args:
        name: of the circuit.
        asked: what it should be.
        there: what was read back.
        begun: whether its start could not be asked for any more.

    Raises:
        NotInForce: it does not.
    """
    wanted = asked.period()
    if there is None or there.period is None or there.state is PurchaseState.ENDED:
        raise NotInForce(name, wanted, None, "it is not there")
    differences = {
        "its rate differs": there.period.rate_bps != wanted.rate_bps,
        "its begin differs": not begun and not 0 <= there.period.start_us - wanted.start_us <= BEGIN_NOTICE_US,
        "its end differs": not 0 <= there.period.end_us - wanted.end_us <= END_NOTICE_US,
        "it carries what is above its rate": not there.drops_excess,
    }
    if any(differences.values()):
        raise NotInForce(
            name, wanted, there.period, ", ".join(what for what, differs in differences.items() if differs)
        )
    return there.period
