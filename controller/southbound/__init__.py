"""What carries the plan out: switches by OpenFlow, queues by OVSDB, hosts by their agents."""
