"""Hosts that misbehave."""
