"""Each kind of object is broken by hand; audits repair it."""
