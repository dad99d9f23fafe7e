"""Mutation testing of the kernels, the shape algebra and the samplers."""
