"""Writing to a database that is played by the test; what a real one does is in mininet-tests."""

from types import SimpleNamespace

import pytest

from controller.southbound.errors import QueuesNotApplied
from controller.southbound.ovsdb import writer as writing
from controller.southbound.ovsdb.replica import ovs_package
from controller.southbound.ovsdb.writer import QueueWriter


class AnewDatabase:
    """A replica of a database that is made anew, and so is empty, once it has said to which configuration it goes."""

    IDL_S_MONITORING = state = 1
    change_seqno = 0
    txn = None

    def __init__(self):
        self._session = SimpleNamespace(is_connected=lambda: True)
        self.tables = {"Open_vSwitch": SimpleNamespace(rows={0: self}), "QoS": SimpleNamespace(rows={})}
        self.cur_cfg, self.is_anew = 6, False

    @property
    def next_cfg(self):
        """The configuration that is asked for."""
        self.is_anew = True
        return 7

    def run(self):
        """Follow the database."""
        if self.is_anew:
            self.tables["Open_vSwitch"].rows.clear()

    def wait(self, poller):
        """Wait for nothing."""

    def close(self):
        """End."""


def test_a_database_that_is_made_anew_while_its_queues_are_waited_for_has_not_applied_them(monkeypatch):
    ovs_package()
    monkeypatch.setattr(writing, "replica", lambda *_: AnewDatabase())
    with QueueWriter("unix:played") as writer, pytest.raises(QueuesNotApplied) as why:
        writer.apply({}, timeout_s=0.1)
    assert (why.value.asked_cfg, why.value.reached_cfg) == (7, -1)
