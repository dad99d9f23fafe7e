"""constrain: language models answer in exactly the form that you ask for.

    constrain.generate("demo", "Describe a person.", schema=Person)     the answer, validated
    constrain.compile(vocabulary, schema=...).matcher()                 the mask for your own loop
    constrain.ConstraintLogitsProcessor(constraint)                     for `model.generate` of transformers

`docs/tour.md` walks through the rooms behind these names.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import grammars as grammars
    from .batches import apply_mask, fill_masks
    from .compile import Constraint, compile, compile_grammar
    from .dialogue import ToolCall, tool_calls, tools  # type: ignore[no-redef]  # there are files of these names, too
    from .errors import (
        ArgumentError,
        ConstrainError,
        GrammarError,
        LimitError,
        RegexError,
        SchemaError,
        SchemaWarning,
        SourceError,
        TokenRefused,
        UnsatisfiableError,
        UnsupportedError,
        ValueRefused,
        VocabularyError,
        VocabularyWarning,
    )
    from .forms import (  # type: ignore[no-redef]
        Form,
        free_text,
        gbnf,
        json_schema,
        lark,
        literal,
        mark,
        regex,
        thinking,
        triggered,
    )
    from .generate import Generation, generate
    from .grammar.nodes import Grammar
    from .infer import infer
    from .integrations.processor import ConstraintLogitsProcessor
    from .matcher import Matcher
    from .rehearsal import rehearse
    from .style import Limits, Style
    from .tokens.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "ConstrainError",
    "Constraint",
    "ConstraintLogitsProcessor",
    "Form",
    "Generation",
    "Grammar",
    "GrammarError",
    "LimitError",
    "Limits",
    "Matcher",
    "RegexError",
    "SchemaError",
    "SchemaWarning",
    "SourceError",
    "Style",
    "TokenRefused",
    "ToolCall",
    "UnsatisfiableError",
    "UnsupportedError",
    "ValueRefused",
    "Vocabulary",
    "VocabularyError",
    "VocabularyWarning",
    "__version__",
    "apply_mask",
    "compile",
    "compile_grammar",
    "fill_masks",
    "free_text",
    "gbnf",
    "generate",
    "infer",
    "json_schema",
    "lark",
    "literal",
    "mark",
    "regex",
    "rehearse",
    "thinking",
    "tool_calls",
    "tools",
    "triggered",
]

_ROOMS = {
    "batches": "apply_mask fill_masks",
    "compile": "Constraint compile compile_grammar",
    "dialogue": "ToolCall tool_calls tools",
    "errors": "ArgumentError ConstrainError GrammarError LimitError RegexError SchemaError SchemaWarning SourceError "
    "TokenRefused UnsatisfiableError UnsupportedError ValueRefused VocabularyError VocabularyWarning",
    "forms": "Form free_text gbnf json_schema lark literal mark regex thinking triggered",
    "generate": "Generation generate",
    "grammar.nodes": "Grammar",
    "infer": "infer",
    "integrations.processor": "ConstraintLogitsProcessor",
    "matcher": "Matcher",
    "rehearsal": "rehearse",
    "style": "Limits Style",
    "tokens.vocabulary": "Vocabulary",
}
"""Where public names are. A room is entered when something of it is first asked for: who masks needs no samplers."""
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}


class _Package(ModuleType):
    """The package, in which `compile` is the function also when Python has just loaded the file of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        setattr(sys.modules[__name__], name, value)
        return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Package
