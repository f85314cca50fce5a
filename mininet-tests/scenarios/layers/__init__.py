"""Does every layer count right?"""
