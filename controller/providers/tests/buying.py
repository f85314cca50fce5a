"""What the tests of buying from OSCARS have in common."""

from controller.plan.purchases import Period, PurchaseState
from controller.providers.oscars_values import OscarsPort, OscarsSettings
from controller.providers.secrets import Secret
from controller.providers.tests.fake_oscars import TOKEN

START_S = 1_767_225_600
SECOND = 10**6
START = START_S * SECOND
DAY = 86_400 * SECOND
GIGABIT = 10**9
A_END = OscarsPort("chic-cr6", "chic-cr6:1/1/c9/1", 2)
Z_END = OscarsPort("nash-cr6", "nash-cr6:1/1/c17/2", 3)
LATER = Period(START + 1_000 * SECOND, START + DAY, GIGABIT)


def settings(url, **other):
    """One circuit between two devices."""
    return OscarsSettings(
        **{"url": url, "a_end": A_END, "z_end": Z_END, "mtu_bytes": 9000, "token": of(TOKEN), **other}
    )


def at_first():
    """When tests begin, microseconds."""
    return START


def of(value):
    """A secret with a value."""
    return Secret(lambda: value)


def until_up(fake, provider, period=LATER, name="CXA5"):
    """A circuit that carries its rate."""
    provider.reserve(name, period)
    fake.ahead_s = (period.start_us - START) // SECOND + 23
    assert provider.status(name).state is PurchaseState.UP


def asked_of(fake, path):
    """How often a path was asked for."""
    return sum(path in request for request in fake.requests)
