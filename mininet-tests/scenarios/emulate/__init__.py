"""Any network of a file under the plan, before it is deployed: who sends what, and when, from another file."""
