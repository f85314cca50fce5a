"""How long the circuit is idle when an image comes and goes."""
