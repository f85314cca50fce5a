"""Where this host puts what it receives: what that takes at once, and what it drains for good."""
