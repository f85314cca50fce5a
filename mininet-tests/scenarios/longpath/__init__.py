"""The agent on a long line."""
