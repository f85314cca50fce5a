"""The way in: REST for scripts and operators."""
