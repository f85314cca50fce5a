"""A pair of controllers: how long nobody answers when the one that leads dies, hangs, or lets the other one."""
