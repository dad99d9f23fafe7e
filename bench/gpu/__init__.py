"""Kernels and constraints on a GPU, and their speed: see `__main__`."""
