"""Checkers of texts while they are written."""
