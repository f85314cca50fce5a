"""One folder a scenario: run, report, figure and test side by side."""
