"""What is reported about a schema: keywords, faults, misspellings, unsatisfiable parts."""
