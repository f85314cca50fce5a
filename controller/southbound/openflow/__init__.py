"""What a switch should hold, and how it comes to hold it: OpenFlow 1.3 through os-ken."""
