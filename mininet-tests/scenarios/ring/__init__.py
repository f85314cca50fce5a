"""A ring of sites."""
