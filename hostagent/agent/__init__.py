"""The daemon: attached to a controller, it holds the plan that it is given and reports."""
