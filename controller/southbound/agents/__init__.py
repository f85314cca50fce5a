"""The agents on the hosts: the port they dial, and each one's connection."""
