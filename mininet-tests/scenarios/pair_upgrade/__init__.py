"""A pair of controllers from its Debian packages is upgraded in turn, under systemd."""
