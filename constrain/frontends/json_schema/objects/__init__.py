"""Objects: cases of keys, their demands, and how a settled case is written."""
