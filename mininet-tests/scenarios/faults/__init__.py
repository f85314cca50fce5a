"""What breaks around the plan while traffic runs."""
