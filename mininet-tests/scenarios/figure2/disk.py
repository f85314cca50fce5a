"""The receiver's disk, where it is slower than the circuit: movers write the image to it, and Headway knows of it."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mininet_tests.site.command import HEADWAY
from mininet_tests.site.emulation import MoreSettings
from mininet_tests.site.lsst import RECEIVER
from mininet_tests.site.slow_disk import slow_disk

ROOM_BYTES = 75_000_000  # a tenth of PA-UDP's 750 MB
SPARE_BYTES = 64 << 20  # what the file system itself takes
STORE = "data"


@dataclass(frozen=True, slots=True)
class ReceivingDisk:
    """Where what the image's movers bring is put.

    Attributes:
        path: its folder; None if it is thrown away.
        drain_bps: what ``headway agent check`` has measured there, and what its agent is told.
        room_bytes: what it takes at once, as measured.
    """

    path: Path | None = None
    drain_bps: int = 0
    room_bytes: int = 0
    _senders: Sequence[str] = field(default=())

    def server(self, port: int) -> list[str]:
        """Return the command of the mover that receives by a port; with a disk it ends when all is on that."""
        mover = ["nuttcp", "-1", "-P", str(port - 1)]
        if self.path is None:
            return mover
        file = self.path / f"image-{port}"
        return ["sh", "-c", f"{' '.join(mover)} --nofork -s > {file} && sync {file}"]

    @property
    def settings(self) -> MoreSettings:
        """What the receiver's agent is told of it, as an operator does who has measured it."""
        if self.path is None:
            return MoreSettings()
        store = {"path": str(self.path), "name": STORE, "from": list(self._senders), "rate": f"{self.drain_bps} bit/s"}
        return MoreSettings(agents={RECEIVER: {"stores": [store]}})

    @property
    def figures(self) -> Mapping[str, int] | None:
        """What a run keeps of it; None without one."""
        return None if self.path is None else {"drain_bps": self.drain_bps, "room_bytes": self.room_bytes}


@contextmanager
def receiving_disk(
    disk_bps: int | None, image_bytes: int, senders: Sequence[str], folder: Path
) -> Iterator[ReceivingDisk]:
    """Give a disk of so many bit/s with room for the image, measured; or none, where what is received is thrown away.

    Args:
        disk_bps: its rate; None for none.
        image_bytes: what it is to hold.
        senders: the addresses that send the image.
        folder: where it is mounted.
    """
    if disk_bps is None:
        yield ReceivingDisk()
        return
    size_bytes = (max(image_bytes, 4 * ROOM_BYTES) + SPARE_BYTES) * 5 // 4
    with slow_disk(folder / "disk", disk_bps, size_bytes, ROOM_BYTES) as disk:
        command = [str(HEADWAY), "agent", "check", "--store", str(disk.path), "--rate", "1Gbps", "--json"]
        said = json.loads(
            subprocess.run(
                [*command, "--bytes", str(3 * ROOM_BYTES)], capture_output=True, text=True, check=True
            ).stdout
        )
        yield ReceivingDisk(disk.path, said["drain_bps"], said["room_bytes"], tuple(senders))
