"""The entry points and the os-ken application. Wiring only."""
