"""The Debian packages in a Debian of their own, with systemd as its first process."""
