"""Guards for values that must differ: `uniqueness_queries` answers what kernels ask, from the text of the values."""
