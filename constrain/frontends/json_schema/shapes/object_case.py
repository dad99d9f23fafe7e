"""The objects that a schema allows, as one case of a Shape.

An `ObjectCase` has a set of subschemas for every *declared* name (every name that any keyword mentions) and *cells* for
all other names: disjoint languages, each with its set. So the set of a key is always the conjunction of all that
applies to it, and "a pattern matches a declared key" or "required but not in properties" need no special code.
`objects.object_cases` combines cases.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.schema_sets import ANY, SchemaSet
from ..strings.string_languages import ALL, Language

__all__ = ["ANY_OBJECT", "NO_NAMES", "Cell", "ObjectCase"]

Cell = tuple[Language, SchemaSet]


class ObjectCase(NamedTuple):
    """Objects with low <= number of members <= high (None: no bound).

    names: declared names with the sets of their values (NEVER: the key is forbidden), in the order of first mention.
    required: those that must be present. mentioned: those that occur in no `properties`; they are written last. cells:
    languages of other names (declared names do not count, even if in the language), pairwise disjoint; a name in none
    of them is forbidden. needs: (name, names that must be present if it is). existentials: (language, set): at least
    one key in the language has a value in the set. clauses: unions; an object must be in some case of each of them.
    Used where a product would have too many cases.
    """

    names: tuple[tuple[str, SchemaSet], ...] = ()
    required: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()
    cells: tuple[Cell, ...] = ((ALL, ANY),)
    low: int = 0
    high: int | None = None
    needs: tuple[tuple[str, frozenset[str]], ...] = ()
    existentials: tuple[Cell, ...] = ()
    clauses: tuple[tuple[ObjectCase, ...], ...] = ()


ANY_OBJECT = ObjectCase()

NO_NAMES: frozenset[str] = frozenset()
