"""The Debian packages without what they take of PyPI: files, needs, scripts and units."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import zipfile

import pytest

from contrib.packaging import build, lock
from controller.database import Database

ROOT = build.ROOT
OURS = ("apps", "controller", "headway", "hostagent", "topology")
FOLDERS = ("./usr/lib/headway", "./usr/bin/headway", "./lib/systemd/system/headway-", "./usr/lib/sysusers.d/headway-")
ETC = ("./etc/headway/", "./etc/default/headway-agent", "./usr/share/doc/headway")
READ_BY_MODULES = {".css", ".o", ".h", ".c", ".service", ".conf"}
WITH_SYSTEMD = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs Debian's package systemd")
MOST_EXPOSED = 49  # tenths: below this systemd calls it OK


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Our modules as the wheel has them, and locks that hold one package each."""
    folder = tmp_path_factory.mktemp("parts")
    for name in OURS:
        shutil.copytree(ROOT / name, folder / "own" / name, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    locked = {name: folder / name for name in ("agent", "command", "controller")}
    for name, there in locked.items():
        (there / "shared").mkdir(parents=True)
        (there / f"{name}_only").mkdir()
        (there / f"{name}_only/__init__.py").write_text("")
    return build.Built(folder / "own", locked)


@pytest.fixture(scope="module")
def debs(parts, tmp_path_factory):
    out = tmp_path_factory.mktemp("debs")
    return {package.name: build.packed(package, parts, "1.2.3", out, "1700000000") for package in build.DEBS}


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def files(deb):
    return {line.split(maxsplit=5)[5]: line.split()[0] for line in said("dpkg-deb", "-c", str(deb)).splitlines()}


def unpacked(debs, folder):
    for deb in debs.values():
        said("dpkg-deb", "-x", str(deb), str(folder))
    return folder


def test_the_wheel_has_every_file_that_our_modules_read(tmp_path):
    names = set(zipfile.ZipFile(build.distributed(tmp_path)).namelist())
    beside = [path for folder in OURS for path in (ROOT / folder).rglob("*")]
    beside = [path for path in beside if path.suffix in READ_BY_MODULES and "tests" not in path.parts]
    assert {"manual.css", "headway.bpf.o", "headway-agent.service"} <= {path.name for path in beside}
    assert [str(path) for path in beside if str(path.relative_to(ROOT)) not in names] == []


def test_the_controller_has_the_manuals_style_where_it_is_read(debs):
    assert "./usr/lib/headway/command/controller/northbound/manual.css" in files(debs["headway"])


def test_nothing_of_ours_is_where_other_packages_have_their_modules(debs):
    for deb in debs.values():
        for path, mode in files(deb).items():
            assert mode.startswith("d") or path.startswith((*FOLDERS, *ETC)), path
            assert mode[8] != "w", path


def test_an_agents_host_gets_no_controller(debs):
    names = files(debs["headway-agent"])
    assert not [name for name in names if "/controller" in name or "/networkx" in name]
    depends = said("dpkg-deb", "-f", str(debs["headway-agent"]), "Depends").strip().split(", ")
    assert {each.split()[0] for each in depends} == {
        *("python3", "python3-cryptography", "python3-pyroute2", "python3-yaml", "libbpf1", "procps", "systemd")
    }


def test_two_packages_never_have_the_same_file(debs):
    have = [{name for name, mode in files(deb).items() if mode.startswith("-")} for deb in debs.values()]
    assert sum(map(len, have)) == len(set().union(*have))


def test_the_wheel_says_which_providers_it_brings(tmp_path):
    wheel = zipfile.ZipFile(build.distributed(tmp_path))
    (entry_points,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    said_of_them = wheel.read(entry_points).decode().partition("[headway.providers]")[2]
    assert [line.partition(" = ")[0] for line in said_of_them.split("\n") if " = " in line] == ["nsi", "oscars"]


def test_a_controller_takes_the_commands_packages_from_the_command(debs):
    assert "./usr/lib/headway/controller/controller_only/__init__.py" in files(debs["headway-controller"])
    assert not [
        name for name in files(debs["headway-controller"]) if name.startswith("./usr/lib/headway/controller/shared")
    ]
    assert "headway (= 1.2.3)" in said("dpkg-deb", "-f", str(debs["headway-controller"]), "Depends")


def test_a_script_takes_the_client_from_a_folder_with_nothing_else(debs, tmp_path):
    python = unpacked({"": debs["headway"]}, tmp_path) / "usr/lib/headway/python"
    assert [path.name for path in python.iterdir()] == ["headway"]
    code = f"import sys; sys.path[:0] = [{str(python)!r}]; import headway; "
    code += "print(headway.Client.__name__, headway.__file__)"
    assert said("/usr/bin/python3", "-IS", "-c", code).startswith(f"Client {python}")
    assert "/usr/lib/headway/python" in (tmp_path / "usr/bin/headway").read_text()


def test_the_agents_modules_are_enough_for_its_daemon_and_each_of_its_commands(debs, tmp_path):
    site = unpacked({"": debs["headway-agent"]}, tmp_path) / "usr/lib/headway-agent"
    imports = "apps.agent, apps.cli.agent, apps.cli.agent_tables, apps.cli.agent_setup"
    imports += ", hostagent.agent.daemon, hostagent.agent.metrics"
    shown = "[m.__file__ for n, m in sys.modules.items() if n.split('.')[0] in {'apps', 'hostagent', 'topology'}]"
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import {imports}; print(*{shown})"
    found = said(sys.executable, "-I", "-c", code).split()
    assert len(found) > 20
    assert all(path.startswith(str(site)) for path in found)


def test_what_runs_needs_no_compiling_on_the_machine(debs):
    names = set(files(debs["headway-agent"]))
    assert "./usr/lib/headway-agent/hostagent/agent/__pycache__/daemon.cpython-311.pyc" in names
    assert "./usr/lib/headway-agent/hostagent/bpf/headway.bpf.o" in names


def test_the_same_parts_make_the_same_bytes(parts, debs, tmp_path):
    again = build.packed(build.DEBS[0], parts, "1.2.3", tmp_path, "1700000000")
    assert again.read_bytes() == debs["headway-agent"].read_bytes()


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_what_is_packed_is_for_all_to_read_and_for_its_owner_to_write_whatever_the_umask(tmp_path, monkeypatch, umask):
    def seen(*command, **_environment):
        root = command[-2]
        modes.update(
            {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
        )

    modes = {}
    monkeypatch.setattr(build, "run", seen)  # dpkg-deb
    locked = {name: tmp_path / name for name in ("command", "controller")}
    before = os.umask(umask)
    try:
        for name, there in locked.items():
            (there / name).mkdir(parents=True)
            (there / name / "METADATA").write_text("")
        build.packed(build.DEBS[2], build.Built(tmp_path, locked), "1.2.3", tmp_path, "1700000000")
    finally:
        os.umask(before)
    assert "usr/lib/headway/controller/controller/METADATA" in modes
    for_all = {name for name, mode in modes.items() if mode == 0o755}
    assert {".", "DEBIAN", "DEBIAN/postinst", "etc/headway", "usr/lib/headway/controller/controller"} <= for_all
    assert {mode for name, mode in modes.items() if name not in for_all} == {0o644}


def test_the_scripts_are_shell_without_a_placeholder_left():
    for package in build.DEBS:
        for text in build.scripts(package).values():
            assert "@" not in text
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_purging_keeps_the_users_whose_numbers_may_still_own_keys_and_tokens():
    for package in build.DEBS:
        said_by = "".join(build.scripts(package).values())
        assert not re.search(r"\b(userdel|groupdel|deluser|delgroup)\b", said_by), package.name


def test_who_has_only_the_packages_has_the_alarms_and_the_dashboards(debs):
    folders = tuple(f"./usr/share/doc/headway/{name}/" for name in ("prometheus", "grafana"))
    brought = {path for path in files(debs["headway"]) if path.startswith(folders) and not path.endswith("/")}
    alarms = ("prometheus.yml", "headway.rules.yml", "headway-agent.rules.yml")
    boards = ("site.json", "circuit.json", "host.json")
    provisioned = (f"provisioning/{what}/headway.yml" for what in ("datasources", "dashboards"))
    assert brought == {
        *(folders[0] + name for name in alarms),
        *(folders[1] + name for name in (*boards, *provisioned)),
    }


def test_a_lock_has_all_that_setup_cfg_wants_with_a_hash():
    for name, requirements in lock.wanted().items():
        rows = (lock.LOCKS / f"{name}.lock").read_text().splitlines()
        assert all("==" in row and "--hash=sha256:" in row for row in rows)
        locked = {row.partition("==")[0].lower().replace("_", "-") for row in rows}
        names = {
            one.partition(">")[0].partition("=")[0].partition("[")[0].lower().replace("_", "-") for one in requirements
        }
        assert names <= locked


@WITH_SYSTEMD
def test_the_units_are_right_and_let_out_little(debs, tmp_path):
    root = unpacked(debs, tmp_path)
    found = sorted((root / "lib/systemd/system").glob("*.service"))
    assert [unit.name for unit in found] == [
        *("headway-agent-sysctl.service", "headway-agent.service", "headway-backup.service"),
        "headway-controller.service",
    ]
    threshold = [f"--threshold={MOST_EXPOSED}", "--offline=true"]
    for unit in found:
        subprocess.run(["systemd-analyze", "security", *threshold, unit], check=True, capture_output=True)
        there = unit.read_text()
        for line in there.splitlines():
            if line.startswith("ExecStart=/usr/bin/"):
                assert (root / line.split()[0].removeprefix("ExecStart=/")).exists()
        assert "CapabilityBoundingSet=" in there
        # a library's call that is not let through must not end the process: BLAS tries some that it can do without
        assert ("\nSystemCallFilter=" in there) == ("\nSystemCallErrorNumber=EPERM\n" in there)
        assert "\nProcSubset=" not in there  # hides boot_id from the controller, and sysctls from the agent
        assert not re.search("@[A-Z]+@", there)
        # what systemd does not know is said on standard error; it does not know our programs' paths here
        ours = re.sub("^ExecStart=/usr/bin/headway\\S*", "ExecStart=/bin/true", there, flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(ours.replace("\nAfter=", "\n# "))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", tmp_path / unit.name],
            env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not [each for each in done.stderr.splitlines() if unit.name in each and "user" not in each.lower()]
    timer, known = root / "lib/systemd/system/headway-backup.timer", {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", timer]
    subprocess.run(verify, check=True, env=known, capture_output=True)


def test_the_backup_of_a_night_takes_the_place_of_that_of_a_week_before(tmp_path):
    (line,) = re.findall(r"^ExecStart=(.*)$", (build.HERE / "units/headway-backup.service").read_text(), re.MULTILINE)
    program, option, script = shlex.split(line.replace("$$", "$").replace("%%", "%"))
    url = f"sqlite:///{tmp_path}/headway.db"
    database = Database(url)
    database.open()
    database.close()
    run_here = shlex.join([sys.executable, "-c", "from apps.main import main; main()", "backup", "--store", url])
    script = script.replace("/usr/bin/headway backup", run_here).replace("/var/lib/headway/backups", str(tmp_path))
    for day in range(1, 8):
        (tmp_path / f"headway-{day}.jsonl").write_text("old")
    subprocess.run([program, option, script], cwd=ROOT, check=True, capture_output=True)
    found = [*tmp_path.glob("*.jsonl")]
    assert len(found) == 7
    (made,) = (path for path in found if path.read_text() != "old")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert '"headway_backup"' in made.read_text().splitlines()[0]


def test_a_timer_is_offered_and_what_an_operator_has_enabled_goes_with_the_package(tmp_path):
    (package,) = (one for one in build.DEBS if one.offered)
    offered = ["headway-backup.timer", "headway-backup.service"]
    assert [*package.offered] == offered
    found = build.scripts(package)
    assert not any(unit in found["postinst"] for unit in offered)
    calls = tmp_path / "calls"
    for name in ("systemctl", "deb-systemd-invoke"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{calls}\n')
        (tmp_path / name).chmod(0o755)
    for done in ("upgrade", "remove"):
        calls.write_text("")
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-s", done], input=found["prerm"], text=True, check=True, env=environment)
        is_disabled = "systemctl --no-reload disable headway-backup.timer\n" in calls.read_text()
        assert is_disabled == (done == "remove")


def test_the_daemon_of_the_package_says_what_is_wrong_with_its_file(debs, tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text("{host: a, contollers: []}")
    code = "import sys; sys.argv = ['headway-agent', '--config', sys.argv[1]]; from apps.agent import main; main()"
    done = subprocess.run([sys.executable, "-c", code, file], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"headway-agent: {file}: contollers" in done.stderr
