"""Programs as they are, over several circuits at once."""
