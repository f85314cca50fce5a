"""The controller: one bandwidth plan, and what keeps it in the switches and the hosts."""
