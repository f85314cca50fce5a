"""The agent's log lines."""

from pathlib import Path

from hostagent.log import AgentLog, line


def test_a_line_is_logfmt_whatever_the_values_hold():
    values = {"event": "agent.lost", "why": 'said "no"\nand left', "empty": "", "none": None, "yes": True, "no": False}
    assert line(values) == r'event=agent.lost why="said \"no\"\nand left" empty= none= yes=true no=false'


def test_a_value_is_cut_and_nothing_in_it_is_obeyed_by_a_terminal():
    said = line({"why": "\x1b[2J\u202e" + "x" * 10_000})
    assert said.startswith("why=")
    assert len(said) < 4_200
    assert not set(said) & {"\x1b", "\u202e"}


def test_an_event_is_one_line_with_its_time_and_level_first(capsys):
    AgentLog().warning("agent.stale", epoch=7)
    said = capsys.readouterr().err
    assert said.endswith("Z level=warning event=agent.stale epoch=7\n")
    assert said.startswith("timestamp=20")


def test_an_exception_is_still_one_line_and_what_is_below_the_least_level_is_not_said(capsys):
    log = AgentLog()
    log.least = "error"
    log.info("agent.applied")
    try:
        Path("/nowhere").read_text()
    except OSError:
        log.exception("agent.failed")
    (said,) = capsys.readouterr().err.splitlines()
    assert "level=error event=agent.failed" in said
    assert said.endswith("No such file or directory: '/nowhere'\"")
