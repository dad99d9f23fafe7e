"""Reports about a schema: its keywords, faults, misspellings and unsatisfiable parts."""
