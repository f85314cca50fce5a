"""The configuration's file: read once, its shape checked as a whole; each section goes to the part it is for."""
