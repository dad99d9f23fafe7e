"""The algebra of literal sets: formulas, Shapes, AND, OR, NOT, and what is empty."""
