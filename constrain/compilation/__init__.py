"""From a source to a Constraint: compiling, saving and loading, caches of what was compiled, warm-up."""
