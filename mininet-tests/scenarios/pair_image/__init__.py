"""An image is under way while the controller that leads is killed: its time, beside that of an undisturbed one."""
