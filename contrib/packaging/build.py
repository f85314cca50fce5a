#!/usr/bin/env python3
"""Make wheel, sdist and the Debian packages: ``make packages``. The same commit and locks give the same bytes.

Every file below ``/usr/lib`` is in a folder of our own (decision 22); Debian's Python runs it.
"""

import argparse
import compileall
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from hostagent.systemd import units  # noqa: E402
from topology import __version__  # noqa: E402

PYTHON = "python3 (>= 3.11), python3 (<< 3.12)"  # what the locked packages are compiled for
HOME = "https://headway.example"
LAUNCHER = """#!/usr/bin/python3 -IB
import sys
sys.path[:0] = {folders}
from {module} import main
main()
"""
UNUSED = ("bin", "share")
"""What packages of PyPI bring beside their modules."""
AGENTS_OWN = (
    *(
        "topology/__init__.py",
        "topology/addresses.py",
        "topology/certificates.py",
        "topology/handshake.py",
        "topology/printable.py",
        "topology/protocol.py",
        "topology/telemetry.py",
    ),
    *(
        "topology/uncollected.py",
        "topology/units.py",
        "topology/wire.py",
        "topology/yaml_text.py",
        "apps/__init__.py",
        "apps/agent.py",
    ),
    *("apps/cli/__init__.py", "apps/cli/agent.py", "apps/cli/agent_setup.py", "apps/cli/agent_tables.py"),
    *("apps/cli/agent_store.py", "apps/cli/place.py", "apps/loading.py"),
    *("apps/cli/completion.py", "apps/cli/identity.py", "apps/cli/options.py", "apps/cli/printed.py"),
    *("apps/cli/harmless.py", "apps/cli/output.py", "apps/cli/shown.py", "apps/cli/trust.py", "hostagent"),
)
"""What of our modules an agent's host has."""


@dataclass(frozen=True, slots=True)
class DebPackage:
    """One Debian package.

    Attributes:
        name: of it.
        summary: one line.
        depends: as in its control file.
        recommends: the same.
        units: of systemd, in the order in which they start.
        offered: others of systemd, that an operator enables or not; what is enabled comes first.
        user: that they run as.
        state: folder that is this user's, there before the first start so that --check finds it.
        kept: what purging removes beside the package's own files.
        conffiles: what dpkg asks about before it replaces it.
        pages: of the manual, that are put beside it.
        examples: of contrib/, that are put there too.
    """

    name: str
    summary: str
    depends: str
    recommends: str = ""
    units: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    user: str = ""
    state: str = ""
    kept: tuple[str, ...] = ()
    conffiles: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    fill: Callable[["Built", Path], None] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Built:
    """What all packages are made of: our wheel, and a folder with the locked packages by the name of their lock."""

    own: Path
    locked: Mapping[str, Path]


def run(*command: str | Path, **more: str) -> None:
    """Run a command; what it says is shown only if it fails.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run([*map(str, command)], env={**os.environ, **more}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def committed_s() -> str:
    """Return the commit's time, Unix seconds: the time of every file in the packages."""
    asked = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "0"


def installed(lock: Path, folder: Path) -> Path:
    """Return a folder with the packages of a lock, every one by its hash."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    run(*pip, "--no-build-isolation", "--require-hashes", "--target", folder, "-r", lock, CFLAGS="-g0")
    for name in UNUSED:
        shutil.rmtree(folder / name, ignore_errors=True)
    for tests in [*folder.glob("*/tests"), *folder.glob("*/testing/tests")]:
        shutil.rmtree(tests)
    return folder


def distributed(out: Path) -> Path:
    """Make sdist and wheel of a clean copy of the tree; return the wheel."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        for folder in ("apps", "controller", "headway", "hostagent", "topology"):
            ignored = shutil.ignore_patterns("__pycache__", "tests")
            shutil.copytree(ROOT / folder, source / folder, ignore=ignored)
        for file in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, source)
        for what in ("sdist", "wheel"):
            code = f"from setuptools import build_meta; build_meta.build_{what}({str(out)!r})"
            done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
    return next(out.glob("headway-*.whl"))


@contextmanager
def built(out: Path) -> Iterator[Built]:
    """Make what all packages are made of."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        wheel = distributed(out)
        run(sys.executable, "-m", "zipfile", "-e", wheel, scratch / "own")
        locks = sorted((HERE / "locks").glob("*.lock"))
        yield Built(scratch / "own", {lock.stem: installed(lock, scratch / lock.stem) for lock in locks})


def written(root: Path, path: str, text: str, mode: int = 0o644) -> None:
    """Write one file below a package's root."""
    there = root / path.lstrip("/")
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text(text)
    there.chmod(mode)


def agent(from_: Built, root: Path) -> None:
    """Fill the agent's package."""
    site = root / "usr/lib/headway-agent"
    shutil.copytree(from_.locked["agent"], site)
    for name in AGENTS_OWN:
        source = from_.own / name
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, site / name)
    launcher = LAUNCHER.format(folders=["/usr/lib/headway-agent"], module="apps.agent")
    written(root, "/usr/bin/headway-agent", launcher, 0o755)
    text = units.files("/usr/bin/headway-agent", "10Gbps", "180ms")
    configured = "ConditionPathExists=/etc/headway/agent.yaml\n\n[Service]"
    for path, content in text.items():
        if path.suffix == ".service":
            own = content.replace("\n[Service]", configured)
            own = own.replace(
                "Environment=HEADWAY_RATE=10Gbps HEADWAY_RTT=180ms", "EnvironmentFile=/etc/default/headway-agent"
            )
            own = own.replace(
                "# On the wire, and of the longest path. To change them: systemctl edit headway-agent-sysctl\n", ""
            )
            written(root, f"/lib/systemd/system/{path.name}", own)
        else:
            written(root, f"/usr/lib/sysusers.d/{path.name}", content)
    written(root, "/etc/default/headway-agent", (HERE / "units/headway-agent.default").read_text())
    (root / "etc/headway").mkdir(parents=True)


def command(from_: Built, root: Path) -> None:
    """Fill the command's package: all of our modules, and what of PyPI the command needs.

    The client has a folder of its own, that scripts can put on their path with nothing else on it.
    """
    site = root / "usr/lib/headway/command"
    shutil.copytree(from_.locked["command"], site)
    shutil.copytree(from_.own, site, dirs_exist_ok=True)
    (root / "usr/lib/headway/python").mkdir()
    shutil.move(site / "headway", root / "usr/lib/headway/python/headway")
    folders = ["/usr/lib/headway/python", "/usr/lib/headway/command", "/usr/lib/headway/controller"]
    written(root, "/usr/bin/headway", LAUNCHER.format(folders=folders, module="apps.main"), 0o755)


def controller(from_: Built, root: Path) -> None:
    """Fill the controller's package: its unit, and what of PyPI the command's package does not have."""
    site = root / "usr/lib/headway/controller"
    shutil.copytree(from_.locked["controller"], site)
    for path in from_.locked["command"].iterdir():
        there = site / path.name
        if there.is_dir():
            shutil.rmtree(there)
        else:
            there.unlink(missing_ok=True)
    for unit in ("headway-controller.service", "headway-backup.service", "headway-backup.timer"):
        written(root, f"/lib/systemd/system/{unit}", (HERE / "units" / unit).read_text())
    written(
        root, "/usr/lib/sysusers.d/headway-controller.conf", (HERE / "units/headway-controller.sysusers").read_text()
    )
    (root / "etc/headway").mkdir(parents=True)


DEBS = (
    DebPackage(
        "headway-agent",
        "Headway host agent: holds the bandwidth plan's allocations in the kernel",
        f"{PYTHON}, python3-cryptography (>= 38), python3-pyroute2, python3-yaml, libbpf1, procps, systemd",
        "python3-prometheus-client",
        units=("headway-agent-sysctl.service", "headway-agent.service"),
        user="headway",
        kept=("/etc/headway/agent.yaml",),
        conffiles=("/etc/default/headway-agent",),
        pages=("agent.md", "pki.md"),
        fill=agent,
    ),
    DebPackage(
        "headway",
        "Headway command line: reserve, announce and look at bandwidth",
        PYTHON,
        pages=("*.md",),
        examples=("prometheus/*.yml", "grafana/*.json", "grafana/provisioning/*/*.yml"),
        fill=command,
    ),
    DebPackage(
        "headway-controller",
        "Headway controller: one bandwidth plan for circuit, switches and hosts",
        f"{PYTHON}, headway (= @VERSION@), systemd",
        "openvswitch-switch",
        units=("headway-controller.service",),
        offered=("headway-backup.timer", "headway-backup.service"),
        user="headway-controller",
        state="/var/lib/headway",
        kept=("/var/lib/headway", "/etc/headway/controller.yaml", "/etc/headway/network.yaml"),
        fill=controller,
    ),
)


def control(package: DebPackage, version: str, kib: int) -> str:
    """Return a package's control file."""
    manual = package.name if package.pages else "headway"
    lines = {
        "Package": package.name,
        "Version": version,
        "Architecture": "amd64",
        "Maintainer": "Headway developers <headway@example.org>",
        "Installed-Size": str(kib),
        "Depends": package.depends.replace("@VERSION@", version),
        "Recommends": package.recommends,
        "Section": "net",
        "Priority": "optional",
        "Description": f"{package.summary}\n How to set it up: /usr/share/doc/{manual}/.",
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items() if value)


def scripts(package: DebPackage) -> dict[str, str]:
    """Return a package's maintainer scripts by name; none if it has no unit."""
    if not package.units:
        return {}
    values = {
        "@UNITS@": " ".join(package.units),
        "@OFFERED@": " ".join(package.offered),
        "@SYSUSERS@": f"/usr/lib/sysusers.d/{package.name}.conf",
        "@USER@": package.user,
        "@STATE@": package.state,
        "@KEPT@": " ".join(package.kept),
    }
    found = {}
    for name in ("postinst", "prerm", "postrm"):
        text = (HERE / "debian" / name).read_text()
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        found[name] = text
    return found


def compiled(site: Path, shown_as: str) -> None:
    """Compile a folder's modules for the place where they will be; what is compiled is part of the package."""
    compileall.compile_dir(
        site,
        quiet=2,
        stripdir=str(site),
        prependdir=shown_as,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def packed(package: DebPackage, from_: Built, version: str, out: Path, time_s: str) -> Path:
    """Make one Debian package."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir(mode=0o755)
        package.fill(from_, root)
        for site in (*root.glob("usr/lib/headway-agent"), *root.glob("usr/lib/headway/*")):
            shutil.rmtree(site / "__pycache__", ignore_errors=True)
            compiled(site, "/" + str(site.relative_to(root)))
        written(root, f"/usr/share/doc/{package.name}/copyright", (ROOT / "LICENSE").read_text())
        for folder, each in ((ROOT / "docs", package.pages), (ROOT / "contrib", package.examples)):
            for path in sorted(path for pattern in each for path in folder.glob(pattern)):
                if not path.name.endswith(".test.yml"):
                    written(root, f"/usr/share/doc/{package.name}/{path.relative_to(folder)}", path.read_text())
        kib = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        written(root, "/DEBIAN/control", control(package, version, kib))
        if package.conffiles:
            written(root, "/DEBIAN/conffiles", "".join(f"{path}\n" for path in package.conffiles))
        for script, text in scripts(package).items():
            written(root, f"/DEBIAN/{script}", text, 0o755)
        for path in (root, *root.rglob("*")):  # not as the umask had it
            is_run = path.stat().st_mode & 0o100 and path.suffix not in {".py", ".pyc", ".so", ".o"}
            path.chmod(0o755 if path.is_dir() or is_run else 0o644)
        deb = out / f"{package.name}_{version}_amd64.deb"
        run("dpkg-deb", "-Zxz", "-z3", "--root-owner-group", "--build", root, deb, SOURCE_DATE_EPOCH=time_s)
    return deb


def main() -> None:
    """Make everything."""
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("the packages are for Debian 12: build them with its Python 3.11")
    if importlib.util.find_spec("wheel") is None:
        raise SystemExit("the Python package wheel is missing: make install")
    os.umask(0o022)  # the wheel's files are made by it
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    parser.add_argument("--version", action="append", help="of the Debian packages; may be said again (default: ours)")
    asked = parser.parse_args()
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    time_s = os.environ.setdefault("SOURCE_DATE_EPOCH", committed_s())
    with built(out) as from_:
        for version in asked.version or [__version__]:
            for package in DEBS:
                print(packed(package, from_, version, out, time_s))
    for lock in (HERE / "locks").glob("*.lock"):
        shutil.copy(lock, out)


if __name__ == "__main__":
    main()
