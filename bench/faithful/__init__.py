"""Do samplers draw from p given L? Exact distributions, G-tests, and divergence by draws and model evaluations."""
