"""Real databases: a controller that dies, PostgreSQL."""
