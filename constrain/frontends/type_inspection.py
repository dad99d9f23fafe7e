"""What `python_types` and its inverse, `integrations.python_values`, must both know of a type."""

from __future__ import annotations

import collections
import collections.abc
import math
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, InitVar, fields, is_dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..base.errors import UnsupportedError, describe_value, shorten_text
from .schema_bounds import BOUNDS

__all__ = [
    "ARRAYS",
    "MAPPINGS",
    "MOST_NESTED",
    "SETS",
    "check_json_values",
    "count_levels",
    "is_alias",
    "is_json",
    "is_never_hashable",
    "is_pydantic",
    "is_record",
    "is_typeddict",
    "key_required",
    "list_init_fields",
    "list_marks",
    "needs_pydantic",
    "resolve_alias",
    "resolve_hints",
    "unhashable_items",
]

ARRAYS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Set, collections.abc.Iterable,
          collections.abc.Collection, collections.abc.MutableSequence, collections.abc.MutableSet)  # fmt: skip
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.OrderedDict,
            collections.defaultdict, collections.Counter)  # fmt: skip
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)

MOST_NESTED = 12
"""Levels of a generic type within itself. Arguments may double at each: `class P(Generic[T]): p: P[tuple[T, T]]`."""
CONVERSIONS = (
    "discriminator",
    "max_digits",
    "decimal_places",
    "strip_whitespace",
    "to_upper",
    "to_lower",
    "ascii_only",
)
"""Attributes of marks that Pydantic applies, and that are no bounds."""


def is_pydantic(tp: Any) -> bool:
    """Return whether a class is validated by Pydantic: one of its own, or one that tells Pydantic how."""
    return isinstance(tp, type) and (
        hasattr(tp, "__pydantic_validator__") or hasattr(tp, "__get_pydantic_core_schema__")
    )


def is_typeddict(tp: Any) -> bool:
    """Return whether a class is a TypedDict of `typing` or of `typing_extensions`, which are distinct."""
    return isinstance(tp, type) and issubclass(tp, dict) and hasattr(tp, "__required_keys__")


def is_record(tp: Any) -> bool:
    """Return whether a class is a dataclass, NamedTuple or TypedDict."""
    return isinstance(tp, type) and (is_dataclass(tp) or hasattr(tp, "_fields") or is_typeddict(tp))


def resolve_hints(tp: Any) -> dict[str, Any]:
    """Return the annotations of a class and its bases, with the arguments of generic classes for their parameters.

    Parameters
    ----------
    tp : type
        A class, or a generic class with arguments, such as `Box[int]`.

    Raises
    ------
    NameError
        If an annotation names what cannot be found.
    """
    origin = get_origin(tp) or tp
    bindings = dict(zip(getattr(origin, "__parameters__", ()), get_args(tp)))
    hints = get_type_hints(origin, include_extras=True)
    inherited: dict[str, Any] = {}
    for base in reversed(vars(origin).get("__orig_bases__", origin.__bases__)):
        if is_record(get_origin(base) or base):
            inherited.update(resolve_hints(substitute(base, bindings)))
    own = origin.__annotations__  # A TypedDict has those of its bases there, which it cannot change.
    return {
        name: inherited[name]
        if name in inherited and (name not in own or is_typeddict(origin))
        else substitute(hint, bindings)
        for name, hint in hints.items()
    }


def list_init_fields(tp: Any, hints: dict[str, Any]) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass that its `__init__` takes by name, InitVars included, in their order.

    hints: its annotations, in which the types of InitVars take their places.
    """
    stored = {one.name for one in fields(tp)}
    found = {}
    for name, one in tp.__dataclass_fields__.items():
        hint = hints.get(name)
        if isinstance(hint, InitVar) or hint is InitVar:
            hints[name] = getattr(hint, "type", Any)
        elif name not in stored:  # a ClassVar
            continue
        if one.init:
            found[name] = one
    return found


def count_levels(tp: Any) -> int:
    """Return how deep the arguments of a type are nested, 0 if it has none."""
    return max((1 + count_levels(argument) for argument in get_args(tp)), default=0)


def is_alias(tp: Any) -> bool:
    """Return whether a type is an alias made by `type X = ...` or TypeAliasType, which may have arguments."""
    return type(get_origin(tp) or tp).__name__ == "TypeAliasType"


@lru_cache(maxsize=256)
def resolve_alias(tp: Any) -> Any:
    """Return the type that an alias stands for. Raise NameError if it names what cannot be found."""
    alias = get_origin(tp) or tp
    holder = types.SimpleNamespace(__annotations__={"value": alias.__value__})
    module = sys.modules.get(alias.__module__)
    hints = get_type_hints(holder, vars(module) if module else {}, {alias.__name__: alias}, include_extras=True)
    return substitute(hints["value"], dict(zip(alias.__type_params__, get_args(tp))))


def substitute(tp: Any, bindings: dict[Any, Any]) -> Any:
    """Return a type with other types for its type parameters."""
    if isinstance(tp, TypeVar):
        return bindings.get(tp, tp)
    if isinstance(tp, InitVar):
        return InitVar(substitute(tp.type, bindings))
    parameters = getattr(tp, "__parameters__", ())
    if get_origin(tp) is None or not any(parameter in bindings for parameter in parameters):
        return tp
    return tp[tuple(bindings.get(parameter, parameter) for parameter in parameters)]


def key_required(tp: Any, key: str, hint: Any) -> bool:
    """Return whether a TypedDict requires a key.

    `__required_keys__` misses markers in annotations that are strings, as all are under `from __future__ import
    annotations`; the hints have them.
    """
    mark = getattr(get_origin(hint), "__name__", getattr(get_origin(hint), "_name", ""))
    return mark == "Required" or (mark != "NotRequired" and key in tp.__required_keys__)


def list_marks(marks: Iterable[Any]) -> Iterator[Any]:
    """Yield the marks of an Annotated, each followed by those that it groups."""
    for mark in marks:
        yield mark
        yield from getattr(mark, "metadata", None) or ()


def needs_pydantic(marks: Iterable[Any]) -> bool:
    """Return whether the marks of an Annotated have more than bounds that a JSON Schema states.

    Only Pydantic applies these: validators, predicates, conversions, discriminators, bounds that are no numbers.
    """
    return any(map(is_applied_by_pydantic, list_marks(marks)))


def is_applied_by_pydantic(mark: Any) -> bool:
    """Return whether only Pydantic applies a mark. Marks that it does not know are no conditions."""
    if hasattr(mark, "__get_pydantic_core_schema__") or hasattr(mark, "__get_pydantic_json_schema__"):
        return True
    if type(mark).__module__ == "annotated_types" and type(mark).__name__ in ("Not", "Predicate"):
        return True
    if any(getattr(mark, name, None) is not None for name in CONVERSIONS):
        return True
    bounds = [getattr(mark, name, None) for name in BOUNDS]
    return isinstance(getattr(mark, "pattern", None), re.Pattern) or any(
        bound is not None and not isinstance(bound, (int, float, Decimal)) for bound in bounds
    )


def is_json(value: Any) -> bool:
    """Return whether a value can be written as JSON, a tuple as an array."""
    if isinstance(value, (list, tuple)):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    if isinstance(value, (float, Decimal)):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, int))


def check_json_values(name: str, values: Iterable[Any], is_read: Callable[[Any], bool] = is_json) -> None:
    """Raise UnsupportedError if a value of an Enum or Literal is not read from JSON. name: that of the type."""
    for value in values:
        if not is_read(value):
            raise UnsupportedError(
                f"{describe_value(value)}, a value of {shorten_text(name)}, cannot be read from JSON.",
                hint="Take texts, numbers, booleans or None for the values.",
            )


def is_never_hashable(tp: Any, entered: tuple[Any, ...] = ()) -> bool:
    """Return whether no value of a type can be hashed, so that none is an item of a set.

    A type of which some values can be, such as `list[int] | int` or `Any`, is not one. entered: aliases around the
    type, which may refer to themselves.
    """
    origin, args = get_origin(tp), get_args(tp)
    if hasattr(tp, "__supertype__"):
        return is_never_hashable(tp.__supertype__, entered)
    if is_alias(tp):
        return tp not in entered and is_never_hashable(resolve_alias(tp), (*entered, tp))
    if origin is Annotated:  # A validator may make another value of it.
        return not needs_pydantic(args[1:]) and is_never_hashable(args[0], entered)
    if origin is Union or origin is types.UnionType:
        return all(is_never_hashable(member, entered) for member in args)
    if origin is tuple:
        return Ellipsis not in args and any(is_never_hashable(item, entered) for item in args)
    cls = origin or tp
    if cls in (*ARRAYS, *MAPPINGS):  # made as lists, sets and dicts
        return cls is not frozenset
    return isinstance(cls, type) and cls.__hash__ is None


def unhashable_items(name: str) -> UnsupportedError:
    """Return the error for a set of items that can never be hashed."""
    return UnsupportedError(
        f"A set cannot have items of the type {shorten_text(name)}: they have no hash.",
        hint="Take list[...] for the set, or items that cannot change: a tuple, a frozenset, a frozen class.",
    )
