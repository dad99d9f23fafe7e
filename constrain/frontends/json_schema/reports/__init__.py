"""What is reported about a schema: keywords, faults, likely misspellings, unsatisfiable parts."""
