"""Objects: the keywords of keys, the combination of cases, and how an object is written."""
