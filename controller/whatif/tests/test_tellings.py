"""What hosts tell of their stores, second by second."""

from types import SimpleNamespace

from controller.whatif.receivers import Receivers, said_store
from controller.whatif.supposed import StoreBucket
from controller.whatif.tellings import EVERY_US, Tellings
from mininet_tests.testing.networks import chile_illinois

DRAINS_BPS = 8 * 10**8


def test_what_went_while_nobody_told_is_not_of_the_second_in_which_telling_begins():
    known = {"arch": {"store": said_store("arch", StoreBucket(DRAINS_BPS, 10**9))}}
    receivers = Receivers(chile_illinois(), known)
    (store,) = receivers.stores["arch"]
    store.inflow_bps = DRAINS_BPS
    receivers.go_on(1000 * EVERY_US)
    Tellings(SimpleNamespace(now_us=0), receivers, {}, lambda _at_us, _what: None).begin()
    receivers.go_on(EVERY_US)
    told = store.tells(EVERY_US)
    assert (told.drained_bps, told.is_waiting) == (DRAINS_BPS, False)
