"""Strings: patterns, lengths and formats as languages of characters."""
