"""What is asked and answered under ``/v1``: bodies in, handlers, and what they render."""
