"""Userspace Open vSwitch on this very machine: rules, meters, queues, TLS, audits."""
