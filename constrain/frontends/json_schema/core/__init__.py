"""What all keyword groups share: sets of subschemas, JSON values, dialects, white space."""
