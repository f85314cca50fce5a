"""Freemon 2013 and its rivals in numbers."""
