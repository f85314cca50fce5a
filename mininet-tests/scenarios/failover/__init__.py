"""One of two circuits dies under traffic, and comes back."""
