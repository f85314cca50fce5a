"""What is loaded is not looked through for garbage, and what nobody needs yet is not loaded."""

import gc
import subprocess
import sys

import pytest

from apps.loading import loading


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


def test_a_controller_loads_neither_the_calendar_nor_postgresql_before_somebody_asks_for_them():
    asked = "import sys, apps.controller; print(sorted({'icalendar', 'psycopg'} & {*sys.modules}))"
    shown = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
