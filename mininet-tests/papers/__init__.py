"""One folder a paper: what is measured again of it."""
