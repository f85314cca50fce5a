"""The network in Mininet, the lab it runs in, and all that is measured there."""
