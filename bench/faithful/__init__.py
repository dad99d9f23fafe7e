"""Do samplers draw from p given L? Exact laws, G-tests, and how divergence falls with draws and model evaluations."""
