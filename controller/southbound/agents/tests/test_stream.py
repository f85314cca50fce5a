"""What is done with an agent's stream, state by event."""

import re
from itertools import product
from pathlib import Path

import pytest

from controller.southbound.agents.stream import REACTIONS, Reaction, StreamEvent, StreamState


@pytest.mark.parametrize(("state", "event"), [*product(StreamState, StreamEvent)])
def test_every_event_has_a_reaction_in_every_state(state, event):
    assert isinstance(REACTIONS[state][event], Reaction)


def test_nobody_is_heard_before_his_hello_and_nobody_is_greeted_twice():
    assert Reaction.TAKE not in REACTIONS[StreamState.NEW].values()
    assert Reaction.GREET not in REACTIONS[StreamState.SESSION].values()


@pytest.mark.parametrize("state", StreamState)
def test_who_is_silent_or_not_understood_is_ended_wherever_he_stands(state):
    assert REACTIONS[state][StreamEvent.SILENT] is Reaction.ABORT
    assert REACTIONS[state][StreamEvent.NONSENSE] is Reaction.CLOSE


def test_the_table_in_the_documents_is_this_one():
    text = (Path(__file__).parents[4] / "docs/decisions/0010-websockets-over-tls.md").read_text()
    rows = re.search(r"^\| an agent that \|.*\n(?:\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    assert rows == [
        f"| an agent that | {' | '.join(StreamState)} |",
        "|---|---|---|",
        *(f"| {event} | {' | '.join(REACTIONS[state][event] for state in StreamState)} |" for event in StreamEvent),
    ]
