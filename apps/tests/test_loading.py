"""What is loaded is not looked through for garbage, and what nobody needs yet is not loaded."""

import gc
import importlib
import subprocess
import sys
from importlib import metadata

import pytest

from apps.loading import loading
from controller.absent import absent, put_off, without_plugins


def test_nothing_is_collected_while_modules_are_loaded_and_what_they_left_never_again():
    before = gc.get_freeze_count()
    with loading():
        assert not gc.isenabled()
        loaded = [[each] for each in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(loaded)


def test_a_module_that_is_not_there_leaves_the_collector_on():
    with pytest.raises(ModuleNotFoundError), loading():
        import headway.nowhere  # type: ignore[import-not-found]  # noqa: F401
    assert gc.isenabled()


def test_a_controller_loads_neither_the_calendar_nor_postgresql_nor_migrations_before_somebody_asks_for_them():
    asked = "import sys, apps.controller; print(sorted({'alembic', 'icalendar', 'psycopg'} & {*sys.modules}))"
    shown = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


STARTED = """
import sys
files = []
sys.addaudithook(lambda event, of: files.append(str(of[0])) if event == "open" else None)
"""
LOADED = f"""{STARTED}
import apps.main
apps.main.load_reader()
apps.main.load_runner()
from controller.absent import FOR_PACKETS
from controller.southbound.ovsdb.replica import ovs_package
ovs_package()
loaded = {{'eventlet', 'pygments', 'rfc3986.misc', 'rich', 'typer'}} & {{*sys.modules}}
print(sorted(loaded), 'Packet' in vars(sys.modules[FOR_PACKETS]), *[f for f in files if f.endswith('entry_points.txt')])
"""


def test_a_controller_loads_nothing_that_others_only_look_for():
    shown = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert shown.stdout == "[] False\n"


AGENT = f"""{STARTED}
import apps.agent
apps.agent.load()
print(*[file for file in files if file.endswith('entry_points.txt')])
"""


def test_an_agent_looks_for_no_plugins():
    shown = subprocess.run([sys.executable, "-c", AGENT], capture_output=True, text=True, check=True)
    assert shown.stdout == "\n"


def test_who_looks_for_plugins_inside_finds_none_and_outside_what_there_is():
    with without_plugins():
        assert not metadata.entry_points(group="console_scripts")
    assert metadata.entry_points(group="console_scripts")


ANSWERS = """
import sys
from controller.northbound.tests.site import api_of
from controller.tests.fakes import FakeSite
api_of(FakeSite())
print('pydantic.v1' in sys.modules)
"""


def test_the_api_is_made_without_the_models_of_the_first_pydantic():
    shown = subprocess.run([sys.executable, "-c", ANSWERS], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "False"


def test_what_is_missing_for_a_while_is_there_again_and_what_was_loaded_stays(tmp_path, monkeypatch):
    (tmp_path / "wanted_by_others.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with absent("wanted_by_others", "gc"):
        assert importlib.import_module("gc") is gc
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("wanted_by_others")
    assert importlib.import_module("wanted_by_others").__name__ == "wanted_by_others"
    del sys.modules["wanted_by_others"]


def test_what_is_put_off_is_loaded_when_something_in_it_is_looked_at(tmp_path, monkeypatch):
    (tmp_path / "looked_at_later.py").write_text("import sys\nsys.looked_at = [object()]\nANSWER = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    put_off("looked_at_later")
    later = importlib.import_module("looked_at_later")
    assert not hasattr(sys, "looked_at")
    assert later.ANSWER == 42
    loaded = sys.looked_at
    assert later.ANSWER == 42
    assert sys.looked_at is loaded, "it is loaded once, though who has imported it looks again"
    assert importlib.import_module("looked_at_later") is not later, "whoever imports it from now on has it itself"
    del sys.modules["looked_at_later"], sys.looked_at
