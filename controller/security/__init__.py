"""Certificates: the authority that signs them, its files, and the server's side of TLS."""
