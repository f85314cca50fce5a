"""The lab: a guest machine in virtual time, its image, its clock, and what runs commands in it."""
