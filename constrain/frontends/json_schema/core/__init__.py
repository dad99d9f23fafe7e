"""The lowest layer: sets of subschemas, JSON values, dialects, white space."""
