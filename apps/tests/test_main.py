"""The command: wrong configurations, wrong environments, wrong controllers; one clear line and the right exit code."""

import contextlib
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from apps import main, start_check
from apps.cli.main import PANELS, app
from apps.cli.tests.running import CliRunner
from controller.database import Changes, Database, DatabaseBusy, PurchaseRow
from controller.database.schema import known_schemas
from controller.plan.reservations import Constraints
from controller.plan.tests.asking import asked, created
from controller.tests.fakes import image, ready_site
from mininet_tests.testing.loopback import OWN
from mininet_tests.testing.networks import FILES, loaded
from topology import __version__

ROOT = Path(__file__).parents[2]
HEADWAY = str(Path(sys.executable).parent / "headway")
CONFIG = f"""\
network: {FILES["chile-illinois"]}
listen: {{rest: 'HOST:PORT', openflow: 'HOST:PORT', agents: 'HOST:PORT'}}
"""


def headway(*arguments):
    """Run the command; return (exit code, standard error)."""
    done = subprocess.run([HEADWAY, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.fixture
def checked(monkeypatch):
    """Run the command's check of a file in this process, which has loaded all; return (exit code, output, errors)."""
    monkeypatch.setattr(main, "load_reader", lambda: None)

    def run(file):
        done = CliRunner().invoke(app, ["controller", "--config", str(file), "--check"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    return run


@pytest.fixture
def config(tmp_path):
    """A good configuration on free ports."""
    text = CONFIG.replace("HOST", OWN)
    with contextlib.ExitStack() as free:
        for _ in range(3):
            one = free.enter_context(socket.create_server((OWN, 0)))
            text = text.replace("PORT", str(one.getsockname()[1]), 1)
    file = tmp_path / "controller.yaml"
    file.write_text(f"{text}\nstore: sqlite:///{tmp_path}/headway.db\n")
    return file


def test_a_right_configuration_is_said_to_be_right(config):
    assert headway("controller", "--config", str(config), "--check") == (0, "")


def test_every_problem_of_a_configuration_is_one_line_and_the_exit_code_is_2(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("network: none.yaml\nlisten: {rset: x}\n")
    code, said = headway("controller", "--config", str(file))
    assert code == 2
    assert said.splitlines() == [
        f"headway: {file}: line 2: listen.rset: there is no such key",
        f"headway: {file}: line 1: network: none.yaml: cannot be read: No such file or directory",
    ]


def test_a_configuration_is_not_right_while_the_start_would_fail(config, tmp_path):
    text = config.read_text()
    port = int(yaml.safe_load(text)["listen"]["rest"].rpartition(":")[2])
    config.write_text(text.replace(f"sqlite:///{tmp_path}", f"sqlite:///{tmp_path}/none"))
    with socket.create_server((OWN, port)):
        code, said = headway("controller", "--config", str(config), "--check")
    assert code == 1
    taken, store = said.splitlines()
    assert f"{config}: listen.rest: {OWN}:{port}: Address already in use" in taken
    assert f"{config}: store: " in store
    assert f"there is no folder {tmp_path}/none: make it first" in store


def test_a_socket_in_the_folder_that_the_unit_makes_at_each_start_is_right_before_the_first(config, tmp_path, checked):
    unit = (ROOT / "contrib/packaging/units/headway-controller.service").read_text()
    assert f"RuntimeDirectory={start_check.MADE_AT_START.name}\n" in unit
    for where, code in ((start_check.MADE_AT_START, 0), (tmp_path / "none", 1)):
        listen = yaml.safe_load(config.read_text())
        listen["listen"]["rest_socket"] = f"{where}/rest.sock"
        (tmp_path / "local.yaml").write_text(yaml.safe_dump(listen))
        found, _, said = checked(tmp_path / "local.yaml")
        assert (found, f"there is no folder {where}: make it first" in said) == (code, bool(code)), said


@pytest.mark.parametrize("which", ["rest_socket", "agents"])
def test_a_path_is_free_unless_somebody_listens_there_or_it_is_no_socket(tmp_path, which):
    path = tmp_path / "here"
    listen = dict.fromkeys(("openflow", "rest", "agents"), "nowhere")
    listen[which] = f"unix:{path}" if which == "agents" else str(path)
    (tmp_path / "controller.yaml").write_text(yaml.safe_dump({"listen": listen, "store": "sqlite://"}))
    taken = f"listen.{which}: unix:{path}: Address already in use: end who listens there, or take another"
    assert start_check.hindrances_beside(tmp_path / "controller.yaml") == ()
    with socket.socket(socket.AF_UNIX) as another:
        another.bind(str(path))
        another.listen()
        assert start_check.hindrances_beside(tmp_path / "controller.yaml") == (taken,)
    assert start_check.hindrances_beside(tmp_path / "controller.yaml") == (), "it is left of a dead one"
    path.unlink()
    path.write_text("")
    assert start_check.hindrances_beside(tmp_path / "controller.yaml") == (taken,)


@pytest.mark.parametrize("which", ["rest", "openflow", "agents"])
def test_a_check_looks_at_addresses_and_database_though_something_else_in_the_file_is_wrong(
    config, tmp_path, checked, which
):
    wrong = config.read_text().replace(f"sqlite:///{tmp_path}", f"sqlite:///{tmp_path}/none") + "lease: soon\n"
    config.write_text(wrong)
    port = int(yaml.safe_load(wrong)["listen"][which].rpartition(":")[2])
    with socket.create_server((OWN, port)):
        code, _, said = checked(config)
    assert code == 2
    lease, taken, store = said.splitlines()
    assert "lease: " in lease
    assert f"{config}: listen.{which}: {OWN}:{port}: Address already in use" in taken
    assert f"there is no folder {tmp_path}/none: make it first" in store
    config.write_text(wrong.replace("sqlite://", "mysql://"))
    code, _, said = checked(config)
    assert (code, said.count("store")) == (2, 1), "the URL is said to be wrong once"


def test_a_check_finds_the_database_in_use_and_leaves_nothing_behind(config, tmp_path, checked):
    assert checked(config)[::2] == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == [config.name]
    database = Database(f"sqlite:///{tmp_path}/headway.db")
    database.open()
    try:
        code, _, said = checked(config)
    finally:
        database.close()
    assert (code, "in use by process" in said) == (1, True), said


def written_by_another(file, schema):
    """Have a database of that schema."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE headway_version SET version_num = ?", (schema,))


def test_a_check_finds_a_database_that_the_start_would_refuse(config, tmp_path, checked):
    file = tmp_path / "headway.db"
    database = Database(f"sqlite:///{file}")
    database.open()
    database.close()
    assert checked(config)[::2] == (0, "")
    written_by_another(file, "9999")
    code, _, said = checked(config)
    assert (code, "store: " in said, "(schema 9999)" in said) == (1, True, True), said
    file.write_bytes(b"no database" * 500)
    code, _, said = checked(config)
    assert (code, "store: " in said, "file is not a database" in said) == (1, True, True), said


def test_a_check_says_which_promises_a_restart_with_another_network_would_end(config, tmp_path, checked):
    def checked_with(network):
        """What is said of a network's file, beside the controller that has the database; exit code and lines."""
        text = config.read_text().splitlines()
        config.write_text("\n".join([f"network: {FILES[network]}", *text[1:]]) + "\n")
        code, said, wrong = checked(config)
        return code, said.splitlines(), wrong.splitlines()

    site = ready_site(database=f"sqlite:///{tmp_path}/headway.db", network=loaded(FILES["chile-illinois-2"]))
    start_us = time.time_ns() // 1000
    site.clock.now_us = start_us
    for name, circuit in (("database", "north"), ("images", "south")):
        wanted = asked(
            start_us=start_us, end_us=start_us + 10**11, rate_bps=3 * 10**8, constraints=Constraints(include=(circuit,))
        )
        site.use_cases.hold(lambda _, w=wanted: w, lambda now_us, n=name: created(n, now_us)).saved.result()
    site.announce(image())
    try:
        code, said, wrong = checked_with("chile-illinois-north")
        assert code == 3
        busy, summary, *lost = wrong
        assert "in use by process" in busy
        assert summary == f"headway: {config}: 1 of 3 promises would not be kept after a start with this network:"
        (images,) = lost
        assert images.startswith(f"headway: {config}: reservation images, 20"), images
        assert images.endswith(": fails: its path is not in the network any more: ls1 - south - ch1")
        assert said == []
        code, said, wrong = checked_with("chile-illinois-2")
        assert (code, len(wrong), said) == (1, 1, [f"{config}: this network keeps all promises, 3"])
        bought = PurchaseRow("south", "hw-1", start_us, start_us + 10**11, 3 * 10**8, "up")
        site.database.save(Changes(purchases=(bought,))).result()
    finally:
        site.database.close()
    code, said, wrong = checked_with("chile-illinois-2")
    assert (code, said[-1], len(wrong)) == (3, f"{config}: this network keeps all promises, 3", 1)
    assert wrong[0].startswith(f"headway: {config}: hw-1 is bought of the provider of south until 20"), wrong


@pytest.mark.parametrize("which", ["rest", "openflow", "agents"])
def test_a_port_that_is_taken_is_named_and_the_exit_code_is_1(config, which):
    port = int(yaml.safe_load(config.read_text())["listen"][which].rpartition(":")[2])
    with socket.create_server((OWN, port)):
        code, said = headway("controller", "--config", str(config))
    assert code == 1
    assert str(port) in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("pair", "schema", "wrong"),
    [
        ("", known_schemas()[0], "in use by headway, process 812"),
        ("pair: {adress: 'https://ctl-b:8080'}", known_schemas()[0], ""),
        ("pair: {adress: 'https://ctl-b:8080'}", "9999", "(schema 9999)"),
    ],
)
def test_one_of_a_pair_minds_what_the_other_one_has_written_but_not_that_it_has_the_database(
    tmp_path, monkeypatch, pair, schema, wrong
):
    def busy(database):
        raise DatabaseBusy(database.url, "headway, process 812 on ctl-a")

    store = f"sqlite:///{tmp_path}/headway.db"  # in place of a server's
    database = Database(store)
    database.open()
    database.close()
    written_by_another(tmp_path / "headway.db", schema)
    monkeypatch.setattr(Database, "try_out", busy)
    file = tmp_path / "controller.yaml"
    file.write_text(f"listen: everywhere\nstore: {store}\n{pair}\n")
    found = start_check.hindrances_beside(file)
    assert len(found) == bool(wrong)
    assert wrong in "".join(found)


def test_a_controller_that_is_not_there_is_one_line():
    code, said = headway("plan", "--url", "http://127.0.0.1:1")
    assert (code, len(said.splitlines())) == (1, 1)
    assert "no controller at http://127.0.0.1:1" in said


def test_a_size_without_a_meaning_is_refused_with_an_example():
    code, said = headway("announce", "--from", "a", "--to", "b", "--bytes", "many")
    assert code == 2
    assert "2.7 GB" in said


def test_an_agents_wrong_configuration_ends_with_2(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("hots: base20\n")
    code, said = headway("agent", "--config", str(file))
    assert code == 2
    assert "hots" in said


@pytest.mark.parametrize("program", [(HEADWAY, "agent"), (f"{HEADWAY}-agent",)])
def test_an_agents_configuration_that_is_not_there_is_named_once(tmp_path, program):
    file = tmp_path / "a.yaml"
    done = subprocess.run([*program, "--config", file], capture_output=True, text=True, check=False, timeout=60)
    name = Path(program[0]).name
    said = f"{name}: {file}: cannot be read: No such file or directory\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_the_version_is_said():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"{__version__}\n")


def test_a_full_disk_behind_what_is_printed_is_one_line():
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        command = [Path(sys.executable).parent / "headway", "version"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "headway: No space left on device\n")


def test_the_commands_teach():
    for command in ("controller", "agent", "announce", "release", "plan", "hosts"):
        done = CliRunner().invoke(app, [command, "--help"], prog_name="headway")
        assert done.exit_code == 0
        assert "Usage: headway" in done.stdout


def test_a_command_does_not_load_what_only_the_processes_need():
    code = "import sys, apps.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    slow = {"cryptography", "fastapi", "http", "httpx", "os_ken", "pydantic", "rich", "sqlalchemy", "ssl", "structlog"}
    assert not slow & set(loaded)


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_a_machine_without_the_controllers_packages_says_which_to_install(tmp_path, check):
    code = "import sys; sys.modules['networkx'] = None; from apps.main import main; main()"
    file = tmp_path / "site.yaml"
    file.write_text("network: {name: figure2}\n")
    command = [sys.executable, "-c", code, "controller", "--config", str(file), *check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs the package headway-controller" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_help_shows_every_command_in_its_panel_and_no_panel_is_for_nothing():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    after = {panel: shown.partition(f"─ {panel} ─")[2].partition("╰")[0] for panel in PANELS}
    assert all(f"│ {name} " in after[panel] for panel, names in PANELS.items() for name in names)
    assert "─ Commands ─" not in shown
