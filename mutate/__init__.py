"""Mutation testing: are the tests of the kernels, the shape algebra and the samplers able to fail?"""
