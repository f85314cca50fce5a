"""How the packages are made."""
