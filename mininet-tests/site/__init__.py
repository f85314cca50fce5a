"""The network realised: Mininet, Open vSwitch, databases, hosts' connections, and the faults that can be made there."""
