"""Every parser that a stranger reaches is given what nobody sane would send."""
