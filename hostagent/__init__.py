"""The daemon on a data transfer node: holds the plan's allocations in the kernel."""
