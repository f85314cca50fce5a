"""How systemd runs the agent."""
