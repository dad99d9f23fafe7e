"""`JobOptions`: what a job does with every row, checked when it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from os import PathLike
from typing import Any, Literal

from ..base.errors import ArgumentError, ConstrainError, check_choice, check_count, check_type, describe_value
from ..base.options import Style
from ..base.version import __version__
from ..compilation.constraint_compiler import to_grammar
from ..forms import Form, grammar as form_of
from ..frontends.python_types import is_type_expression

__all__ = ["CONSTRAINTS", "JobOptions", "Sync"]

Sync = Literal["row", "second", "end"]
CONSTRAINTS = ("schema", "regex", "grammar", "choices", "type")
"""The fields of a constraint, of which a row has at most one."""
PLACEMENT = ("window", "slots", "sync")
"""Options that do not change the output."""
LONGEST_SHOWN = 120
"""Characters of an option that the side file has as text; a longer one is there as its digest."""


@dataclass(frozen=True)
class JobOptions:
    """What a job does with every row. A row may override the constraint, the prompt and the fields of `job_rows`.

    Attributes
    ----------
    model : str
        "demo", a folder or a hub id.
    schema, regex, grammar, choices, type : optional
        The constraint of the rows that have none of their own; at most one, without any the text is unconstrained. A
        schema is a JSON value or JSON text, a grammar Lark or GBNF text or the name of a built-in grammar. A type is
        named, "package.module:Name", so that workers on other machines can import it.
    prompt : str, optional
        The prompt of the rows that have none.
    arguments : mapping
        Further arguments of `Engine.generate` for every row, such as max_tokens, temperature, top_p, stop or chat.
    seed : int
        Of the job. The seed of a row is derived from it and the row's id.
    arithmetic : {"reproducible", "fast"}
        "reproducible" computes the model in float64: the output does not depend on how rows are batched. "fast" uses
        the model's own precision: rarely, a row differs between two runs whose batches differ.
    style, registry, base_uri, import_paths
        As for `constrain.generate`.
    window : int
        Number of rows that are read ahead of the first row that is not finished.
    slots : int
        Maximum number of texts in a batch of the model.
    sync : {"row", "second", "end"}
        When finished rows are forced to the disk (fsync): each, once a second, or at the end. A killed process loses no
        row that was written; only a crash of the machine can, and they are then computed again.

    Raises
    ------
    ConstrainError
        If an option is invalid, or the constraint is malformed or unsatisfiable.
    """

    model: str = "demo"
    schema: Any = None
    regex: str | None = None
    grammar: str | None = None
    choices: Sequence[str] | None = None
    type: str | None = None
    prompt: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    arithmetic: Literal["reproducible", "fast"] = "reproducible"
    style: Style = Style()
    registry: Mapping[str, Any] | None = None
    base_uri: str = ""
    import_paths: Sequence[str | PathLike[str]] = ()
    window: int = 128
    slots: int = 32
    sync: Sync = "second"

    def __post_init__(self) -> None:
        check_type("model", self.model, str, 'give "demo", a folder or a hub id')
        check_type("arguments", self.arguments, Mapping, "give arguments of Engine.generate by name")
        check_choice("arithmetic", self.arithmetic, ("reproducible", "fast"))
        check_choice("sync", self.sync, ("row", "second", "end"))
        check_count("seed", self.seed)
        check_count("window", self.window, 1)
        check_count("slots", self.slots, 1)
        if self.prompt is not None:
            check_type("prompt", self.prompt, str, "give the prompt of rows without one")
        for name in ("regex", "grammar", "type"):
            if getattr(self, name) is not None:
                check_type(name, getattr(self, name), str, "give a text")
        given = [name for name in CONSTRAINTS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ArgumentError(f"got {' and '.join(given)}: give at most one constraint for all rows")
        if given:
            to_grammar(**self.constraint, style=self.style, registry=self.registry, base_uri=self.base_uri)

    @property
    def constraint(self) -> dict[str, Any]:
        """The constraint of rows without one as an argument of `Engine.generate`; empty if there is none."""
        if self.type is not None:
            return {"type": import_type(self.type)}
        if self.grammar is not None:
            return {"grammar": self.read_grammar(self.grammar)}
        names = ("schema", "regex", "choices")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def read_grammar(self, text: str) -> Form:
        """Return the Form of a grammar, which may import from `import_paths`."""
        return form_of(text, import_paths=self.import_paths)

    def describe(self) -> dict[str, str]:
        """Return what determines the output, by name, long values as digests: the identity of the job."""
        grammar = None if self.grammar is None else self.read_grammar(self.grammar).plain()
        values = {
            **{name: value for name, value in vars(self).items() if name not in PLACEMENT},
            "grammar": grammar, "style": repr(self.style), "import_paths": [str(path) for path in self.import_paths],
            "arguments": dict(self.arguments), "registry": dict(self.registry or {}), "constrain": __version__,
        }  # fmt: skip
        return {name: shorten_value(value) for name, value in values.items()}


def shorten_value(value: Any) -> str:
    """Return a value as JSON text, or the digest of this text if it is long."""
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"sha256:{sha256(text.encode()).hexdigest()}"


def import_type(name: str) -> Any:
    """Import a Python type that is named "package.module:Name". Raise ArgumentError if there is none of this name."""
    module, colon, path = name.partition(":")
    try:
        if not colon or not path:
            raise ArgumentError(f"type is {name!r}", hint='Give "package.module:Name".')
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except ConstrainError:
        raise
    except Exception as error:  # whatever importing the module raises
        raise ArgumentError(
            f"the type {name!r} cannot be imported: {error.__class__.__name__}: {error}",
            hint='Give "package.module:Name" of a module that Python can import here and on every worker.',
        ) from error
    if not is_type_expression(found):
        raise ArgumentError(
            f"{name!r} is {describe_value(found)}, which is not a type",
            hint='Give "package.module:Name" of a class, such as a Pydantic model, a dataclass or a TypedDict.',
        )
    return type(None) if found is None else found  # As an argument, None means that there is none.
