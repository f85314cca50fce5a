"""What people look at: one screen, a page for each thing, and what they do there; made here, nothing from elsewhere."""
