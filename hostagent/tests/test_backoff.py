"""How long the agent waits before it dials again."""

from hypothesis import given
from hypothesis import strategies as st

from hostagent.agent.staying import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, backoff_s

jitters = st.floats(0, 1)


@given(st.integers(0, 10**9), jitters)
def test_a_wait_is_between_half_of_its_longest_and_that(failures, jitter):
    longest_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(failures, 30))
    assert longest_s / 2 <= backoff_s(failures, jitter) <= longest_s


@given(st.integers(0, 100), jitters)
def test_it_never_gets_shorter_with_more_failures(failures, jitter):
    assert backoff_s(failures, jitter) <= backoff_s(failures + 1, jitter)


def test_agents_of_a_restarted_controller_come_back_over_half_of_the_time():
    assert {backoff_s(0, k / 10) for k in range(11)} >= {0.2, 0.1}
