"""Strings: their keywords, languages of texts, formats, and how texts are written."""
