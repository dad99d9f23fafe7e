"""CodedRules: rules of a Grammar that know the code of some rules, for which no node need be made."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping

from ..grammar.nodes import Node
from .byte_code import NO_CODE, ByteCode, FirstCode

__all__ = ["CodedRules"]


class CodedRules(Mapping[Hashable, Node]):
    """The rules of a Grammar, some of which append their code themselves: the code of the node of the same name.

    `first_code` is what Programs of the Grammar begin with.
    """

    first_code: FirstCode = NO_CODE

    @abstractmethod
    def append_code(self, name: Hashable, program: ByteCode) -> int | None:
        """Append the code of a rule and return its entry address; None if it has to be linked from its node."""
