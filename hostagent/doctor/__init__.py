"""Whether a host can carry a rate over a round trip, and what must be set for it."""
