"""Arrays: the keywords of items, the combination of cases, and how a case is written."""
