"""GrammarSource: whatever a Grammar can be made of, so that packages below `forms` can take forms."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..base.options import Limits
from .nodes import Grammar

__all__ = ["GrammarSource"]


class GrammarSource(ABC):
    """Something that stands for a Grammar, such as a Form."""

    @abstractmethod
    def grammar(self, limits: Limits = Limits()) -> Grammar:
        """Return its Grammar. Raise SourceError, UnsupportedError, UnsatisfiableError or LimitError."""
