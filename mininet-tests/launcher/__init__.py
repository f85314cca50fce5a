"""One program for all experiments: ``mininet-tests/run``. Standard library only."""
