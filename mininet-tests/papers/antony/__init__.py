"""Bursts in small buffers: Antony 2003, and section V.A of Freemon 2013."""
