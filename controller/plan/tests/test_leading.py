"""Whether two can lead at once: any number of controllers, clocks that agree in nothing, messages that come late."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.leading import TTL_US, Leading, PairStanding

SETTINGS_S = 3


@dataclass
class ServerRow:
    """The row as the database keeps it: by its own clock, one question after the other."""

    term: int = 0
    until_us: int = 0

    def asked(self, term: int, at_us: int) -> int | None:
        """A renewal under a term, or 0 for who would like to take it; the term under which it is the asker's then."""
        if term and term != self.term:
            return None
        if not term and at_us < self.until_us:
            return None
        self.term += not term
        self.until_us = at_us + TTL_US
        return self.term


@dataclass
class Candidate:
    """A controller: its clock is off by any amount, and its question may be on its way."""

    off_us: int
    leading: Leading = field(default_factory=Leading)
    asked_us: int | None = None
    answer: int | None = None
    is_answered: bool = False

    def acts(self, row: ServerRow, now_us: int) -> None:
        """Send a question, have it arrive, or read the answer: whichever is next."""
        if self.asked_us is None:
            if not self.leading.is_deposed:
                self.asked_us = now_us + self.off_us
        elif not self.is_answered:
            self.answer, self.is_answered = row.asked(self.leading.term, now_us), True
        else:
            self._reads(self.asked_us)
            self.asked_us, self.is_answered = None, False

    def _reads(self, asked_us: int) -> None:
        if self.leading.term and self.answer is None:
            self.leading = self.leading.deposed()
        elif self.leading.term:
            self.leading = self.leading.renewed(asked_us, TTL_US)
        elif self.answer is not None:
            self.leading = self.leading.took(self.answer, asked_us, TTL_US)

    def standing(self, now_us: int) -> PairStanding:
        """How it stands, as it knows it."""
        return self.leading.standing(now_us + self.off_us)


steps = st.lists(st.tuples(st.integers(0, SETTINGS_S - 1), st.integers(0, TTL_US)), max_size=80)
offs = st.lists(st.integers(-(10**12), 10**12), min_size=SETTINGS_S, max_size=SETTINGS_S)


@given(offs, steps)
def test_two_never_lead_at_once_however_late_answers_come_and_whatever_clocks_say(offs, steps):
    row, now_us = ServerRow(), 10**6
    candidates = [Candidate(off_us) for off_us in offs]
    for who, later_us in steps:
        now_us += later_us
        candidates[who].acts(row, now_us)
        leaders = [one for one in candidates if one.standing(now_us) is PairStanding.LEADER]
        assert len(leaders) <= 1
        assert all(one.leading.term == row.term for one in leaders)


@given(offs, steps)
def test_who_was_followed_never_leads_again(offs, steps):
    row, now_us = ServerRow(), 10**6
    candidates = [Candidate(off_us) for off_us in offs]
    for who, later_us in steps:
        now_us += later_us
        candidates[who].acts(row, now_us)
        for one in candidates:
            if one.leading.term and one.leading.term < row.term:
                assert one.standing(now_us) in {PairStanding.UNSURE, PairStanding.DEPOSED}


def test_one_that_is_not_confirmed_for_a_whole_time_is_unsure_and_leads_again_once_it_is():
    leading = Leading().took(7, 1_000, TTL_US)
    assert leading.standing(999 + TTL_US) is PairStanding.LEADER
    assert leading.standing(1_000 + TTL_US) is PairStanding.UNSURE
    assert leading.renewed(5_000_000, TTL_US).standing(5_000_001) is PairStanding.LEADER


def test_a_late_answer_to_an_early_question_takes_nothing_back():
    leading = Leading().took(7, 1_000, TTL_US).renewed(9_000, TTL_US)
    assert leading.renewed(5_000, TTL_US).until_us == 9_000 + TTL_US


def test_the_deposed_stay_so():
    gone = Leading().took(7, 0, TTL_US).deposed()
    assert gone.standing(1) is PairStanding.DEPOSED
    assert gone.renewed(2, TTL_US).standing(3) is PairStanding.DEPOSED
