"""The chain of hashes: whatever is removed, altered, swapped or put in is found, and where."""

import json
from dataclasses import fields, replace
from hashlib import sha256

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.database.chain import BEGINNING, ChainEnd, Remembered, canonical, chained, checked
from controller.database.text import storable

integers = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(exclude_categories=()), max_size=12).map(storable)
changes = st.builds(
    Remembered, integers, texts, texts, texts, texts, texts, st.none() | texts, texts, st.sampled_from(["done", "no"])
)
chains = st.lists(changes, min_size=1, max_size=8).map(lambda many: chained(BEGINNING, many))


def fault_of(rows, cut, last):
    """The number of the first row that is wrong; None if none is."""
    found = checked(rows, cut, last)
    return found.fault and found.fault.number


def test_the_hash_is_what_anybody_can_work_out():
    change = Remembered(1, "local", "::1", "r", "reservation.held", "é", None, '{"rate_bps":1}', "done")
    text = r'[1,1,"local","::1","r","reservation.held","\u00e9",null,"{\"rate_bps\":1}","done"]'
    assert canonical(1, change) == text
    (row,) = chained(BEGINNING, [change])
    assert row.hash == sha256(b"0" * 64 + text.encode()).hexdigest()
    assert len(json.loads(text)) == 1 + len(fields(Remembered))


@given(chains, st.integers(0, 8))
def test_a_chain_as_it_was_written_is_right_from_wherever_its_old_end_was_cut(rows, forgotten):
    forgotten = min(forgotten, len(rows))
    cut = rows[forgotten - 1].end if forgotten else BEGINNING
    found = checked(rows[forgotten:], cut, rows[-1].end)
    assert (found.fault, found.rows, found.end) == (None, len(rows) - forgotten, rows[-1].end)


@given(chains, changes)
def test_parts_written_one_after_the_other_are_one_chain(rows, more):
    behind = chained(rows[-1].end, [more])
    assert [*rows, *behind] == chained(BEGINNING, [row.change for row in (*rows, *behind)])


@given(chains, st.data())
def test_any_removal_is_found_where_it_begins(rows, data):
    first = data.draw(st.integers(0, len(rows) - 1))
    after = data.draw(st.integers(first + 1, len(rows)))
    assert fault_of([*rows[:first], *rows[after:]], BEGINNING, rows[-1].end) == rows[first].number


@given(chains, st.data())
def test_any_alteration_is_found_where_it_is(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from([field.name for field in fields(Remembered)]))
    value = data.draw(integers if name == "at_us" else texts)
    assume(value != getattr(rows[at].change, name))
    altered = replace(rows[at], change=replace(rows[at].change, **{name: value}))
    assert fault_of([*rows[:at], altered, *rows[at + 1 :]], BEGINNING, rows[-1].end) == rows[at].number


@given(chains, st.data())
def test_an_alteration_with_a_hash_made_for_it_is_found_by_the_row_behind_it_or_by_the_last_end(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    before = rows[at - 1].end if at else BEGINNING
    other = replace(rows[at].change, who=rows[at].change.who + "x")
    found = fault_of([*rows[:at], *chained(before, [other]), *rows[at + 1 :]], BEGINNING, rows[-1].end)
    assert found == (rows[at + 1].number if at + 1 < len(rows) else rows[at].number)


@given(st.lists(changes, min_size=2, max_size=8, unique=True), st.data())
def test_any_swap_is_found_at_the_first_of_the_two(many, data):
    rows = chained(BEGINNING, many)
    at = data.draw(st.integers(0, len(rows) - 2))
    other = data.draw(st.integers(at + 1, len(rows) - 1))
    swapped = list(rows)  # what they say; they keep their places
    swapped[at], swapped[other] = (
        replace(rows[at], change=rows[other].change),
        replace(rows[other], change=rows[at].change),
    )
    assert fault_of(swapped, BEGINNING, rows[-1].end) == rows[at].number
    swapped[at], swapped[other] = rows[other], rows[at]  # and whole
    assert fault_of(swapped, BEGINNING, rows[-1].end) == rows[at].number


@given(chains, changes, st.data())
def test_a_row_that_was_put_in_is_found(rows, more, data):
    at = data.draw(st.integers(0, len(rows)))
    before = rows[at - 1].end if at else BEGINNING
    put_in = [*rows[:at], *chained(before, [more]), *rows[at:]]
    assert fault_of(put_in, BEGINNING, rows[-1].end) is not None


@given(chains)
def test_a_chain_made_anew_without_its_first_is_found_by_where_it_was_cut(rows):
    anew = chained(BEGINNING, [row.change for row in rows[1:]])
    assert fault_of(anew, BEGINNING, rows[-1].end) is not None
    assert fault_of(rows[1:], BEGINNING, rows[-1].end) == 1


@pytest.mark.parametrize("last", [ChainEnd(0, "0" * 64), ChainEnd(1, "f" * 64), ChainEnd(7, "f" * 64)])
def test_the_end_that_was_written_down_must_be_the_end(last):
    rows = chained(BEGINNING, [Remembered(1, "a", "b", "c", "d", "e", None, "{}", "done")])
    assert checked(rows, BEGINNING, last).fault is not None
