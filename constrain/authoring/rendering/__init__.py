"""Text of models for people to read, and self-contained HTML pages."""
