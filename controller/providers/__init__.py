"""Who sells the circuit. Today a leased line, which is the topology's own data."""
