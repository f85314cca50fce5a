"""A receiver that reads slower than the plan sends to it."""
