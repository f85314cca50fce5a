"""The commands of ``headway``: what people and scripts type."""
