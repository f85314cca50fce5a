"""The os-ken application hands on what it is told, and no more."""

from types import SimpleNamespace

from apps.openflow import OpenFlowApp


class Recorder:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.told: list[tuple[str, object]] = []

    def connected(self, datapath: object) -> None:
        """Keep it."""
        self.told.append(("connected", datapath))

    def disconnected(self, datapath: object) -> None:
        """Keep it."""
        self.told.append(("disconnected", datapath))

    def answered(self, msg: object) -> None:
        """Keep it."""
        self.told.append(("answered", msg))

    def removed(self, msg: object) -> None:
        """Keep it."""
        self.told.append(("removed", msg))

    def port_changed(self, msg: object) -> None:
        """Keep it."""
        self.told.append(("port", msg))


def test_a_switch_that_comes_up_goes_answers_and_loses_a_port_reaches_the_listener():
    recorder = Recorder()
    app = OpenFlowApp(listener=recorder)
    app.connected(SimpleNamespace(datapath="s1"))
    app.answered(SimpleNamespace(msg="barrier reply"))
    app.removed(SimpleNamespace(msg="flow removed"))
    app.port_changed(SimpleNamespace(msg="port status"))
    app.disconnected(SimpleNamespace(datapath="s1"))
    assert recorder.told == [
        ("connected", "s1"),
        ("answered", "barrier reply"),
        ("removed", "flow removed"),
        ("port", "port status"),
        ("disconnected", "s1"),
    ]
