"""The queues of switch ports: written to Open vSwitch's database, and as the kernel has them."""
