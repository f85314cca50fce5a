"""What is fuzzed of the ports: agents' streams and messages, OpenFlow, OVSDB, REST; each takes a stranger's bytes."""

import asyncio
import json
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from websockets.frames import CloseCode

from controller.northbound.tests.site import api_of
from controller.southbound.agents.connection import AgentConnection
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.played_switch import DPID, PlayedDatapath
from controller.southbound.openflow.tests.switch_messages import messages_of_switches
from controller.southbound.ovsdb.replica import ovs_package, replica
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois
from topology import protocol, telemetry

HANDSHAKE = (
    f"GET {protocol.ATTACH_PATH} HTTP/1.1\r\nHost: c\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
).encode()


class Silent:
    """Hears of everything and does nothing: any method is there."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        """Return what does nothing."""
        return lambda *_args, **_more: None


class FrameOwner:
    """Hears an agent's connection, and reads its messages as the sessions do."""

    def __init__(self) -> None:
        self.heard_bytes: list[bytes] = []

    def heard(self, connection: AgentConnection, message: bytes) -> None:
        """Read a message; what is none ends the connection."""
        self.heard_bytes.append(message)
        try:
            protocol.parsed_from_agent(message)
        except ValueError as error:
            connection.close(CloseCode.PROTOCOL_ERROR, str(error))

    def ended(self, _connection: AgentConnection, _why: str) -> None:
        """It is over."""

    def untrusted(self, _connection: AgentConnection, _why: str) -> None:
        """It did not come as far."""


def _masked(opcode: int, payload: bytes) -> bytes:
    """Return a client's frame with an empty mask (RFC 6455 section 5.2)."""
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


def agent_stream() -> tuple[Callable[[bytes], object], tuple[bytes, ...]]:
    """Return what takes what an agent's connection receives: a request and frames."""
    loop: Any = SimpleNamespace(
        time=lambda: 0.0,
        **dict.fromkeys(("add_reader", "remove_reader", "add_writer", "remove_writer", "call_later"), Silent().nothing),
    )

    def take(data: bytes) -> object:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.sendall(data[:65_536])
            connection = AgentConnection(loop, ours, "stranger", FrameOwner())
            connection._receive()
            return connection

    hello = protocol.to_bytes(protocol.Hello("base20", "1", "6.1"))
    seeds = (
        HANDSHAKE,
        HANDSHAKE + _masked(1, hello),
        HANDSHAKE + _masked(9, b"ping") + _masked(8, b"\x03\xe8bye"),
        HANDSHAKE + b"\x01\x83\0\0\0\0abc\x80\x83\0\0\0\0def",
        b"\x16\x03\x01\x02\0\x01\0",
        HANDSHAKE.replace(b"dGhl", b"\xb6\x8c\xa5\xac") + _masked(9, b"ping") + _masked(8, b"\x03\xe8bye"),
    )
    return take, seeds


def agent_messages() -> tuple[Callable[[bytes], object], tuple[bytes, ...]]:
    """Return what takes an agent's messages as far as the reports and the plan that is made of them."""
    new_site: Any = FakeSite  # of tests, without types
    site = new_site(chile_illinois(), standing=())
    site.attach_all()
    site.converge()
    reports = site.reports
    taken: dict[type, Callable[[str, Any], object]] = {
        protocol.Applied: lambda host, said: reports.hosts_applied([(host, said)]),
        telemetry.Telemetry: reports.host_telemetry,
        protocol.Declined: reports.host_declined,
        protocol.Demand: reports.host_demand,
        protocol.Repaired: reports.host_repaired,
    }

    def take(data: bytes) -> object:
        said = protocol.parsed_from_agent(data)
        hears = taken.get(type(said))
        return said if hears is None else hears("base20", said)

    entry = telemetry.EntryTelemetry("urgent/base20", 1, 1, 10, 1, 0, 180_000, wants=True)
    store = telemetry.StoreTelemetry("data", 10**9, True, 5, 10**9, telemetry.StoreBrake.DISK)
    said: tuple[protocol.UpMessage, ...] = (
        protocol.Hello("base20", "1", "6.1", 5, 100),
        protocol.Applied(1),
        telemetry.Telemetry(1, 3000, (entry,), (entry,), (store,)),
        protocol.Declined(1, 2, "because"),
        protocol.Demand(1, "urgent/base20", wants=True, standing_by=False),
        protocol.Repaired(1, "urgent/base20", protocol.Fault.MISSING, "entry"),
    )
    return take, tuple(protocol.to_bytes(one) for one in said)


class AnsweringDatapath(PlayedDatapath):
    """A switch that answers every question with what is being tried."""

    tried: Any = None

    def send_msg(self, msg: Any) -> bool:
        """Answer a question: the first with what is tried, whatever was asked."""
        if self.tried is not None and self.role_is_answered:
            said, self.tried = self.tried, None
            said.xid = msg.xid
            self.sessions.answered(said)
            return True
        return super().send_msg(msg)

    @property
    def role_is_answered(self) -> bool:
        """Whether it has taken us for its master."""
        return self.generation is not None


def openflow() -> tuple[Callable[[bytes], object], tuple[bytes, ...]]:
    """Return what takes a switch's messages: os-ken's parser, and our sessions behind it.

    What os-ken's parser raises ends the connection (``Listener._serve``); that it always ends is what is tried.
    """
    from os_ken.ofproto import ofproto_parser
    from os_ken.ofproto import ofproto_v1_3 as ofp

    from controller.southbound.openflow.lengths import Checked

    parsed = Checked.of(ofproto_parser.msg)

    sessions = SwitchSessions(Silent(), 7)
    datapath = AnsweringDatapath(sessions)
    sessions.connected(datapath)

    def take(data: bytes) -> object:
        if len(data) < 8:
            return None
        size = max(8, min(len(data), int.from_bytes(data[2:4], "big")))
        try:
            msg = parsed(datapath, data[0], data[1], size, 1, data[:size])
        except Exception:  # noqa: BLE001 - as the listener does, which ends the connection
            return None
        if msg is None:
            return None  # os-ken has logged it, and passes it over
        changes = {ofp.OFPT_FLOW_REMOVED: sessions.removed, ofp.OFPT_PORT_STATUS: sessions.port_changed}
        if msg.msg_type in changes:
            changes[msg.msg_type](msg)
        answers = (ofp.OFPT_ERROR, ofp.OFPT_MULTIPART_REPLY, ofp.OFPT_BARRIER_REPLY, ofp.OFPT_ROLE_REPLY)
        if msg.msg_type not in answers:
            return None
        datapath.tried = msg
        return sessions.read(DPID, 0.001)

    return take, messages_of_switches(datapath)


class OvsdbAnswers:
    """In place of the connection to a database: what is received is given, what is sent is dropped."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def recv(self) -> Any:
        """Return the next message."""
        return self.said.pop(0) if self.said else None

    def is_connected(self) -> bool:
        """It is."""
        return True

    def get_seqno(self) -> int:
        """Return the number of the connection."""
        return 1

    def get_name(self) -> str:
        """Return its name, for the log."""
        return "tried"

    def __getattr__(self, _name: str) -> Callable[..., int]:
        """All else does nothing."""
        return lambda *_args, **_more: 0


def ovsdb() -> tuple[Callable[[bytes], object], tuple[bytes, ...]]:
    """Return what takes a database's messages: the ovs package's JSON-RPC, and its replica behind it."""
    ovs = ovs_package()
    monitor = {
        "Open_vSwitch": {"a": {"new": {"next_cfg": 1, "cur_cfg": 1}}},
        "Port": {"b": {"new": {"name": "ls1-eth1", "qos": ["set", []]}}},
        "QoS": {
            "c": {
                "new": {
                    "type": "linux-htb",
                    "other_config": ["map", [["max-rate", "1000000"]]],
                    "external_ids": ["map", [["headway", "ls1-eth1"]]],
                    "queues": ["map", [[1, ["uuid", "d"]]]],
                }
            }
        },
    }
    said = (
        {"id": 1, "result": monitor, "error": None},
        {"id": None, "method": "update", "params": ["x", monitor]},
        {"id": None, "method": "update2", "params": ["x", {"Port": {"b": {"modify": {"qos": ["uuid", "c"]}}}}]},
        {"id": 3, "result": [{"count": 1}, {"error": "timed out", "details": "x"}], "error": None},
        {"id": "echo", "method": "echo", "params": []},
        {"id": None, "method": "locked", "params": ["x"]},
    )

    def take(data: bytes) -> object:
        parsed = ovs.json.from_string(data.decode(errors="replace"))
        message = ovs.jsonrpc.Message.from_json(parsed) if isinstance(parsed, dict) else None
        if not isinstance(message, ovs.jsonrpc.Message):
            return None  # the connection is ended then
        idl = replica("unix:/nonexistent", None)
        idl._session, idl._last_seqno, idl.state = OvsdbAnswers(), 1, idl.IDL_S_DATA_MONITOR_REQUESTED
        idl._monitor_request_id = 1
        idl._session.said = [message]
        try:
            return idl.run()
        finally:
            idl._session = OvsdbAnswers()

    return take, tuple(json.dumps(one).encode() for one in said)


def requests() -> tuple[Callable[[bytes], object], tuple[bytes, ...]]:
    """Return what takes requests, as HTTP's parser hands them on: method, path and query, headers, body by lines.

    Raises:
        AssertionError: in ``take``, if the answer is our fault.
    """
    new_site: Any = FakeSite
    site = new_site(chile_illinois(), standing=())
    app, loop = api_of(site), asyncio.new_event_loop()

    def take(data: bytes) -> object:
        first, _, rest = data.partition(b"\n")
        method, _, target = first.decode("latin-1").partition(" ")
        head, _, body = rest.partition(b"\n\n")
        path, _, query = target.partition("?")
        if path.startswith("/v1/events") or path == "/events/stream":
            return None  # has no end
        lines = (line.partition(b":") for line in head.split(b"\n") if line)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method.upper(),
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "scheme": "http",
            "server": ("testserver", 80),
            "client": ("127.0.0.1", 5000),
            "headers": [
                (b"host", b"testserver"),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                *((name.strip().lower(), value.strip()) for name, _, value in lines),
            ],
        }
        statuses: list[int] = []
        received = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(received, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        loop.run_until_complete(app(scope, receive, send))
        if not statuses or statuses[0] >= 500:
            raise AssertionError(f"{method} {target}: {statuses}")
        return statuses

    return take, _REQUESTS


_REQUESTS = (
    b'GET /v1/reservations?state=held&from=la-serena&limit=3&after=2026-11-24T00:00:00Z\nif-none-match: "1"\n\n',
    b"GET /v1/availability?from=la-serena&to=champaign&start=2026-11-24T00:00:00Z&duration_s=60\n\n",
    b'GET /v1/calendar.ics?mine=true&owner=group:a\nif-none-match: W/"a", *\nauthorization: Basic YTpod19hX2I=\n\n',
    b"GET /v1/changes?limit=2&from=1\nauthorization: Bearer hw_00000000_abc\n\n",
    b'POST /v1/reservations\nidempotency-key: k\n\n{"from":"la-serena","to":"champaign","class":"urgent"}',
    b'POST /v1/announcements\n\n{"id":"i","bytes":1000,"from":["base20"],"to":"arch","deadline_s":60}',
    b'PATCH /v1/reservations/x\nif-match: "123456789012345678901234567890"\n\n{"rate":"2 Mbit/s"}',
    b"DELETE /v1/announcements/i\n\n",
    b"GET /?from=la-serena&to=champaign\ncookie: headway-token=a.b.c; x=\n\n",
    b"GET /v1/topology\nhost: testserver\norigin: http://elsewhere\n\n",
)
