"""GrammarSource: the interface of objects that define a Grammar, so that packages below `forms` can accept forms."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..base.options import Limits
from .nodes import Grammar

__all__ = ["GrammarSource"]


class GrammarSource(ABC):
    """An object that defines a Grammar, such as a Form."""

    @abstractmethod
    def grammar(self, limits: Limits = Limits()) -> Grammar:
        """Return the Grammar. Raise SourceError, UnsupportedError, UnsatisfiableError or LimitError."""
