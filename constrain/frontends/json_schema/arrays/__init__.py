"""Arrays: cases of items, counts of them, and members that differ."""
