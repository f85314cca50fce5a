"""``headway advise``: what block and width a mover in lock step needs between two hosts; no controller is asked."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apps.cli import base, options, printed
from topology import units

if TYPE_CHECKING:
    from topology.network import Network

app = typer.Typer()
WIDTHS, BLOCKS_BYTES, ENOUGH_PERCENT = (1, 2, 4, 8, 16), (16 * 10**6, 64 * 10**6, 256 * 10**6, 1024 * 10**6), 95
_MOVER = re.compile(r"\s*([1-9][0-9]{0,3})\s*x\s*(.+)", re.ASCII)


@app.command()
def advise(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The network's file, or the controller's YAML.")],
    sender: Annotated[str, typer.Option("--from", help="Host that sends.")],
    target: Annotated[str, typer.Option("--to", help="Host that receives.")],
    rate: Annotated[str | None, typer.Option(help="Counted on the wire; the least circuit's if absent.")] = None,
    mover: Annotated[str | None, typer.Option(help="Of this one alone: streams and block, as in '4 x 16 MB'.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what share of a rate a mover uses that waits until each block is confirmed, by its streams and its block.

    headway advise network.yaml --from base20 --to arch --mover '4 x 16 MB'
    """
    from controller.whatif.movers import Mover, block_bytes
    from topology.wire import Layer, converted_bps

    network, path = _path(file, sender, target)
    least_bps = min(bps for link in pairwise(path) if (bps := _circuit_bps(network, link)))
    asked_bps = base.quantity(rate, units.rate_bps, "--rate")
    wire_bps, rtt_us = least_bps if asked_bps is None else asked_bps, network.path_rtt_us(path)
    payload_bps = converted_bps(wire_bps, Layer.WIRE, Layer.PAYLOAD, network.framing_of(path))
    if not payload_bps:
        base.stop(f"--rate: {rate} carries no payload", base.EXIT_USAGE)
    widths, blocks = (WIDTHS, BLOCKS_BYTES) if mover is None else _asked(mover)
    rows = {}
    for width in widths:
        movers = [Mover(width, block, lock_step=True) for block in blocks]
        shares = [round(100 * one.effective_bps(payload_bps, rtt_us, 0) / payload_bps) for one in movers]
        rows[width] = shares, block_bytes(width, payload_bps, rtt_us, ENOUGH_PERCENT)
    if as_json:
        said = [
            {"streams": width, "share_percent": dict(zip(blocks, shares, strict=True)), "block_for_95_percent": enough}
            for width, (shares, enough) in rows.items()
        ]
        typer.echo(json.dumps({"rtt_us": rtt_us, "wire_bps": wire_bps, "payload_bps": payload_bps, "movers": said}))
        return
    typer.echo(f"{sender} to {target}: {units.shown_rate(wire_bps)} on the wire, round trip {rtt_us / 1000:g} ms")
    table = printed.new_table("streams", *map(units.shown_size, blocks), f"block for {ENOUGH_PERCENT}%")
    for width, (shares, enough) in rows.items():
        table.add_row(str(width), *(f"{share}%" for share in shares), units.shown_size(enough))
    printed.show(table)


def _path(file: Path, sender: str, target: str) -> "tuple[Network, tuple[str, ...]]":
    """Return the network in a file, and the way between two of its hosts, which crosses a circuit."""
    from controller.errors import ConfigError, HeadwayError
    from controller.plan.keys import FlowId
    from controller.settings.network import network_at_or_in
    from controller.site import flow_between
    from topology.protocol import FlowClass

    try:
        network = network_at_or_in(file)
        return network, flow_between(network, FlowId("mover"), FlowClass.URGENT, (sender, target)).path
    except (ConfigError, HeadwayError) as error:
        base.stop(str(error), base.EXIT_USAGE)


def _circuit_bps(network: "Network", hop: tuple[str, str]) -> int:
    """Return what a circuit's link carries; 0 for any other link."""
    link = network.link(*hop)
    return link.rate_bps if link.circuit else 0


def _asked(mover: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the streams and the block of one mover."""
    match = _MOVER.fullmatch(mover)
    if match is None:
        base.stop(f'--mover: "{mover}" is not streams and a block, try "4 x 16 MB"', base.EXIT_USAGE)
    block = base.quantity(match[2], units.size_bytes, "--mover")
    if not block:
        base.stop("--mover: a block has at least a byte", base.EXIT_USAGE)
    return (int(match[1]),), (block,)
