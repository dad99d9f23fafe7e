"""Objects: cases of keys, their existentials, and how a settled case is written."""
