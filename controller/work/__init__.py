"""The threads: carry the plan out, act on time, buy circuits."""
