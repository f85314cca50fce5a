"""Random announcements, reservations and faults."""
