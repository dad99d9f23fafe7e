"""The version of the library, beside the one in pyproject.toml."""

__all__ = ["__version__"]

__version__ = "0.1.0"
