"""The audit: what switches and hosts hold is compared with what they should hold, and what has drifted is repaired."""
