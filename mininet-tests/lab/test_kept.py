"""A scenario is kept as it ended, and is no success if a part of it has died."""

import threading

import pytest

from mininet_tests.lab.kept import kept


def writes(folder):
    """A scenario that ends well."""
    (folder / "report.json").write_text("{}")


def fails(folder):
    """One that does not."""
    writes(folder)
    raise RuntimeError("no plan")


def goes_on_without_a_thread(folder):
    """One that does not notice that what was to measure has died."""
    writes(folder)
    thread = threading.Thread(target=int, args=("x",), name="sampler")
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("scenario", "code", "said"),
    [(writes, 0, ""), (fails, 1, "no plan"), (goes_on_without_a_thread, 1, "a thread died: sampler: ValueError")],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_was_written_is_kept_and_it_is_said_what_went_wrong(tmp_path, capsys, scenario, code, said):
    before = threading.excepthook
    assert kept("lanes", tmp_path / "out", scenario) == code
    assert (tmp_path / "out" / "report.json").read_text() == "{}"
    assert said in capsys.readouterr().err
    assert threading.excepthook is before
