"""Freemon 2013, figure 2: the demo."""
