"""The algebra of sets of subschemas: formulas, Shapes, AND, OR, NOT, oneOf, and satisfiability."""
