"""Uniqueness of JSON values: `uniqueness_queries` answers queries of the kernels from the text of the values."""
