"""What the parts cost, and how fast they are; JSON each."""
