"""The way in: REST for scripts and operators, events as they happen, metrics."""
