"""Strings: their keywords, languages, formats, and how texts are emitted."""
