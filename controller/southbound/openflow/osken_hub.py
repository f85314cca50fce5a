"""os-ken without its command line, and the repairs of its native hub that a controller cannot run without.

Each repair replaces one name of os-ken by a small class of ours, says which defect it mends, and has one test in
``tests/test_osken_hub.py`` that fails without it. Repairs 3 to 5 are in ``osken_datapath.py``, 7 is ``listener.py``.
``docs/decisions/0001-os-ken-native-hub.md`` has the reasons.
"""

import threading
from importlib.metadata import version
from typing import Any

import structlog
from os_ken import cfg
from os_ken.base import app_manager  # must come before os_ken.controller.controller: they import each other
from os_ken.controller import ofp_handler
from os_ken.lib import hub
from os_ken.ofproto import ofproto_parser

from controller.southbound.errors import FrameworkUnknown
from controller.southbound.openflow.lengths import Checked
from controller.southbound.openflow.listener import Address, Listener

KNOWN_VERSIONS = ("4.2.0", "4.2.1", "4.2.2")  # the repair tests have passed on these

_log = structlog.get_logger()


class TaskExit(BaseException):
    """Repair 1. ``hub.TaskExit`` was ``Exception``, so any exception in a handler ended the event loop in silence."""


class DaemonThread(hub.HubThread):  # type: ignore[misc]
    """Repair 2. Threads of the hub were not daemons and ``hub.kill`` does nothing: the process never ended."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what ``HubThread`` takes."""
        super().__init__(*args, **kwargs)
        self.daemon = True


def repair() -> None:
    """Put the repairs in place; twice does no harm.

    Raises:
        FrameworkUnknown: os-ken, or its hub, is not one that the repairs were tried on.
    """
    found = version("os-ken")
    if found not in KNOWN_VERSIONS:
        raise FrameworkUnknown(f"os-ken {found}", f"os-ken {' or '.join(KNOWN_VERSIONS)}")
    if hub.HUB_TYPE != "native":
        raise FrameworkUnknown(f"os-ken with its {hub.HUB_TYPE} hub", "OSKEN_HUB_TYPE=native")
    hub.TaskExit = TaskExit
    hub.HubThread = DaemonThread
    hub.Event = threading.Event  # repair 6: wait(timeout) of the hub's own never timed out
    ofproto_parser.msg = Checked.of(ofproto_parser.msg)  # repair 8
    hub.getcurrent = threading.current_thread  # it was one thread, not the function


class Framework:
    """A running os-ken: the listening socket and one application."""

    def __init__(self, listener: Listener, manager: Any) -> None:
        """Made by :func:`start`."""
        self._listener = listener
        self._manager = manager
        self.port = listener.port

    def run(self, handler: type[Any], app: type[Any], **context: Any) -> None:
        """Start os-ken's own handler of OpenFlow and the application."""
        running = [self._manager.instantiate(handler), self._manager.instantiate(app, **context)]
        for each in reversed(running):  # the one that listens last: no event finds nobody
            each.start()

    def stop(self) -> None:
        """Stop listening, end all connections and all threads."""
        self._listener.close()
        self._manager.close()


def start(app: type[Any], address: Address, **context: Any) -> Framework:
    """Start os-ken with one application; return once it listens.

    Args:
        app: the application's class.
        address: where to listen.
        context: handed to the application's ``__init__``.

    Raises:
        FrameworkUnknown: os-ken is not one that the repairs were tried on.
        OSError: the address cannot be listened on.
    """
    repair()
    cfg.CONF(args=[], project="headway", default_config_files=[], default_config_dirs=[])
    cfg.CONF.set_override("echo_request_interval", address.echo_interval_s)
    cfg.CONF.set_override("maximum_unreplied_echo_requests", 1)
    listener = Listener(address)
    ofp_handler.OpenFlowController = lambda: listener
    framework = Framework(listener, app_manager.AppManager())
    try:
        framework.run(ofp_handler.OFPHandler, app, **context)
    except BaseException:
        framework.stop()
        raise
    _log.info("openflow.listening", host=listener.host, port=listener.port, tls=address.tls is not None)
    return framework
