"""One module a step; each leads from one schema to the next, and is never changed once released."""
