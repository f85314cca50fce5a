"""What the lab boots: Debian packages, a kernel with its modules, a first root file system; kept in a cache folder.

The kernel is Debian's 6.12 series: its netem takes a seed (Linux 6.7 on), so that a run with losses can be repeated.
6.1 has all else that the scenarios need, and is taken where apt knows no 6.12. Both were tried.

The first root file system is our own, not virtme-ng's, whose place it takes: (1) it keeps what was read of the host's
files and puts one copy-on-write layer over all of them; (2) it needs no udev on the host, which containers do not have
and without which virtme-ng mixes the command's output with the kernel's; (3) it can hold the guest's clock while a file
is read, from the first file on (``brake.py``); (4) it has booted before it needs the host, so that this is done once
(``snapshot.py``); (5) nothing from PyPI, and 100 lines.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Say = Callable[[str], None]

PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "depmod": "kmod", "ip": "iproute2"}
"""Program that must be there -> Debian package that brings it."""
BUSYBOX = Path("/bin/busybox")
SERIES = ("6.12", "6.1")
"""Best first."""
MODULES = (
    *("crc32c_intel", "crc32c_generic"),  # conntrack's library asks for one by name, which nobody would answer yet
    *("virtio_mmio", "9pnet_virtio", "9p", "overlay", "virtio_console", "openvswitch", "veth", "dummy", "ifb", "tun"),
    *("sch_netem", "sch_htb", "sch_fq", "sch_fq_codel", "sch_ingress", "sch_prio", "sch_tbf", "sch_hfsc"),
    *("act_mirred", "act_police", "act_gact", "act_skbedit", "cls_matchall", "cls_u32", "cls_flower", "cls_bpf"),
    *("act_bpf", "tcp_bbr", "tcp_scalable", "tcp_htcp", "tcp_highspeed", "tcp_illinois", "tcp_dctcp", "sctp"),
    *("tcp_diag", "inet_diag", "nf_tables", "nft_ct", "nft_limit", "nft_chain_nat", "ip_tables", "iptable_filter"),
)
"""What the guest loads when it starts; what a kernel has built in is left out."""
KEPT_FOLDERS = (
    "net",
    "lib",
    "crypto",
    "arch",
    "fs/9p",
    "fs/netfs",
    "fs/fscache",
    "fs/overlayfs",
    "fs/ext4",
    "fs/jbd2",
    "fs/mbcache.ko",
    "drivers/virtio",
    "drivers/net",
    "drivers/char",
    "drivers/block",
)
"""Folders of ``/lib/modules/VERSION/kernel`` that are unpacked, and files; the rest is sound, graphics, ...: 300 MB."""
FOLDERS_LIST = "folders"
"""The file beside a kernel that says which of them it has; one that has not all of them yet gets the rest."""
_NAME = re.compile(
    r"linux-image-(?P<version>(?P<series>\d+\.\d+)\.(?P<rest>\d+(?:\+deb\d+|-\d+))-amd64)(?P<tail>-unsigned)?"
)


class SetupError(Exception):
    """The lab cannot be set up; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Image:
    """A bootable kernel. ``modules`` is the folder that the guest sees as ``/lib/modules/VERSION``."""

    version: str
    folder: Path

    @property
    def kernel(self) -> Path:
        """The compressed kernel."""
        return self.folder / "vmlinuz"

    @property
    def modules(self) -> Path:
        """The modules, uncompressed, with their dependency lists."""
        return self.folder / "lib" / "modules" / self.version


def cache_dir(environment: dict[str, str]) -> Path:
    """Return the folder that all downloads go to: ``$XDG_CACHE_HOME/headway/lab``, else below ``~/.cache``."""
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "headway" / "lab"


def kernel_package(listing: str, series: str) -> str | None:
    r"""Return the newest image package of ``series`` named in ``listing``, or None.

    Cloud and real-time flavours are left out (their module sets differ); of a signed and an unsigned package with one
    version the signed is taken.

    Args:
        listing: output of ``apt-cache search --names-only``: ``NAME - DESCRIPTION`` a line.
        series: two numbers, such as ``6.12``.

    >>> kernel_package("linux-image-6.12.9+deb12-amd64 - x\nlinux-image-6.12.38+deb12-amd64 - y", "6.12")
    'linux-image-6.12.38+deb12-amd64'
    """
    names = (line.split(" ", 1)[0] for line in listing.splitlines())
    matches = [match for name in names if (match := _NAME.fullmatch(name)) and match["series"] == series]
    newest = max(matches, key=lambda match: (_numbers(match["rest"]), match["tail"] is None), default=None)
    return newest[0] if newest else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", text))


def load_order(dependencies: str, wanted: Iterable[str]) -> list[str]:
    """Return the files of ``wanted`` modules and all that they need, each after what it needs.

    Args:
        dependencies: the text of ``modules.dep``: ``FILE: NEEDED ...``, the most basic need last.
        wanted: module names; those without a file are built into the kernel and left out.
    """
    needs = {file: rest.split() for file, _, rest in (line.partition(":") for line in dependencies.splitlines())}
    file_of = {Path(file).name.split(".")[0].replace("-", "_"): file for file in needs}
    order: list[str] = []
    for name in wanted:
        if name in file_of:
            order += [file for file in (*reversed(needs[file_of[name]]), file_of[name]) if file not in order]
    return order


def prepared(cache: Path, say: Say, kernel: str = "") -> Image:
    """Return the image, after installing and downloading what is missing. Quick when nothing is.

    Args:
        cache: the folder of all downloads.
        say: where progress goes.
        kernel: a series such as ``6.1``; empty for the best.

    Raises:
        SetupError: if this machine cannot be made ready.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock", say):
        _install_packages(say)
        series = (kernel,) if kernel else SERIES
        image = _cached(cache, series)
        if image is not None and _is_whole(image) and not _is_surpassed(image, series):
            return image
        return _downloaded(cache, series, say)


@contextmanager
def locked(path: Path, say: Say) -> Iterator[None]:
    """Keep all other labs out of what ``path`` stands for."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another lab is setting up; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install_packages(say: Say) -> None:
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if not BUSYBOX.exists() or b"/lib64/ld-linux" in BUSYBOX.read_bytes():
        missing.append("busybox-static")
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise SetupError(f"needs {', '.join(missing)}, and this is no Debian: install them by hand")
    say(f"installing {', '.join(missing)}")
    install = ["install", "-y", "--no-install-recommends", *missing]
    if _apt(install).returncode != 0:
        _update(say)
        _must(_apt(install), f"apt-get could not install {', '.join(missing)}")


def _apt(arguments: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments],
        cwd=cwd,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _update(say: Say) -> None:
    say("reading the package lists (apt-get update)")
    _must(_apt(["update"]), "apt-get update failed; is the network there?")


def _must(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise SetupError(f"{what}: {' '.join(last)}")


def _cached(cache: Path, series: tuple[str, ...]) -> Image | None:
    """Return the best kernel that is already here; it is kept, so that figures stay comparable, until it is deleted."""
    folders = [path for one in series for path in cache.glob(f"linux-{one}.*") if (path / "vmlinuz").exists()]
    best = max(folders, key=lambda path: _numbers(path.name), default=None)
    return Image(version=best.name.removeprefix("linux-"), folder=best) if best else None


def _is_whole(image: Image) -> bool:
    """Return whether all the folders that are kept now were kept when it was unpacked."""
    listing = image.folder / FOLDERS_LIST
    return listing.exists() and set(KEPT_FOLDERS) <= set(listing.read_text().split())


def _is_surpassed(image: Image, series: tuple[str, ...]) -> bool:
    """Return whether apt knows a kernel of the best series: this one was asked for by name, for another boot."""
    return not image.version.startswith(f"{series[0]}.") and _known_package(series[:1]) is not None


def _downloaded(cache: Path, series: tuple[str, ...], say: Say) -> Image:
    if shutil.which("apt-get") is None:
        raise SetupError("needs Debian's kernel package, and this is no Debian: run it in a Debian 12 container")
    package = _known_package(series)
    if package is None or not package.startswith(f"linux-image-{series[0]}."):
        _update(say)
        package = _known_package(series)
    if package is None:
        raise SetupError(
            f"apt knows no linux-image-{series[0]}.*-amd64; add Debian's bookworm-security to apt's sources"
        )
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        say(f"downloading {package}")
        if _apt(["download", package], cwd=Path(folder)).returncode != 0:
            _update(say)
            _must(_apt(["download", package], cwd=Path(folder)), f"could not download {package}")
        return _unpacked(next(Path(folder).glob("*.deb")), package, cache, say)


def _known_package(series: tuple[str, ...]) -> str | None:
    listing = subprocess.run(
        ["apt-cache", "search", "--names-only", "^linux-image-[0-9].*amd64"], capture_output=True, text=True, check=True
    ).stdout
    return next((found for one in series if (found := kernel_package(listing, one))), None)


def _unpacked(deb: Path, package: str, cache: Path, say: Say) -> Image:
    version = package.removeprefix("linux-image-").removesuffix("-unsigned")
    say(f"unpacking Linux {version}")
    all_of_it = deb.parent / "all"
    _must(_run(["dpkg", "-x", str(deb), str(all_of_it)]), f"could not unpack {deb.name}")
    image = Image(version=version, folder=deb.parent / f"linux-{version}")
    image.modules.mkdir(parents=True)
    _take_modules(all_of_it / "lib" / "modules" / version, image.modules)
    _must(_run(["depmod", "-b", str(image.folder), version]), "depmod failed")
    shutil.move(all_of_it / "boot" / f"vmlinuz-{version}", image.kernel)
    (image.folder / FOLDERS_LIST).write_text("\n".join(KEPT_FOLDERS) + "\n")
    return Image(version=version, folder=_put(image.folder, cache / image.folder.name))


def _put(new: Path, place: Path) -> Path:
    """Bring an unpacked image to its place; return that. What is there already stays: a lab may be reading it."""
    if not place.exists():
        return new.rename(place)
    for file in sorted(path for path in new.rglob("*") if path.is_file()):
        to = place / file.relative_to(new)
        if not to.exists() or file.name.startswith("modules.") or file.name == FOLDERS_LIST:
            to.parent.mkdir(parents=True, exist_ok=True)
            file.rename(to)
    return place


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _take_modules(source: Path, target: Path) -> None:
    """Copy the kept modules, uncompressed: to do that in the guest at each boot costs it seconds."""
    for folder in KEPT_FOLDERS:
        for path in sorted(_modules_in(source / "kernel" / folder)):
            to = target / path.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.with_suffix("" if path.suffix == ".xz" else ".ko").write_bytes(_module_bytes(path))
    for listing in source.glob("modules.*"):
        shutil.copy(listing, target)


def _modules_in(place: Path) -> Iterable[Path]:
    """Return the modules in a folder, or the one that a file's name without its compression is."""
    return place.parent.glob(f"{place.name}*") if place.suffix == ".ko" else place.rglob("*.ko*")


def _module_bytes(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def initramfs(image: Image) -> bytes:
    """Return the first root file system: busybox, the modules in the order of loading, our first script."""
    names = ("bin", "dev", "proc", "sys", "host", "memory", "newroot", "modules", "job")
    entries = [directory(name) for name in names]
    entries += [device("dev/console", 5, 1), device("dev/null", 1, 3)]
    entries += [program("bin/busybox", BUSYBOX.read_bytes()), program("bin/sh", b"busybox", mode=0o120777)]
    entries += [program("init", (Path(__file__).parent / "init.sh").read_bytes())]
    order = load_order((image.modules / "modules.dep").read_text(), MODULES)
    for number, file in enumerate(order):
        entries.append(program(f"modules/{number:03d}-{Path(file).name}", (image.modules / file).read_bytes()))
    return archive(entries)


@dataclass(frozen=True, slots=True)
class CpioEntry:
    """One file of a cpio archive; ``mode`` holds type and permissions as in stat(2)."""

    name: str
    mode: int
    body: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> CpioEntry:
    """Return a folder."""
    return CpioEntry(name, 0o040755)


def device(name: str, major: int, minor: int) -> CpioEntry:
    """Return a character device."""
    return CpioEntry(name, 0o020600, device=(major, minor))


def program(name: str, body: bytes, mode: int = 0o100755) -> CpioEntry:
    """Return an executable file (or, by ``mode``, a link to ``body``)."""
    return CpioEntry(name, mode, body)


def archive(entries: Iterable[CpioEntry]) -> bytes:
    """Return a cpio archive in the "newc" form that the kernel unpacks; archives may be joined end to end.

    Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    out = bytearray()
    for number, entry in enumerate((*entries, CpioEntry("TRAILER!!!", 0)), start=1):
        name = entry.name.encode() + b"\0"
        fields = (number, entry.mode, 0, 0, 1, 0, len(entry.body), 0, 0, *entry.device, len(name), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += b"\0" * (-len(out) % 4)
        out += entry.body
        out += b"\0" * (-len(out) % 4)
    return bytes(out)
