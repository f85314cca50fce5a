"""The kernel's side: the kernel part loaded, its maps filled, what an agent before has left taken away."""
