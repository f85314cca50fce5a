"""The controller is far away from what it controls."""
