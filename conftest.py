"""For all tests: Hypothesis judges answers, not how long a busy machine took to give them."""

from hypothesis import settings

settings.register_profile("headway", deadline=None)
settings.load_profile("headway")
