"""The heart of the controller: what was wished, what was reported, what is in force and what is desired.

Each part is an immutable value. One lock guards the value that holds them all; to change something is to replace it.
"""
